// What a GraphModule holds: taken from a module or a map, added, deleted, swept, replaced for one call.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const { tensor } = torch

const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
const warnings = (): string[] => warn.mock.calls.splice(0).map(([text]) => String(text))

afterEach(() => expect(warnings()).toEqual([]))

class C extends nn.Module {
  readonly conv = new nn.Conv2d(16, 33, 3, { stride: 2 })
  readonly param = new nn.Parameter(torch.rand([2, 3]))
  override forward(x: Tensor): Tensor {
    return this.conv.call(torch.cat([this.param, x]))
  }
}
class B extends nn.Module {
  readonly linear = new nn.Linear(100, 200)
  declare readonly buf: Tensor
  readonly netC = new C()
  constructor() {
    super()
    this.registerBuffer('buf', torch.randn([2, 3]))
  }
  override forward(x: Tensor): Tensor {
    return this.linear.call(torch.cat([this.buf, this.netC.call(x)]))
  }
}
class A extends nn.Module {
  readonly netB = new B()
  readonly param = new nn.Parameter(torch.rand([2, 3]))
  override forward(x: Tensor): Tensor {
    return this.netB.call(x).add(this.param)
  }
}

const modules = (gm: GraphModule): string[] => [...gm.namedModules()].map(([path]) => path)
const state = (gm: GraphModule): string[] => [...gm.stateDict().keys()]

describe('submodules', () => {
  it('test_submodule_manipulation_API: are added, read, deleted and swept; what is missing gives a warning or an error', () => {
    const a = symbolicTrace(new A())
    expect(a.addSubmodule('netB.netC.dropout', new nn.Dropout(0.2))).toBe(true)
    expect(a.addSubmodule('param.dropout', new nn.Dropout(0.2))).toBe(false)
    const [conv] = a.graph.findNodes({ op: 'call_module', target: 'netB.netC.conv' }) as [Node]
    const dropout = a.graph.insertingBefore(conv, () => a.graph.callModule('netB.netC.dropout', conv.args))
    expect(warnings()).toEqual([])
    conv.replaceAllUsesWith(dropout)
    a.graph.eraseNode(conv)
    a.recompile()
    expect(modules(a)).toEqual(expect.arrayContaining(['netB.netC.dropout', 'netB.netC.conv']))
    expect(a.getSubmodule('netB.netC.dropout')).toBeInstanceOf(nn.Dropout)
    expect(a.graph.findNodes({ op: 'call_module', target: 'netB.netC.conv' })).toEqual([])
    expect(a.deleteSubmodule('netB.netC.conv')).toBe(true)
    expect(modules(a)).not.toContain('netB.netC.conv')
    expect(() => a.getSubmodule('netB.netC.conv')).toThrow("has no child 'conv'")

    const cat = a.graph.findNodes({ op: 'call_function', target: torch.cat }).at(-1) as Node
    const param = a.graph.insertingBefore(cat, () => a.graph.getAttr('netB.netC.param'))
    expect(warnings()).toEqual([])
    a.graph.insertingBefore(cat, () => {
      a.graph.eraseNode(a.graph.getAttr('netB.param'))
      expect(warnings()).toEqual([
        expect.stringContaining('Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule'),
      ])
      a.graph.eraseNode(a.graph.getAttr('nothing.param'))
      expect(warnings()).toEqual(['Failed to fetch module nothing!', expect.stringContaining('registerBuffer to add the necessary buffer')])
      a.graph.eraseNode(a.graph.callModule('netB.param'))
      expect(warnings()).toEqual([expect.stringContaining('Attempted to insert a call_module Node with no underlying reference')])
    })
    cat.args = [[...(cat.args[0] as Node[]), param]]
    a.recompile()
    a.graph.lint()

    expect(a.getParameter('netB.netC.param').shape).toEqual([2, 3])
    expect(() => a.getParameter('netB.buf')).toThrow('is not a parameter')
    expect(() => a.getParameter('netB.param')).toThrow("'netB.param' is not a parameter")
    expect(a.getBuffer('netB.buf').shape).toEqual([2, 3])
    expect(() => a.getBuffer('netB.netC.param')).toThrow('is not a buffer')
    expect(a.getSubmodule('')).toBe(a)
    expect(a.getParameter('param').shape).toEqual([2, 3])

    for (const path of ['netB.embedding', 'netB.netC.embedding', 'netB.netC.rnn.inner', 'batchNorm'])
      expect(a.addSubmodule(path, new nn.Embedding(10, 3))).toBe(true)
    a.deleteAllUnusedSubmodules()
    expect(modules(a)).toEqual(['', 'netB', 'netB.netC', 'netB.netC.dropout', 'netB.linear'])
    expect(state(a).sort()).toEqual(['netB.buf', 'netB.linear.bias', 'netB.linear.weight', 'netB.netC.param', 'param'])
    a.graph.lint()
  })

  it('nothing is added when the module or its path is wrong', () => {
    const gm = symbolicTrace((x: Tensor) => x)
    expect(() => gm.addSubmodule('a.b', 3 as never)).toThrow("addSubmodule: argument 'a.b' must be a Module, got 3.")
    expect(() => gm.addSubmodule('a..b', new nn.ReLU())).toThrow("addSubmodule: the path 'a..b' has an empty name.")
    expect(modules(gm)).toEqual([''])
  })

  it('test_delete_unused_submodules_leaf: what is inside a module that is called stays', () => {
    const inner = new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU())
    const graph = new Graph()
    graph.output(graph.callModule('inner', [graph.placeholder('x')]))
    const gm = new GraphModule({ inner }, graph)
    gm.addSubmodule('other', new nn.ReLU())
    gm.deleteAllUnusedSubmodules()
    expect(modules(gm)).toEqual(['', 'inner', 'inner.0', 'inner.1'])
  })

  it('lint names what is missing, and warns of reads of what is no state, five times', () => {
    const gm = symbolicTrace(new A())
    const [call] = gm.graph.findNodes({ op: 'call_module', target: 'netB.netC.conv' }) as [Node]
    call.target = 'netB.netC.nothing'
    expect(() => gm.graph.lint()).toThrow('Node net_b_net_c_conv target netB.netC.nothing references nonexistent attribute nothing of netB.netC')
    call.target = 'netB.netC.param'
    expect(() => gm.graph.lint()).toThrow('Node net_b_net_c_conv target netB.netC.param param of netB.netC does not reference an nn.Module')
    call.target = 'netB.netC.conv'
    Object.assign(gm, { note: [1], notes: { a: { b: 2 } } })
    gm.graph.insertingBefore(call, () => {
      gm.graph.createNode('get_attr', 'notes.a.b')
      for (let i = 0; i < 4; i++) gm.graph.createNode('get_attr', 'note')
    })
    gm.graph.lint()
    expect(warnings()).toEqual([
      ...['notes of ', 'a of notes', 'b of notes.a', 'note of ', 'note of '].map((place) =>
        expect.stringContaining(`${place} does not reference an nn.Module, nn.Parameter, or buffer, which is what 'get_attr' Nodes typically target`),
      ),
      'Additional 2 warnings suppressed about get_attr references',
    ])
  })

  it('test_sequential: a GraphModule is a module like any other, also in a Sequential and copied', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()))
    const last = new nn.Linear(2, 1)
    const model = new nn.Sequential(gm, last)
    const x = torch.randn([3, 2])
    const expected = (model.call(x) as Tensor).toArray()
    expect((symbolicTrace(model).call(x) as Tensor).toArray()).toEqual(expected)
    const copied = new nn.Sequential(gm.deepCopy(), last)
    expect((copied.call(x) as Tensor).toArray()).toEqual(expected)
    expect([...model.namedParameters()].map(([name]) => name)).toEqual(['0.0.weight', '0.0.bias', '1.weight', '1.bias'])
  })
})

