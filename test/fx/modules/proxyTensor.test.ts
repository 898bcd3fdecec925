// makeFx's modes and tables, and fake tensor propagation; PyTorch's experimental.proxy_tensor and passes.fake_tensor_prop.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { DecompositionInterpreter, FakeTensorProp, disableProxyModesTracing, getIsolatedGraphModule, getProxyMode, makeFx } from 'tensorfx/aot'
import type { MakeFxOptions } from 'tensorfx/aot'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { F, Linear, Module, ReLU, Sequential } from 'tensorfx/nn'
import { detInit } from '../../helpers/deterministic.ts'
import { X, Y, chain, describeGolden, messageOf, resultOf } from './golden.ts'

interface Shown {
  readonly graph: string
}

/** The operators of a graph of PyTorch, without their overloads and what copies constants. */
const theirOps = ({ graph }: Shown): string[] =>
  [...graph.matchAll(/target=torch\.ops\.aten\.(\w+)/g)].map(([, name = '']) => name).filter((name) => name !== 'lift_fresh_copy')

const calls = (gm: GraphModule): Node[] => [...gm.graph.nodes].filter((node) => node.op === 'call_function')

const ourOps = (gm: GraphModule): string[] => calls(gm).map((node) => (typeof node.target === 'string' ? node.target : node.target.name))

const made = (fn: (...args: Tensor[]) => unknown, options?: MakeFxOptions, ...inputs: readonly Tensor[]): GraphModule => {
  const gm = makeFx(fn as (...args: never[]) => unknown, options)(...inputs)
  gm.graph.lint()
  return gm
}

/** An operator whose result has as many elements as its argument has positive ones. */
const positives = torch.library.customOp('proxy_tensor::positives', {
  schema: '(Tensor x) -> Tensor',
  forward: (x) => torch.tensor(Array.from(x.toTypedArray(), Number).filter((value) => value > 0)),
  fake: () => {
    throw new Error('the size of the result depends on data')
  },
})

const close = (a: unknown, b: unknown): boolean => torch.allclose(a as Tensor, b as Tensor)

