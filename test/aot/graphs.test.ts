// What traced graphs contain: decompositions, what a split graph saves, options of makeFx, where nodes come from.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction, compileDifferentiable, decomposeGraph, makeFx, reinplace } from 'tensorfx/aot'
import { fx } from 'tensorfx'
import * as aot from 'tensorfx/aot'

const { Graph, GraphModule } = fx
const F = torch.nn.functional

/** The operators that a graph calls, by their last names. */
const calls = (gm: fx.GraphModule): string[] =>
  [...gm.graph.nodes].filter((node) => node.op === 'call_function').map((node) => node.name.replace(/_\d+$/, ''))

describe('decomposeGraph', () => {
  it('replaces operators by those that they are made of, with keyword arguments, and keeps the others', () => {
    const gm = makeFx((x: Tensor) => [F.layerNorm(x, [4]), torch.sub(x, x.exp(), { alpha: 2 })])(torch.ones([3, 4]))
    const parts = decomposeGraph(gm)
    parts.graph.lint()
    expect(calls(gm)).toContain('native_layer_norm')
    expect(calls(parts)).not.toContain('native_layer_norm')
    expect(calls(parts)).toEqual(expect.arrayContaining(['mean', 'rsqrt', 'sub', 'exp']))
    const x = torch.arange(12).reshape([3, 4]).float()
    const [a, b] = [gm.forward(x) as Tensor[], parts.forward(x) as Tensor[]]
    a.forEach((value, i) => expect(torch.allclose(value, b[i] ?? x, { rtol: 1e-5, atol: 1e-6 })).toBe(true))
  })

  it('leaves a call with a number that is an input as it is, and what follows it can be decomposed', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const k = graph.placeholder('k')
    x.meta['val'] = { shape: [2, 4], dtype: 'float32' }
    const scaled = graph.callFunction(torch.mul, [x, k])
    scaled.meta['val'] = { shape: [2, 4], dtype: 'float32' }
    const normal = graph.callFunction(F.softmin, [scaled, 1])
    normal.meta['val'] = { shape: [2, 4], dtype: 'float32' }
    graph.output(normal)
    const parts = decomposeGraph(new GraphModule({}, graph))
    parts.graph.lint()
    expect(calls(parts)[0]).toBe('mul')
    expect(calls(parts)).not.toContain('softmin')
    const input = torch.arange(8).reshape([2, 4]).float()
    expect(torch.allclose(parts.forward(input, 0.5) as Tensor, F.softmin(input.mul(0.5), 1))).toBe(true)
  })

  it('picks results of operators with several', () => {
    const gm = makeFx((x: Tensor) => {
      const [values = x, indices = x] = x.max(1)
      return [indices, values.add(1)]
    })(torch.ones([2, 3]))
    const x = torch.tensor([
      [1, 5, 2],
      [7, 0, 3],
    ])
    const [indices, values] = decomposeGraph(gm).forward(x) as Tensor[]
    expect([indices?.toArray(), values?.toArray()].map((list) => (list as number[]).map(Number))).toEqual([
      [1, 0],
      [6, 8],
    ])
  })
})

describe('what a split graph saves', () => {
  /** The nodes that the forward graph returns besides its results. */
  const saved = (fn: (...xs: Tensor[]) => Tensor, ...inputs: Tensor[]): string[] => {
    const gm = makeFx((...xs: Tensor[]) => [fn(...xs)])(...inputs)
    const { forwardGraph } = compileDifferentiable(gm, inputs, [0], {
      fwCompiler:
        (part) =>
        (...values) =>
          part.forward(...values) as unknown[],
    })
    return forwardGraph.graph
      .outputNode()
      .allInputNodes.map((node) => node.name)
      .slice(1)
  }
  const [x, y] = [torch.ones([64]).requiresGrad_(), torch.ones([64]).requiresGrad_()]

  it('is recomputed from inputs that are saved in any case, if that is cheap', () => {
    // The gradient of the product needs both factors; that of the square their sum with 1, which is computed again.
    expect(saved((a, b) => a.mul(b).add(1).square().sum(), x, y).toSorted()).toEqual(['arg0_1', 'arg1_1'])
  })

  it('is what is expensive, and not what it was computed from', () => {
    expect(saved((a) => a.mul(2).add(1).exp().sum(), x)).toEqual(['exp'])
    expect(saved((a) => a.mul(3).tanh().mul(2).sum(), x)).toEqual(['tanh'])
  })

  it('is what a maximum chose from, though it is cheap', () => {
    expect(saved((a) => a.exp().mul(3).amax(), x).toSorted()).toEqual(['exp', 'mul'])
    expect(saved((a) => a.exp().mul(3).reshape([8, 8]).amax(1).sum(), x).toSorted()).toEqual(['amax', 'exp', 'view'])
    // Nothing equal is looked for.
    expect(saved((a) => a.exp().mul(3).square().sum(), x)).toEqual(['exp'])
  })

  it('lets the gradient of a maximum find its elements where a backward rounds otherwise', () => {
    const scaled = (part: fx.GraphModule, by: number) => {
      for (const node of part.graph.nodes) if (node.name.startsWith('mul') && node.args[1] === 3) node.args = [node.args[0] as fx.Node, by]
      part.recompile()
      return (...values: readonly unknown[]) => part.forward(...values) as Tensor[]
    }
    const rough = torch.tensor([0.1, 0.7, 0.3], { requiresGrad: true })
    const f = aotFunction((a: Tensor) => a.exp().mul(3).amax(), {
      fwCompiler: (part) => scaled(part, 3),
      bwCompiler: (part) => scaled(part, 3.000001),
    })
    f(rough).backward()
    expect(rough.grad === null ? null : torch.round(rough.grad).toArray()).toEqual([0, 6, 0])
  })
})

