// GraphModules in files: what is saved comes back, with everything that is known of it.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { CodeGen, GraphModule, PH, Slice, symbolicTrace, wrap } from 'tensorfx/fx'
import { compareGraphs, graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { GraphJson } from 'tensorfx/fx/json'
import { ShapeProp } from 'tensorfx/fx/passes'
import { loadGraphModule, readSafetensors, saveGraphModule, writeSafetensors } from 'tensorfx/interop'

class Block extends nn.Module {
  conv = new nn.Conv2d(2, 4, 3, { padding: 1, bias: false })
  bn = new nn.BatchNorm2d(4)
  scale = new nn.Parameter(torch.ones([1, 4, 1, 1]).mul(2))
  override forward(x: Tensor): Tensor {
    return torch.relu(this.bn.call(this.conv.call(x))).mul(this.scale)
  }
}
class Net extends nn.Module {
  block = new Block()
  drop = new nn.Dropout(0.25)
  fc = new nn.Linear(4, 3)
  override forward(x: Tensor): Tensor {
    return this.fc.call(this.drop.call(this.block.call(x)).mean([2, 3]))
  }
}

const same = (a: unknown, b: unknown): boolean => torch.allclose(a as Tensor, b as Tensor)

describe('the JSON of a graph', () => {
  it('keeps names, types, notes and stacks', () => {
    const gm = symbolicTrace(new Net())
    torch.noGrad(() => new ShapeProp(gm).propagate(torch.randn([1, 2, 4, 4])))
    const [x] = gm.graph.findNodes({ op: 'placeholder' })
    if (x !== undefined) x.type = 'Tensor'
    const copy = graphFromJson(JSON.parse(JSON.stringify(graphToJson(gm.graph))) as GraphJson)
    expect(compareGraphs(gm.graph, copy)).toBeNull()
    const [relu] = copy.findNodes({ op: 'call_function', target: torch.relu })
    expect(relu?.meta['tensor_meta']).toEqual({ shape: [1, 4, 4, 4], dtype: 'float32', strides: [64, 16, 4, 1], requiresGrad: false })
    expect(relu?.meta['nn_module_stack']).toEqual(new Map([['block', ['block', 'Block']]]))
    expect(String(relu?.stackTrace)).toContain('torch.relu(this.bn.call(this.conv.call(x)))')
  })

  it('keeps what JSON has no word for: slices, -0, infinities, tuples', () => {
    const gm = symbolicTrace((x) => (x as Tensor).mul(-0).add(Infinity))
    const [add] = gm.graph.findNodes({ op: 'call_method', target: 'add' })
    gm.graph.insertingBefore(gm.graph.outputNode(), () => gm.graph.callMethod('get', [add ?? null, new Slice(0, null, 2)]))
    expect(String(graphFromJson(JSON.parse(JSON.stringify(graphToJson(gm.graph))) as GraphJson))).toBe(String(gm.graph))
  })

  it('says where two graphs differ', () => {
    const { graph } = symbolicTrace((x) => (x as Tensor).add(1))
    const [other, longer] = [graph.deepCopy(), graph.deepCopy()]
    expect(compareGraphs(graph, other)).toBeNull()
    other.findNodes({ op: 'call_method', target: 'add' })[0]?.updateArg(1, 2)
    expect(compareGraphs(graph, other)).toBe('node 1 (\'add\') differs in args: [{"$node":"x"},1] and [{"$node":"x"},2]')
    longer.insertingBefore(longer.outputNode(), () => longer.callMethod('neg', [longer.findNodes({ op: 'placeholder' })[0] ?? null]))
    expect(compareGraphs(graph, longer)).toContain("node 2 ('output') differs in name")
  })

  it('refuses what is no graph, what is newer, and what it does not know', () => {
    const json = graphToJson(symbolicTrace((x) => torch.relu(x as Tensor)).graph)
    expect(() => graphFromJson({} as GraphJson)).toThrow('this is not the JSON of a graph')
    expect(() => graphFromJson({ ...json, version: 99 })).toThrow('version 99 is newer than this tensorfx reads (2); update tensorfx.')
    const unknown = { ...json, nodes: json.nodes.map((n) => ({ ...n, target: n.target.replace('torch.relu', 'torch.nope') })) }
    expect(() => graphFromJson(unknown)).toThrow("unknown function 'torch.nope' at node 'relu'")
    expect(() => graphFromJson({ ...json, nodes: json.nodes.slice(1) })).toThrow("node 'x' is used before it is defined")
  })
})

describe('saveGraphModule and loadGraphModule', () => {
  it('test_pickle_graphmodule: give back a module that computes the same, in training and in evaluation', () => {
    const gm = symbolicTrace(new Net())
    gm.eval()
    const copy = loadGraphModule(saveGraphModule(gm))
    expect(compareGraphs(gm.graph, copy.graph)).toBeNull()
    expect(copy.className).toBe('Net')
    expect(copy.training).toBe(false)
    const x = torch.randn([2, 2, 4, 4])
    expect(same(copy.call(x), gm.call(x))).toBe(true)
    expect([...copy.namedParameters()].map(([name]) => name).sort()).toEqual([...gm.namedParameters()].map(([name]) => name).sort())
    expect((copy.attribute('drop') as nn.Dropout).p).toBe(0.25)
    gm.train()
    expect((loadGraphModule(saveGraphModule(gm)).attribute('block.bn') as nn.Module).training).toBe(true)
  })

  it('keep shared parameters shared, and requiresGrad', () => {
    class Tied extends nn.Module {
      a = new nn.Parameter(torch.randn([2, 2]))
      b = this.a
      frozen = new nn.Parameter(torch.ones([2]), { requiresGrad: false })
      override forward(x: Tensor): Tensor {
        return x.mm(this.a).mm(this.b).add(this.frozen)
      }
    }
    const gm = symbolicTrace(new Tied())
    const copy = loadGraphModule(saveGraphModule(gm))
    const x = torch.randn([2, 2])
    expect(same(copy.call(x), gm.call(x))).toBe(true)
    expect((copy.attribute('frozen') as Tensor).requiresGrad).toBe(false)
  })

  it('keep parameters of layers frozen, also those of layers inside layers', () => {
    class Tuned extends nn.Module {
      backbone = new nn.Linear(2, 2).requiresGrad_(false)
      attention = new nn.MultiheadAttention(2, 1)
      head = new nn.Linear(2, 3)
      override forward(x: Tensor): Tensor {
        return this.head.call(this.attention.call(this.backbone.call(x), x, x)[0])
      }
    }
    const model = new Tuned()
    model.head.weight.requiresGrad = false
    model.attention.outProj.weight.requiresGrad = false
    const gm = symbolicTrace(model)
    const frozen = (module: nn.Module): string[] => [...module.namedParameters()].flatMap(([path, p]) => (p.requiresGrad ? [] : [path])).sort()
    expect(frozen(gm)).toEqual(['attention.outProj.weight', 'backbone.bias', 'backbone.weight', 'head.weight'])
    expect(frozen(loadGraphModule(saveGraphModule(gm)))).toEqual(frozen(gm))
  })

  it('are read without a list of frozen parameters, as older files are, and refused with a wrong one', () => {
    const withFrozen = (frozen: unknown): Uint8Array => {
      const { tensors, metadata } = readSafetensors(saveGraphModule(symbolicTrace(new nn.Sequential(new nn.Linear(2, 2)))))
      const file = JSON.parse(metadata['tensorfx.graphmodule'] ?? '') as { module: { modules: Record<string, object> } }
      file.module.modules['0'] = { ...file.module.modules['0'], frozen }
      return writeSafetensors(tensors, { ...metadata, 'tensorfx.graphmodule': JSON.stringify(file) })
    }
    const trained = (bytes: Uint8Array): boolean[] => [...loadGraphModule(bytes).parameters()].map((p) => p.requiresGrad)
    expect(trained(withFrozen(undefined))).toEqual([true, true])
    expect(trained(withFrozen(['bias']))).toEqual([true, false])
    expect(() => loadGraphModule(withFrozen(['gain']))).toThrow("'0.gain' is frozen in the file, but Linear has no such parameter")
    expect(() => loadGraphModule(withFrozen([1]))).toThrow('frozen[0] must be a string, got 1')
    expect(() => loadGraphModule(withFrozen(Array(65).fill('bias')))).toThrow('at most 64 items')
  })

  it('take GraphModules inside along', () => {
    const inner = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()))
    const outer = new GraphModule({ inner }, symbolicTrace((x) => x).graph)
    const [x] = outer.graph.findNodes({ op: 'placeholder' })
    outer.addSubmodule('inner', inner)
    const call = outer.graph.insertingBefore(outer.graph.outputNode(), () => outer.graph.callModule('inner', [x ?? null]))
    outer.graph.outputNode().args = [call]
    outer.recompile()
    const copy = loadGraphModule(saveGraphModule(outer))
    const input = torch.randn([3, 2])
    expect(same(copy.call(input), outer.call(input))).toBe(true)
    expect(copy.attribute('inner')).toBeInstanceOf(GraphModule)
  })

  it('test_preserve_unused_attr_after_unpickle: keep what the graph does not refer to', () => {
    const gm = symbolicTrace(new Net())
    gm.addSubmodule('foo.bar', new nn.Linear(2, 1))
    gm.addSubmodule('other', symbolicTrace(new nn.Sequential(new nn.Linear(1, 1))))
    gm.registerBuffer('dummyBuffer', torch.tensor([1, 2]))
    gm.registerBuffer('passing', torch.tensor([3]), { persistent: false })
    gm.getSubmodule('foo').registerBuffer('inner', torch.tensor([4]))
    const self: Record<string, unknown> = {}
    Object.assign(gm, { dummyParameter: new nn.Parameter(torch.ones([1])), plain: torch.tensor([5]), note: { a: [1, Infinity] }, f: () => 1 })
    Object.assign(gm.meta, { k: new Map([['v', null]]), self: Object.assign(self, { self }) })
    const copy = loadGraphModule(saveGraphModule(gm))
    expect([...copy.namedModules()].map(([path]) => path).sort()).toEqual([...gm.namedModules()].map(([path]) => path).sort())
    expect([...copy.stateDict().keys()].sort()).toEqual([...gm.stateDict().keys()].sort())
    for (const path of ['dummyBuffer', 'passing', 'foo.inner', 'plain', 'dummyParameter', 'foo.bar.weight', 'other.0.weight'])
      expect((copy.attribute(path) as Tensor).toArray()).toEqual((gm.attribute(path) as Tensor).toArray())
    expect([...copy.namedBuffers()].map(([name]) => name).sort()).toEqual([...gm.namedBuffers()].map(([name]) => name).sort())
    expect(copy.getParameter('dummyParameter').requiresGrad).toBe(true)
    expect([copy.attribute('note'), copy.attribute('f'), copy.meta]).toEqual([{ a: [1, Infinity] }, undefined, { k: new Map([['v', null]]) }])
    copy.graph.lint()
  })

  it('keep nested inputs and outputs, and options', () => {
    const nested = symbolicTrace(
      (d: { a: Tensor; b: Tensor[] }, m: Map<string, Tensor>, { scale = 2 } = {}) => ({
        out: [d.a.mul(scale), (d.b[0] as Tensor).add(m.get('k') as Tensor)],
      }),
      { concreteArgs: { d: { a: PH, b: [PH] }, m: new Map([['k', PH]]) } },
    )
    const copy = loadGraphModule(saveGraphModule(nested))
    expect(copy.code).toBe(nested.code)
    const inputs = [{ a: torch.tensor([1]), b: [torch.tensor([2])] }, new Map([['k', torch.tensor([3])]]), { scale: 5 }]
    const { out } = copy.call(...inputs) as { out: Tensor[] }
    expect(out.map((t) => t.toArray())).toEqual([[5], [5]])
    class Mine extends CodeGen {}
    nested.graph.setCodegen(new Mine())
    expect(() => saveGraphModule(nested)).toThrow('saveGraphModule: the graph has a custom code generator, Mine, which cannot be saved')
  })

  it('write a safetensors file that any reader understands', () => {
    const gm = symbolicTrace(new Net())
    const { tensors } = readSafetensors(saveGraphModule(gm))
    expect([...tensors.keys()]).toContain('block.conv.weight')
    expect(same(tensors.get('fc.weight'), gm.attribute('fc.weight'))).toBe(true)
  })

  it('reject modules that cannot be rebuilt, functions without a name, and other files', () => {
    class Odd extends nn.Module {
      override forward(x: Tensor): Tensor {
        return x
      }
    }
    const gm = new GraphModule({ odd: new Odd() }, symbolicTrace((x) => x).graph)
    const [x] = gm.graph.findNodes({ op: 'placeholder' })
    gm.addSubmodule('odd', new Odd())
    gm.graph.insertingBefore(gm.graph.outputNode(), () => gm.graph.callModule('odd', [x ?? null]))
    expect(() => saveGraphModule(gm)).toThrow("saveGraphModule: module 'odd' is of class Odd, which cannot be rebuilt from its fields.")
    expect(() => loadGraphModule(writeSafetensors([['a', torch.ones([1])]]))).toThrow(
      "this safetensors file contains only tensors, no 'tensorfx.graphmodule'",
    )
    expect(() => saveGraphModule({} as GraphModule)).toThrow('the argument must be a GraphModule')
  })

  it('test_pickle_custom_import, test_pickle_torch_custom_ops: find wrapped functions again by their name', () => {
    const twice = wrap((x: Tensor) => x.mul(2), { name: 'twiceForFiles' })
    const gm = symbolicTrace((x) => twice(x as Tensor))
    expect(same(loadGraphModule(saveGraphModule(gm)).call(torch.ones([2])), torch.ones([2]).mul(2))).toBe(true)
  })
})

