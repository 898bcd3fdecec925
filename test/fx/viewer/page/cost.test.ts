// What the page says of costs: FLOPs against FlopCounterMode, bytes by hand, and times as heat.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { FlopCounterMode } from 'tensorfx/debug'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage, graphView } from 'tensorfx/fx/viewer'
import type { GraphCosts } from 'tensorfx/fx/viewer'
import { makeTree } from '../../../../src/fx/viewer/layout/tree.ts'
import { Heat, staticCost } from '../../../../src/fx/viewer/page/cost.ts'
import { pack, unpack } from '../../../../src/fx/viewer/pageData.ts'

class Net extends nn.Module {
  conv: nn.Conv2d = new nn.Conv2d(4, 8, 3, { padding: 1, groups: 2 })
  fc: nn.Linear = new nn.Linear(8 * 36, 10)
  override forward(x: Tensor): Tensor {
    const y = torch.relu(this.conv.call(x)).flatten(1)
    const z = this.fc.call(y)
    return nn.functional.linear(z.matmul(z.t()), torch.ones([5, 2])).mm(torch.ones([5, 3]))
  }
}

function pageGraph(fn: nn.Module | ((x: Tensor) => Tensor), x: Tensor) {
  const gm = symbolicTrace(fn)
  torch.noGrad(() => new ShapeProp(gm).propagate(x))
  return unpack(pack(graphView(gm, 'net')))
}

describe('the cost of nodes by their shapes', () => {
  const x = torch.ones([2, 4, 6, 6])
  const net = new Net()
  const graph = pageGraph(net, x)

  it('adds up to the operations that FlopCounterMode counts', () => {
    const counter = new FlopCounterMode()
    counter.during(() => torch.noGrad(() => net.call(x)))
    const flops = graph.nodes.map((node) => staticCost(node, graph).flops ?? 0)
    expect(flops.reduce((sum, n) => sum + n, 0)).toBe(counter.getTotalFlops())
    expect(flops.filter((n) => n > 0).length).toBe(5)
  })

  it('counts the bytes of inputs, parameters and result', () => {
    const conv = graph.nodes.find(({ name }) => name === 'conv')
    if (conv === undefined) throw new Error('no conv')
    expect(staticCost(conv, graph).bytes).toBe(4 * (2 * 4 * 36 + 8 * 2 * 9 + 8 + 2 * 8 * 36))
  })

  it('is unknown without shapes', () => {
    const bare = unpack(pack(graphView(symbolicTrace(net), 'net')))
    expect(bare.nodes.map((node) => staticCost(node, bare))).toEqual(bare.nodes.map(() => ({ flops: null, bytes: null })))
  })
})

describe('heat', () => {
  const cost = (time: number) => ({ calls: 2, time, flops: null, bytes: null, kernel: null })
  const costs: GraphCosts = { graph: 'Net', totalTime: 10, nodes: { conv: cost(6), relu: cost(3), no_such: cost(1) } }
  const graph = pageGraph(new Net(), torch.ones([2, 4, 6, 6]))

  it('is the time against that of the hottest node, and a group has the time of its nodes', () => {
    const heat = new Heat(costs)
    const tree = makeTree(graph)
    const warmth = (name: string): number => {
      const leaf = tree.leaves[graph.nodes.findIndex((node) => node.name === name)]
      return leaf === undefined ? NaN : heat.warmth(leaf)
    }
    expect([warmth('conv'), warmth('relu'), warmth('flatten')]).toEqual([1, 0.5, 0])
    expect(graph.nodes.flatMap((node) => heat.of(node)?.time ?? [])).toEqual([6, 3])
    expect(heat.share(cost(3))).toBe(0.3)
  })

  it('is written into the page; wrong costs are refused', () => {
    const gm = symbolicTrace(new Net())
    // The program of a page can write that of another file.
    const body = (page: string): string => page.slice(0, page.indexOf('<script'))
    expect(body(graphPage(gm, { costs }))).toContain('time (heat)')
    expect(body(graphPage(gm))).not.toContain('time (heat)')
    expect(() => graphPage(gm, { costs: 7 as never })).toThrow(/options\.costs/)
  })
})
