// fx.experimental: which operators are normalized, which values get types, what is folded and what stays.
import { describe, expect, test } from 'vitest'
import { ArgumentError, nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphError, GraphModule, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import {
  AnnotateTypesWithSchema,
  NormalizeArgs,
  NormalizeOperators,
  foldBatchNorms,
  foldConstants,
  fuse,
  splitConstSubgraphs,
} from 'tensorfx/fx/experimental'

const { tensor } = torch
const nodesOf = (gm: GraphModule): readonly Node[] => [...gm.graph.nodes]
const ops = (gm: GraphModule): readonly string[] => nodesOf(gm).map((node) => node.op)
const second = (gm: GraphModule): Node | undefined => nodesOf(gm).find((node) => node.op.startsWith('call_'))

describe('NormalizeOperators', () => {
  const pairs: readonly (readonly [keyof typeof operator, keyof Tensor & keyof typeof torch])[] = [
    ['add', 'add'],
    ['sub', 'sub'],
    ['mul', 'mul'],
    ['truediv', 'div'],
    ['floordiv', 'floorDivide'],
    ['mod', 'remainder'],
    ['eq', 'eq'],
    ['ne', 'ne'],
    ['lt', 'lt'],
    ['le', 'le'],
    ['gt', 'gt'],
    ['ge', 'ge'],
  ]

  test('functions and methods with two operands become operators, of the same result', () => {
    const x = tensor([-7, 2, 5])
    for (const [name, method] of pairs) {
      const graph = (build: (g: Graph, input: Node) => Node): GraphModule => {
        const g = new Graph()
        g.output(build(g, g.placeholder('x')))
        return new GraphModule({}, g)
      }
      const programs = [
        graph((g, input) => g.callFunction(torch[method] as never, [input, 2])),
        graph((g, input) => g.callMethod(method, [input, 2])),
      ]
      for (const gm of programs) {
        const normal = new NormalizeOperators(gm).transform()
        expect([second(normal)?.op, second(normal)?.target]).toEqual(['call_function', operator[name]])
        expect((normal.call(x) as Tensor).toArray()).toEqual((gm.call(x) as Tensor).toArray())
      }
    }
  })

  test('calls with options, with one operand, and of other functions stay', () => {
    const own = symbolicTrace((x: Tensor) => torch.add(x, x, { alpha: 2 }))
    expect(second(new NormalizeOperators(own).transform())?.target).toBe(torch.add)
    expect(second(new NormalizeOperators(symbolicTrace((x: Tensor) => x.add(x, { alpha: 2 }))).transform())?.target).toBe('add')
    expect(second(new NormalizeOperators(symbolicTrace((x: Tensor) => torch.relu(x))).transform())?.target).toBe(torch.relu)
    const add = (x: unknown): unknown => x
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output(graph.callFunction(add, [x, 1]))
    expect(second(new NormalizeOperators(new GraphModule({}, graph)).transform())?.target).toBe(add)
  })
})

describe('types', () => {
  class Net extends nn.Module {
    readonly weight = new nn.Parameter(tensor([1, 2]))
    override forward(x: Tensor): unknown {
      return [torch.relu(x.mul(this.weight)), torch.chunk(x, 2), torch.max(x, 0)]
    }
  }
  const typesOf = (gm: GraphModule): unknown => Object.fromEntries(nodesOf(gm).map((node) => [node.name, node.type]))

  test('AnnotateTypesWithSchema: tensors that attributes and schemas are sure of', () => {
    const typed = new AnnotateTypesWithSchema(symbolicTrace(new Net())).transform()
    expect(typesOf(typed)).toEqual({ x: null, weight: 'torch.Tensor', mul: null, relu: 'torch.Tensor', chunk: null, max_1: null, output: null })
  })

  test('a type that a node has stays', () => {
    const gm = symbolicTrace(new Net())
    for (const node of nodesOf(gm)) if (node.name === 'relu' || node.name === 'x') node.type = 'Own'
    expect(typesOf(new AnnotateTypesWithSchema(gm).transform())).toMatchObject({ x: 'Own', relu: 'Own', weight: 'torch.Tensor' })
    const returned = symbolicTrace((x: Tensor) => x.neg())
    for (const node of nodesOf(returned)) if (node.op === 'output') node.type = 'Own'
    expect(typesOf(new AnnotateTypesWithSchema(returned).transform())).toEqual({ x: null, neg: null, output: 'Own' })
  })

  test('NormalizeArgs passes arguments by name, with types and meta', () => {
    const gm = symbolicTrace((x: Tensor) => torch.sum(x, 1))
    const sum = second(gm)
    if (sum !== undefined) {
      sum.type = 'Own'
      sum.meta['note'] = 5
    }
    const normal = second(new NormalizeArgs(gm).transform())
    expect([normal?.args, Object.keys(normal?.kwargs ?? {}), normal?.kwargs['dim'], normal?.type, normal?.meta['note']]).toEqual([
      [],
      ['input', 'dim', 'keepdim', 'dtype'],
      1,
      'Own',
      5,
    ])
    const positional = second(new NormalizeArgs(gm, { onlyKwargs: false }).transform())
    expect(positional?.args).toHaveLength(1)
    expect(Object.keys(positional?.kwargs ?? {})).not.toContain('input')
    const own = (x: unknown, y: number): unknown => [x, y]
    const graph = new Graph()
    graph.output(graph.callFunction(own, [graph.placeholder('x'), 1]))
    expect(second(new NormalizeArgs(new GraphModule({}, graph)).transform())?.args[1]).toBe(1)
  })
})

describe('fuse', () => {
  type Run = (x: Tensor, layer: nn.Module, norm: nn.Module) => unknown
  class Chain extends nn.Module {
    readonly layer: nn.Module
    readonly norm: nn.Module
    readonly run: Run
    constructor(layer: nn.Module, norm: nn.Module, run: Run) {
      super()
      this.layer = layer
      this.norm = norm
      this.run = run
    }
    override forward(x: Tensor): unknown {
      return this.run(x, this.layer, this.norm)
    }
  }
  const call = (module: nn.Module, x: unknown): Tensor => Reflect.apply(module.call, module, [x])
  const chain = (x: Tensor, layer: nn.Module, norm: nn.Module): Tensor => call(norm, call(layer, x))
  const trained = (norm: nn.BatchNorm1d | nn.BatchNorm2d): nn.Module => {
    norm.runningMean?.copyFrom(torch.randn(norm.runningMean.shape))
    norm.runningVar?.copyFrom(torch.rand(norm.runningVar.shape).add(0.5))
    if (norm.weight !== null) torch.noGrad(() => norm.weight?.copyFrom(torch.rand([norm.numFeatures]).add(0.5)))
    if (norm.bias !== null) torch.noGrad(() => norm.bias?.copyFrom(torch.randn([norm.numFeatures])))
    return norm
  }
  const fused = (layer: nn.Module, norm: nn.Module, x: Tensor, run: Run = chain): readonly string[] => {
    const net = new Chain(layer, norm, run).eval()
    const result = fuse(withShapes(net, x))
    const [want, got] = [net.call(x), result.call(x)]
    expect(got instanceof torch.Tensor && want instanceof torch.Tensor && torch.allclose(got, want, { atol: 1e-5 })).toBe(true)
    return ops(result)
  }
  /** A trace that knows the shapes of its values. */
  const withShapes = (net: nn.Module, x: Tensor): GraphModule => {
    const gm = symbolicTrace(net)
    new ShapeProp(gm).propagate(x)
    return gm
  }
  const image = torch.randn([2, 2, 4, 4])
  const rows = torch.randn([3, 2])

  test('folds norms into convolutions and linear layers, with and without bias and weight', () => {
    const folded = ['placeholder', 'call_module', 'output']
    for (const bias of [true, false])
      for (const affine of [true, false]) {
        expect(fused(new nn.Conv2d(2, 3, 3, { bias }), trained(new nn.BatchNorm2d(3, { affine })), image)).toEqual(folded)
        expect(fused(new nn.Linear(2, 3, { bias }), trained(new nn.BatchNorm1d(3, { affine })), rows)).toEqual(folded)
      }
  })

  test('the folded layer can be trained, and the model itself does not change', () => {
    const layer = new nn.Linear(2, 3)
    const before = layer.weight.toArray()
    const gm = fuse(withShapes(new Chain(layer, trained(new nn.BatchNorm1d(3)), chain).eval(), rows))
    const parameters = [...gm.namedParameters()]
    expect(parameters.map(([name, p]) => [name, p.requiresGrad, p.isParameter])).toEqual([
      ['layer.weight', true, true],
      ['layer.bias', true, true],
    ])
    expect(layer.weight.toArray()).toEqual(before)
    expect(gm.attribute('norm')).toBeUndefined()
  })

  test('a norm stays if anything else uses the layer’s result, the layer or the norm', () => {
    const stays = ['placeholder', 'call_module', 'call_module']
    const layer = (): nn.Module => new nn.Linear(2, 2)
    const norm = (): nn.Module => trained(new nn.BatchNorm1d(2))
    expect(
      fused(layer(), norm(), rows, (x, a, b) => {
        const y = call(a, x)
        return call(b, y).add(y)
      }),
    ).toEqual([...stays, 'call_method', 'output'])
    expect(fused(layer(), norm(), rows, (x, a, b) => call(b, call(a, call(a, x))))).toEqual([...stays, 'call_module', 'output'])
    expect(fused(layer(), norm(), rows, (x, a, b) => call(b, call(b, call(a, x))))).toEqual([...stays, 'call_module', 'output'])
    expect(fused(layer(), norm(), rows, (x, a, b) => call(a, call(b, x)))).toEqual([...stays, 'output'])
    expect(fused(layer(), norm(), rows, (x, a, b) => call(b, call(a, x).relu()))).toEqual([
      'placeholder',
      'call_module',
      'call_method',
      'call_module',
      'output',
    ])
  })

  test('a norm without running statistics stays, and so do other layers', () => {
    const stays = ['placeholder', 'call_module', 'call_module', 'output']
    expect(fused(new nn.Linear(2, 3), new nn.BatchNorm1d(3, { trackRunningStats: false }), rows)).toEqual(stays)
    expect(fused(new nn.Linear(2, 3), new nn.LayerNorm([3]), rows)).toEqual(stays)
    expect(fused(new nn.LayerNorm([2]), trained(new nn.BatchNorm1d(2)), rows)).toEqual(stays)
    expect(fused(new nn.ReLU(), trained(new nn.BatchNorm1d(2)), rows)).toEqual(stays)
  })

  test('a norm after a linear layer stays unless the graph says that it is of the features: it is of dimension 1', () => {
    const stays = ['placeholder', 'call_module', 'call_module', 'output']
    const layers = (): readonly [nn.Module, nn.Module] => [new nn.Linear(4, 5), trained(new nn.BatchNorm1d(5))]
    // As many channels as features, so that sizes do not tell.
    expect(fused(...layers(), torch.randn([3, 5, 4]))).toEqual(stays)
    expect(ops(fuse(new Chain(...layers(), chain).eval()))).toEqual(stays)
    expect(fused(...layers(), torch.randn([3, 4]))).toEqual(['placeholder', 'call_module', 'output'])
  })

  test('refuses training mode, and as a pass says whether it changed anything', () => {
    const net = new Chain(new nn.Linear(2, 2), trained(new nn.BatchNorm1d(2)), chain)
    expect(() => fuse(net)).toThrow(
      new ArgumentError('fuse: the model is in training mode, where batch norm uses the statistics of each batch; call model.eval() first.'),
    )
    expect(foldBatchNorms.name).toBe('foldBatchNorms')
    expect(foldBatchNorms.run(symbolicTrace(new Chain(new nn.Linear(2, 2), new nn.ReLU(), chain).eval()))).toBe(false)
    expect(foldBatchNorms.run(withShapes(net.eval(), rows))).not.toBe(false)
  })
})

describe('constant folding', () => {
  class Net extends nn.Module {
    readonly a = new nn.Parameter(tensor([1, 2]))
    readonly b = new nn.Parameter(tensor([3, 4]))
    readonly inner = new nn.Linear(2, 2)
    readonly run: (x: Tensor, net: Net) => unknown
    constructor(run: (x: Tensor, net: Net) => unknown) {
      super()
      this.run = run
    }
    override forward(x: Tensor): unknown {
      return this.run(x, this)
    }
  }
  const x = tensor([10, 20])

  test('what depends on attributes alone is computed at the first run, once', () => {
    const folded = splitConstSubgraphs(new Net((input, net) => input.add(net.a.mul(net.b))))
    expect(ops(folded)).toEqual(['placeholder', 'get_attr', 'call_method', 'output'])
    expect([folded.hasFoldingBeenRun, folded.fxConstFoldedAttrsName]).toEqual([false, '_FX_CONST_FOLDED_ATTRS'])
    expect((folded.call(x) as Tensor).toArray()).toEqual([13, 28])
    expect(folded.hasFoldingBeenRun).toBe(true)
    expect(() => folded.runFolding()).toThrow(new GraphError('runFolding: the constants of this module have already been computed.'))
    expect((folded.call(x) as Tensor).toArray()).toEqual([13, 28])
  })

  test('several constants are held by a module that is not called', () => {
    const folded = splitConstSubgraphs(new Net((input, net) => [input.add(net.a.neg()), input.add(net.b.neg())]))
    expect((folded.call(x) as Tensor[]).map((t) => t.toArray())).toEqual([
      [9, 18],
      [7, 16],
    ])
    const held = folded.attribute('_FX_CONST_FOLDED_ATTRS')
    expect(held instanceof nn.Module && [...held.parameters()].length).toBe(2)
    expect(() => held instanceof nn.Module && held.call()).toThrow(new GraphError('FoldedParameters only holds folded values; it cannot be called.'))
  })

  test('without constants nothing changes, and runFolding has nothing to do', () => {
    for (const run of [
      (input: Tensor): unknown => input.neg(),
      (input: Tensor, net: Net): unknown => input.add(net.a),
      (input: Tensor): unknown => torch.zeros([2]).add(input),
    ]) {
      const gm = symbolicTrace(new Net(run))
      const folded = splitConstSubgraphs(gm)
      expect([String(folded.graph), folded.constSubgraphModule, folded.fxConstFoldedAttrsName]).toEqual([String(gm.graph), null, null])
      expect(() => folded.runFolding()).not.toThrow()
      expect(() => folded.runFolding()).not.toThrow()
      expect(foldConstants.run(gm)).toBe(false)
    }
    expect(foldConstants.name).toBe('foldConstants')
    expect(foldConstants.run(symbolicTrace(new Net((input, net) => input.add(net.a.neg()))))).not.toBe(false)
  })

  test('skipFolding keeps nodes and what depends on them', () => {
    const gm = symbolicTrace(new Net((input, net) => input.add(net.a.neg().exp())))
    expect(splitConstSubgraphs(gm, (node) => node.target === 'neg').constSubgraphModule).toBeNull()
    expect(ops(splitConstSubgraphs(gm, (node) => node.target === 'exp'))).toEqual(['placeholder', 'get_attr', 'call_method', 'call_method', 'output'])
  })

  test('random nodes stay, modules are folded if they give the same value every time', () => {
    const random = new Net((input, net) => input.add(torch.bernoulli(net.a)))
    expect(splitConstSubgraphs(random).constSubgraphModule).toBeNull()
    const linear = new Net((input, net) => input.add(net.inner.call(net.a)))
    expect(splitConstSubgraphs(linear).constSubgraphModule).not.toBeNull()
    class WithDropout extends Net {
      readonly drop = new nn.Dropout(0.5)
    }
    const dropout = new WithDropout((input, net) => input.add((net as WithDropout).drop.call(net.a)))
    expect(splitConstSubgraphs(dropout).constSubgraphModule).toBeNull()
    expect(splitConstSubgraphs(dropout.eval()).constSubgraphModule).not.toBeNull()
    class WithNorm extends Net {
      readonly norm = new nn.BatchNorm1d(2)
    }
    const norm = new WithNorm((input, net) => input.add((net as WithNorm).norm.call(net.a.reshape([1, 2]))))
    expect(splitConstSubgraphs(norm.eval()).constSubgraphModule).not.toBeNull()
    norm.train()
    expect(ops(splitConstSubgraphs(norm))).toContain('call_module')
  })
})