describe('options of makeFx', () => {
  it('allowNonFakeInputs: false refuses tensors from outside', () => {
    const w = torch.ones([2])
    expect(() => makeFx((x: Tensor) => x.mul(w), { allowNonFakeInputs: false })(torch.ones([2]))).toThrow(/uses 1 tensor from outside/)
    expect(() => makeFx((x: Tensor) => x.mul(w).add(torch.ones([2]).add(w.neg())), { allowNonFakeInputs: false })(torch.ones([2]))).toThrow(/outside/)
    expect(calls(makeFx((x: Tensor) => x.mul(2), { allowNonFakeInputs: false })(torch.ones([2])))).toEqual(['mul'])
  })

  it('decompositionTable gets the arguments as a program would write them, and may call the operator itself', () => {
    const seen: unknown[] = []
    const table = new Map([
      [
        torch.sub,
        (a: Tensor, b: Tensor, options?: { alpha?: number }) => {
          seen.push(options)
          return torch.sub(a, b.mul(options?.alpha ?? 1)).add(0)
        },
      ],
    ])
    const gm = makeFx((x: Tensor) => x.sub(x.exp(), { alpha: 3 }).sub(x), { decompositionTable: table })(torch.ones([2]))
    expect(calls(gm)).toEqual(['exp', 'mul', 'sub', 'add', 'mul', 'sub', 'add'])
    expect(seen).toEqual([{ alpha: 3 }, undefined])
    const x = torch.tensor([0.5, -1])
    expect(torch.allclose(gm.forward(x) as Tensor, x.sub(x.exp().mul(3)).sub(x))).toBe(true)
  })
})

it('disableProxyModesTracing computes at once and returns what the function returns', () => {
  const { disableProxyModesTracing, getProxyMode } = aot
  const w = torch.tensor([1, 2])
  const gm = makeFx((x: Tensor) => {
    const inside = getProxyMode() !== null
    const total = disableProxyModesTracing(() => (getProxyMode() === null ? w.sum().item() : Number.NaN))
    return x.mul(inside ? total : 0)
  })(torch.ones([2]))
  expect(calls(gm)).toEqual(['mul'])
  expect((gm.forward(torch.ones([2])) as Tensor).toArray()).toEqual([3, 3])
})

it('random numbers of a function without tensor arguments are drawn anew at each call', () => {
  const f = aotFunction(() => torch.rand([3]), {
    fwCompiler:
      (part) =>
      (...values) =>
        part.forward(...values),
  })
  torch.manualSeed(5)
  const expected = [torch.rand([3]).toArray(), torch.rand([3]).toArray()]
  torch.manualSeed(5)
  expect([f().toArray(), f().toArray()]).toEqual(expected)
})

it('nodes say which layer they come from', () => {
  const model = new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU())
  const gm = makeFx(model)(torch.ones([1, 2]))
  const [activation] = [...gm.graph.nodes].filter((node) => node.name === 'relu')
  expect(activation?.meta['source_fn_stack']).toMatchObject({ length: 1, 0: ['1', nn.ReLU] })
  const plain = makeFx((x: Tensor) => x.neg())(torch.ones([1]))
  const [neg] = [...plain.graph.nodes].filter((node) => node.name === 'neg')
  expect(neg?.meta['source_fn_stack']).toEqual([['neg', torch.neg]])
})

describe('reinplace', () => {
  it('keeps an operator whose result has another dtype or shape', () => {
    const fn = (x: Tensor): Tensor =>
      x
        .clone()
        .add(1.5)
        .unsqueeze(0)
        .add(torch.ones([2, 2]))
    const make = (): Tensor => torch.tensor([1, 2], { dtype: 'int32' })
    const gm = reinplace(makeFx(fn)(make()), make())
    expect((gm.forward(make()) as Tensor).toArray()).toEqual(fn(make()).toArray())
    expect(calls(gm)[1]).toBe('add')
  })

  it('writes through a window in place of its scatter', () => {
    const fn = (x: Tensor): Tensor => {
      const y = x.mul(2)
      torch.asStrided(y, [2], [2]).add_(10)
      return y
    }
    const make = (): Tensor => torch.arange(4).float()
    const gm = reinplace(makeFx(fn)(make()), make())
    expect(calls(gm)).not.toContain('as_strided_scatter')
    expect((gm.forward(make()) as Tensor).toArray()).toEqual([10, 2, 14, 6])
  })
})