describeGolden('proxy_tensor', {
  real_fake_symbolic: (golden) => {
    const [real, fake, symbolic] = resultOf<[Shown, Shown, Shown]>(golden)
    const f = (x: Tensor): Tensor => x.view([-1]).sin().add(1)
    for (const [tracingMode, theirs] of [['real', real] as const, ['fake', fake] as const, ['symbolic', symbolic] as const]) {
      const gm = made(f, { tracingMode }, X)
      expect(ourOps(gm)).toEqual(theirOps(theirs))
      expect(close(gm.call(Y), f(Y))).toBe(true)
    }
  },
  unknown_mode: (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toContain('got magic')
    expect(messageOf(() => makeFx((x: Tensor) => x, { tracingMode: 'magic' as 'real' }))).toBe(
      "makeFx: options.tracingMode must be 'real', 'fake' or 'symbolic', got 'magic'.",
    )
  },
  'symbolic_sizes_become_nodes (difference: makefx-sizes)': (golden) => {
    expect(resultOf<Shown>(golden).graph).toContain('sym_size')
    // JavaScript's `*` would make the sizes constants.
    const f = (x: Tensor, y: Tensor): Tensor => x.reshape([operator.mul(x.shape[0] ?? 0, x.shape[1] ?? 0)]).add(y.shape[0] ?? 0)
    const gm = made(f, { tracingMode: 'symbolic' }, X, Y)
    // Sizes that are one symbol are read once.
    expect(new Set(ourOps(gm))).toEqual(new Set(['symSize', 'mul', 'view', 'add']))
    expect(close(gm.call(Y, X), f(Y, X))).toBe(true)
  },
  constants: (golden) => {
    const [theirs] = resultOf<[Shown]>(golden)
    const f = (x: Tensor): Tensor => x.add(torch.tensor(2).mul(torch.tensor([1, 2, 3, 4])))
    const gm = made(f, {}, X)
    // PyTorch's lift_fresh_copy is clone here.
    expect(ourOps(gm).filter((name) => name !== 'clone')).toEqual(theirOps(theirs))
    expect(gm.graph.findNodes({ op: 'get_attr' }).map((node) => node.target)).toEqual(['_tensor_constant0', '_tensor_constant1'])
    expect(close(gm.call(Y), f(Y))).toBe(true)
  },
  decomposition_table: (golden) => {
    const table = new Map([[torch.nn.functional.silu, (x: Tensor) => x.mul(x.sigmoid())]])
    const gm = made((x) => torch.nn.functional.silu(x), { decompositionTable: table }, X)
    expect(ourOps(gm)).toEqual(theirOps(resultOf(golden)))
    expect(close(gm.call(Y), torch.nn.functional.silu(Y))).toBe(true)
  },
  'gradient_inside (difference: own-primitives)': (golden) => {
    expect(theirOps(resultOf(golden)).filter((name) => name === 'mul')).toHaveLength(3)
    const f = (x: Tensor): unknown => {
      const leaf = x.detach().requiresGrad_()
      return torch.autograd.grad(leaf.mul(leaf).sum(), leaf)[0]
    }
    const gm = made(f, {}, X)
    expect(ourOps(gm).filter((name) => name === 'mul').length).toBeGreaterThanOrEqual(2)
    expect(close(gm.call(Y), Y.mul(2))).toBe(true)
  },
  'in_place_and_views (difference: makefx-functional)': (golden) => {
    expect(theirOps(resultOf(golden))).toEqual(['clone', 'select', 'add_'])
    const f = (x: Tensor): Tensor => x.clone().select(0, 0).add_(1)
    expect(close(made(f, {}, X).call(Y), f(Y))).toBe(true)
  },
  'non_fake_inputs (difference: makefx-outside)': (golden) => {
    const [refused, allowed, real] = resultOf<[{ error: string }, Shown, Shown]>(golden)
    expect(refused.error).toContain('allow_non_fake_inputs')
    const w = torch.ones([4])
    const f = (x: Tensor): Tensor => x.add(w)
    expect(messageOf(() => made(f, { tracingMode: 'fake', allowNonFakeInputs: false }, X))).toBe(
      'makeFx: the program uses 1 tensor from outside; pass them as arguments, or leave out allowNonFakeInputs: false.',
    )
    for (const [theirs, options] of [[allowed, { tracingMode: 'fake' }] as const, [real, { tracingMode: 'real' }] as const]) {
      const gm = made(f, options, X)
      expect(ourOps(gm)).toEqual(theirOps(theirs))
      expect(close(gm.call(Y), f(Y))).toBe(true)
    }
  },
  isolated_and_modes: (golden) => {
    const [, , inside, outside] = resultOf<[string, Shown, [boolean, boolean], boolean]>(golden)
    const seen: boolean[] = []
    const gm = made(
      (x) => {
        seen.push(getProxyMode() !== null)
        disableProxyModesTracing(() => {
          torch.ones([1]).cos()
          seen.push(getProxyMode() === null)
          expect(ourOps(getIsolatedGraphModule((y: Tensor) => y.sin(), [X]))).toEqual(['sin'])
        })
        expect(ourOps(getIsolatedGraphModule((y: Tensor) => y.sin(), [X]))).toEqual(['sin'])
        return x.add(1)
      },
      {},
      X,
    )
    expect(seen).toEqual(inside)
    expect(getProxyMode() === null).toBe(outside)
    expect(ourOps(gm)).toEqual(['add'])
  },
  'module_stack (difference: own-primitives)': (golden) => {
    expect(theirOps(resultOf(golden))).toEqual(['t', 'addmm', 'relu', 'detach'])
    const model = detInit(new Sequential(new Linear(4, 4), new ReLU()))
    const gm = makeFx(model)(X)
    expect(calls(gm).map((node) => [node.name, [...(node.meta['nn_module_stack'] as Map<string, unknown>)]])).toEqual([
      ['linear', [['0', ['0', 'Linear']]]],
      ['relu', [['1', ['1', 'ReLU']]]],
    ])
  },
})