describe('safetensors', () => {
  it('keep shapes, dtypes and values', () => {
    const tensors: [string, Tensor][] = [
      ['f', torch.randn([2, 3])],
      ['d', torch.randn([4]).to('float64')],
      ['i', torch.tensor(Int32Array.of(1, -2, 3))],
      ['b', torch.tensor([true, false])],
      ['empty', torch.ones([0, 3])],
      ['scalar', torch.tensor(5)],
      ['turned', torch.randn([2, 3]).transpose(0, 1)],
    ]
    const { tensors: back, metadata } = readSafetensors(writeSafetensors(tensors, { note: 'hello' }))
    expect(metadata).toEqual({ note: 'hello' })
    for (const [name, tensor] of tensors) {
      expect(back.get(name)?.dtype).toBe(tensor.dtype)
      expect(back.get(name)?.toArray()).toEqual(tensor.toArray())
    }
  })

  it('refuse bytes that are something else', () => {
    expect(() => readSafetensors(new Uint8Array(3))).toThrow('this is not a safetensors file: there are only 3 bytes')
    expect(() => readSafetensors(new Uint8Array(16).fill(255))).toThrow('the header should have')
    const file = writeSafetensors([['a', torch.ones([4])]])
    expect(() => readSafetensors(file.slice(0, -4))).toThrow("tensor 'a' ends at 16, but there are only 12 bytes of data")
    expect(() => writeSafetensors([['__metadata__', torch.ones([1])]])).toThrow('a tensor cannot be called')
  })
})