describe('what the graph refers to', () => {
  /** w, a buffer, a nested parameter, and something that nobody uses. */
  class Model extends nn.Module {
    readonly w = new nn.Parameter(tensor([1, 2]))
    readonly inner = Object.assign(new nn.Linear(2, 2), { unused: new nn.ReLU() })
    readonly other = new nn.ReLU()
    constructor() {
      super()
      this.registerBuffer('b', tensor([3, 4]))
    }
    override forward(x: Tensor): Tensor {
      return x
        .add(this.w)
        .add((this as unknown as { b: Tensor }).b)
        .add(this.inner.weight)
    }
  }

  function check(gm: GraphModule, root: Model): void {
    expect([...gm.namedParameters()].map(([name]) => name).sort()).toEqual(['inner.weight', 'w'])
    expect([...gm.namedBuffers()].map(([name]) => name)).toEqual(['b'])
    expect(gm.getParameter('w')).toBe(root.w)
    expect(gm.getParameter('inner.weight')).toBe(root.inner.weight)
    expect(modules(gm)).toEqual(['', 'inner'])
    const x = torch.ones([2, 2])
    expect((gm.call(x) as Tensor).toArray()).toEqual(root.call(x).toArray())
  }

  it('test_graph_module_init_buffer_param_copied_mod_init: is taken from a module, and nothing else', () => {
    const root = new Model()
    check(symbolicTrace(root), root)
  })

  it('test_graph_module_init_buffer_param_copied_dict_init: is taken from a map, and nothing else', () => {
    const root = new Model()
    const { graph } = symbolicTrace(root)
    const [b] = [...root.ownBuffers()].map(([, tensor]) => tensor)
    check(new GraphModule({ w: root.w, b, 'inner.weight': root.inner.weight, other: root.other }, graph), root)
  })

  it('test_construct_root_dict: paths of a map may be nested; one that is missing is an error', () => {
    const linear = new nn.Linear(3, 4)
    const graph = new Graph()
    const a = graph.placeholder('a')
    const b = graph.createNode('call_module', 'foo.bar.baz', [a])
    const c = graph.createNode('get_attr', 'zip.zap.zam')
    const d = graph.createNode('call_function', torch.add, [b, c])
    graph.output(d)
    const add = torch.rand([3, 4])
    const gm = new GraphModule({ 'foo.bar.baz': linear, 'zip.zap.zam': add }, graph)
    gm.graph.lint()
    const x = torch.rand([3, 3])
    expect((gm.call(x) as Tensor).toArray()).toEqual(linear.call(x).add(add).toArray())
    expect(() => new GraphModule({ 'foo.bar.baz': linear }, graph.deepCopy())).toThrow(
      'Node zip_zap_zam referenced target zip.zap.zam but that target was not provided in `root`!',
    )
    expect(() => new GraphModule(3 as never, new Graph())).toThrow('Unsupported type number passed for root!')
  })

  it('has no names that modules need for themselves', () => {
    const of = (path: string): (() => GraphModule) => {
      const graph = new Graph()
      graph.output(graph.createNode('call_module', path, [graph.placeholder('x')]))
      return () => new GraphModule({ [path]: new nn.ReLU() }, graph)
    }
    for (const name of ['graph', 'code', 'meta', 'className', 'training', 'forward', 'constructor'])
      expect(of(name)).toThrow(
        `GraphModule: the attribute '${name}' cannot be called '${name}', because every GraphModule has a member of that name; rename it.`,
      )
    expect(of('a.forward')).toThrow("cannot be called 'forward', because every Module has a member of that name")
    expect((of('a.graph')().call(torch.tensor([-1])) as Tensor).toArray()).toEqual([0])
    expect(() => symbolicTrace((x: Tensor) => x).addSubmodule('code', new nn.ReLU())).toThrow("addSubmodule: the attribute 'code'")
  })

  it('printReadable shows the code of GraphModules inside, also below other modules', () => {
    const inner = symbolicTrace((t: Tensor) => t.add(1))
    const graph = new Graph()
    graph.output(graph.createNode('call_module', 'a.b', [graph.placeholder('x')]))
    expect(new GraphModule({ 'a.b': inner }, graph).printReadable({ print: false })).toMatch(/\/\/ child 'a\.b':\n[^]*t\d*\.add\(1\)/)
  })

  it('test_fx_stateless: may be replaced for one call, and gradients go to what stood in', () => {
    class Mock extends nn.Module {
      readonly l1 = new nn.Linear(1, 1)
      constructor() {
        super()
        this.registerBuffer('buffer', torch.ones([1]))
      }
      override forward(x: Tensor): Tensor {
        return this.l1.call(x).add((this as unknown as { buffer: Tensor }).buffer)
      }
    }
    const module = new Mock()
    const weight = torch.tensor([[2]]).requiresGrad_()
    const bias = torch.tensor([0]).requiresGrad_()
    const buffer = torch.tensor([5])
    const before = module.l1.weight
    for (const m of [module, symbolicTrace(module)]) {
      weight.grad = null
      const out = nn.functionalCall(m, { 'l1.weight': weight, 'l1.bias': bias, buffer }, [torch.tensor([[3]])]) as Tensor
      expect(out.toArray()).toEqual([[11]])
      out.sum().backward()
      expect((weight.grad as unknown as Tensor).toArray()).toEqual([[3]])
      expect([buffer.grad, module.l1.weight.grad, module.l1.bias?.grad]).toEqual([null, null, null])
      expect(module.l1.weight).toBe(before)
    }
    expect(() => nn.functionalCall(module, { nothing: weight }, [])).toThrow('Unexpected key(s): nothing. The module has buffer, l1.weight, l1.bias.')
    expect(() => nn.functionalCall(module, { buffer }, [], { strict: true })).toThrow('Missing key(s): l1.weight, l1.bias')
    expect(() => nn.functionalCall(module, { 'l1.weight': weight }, [torch.ones([7, 7])])).toThrow()
    expect(module.l1.weight).toBe(before)
  })

  it('functionalCall replaces a shared tensor under all its names', () => {
    class Tied extends nn.Module {
      readonly a = new nn.Parameter(tensor([1]))
      readonly b = this.a
      override forward(x: Tensor): Tensor {
        return x.mul(this.a).add(this.b)
      }
    }
    const tied = new Tied()
    const [five, seven] = [tensor([5]), tensor([7])]
    const run = (given: Record<string, Tensor>, tieWeights = true): unknown =>
      (nn.functionalCall(tied, given, [tensor([2])], { tieWeights }) as Tensor).toArray()
    expect([run({ a: five }), run({ a: five }, false), run({ a: five, b: seven }, false)]).toEqual([[15], [11], [17]])
    expect(() => run({ a: five, b: seven })).toThrow('is the same tensor as another given name')
  })
})