describe('makeFx', () => {
  it('in mode real, shapes may depend on data, but values cannot be read', () => {
    const positive = (x: Tensor): Tensor => positives(x).mul(2)
    const x = torch.tensor([1, -2, 3])
    const gm = made(positive, { tracingMode: 'real' }, x)
    expect((gm.call(x) as Tensor).toArray()).toEqual([2, 6])
    expect(() => made(positive, {}, x)).toThrow()
    expect(() => made((y) => y.mul(y.sum().item()), { tracingMode: 'real' }, x)).toThrow()
    const written = made((y) => positives(y.clone().add_(1)), { tracingMode: 'real' }, x)
    expect((written.call(x) as Tensor).toArray()).toEqual([2, 4])
    const several = made((y) => y.sort()[0], { tracingMode: 'real' }, x)
    expect((several.call(x) as Tensor).toArray()).toEqual([-2, 1, 3])
  })

  it('a rule of the table may call its own operator, and gets keyword arguments as an object', () => {
    const table = new Map([[torch.softmax, (x: Tensor, dim: number) => torch.softmax(x.sub(x.max()), dim)]])
    const gm = made((x) => torch.softmax(x, -1), { decompositionTable: table }, X)
    expect(ourOps(gm)).toEqual(['amax', 'sub', 'softmax'])
    expect(close(gm.call(Y), torch.softmax(Y, -1))).toBe(true)
  })

  it('nodes know the layer or function that they come from, also if a layer is called twice', () => {
    const shared = new nn.Linear(4, 4)
    class Twice extends nn.Module {
      lin = shared
      override forward(x: Tensor): Tensor {
        return torch.relu(this.lin.call(this.lin.call(x)))
      }
    }
    const gm = makeFx(new Twice())(X)
    expect(calls(gm).map((node) => node.meta['source_fn_stack'])).toEqual([[['lin', nn.Linear]], [['lin@1', nn.Linear]], [['relu', torch.relu]]])
  })
})

describe('makeFx of numbers', () => {
  const f = (scale: number, x: Tensor, more: readonly unknown[]): Tensor => x.mul(scale).add(more[0] as Tensor)

  it('number arguments have placeholders, which the graph does not use: the number is a constant', () => {
    const gm = makeFx(f)(2, X, [Y, 3])
    expect(gm.graph.findNodes({ op: 'placeholder' }).map((node) => [node.name, node.users.size])).toEqual([
      ['scale_1', 0],
      ['x_1', 1],
      ['more_1', 1],
      ['more_2', 0],
    ])
    expect(close(gm.call(2, Y, [X, 3]), f(2, Y, [X]))).toBe(true)
    // As in PyTorch, the trace holds for the number that it was made with.
    expect(close(gm.call(5, Y, [X, 3]), f(2, Y, [X]))).toBe(true)
  })
})

describe('DecompositionInterpreter', () => {
  class Model extends Module {
    lin: Linear = new Linear(4, 4)
    override forward(x: Tensor, y: Tensor): unknown {
      return [F.silu(this.lin.call(x)).add(y), x.size(0)]
    }
  }
  const decomposed = (model: Module, ...inputs: readonly Tensor[]): GraphModule => {
    const gm = symbolicTrace(model) as GraphModule
    const graph = new Graph()
    const table = new Map([[F.silu, (x: Tensor) => x.mul(x.sigmoid())]])
    const interpreter = new DecompositionInterpreter(gm, graph, table)
    const result = interpreter.run(...inputs)
    expect([result].flat().flatMap((value) => (value instanceof torch.Tensor ? [value.isFake] : []))).toEqual([true])
    graph.lint()
    return new GraphModule(gm, graph)
  }

  it('records operators, those of the table in the place of others, and keeps the paths of attributes', () => {
    const model = detInit(new Model())
    const gm = decomposed(model, X, Y)
    expect(ourOps(gm)).toEqual(['linear', 'sigmoid', 'mul', 'add'])
    expect(gm.graph.findNodes({ op: 'get_attr' }).map((node) => node.target)).toEqual(['lin.weight', 'lin.bias'])
    const [value, size] = gm.call(Y, X) as [Tensor, number]
    const [expected] = model.call(Y, X) as [Tensor]
    expect([close(value, expected), size]).toEqual([true, 2])
    expect(gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.target)).toEqual(['x', 'y'])
  })

  it('nodes know the line of the node that they were made for', () => {
    const gm = symbolicTrace(detInit(new Model())) as GraphModule
    for (const node of gm.graph.nodes) node.meta['stack_trace'] = `line of ${node.name}`
    const graph = new Graph()
    new DecompositionInterpreter(gm, graph).run(X, Y)
    const calls = [...graph.nodes].filter((node) => node.op === 'call_function')
    expect(calls.map((node) => node.meta['stack_trace'])).toEqual(['line of lin', 'line of silu', 'line of add'])
  })

  it('an attribute that is written to, and one that is not used', () => {
    class Counts extends Module {
      declare readonly total: Tensor
      constructor() {
        super()
        this.registerBuffer('total', torch.zeros([4]))
        this.registerBuffer('unused', torch.zeros([4]))
      }
      override forward(x: Tensor): Tensor {
        this.total.add_(x.sum(0))
        return this.total.mul(2)
      }
    }
    const model = new Counts()
    const gm = symbolicTrace(model) as GraphModule
    const graph = new Graph()
    new DecompositionInterpreter(gm, graph).run(X)
    expect(model.total.toArray()).toEqual([0, 0, 0, 0])
    const result = new GraphModule(gm, graph).call(X) as Tensor
    const sum = X.sum(0)
    expect([close(result, sum.mul(2)), close(model.total, sum)]).toEqual([true, true])
  })

  it('the tensors in an input become inputs of their own', () => {
    const gm = symbolicTrace((pair: { a: Tensor; b: Tensor }) => pair.a.sin().sub(pair.b)) as GraphModule
    const graph = new Graph()
    new DecompositionInterpreter(gm, graph).run({ a: X, b: X.cos() })
    expect(graph.findNodes({ op: 'placeholder' }).map((node) => node.name)).toEqual(['pair_1', 'pair_2'])
    expect(close(new GraphModule({}, graph).call(X, X.cos()) as Tensor, X.sin().sub(X.cos()))).toBe(true)
  })

  it('what is no graph is refused', () => {
    const gm = symbolicTrace((x: Tensor) => x.sin()) as GraphModule
    expect(messageOf(() => new DecompositionInterpreter(gm, {} as Graph))).toContain("argument 'newGraph' must be a Graph")
  })
})

