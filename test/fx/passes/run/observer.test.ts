// GraphTransformObserver: before and after of a pass.
import { expect, it, describe } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { CSEPass, GraphTransformObserver } from 'tensorfx/fx/passes'
import type { PassRecord } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'

const trace = (): GraphModule => symbolicTrace((x: Tensor) => torch.neg(x).add(1))

function replaceNegWithRelu(gm: GraphModule): void {
  for (const node of gm.graph.findNodes({ op: 'call_function', target: torch.neg })) {
    const relu = gm.graph.insertingAfter(node, () => gm.graph.callFunction(torch.relu, node.args))
    node.replaceAllUsesWith(relu)
    relu.args = node.args
    gm.graph.eraseNode(node)
  }
  gm.recompile()
}

describe('GraphTransformObserver', () => {
  it('test_graph_transform_observer: two pictures of a pass that changed something', () => {
    const files = new Map<string, string>()
    const gm = trace()
    {
      using observer = new GraphTransformObserver(gm, 'replace_neg_with_relu', { write: (name, dot) => void files.set(name, dot) })
      replaceNegWithRelu(gm)
      expect([...observer.createdNodes]).toEqual(['relu'])
      expect([...observer.erasedNodes]).toEqual(['neg'])
    }
    const n = GraphTransformObserver.getCurrentPassCount()
    expect([...files.keys()]).toEqual([`pass_${n}_replace_neg_with_relu_input_graph.dot`, `pass_${n}_replace_neg_with_relu_output_graph.dot`])
    const [before = '', after = ''] = files.values()
    const colors = (dot: string): string[] => [...dot.matchAll(/^(\w+) \[.*fillcolor=(\w+)/gm)].map(([, name, color]) => `${name} ${color}`)
    expect(colors(before)).toEqual(['x grey', 'neg yellow', 'add grey', 'output grey'])
    expect(colors(after)).toEqual(['x grey', 'relu yellow', 'add grey', 'output grey'])
  })

  it('a pass that changes nothing leaves no picture, and nobody listens afterwards', () => {
    const files: string[] = []
    const gm = trace()
    new GraphTransformObserver(gm, 'nothing', { write: (name) => void files.push(name) }).applyGmPass(() => {})
    replaceNegWithRelu(gm)
    expect(files).toEqual([])
  })

  it('applyGmPass and applyGraphPass give what the pass returns, and the record shows what changed', () => {
    const records: PassRecord[] = []
    const gm = trace()
    expect(new GraphTransformObserver(gm, 'count', { onChange: (r) => void records.push(r) }).applyGraphPass((graph) => graph.nodes.length)).toBe(4)
    new GraphTransformObserver(gm, 'swap', { onChange: (r) => void records.push(r) }).applyGmPass(replaceNegWithRelu)
    expect(records.map((r) => [r.passName, [...r.createdNodes], [...r.erasedNodes]])).toEqual([['swap', ['relu'], ['neg']]])
    const [record] = records as [PassRecord]
    expect(record.before.code).toContain('torch.neg(x)')
    expect(record.after).toBe(gm)
    expect(graphPage(record.after, { before: record.before })).toContain('1 added')
  })

  it('a pass that returns another module is compared with what it was given', () => {
    const records: PassRecord[] = []
    const gm = symbolicTrace((x: Tensor) => torch.cos(x).add(torch.cos(x)))
    const { graphModule } = new GraphTransformObserver(gm, 'cse', { onChange: (r) => void records.push(r) }).applyGmPass((m) => new CSEPass().run(m))
    expect(records.map((r) => [[...r.createdNodes], [...r.erasedNodes]])).toEqual([[[], ['cos_1']]])
    expect(records[0]?.after).toBe(graphModule)
  })

  it('what a failing pass did is still told', () => {
    const records: PassRecord[] = []
    const gm = trace()
    const broken = (m: GraphModule): never => {
      replaceNegWithRelu(m)
      throw new Error('half way')
    }
    expect(() => new GraphTransformObserver(gm, 'broken', { onChange: (r) => void records.push(r) }).applyGmPass(broken)).toThrow('half way')
    expect(records.map((r) => [...r.createdNodes])).toEqual([['relu']])
  })

  it('wants a GraphModule', () => {
    expect(() => new GraphTransformObserver({} as never, 'x')).toThrow("GraphTransformObserver: argument 'gm' must be a GraphModule")
  })
})
