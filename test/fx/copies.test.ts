// Copies of GraphModules: what is theirs, and what they share.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { splitConstSubgraphs } from 'tensorfx/fx/experimental'

const { tensor } = torch

const values = (t: unknown): unknown => (t as Tensor).toArray()

class Sub extends nn.Module {
  readonly weight = new nn.Parameter(tensor([1, 2]))
  override forward(x: Tensor): Tensor {
    return x.mul(this.weight)
  }
}
class Model extends nn.Module {
  readonly sub = new Sub()
  readonly linear = new nn.Linear(2, 2)
  constructor() {
    super()
    this.registerBuffer('buf', tensor([5, 6]))
  }
  override forward(x: Tensor): Tensor {
    return torch.relu(this.linear.call(this.sub.call(x))).add((this as unknown as { buf: Tensor }).buf)
  }
}
const x = tensor([[3, -4]])

describe('deep copies', () => {
  it('test_deepcopy_graphmodule_with_transform: an edit of the graph is in the copy', () => {
    const gm = symbolicTrace((t: Tensor) => t.add(t))
    const output = gm.graph.outputNode()
    output.args = [gm.graph.insertingBefore(output, () => gm.graph.callMethod('neg', [output.args[0] as Node]))]
    gm.recompile()
    const copy = gm.deepCopy()
    expect(values(copy.call(x))).toEqual([[-6, 8]])
    expect(copy.code).toBe(gm.code)
  })

  it('test_deepcopy_with_submods_params: parameters, nested ones and buffers are copies with the same values', () => {
    const gm = symbolicTrace(new Model())
    const copy = gm.deepCopy()
    expect([...copy.stateDict().keys()]).toEqual([...gm.stateDict().keys()])
    expect([...copy.namedBuffers()].map(([name]) => name)).toEqual(['buf'])
    for (const [name, tensor_] of gm.stateDict()) {
      const other = copy.stateDict().get(name)
      expect([name, other === tensor_, other?.isParameter, other?.requiresGrad]).toEqual([name, false, tensor_.isParameter, tensor_.requiresGrad])
    }
    const before = values(gm.call(x))
    expect(values(copy.call(x))).toEqual(before)
    torch.noGrad(() => {
      ;(copy.getParameter('sub.weight') as unknown as Tensor).mul_(0)
      ;(copy.getBuffer('buf') as unknown as Tensor).mul_(0)
    })
    expect(values(gm.getParameter('sub.weight'))).toEqual([1, 2])
    expect(values(gm.call(x))).toEqual(before)
    expect(values(copy.call(x))).not.toEqual(before)
  })

  it('shared parameters stay shared in the copy; shareTensors keeps the tensors themselves', () => {
    const weight = new nn.Parameter(tensor([1]))
    const graph = new Graph()
    graph.output([graph.getAttr('a'), graph.getAttr('b')])
    const gm = new GraphModule({ a: weight, b: weight }, graph)
    const copy = gm.deepCopy()
    expect(copy.attribute('a')).toBe(copy.attribute('b'))
    expect(copy.attribute('a')).not.toBe(gm.attribute('a'))
    expect(gm.deepCopy({ shareTensors: true }).attribute('a')).toBe(gm.attribute('a'))
  })

  it('test_deepcopy_graphmodule: notes of the module and of its nodes are kept, and are the copy’s own', () => {
    const gm = symbolicTrace(new Model())
    gm.meta['hello'] = 'world'
    for (const node of gm.graph.nodes) node.meta['mine'] = node.name
    Object.assign(gm, { anything: [1, { two: 2 }] })
    gm.eval()
    const copy = gm.deepCopy()
    expect(copy.meta).toEqual({ hello: 'world' })
    expect([...copy.graph.nodes].map((n) => n.meta['mine'])).toEqual([...gm.graph.nodes].map((n) => n.name))
    expect([copy.attribute('anything'), copy.training, copy.className]).toEqual([[1, { two: 2 }], false, 'Model'])
    copy.meta['hello'] = 'you'
    const [first] = copy.graph.nodes
    if (first !== undefined) first.meta['mine'] = 'changed'
    expect([gm.meta['hello'], gm.graph.first?.meta['mine']]).toEqual(['world', gm.graph.first?.name])
  })

  it('test_deepcopy_no_recursion: notes that refer to themselves do no harm', () => {
    const gm = symbolicTrace((t: Tensor) => torch.relu(t))
    gm.meta['self'] = gm.meta
    for (const node of gm.graph.nodes) node.meta['self'] = { node, meta: node.meta }
    const copy = gm.deepCopy()
    expect(String(copy.graph)).toBe(String(gm.graph))
    expect(copy.meta['self']).toBe(gm.meta)
  })

  it('copies are called as the original is', () => {
    const gm = symbolicTrace((t: Tensor, by = 2) => t.mul(by))
    const results: Tensor[] = [gm.deepCopy().call(x), gm.shallowCopy().call(x, 3)]
    expect(results.map(values)).toEqual([[[6, -8]], [[9, -12]]])
  })

  it('hooks come along', () => {
    const gm = symbolicTrace((t: Tensor) => torch.relu(t))
    const heard: string[] = []
    gm.registerCreateNodeHook((node) => heard.push(node.name))
    const copy = gm.deepCopy()
    copy.graph.insertingBefore(copy.graph.outputNode(), () => copy.graph.callFunction(torch.neg, [copy.graph.first]))
    expect(heard).toEqual(['neg'])
  })

  it('a folded module that has not folded yet does so in its copy', () => {
    const folded = splitConstSubgraphs(new Model())
    const copy = folded.deepCopy()
    expect(values(copy.call(x))).toEqual(values(folded.call(x)))
    expect(copy.constructor).toBe(folded.constructor)
  })
})

describe('shallow copies', () => {
  it('are other modules over the same graph, tensors, submodules and notes', () => {
    const gm = symbolicTrace(new Model())
    gm.meta['k'] = 1
    const copy = gm.shallowCopy()
    expect(copy).not.toBe(gm)
    expect([copy.graph === gm.graph, copy.graph.owningModule === copy, copy.meta === gm.meta, copy.className]).toEqual([true, true, true, 'Model'])
    expect([copy.attribute('linear') === gm.attribute('linear'), copy.getParameter('sub.weight') === gm.getParameter('sub.weight')]).toEqual([
      true,
      true,
    ])
    expect(values(copy.call(x))).toEqual(values(gm.call(x)))
    Object.assign(copy, { linear: new nn.Linear(2, 2) })
    expect(gm.attribute('linear')).not.toBe(copy.attribute('linear'))
  })
})