const described = (gm: GraphModule): Record<string, unknown> =>
  Object.fromEntries(
    [...gm.graph.nodes].flatMap((node) => {
      const val = node.meta['val'] as { dtype: string; shape: number[]; strides: number[] } | undefined
      return val === undefined ? [] : [[node.name, [`torch.${val.dtype}`, val.shape, val.strides]]]
    }),
  )

describeGolden('fake_tensor_prop', {
  'chain_values (difference: makefx-outside)': (golden) => {
    const [values] = resultOf<[unknown]>(golden)
    const gm = chain()
    const result = new FakeTensorProp(gm).propagate(X, Y) as Tensor
    expect(described(gm)).toEqual(values)
    expect(result.isFake).toBe(true)
  },
  view_and_transpose: (golden) => {
    const gm = symbolicTrace((x: Tensor) => x.t().reshape([8]).view([4, 2])) as GraphModule
    new FakeTensorProp(gm).propagate(X)
    expect(described(gm)).toEqual(golden.result)
  },
  'non_tensor_values only tensors are described (difference: tensor-meta)': (golden) => {
    const { size, mul } = resultOf<{ size: string; mul: string }>(golden)
    const gm = symbolicTrace((x: Tensor) => operator.mul(x.size(0), 2)) as GraphModule
    expect(new FakeTensorProp(gm).propagate(X)).toBe(Number(mul))
    expect(Number(size)).toBe(2)
    expect(Object.keys(described(gm))).toEqual(['x'])
  },
  tuples: (golden) => {
    const { split } = resultOf<{ split: number[][] }>(golden)
    const gm = symbolicTrace((x: Tensor) => torch.split(x, 2, 1)) as GraphModule
    new FakeTensorProp(gm).propagate(X)
    const [node] = calls(gm)
    expect((node?.meta['val'] as { shape: number[] }[] | undefined)?.map(({ shape }) => shape)).toEqual(split)
  },
  dont_convert_needs_fake_inputs: (golden) => {
    const gm = chain()
    const fakes = [X, Y].map((x) => makeFake(x))
    new FakeTensorProp(gm).propagateDontConvertInputs(...fakes)
    expect(described(gm)).toEqual(golden.result)
  },
  data_dependent: (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toContain('nonzero')
    const gm = symbolicTrace((x: Tensor) => positives(x)) as GraphModule
    expect(messageOf(() => new FakeTensorProp(gm).propagate(X))).toContain('depends on data')
  },
  in_place_updates: (golden) => {
    const gm = symbolicTrace((x: Tensor) => x.clone().add_(1).mul_(2)) as GraphModule
    new FakeTensorProp(gm).propagate(X)
    expect(described(gm)).toEqual(golden.result)
  },
})

/** A tensor of the same shape without data. */
function makeFake(x: Tensor): Tensor {
  let fake: Tensor | undefined
  makeFx((y: Tensor) => {
    fake = y
    return y
  })(x)
  if (fake === undefined) throw new Error('the program did not run')
  return fake
}
