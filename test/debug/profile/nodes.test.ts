// What a profile says of the nodes of graphs: GraphModules run node by node, compiled graphs by kernels.
import { describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { profile } from 'tensorfx/debug'
import type { Profile } from 'tensorfx/debug'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'

class Net extends nn.Module {
  fc1 = new nn.Linear(32, 64)
  fc2 = new nn.Linear(64, 8)
  override forward(x: Tensor): Tensor {
    return this.fc2(torch.relu(this.fc1(x))).add(1)
  }
}

const x = torch.randn([16, 32])
const [first, second] = [2 * 16 * 32 * 64, 2 * 16 * 64 * 8]
const sumOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
const only = (result: Profile): ReturnType<Profile['graphCosts']>[number] => {
  const graphs = result.graphCosts()
  expect(graphs).toHaveLength(1)
  return graphs[0] ?? { graph: '', totalTime: 0, nodes: {} }
}

describe('the nodes of a GraphModule', () => {
  it('are told with what runs in them', () => {
    const gm = symbolicTrace(new Net())
    const expected = gm(x).toArray()
    const results: unknown[] = []
    const result = profile(() => results.push(gm(x).toArray()), { runs: 3 })
    expect(new Set(results.map((value) => JSON.stringify(value)))).toEqual(new Set([JSON.stringify(expected)]))
    const { rows } = result.keyAverages({ groupBy: 'node' })
    expect(rows.map(({ name, calls, flops }) => [name, calls, flops])).toEqual([
      ['Net.fc1', 3, 3 * first],
      ['Net.relu', 3, 0],
      ['Net.fc2', 3, 3 * second],
      ['Net.add', 3, 0],
    ])
    const { nodes, totalTime } = only(result)
    expect(Object.keys(nodes)).toEqual(['fc1', 'relu', 'fc2', 'add'])
    expect([nodes['fc1']?.calls, nodes['fc1']?.flops, nodes['fc1']?.kernel]).toEqual([3, 3 * first, null])
    expect(nodes['relu']?.bytes).toBe(3 * 4 * 2 * 16 * 64)
    expect(sumOf(Object.values(nodes).map(({ time }) => time))).toBeCloseTo(totalTime, 9)
    expect(totalTime).toBeLessThanOrEqual(result.totalTime)
    // Operators run inside of nodes, and nodes inside of the module.
    const at = result.events.findIndex(({ kind, name }) => kind === 'operator' && name === 'torch.add')
    const node = result.events[result.events[at]?.parent ?? -1]
    expect([node?.kind, node?.name, result.events[node?.parent ?? -1]?.kind]).toEqual(['node', 'add', 'module'])
  })

  it('leave the module as it was, also after an error', () => {
    const gm = symbolicTrace(new Net())
    const before = Object.getOwnPropertyDescriptor(gm, 'forward')
    profile(() => gm(x))
    expect(() => profile(() => gm(torch.ones([3]).reshape(3, 1)))).toThrow()
    expect(Object.getOwnPropertyDescriptor(gm, 'forward')).toEqual(before)
  })

  it('are not told where the code does not compute what the graph says', () => {
    const gm = symbolicTrace(new Net())
    gm(x)
    // Edited, and not recompiled: the old code runs, and says so.
    using _warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    for (const node of gm.graph.nodes) if (node.name === 'add') node.args = [node.args[0] ?? null, 2]
    const before = gm(x).toArray()
    let value: unknown
    const result = profile(() => (value = gm(x).toArray()))
    expect(value).toEqual(before)
    expect(result.graphCosts()).toEqual([])
    class Mine extends GraphModule {
      override forward(...args: Tensor[]): Tensor {
        const result: Tensor = super.forward(...args)
        return result.mul(0)
      }
    }
    const mine = new Mine(new Net(), symbolicTrace(new Net()).graph)
    expect(profile(() => expect(mine(x).sum().item()).toBe(0)).graphCosts()).toEqual([])
  })

  it('nest: what runs in the graph of a module inside belongs to the inner nodes', () => {
    const inner = symbolicTrace(new Net())
    class Outer extends nn.Module {
      inner = inner
      override forward(input: Tensor): Tensor {
        return this.inner(input).relu()
      }
    }
    const result = profile(() => new Outer()(x))
    expect(only(result).graph).toBe('Outer.inner')
  })
})

describe('the nodes of a compiled function', () => {
  it('have the time of the kernels that computed them: shares of loops, all of a product', () => {
    const w = torch.randn([32, 4])
    const f = compile((a: Tensor) => a.mm(w).relu().add(1).softmax(1))
    f(x)
    const result = profile(() => f(x), { runs: 4 })
    const { graph, nodes, totalTime } = only(result)
    const kernels = result.events.filter(({ kind }) => kind === 'kernel')
    expect(graph).toMatch(/^compiled_graph_\d+$/)
    expect(totalTime).toBeCloseTo(sumOf(kernels.map(({ start, end }) => end - start)), 9)
    expect(nodes['mm']).toMatchObject({ calls: 4, flops: 4 * 2 * 16 * 32 * 4, kernel: expect.stringMatching(/_k0$/) as string })
    expect(nodes['relu']).toMatchObject({ calls: 4, time: 0, flops: 0, kernel: nodes['mm']?.kernel })
    expect(nodes['mm']?.time).toBeGreaterThan(0)
    const inSoftmax = Object.values(nodes).filter(({ kernel }) => kernel !== nodes['mm']?.kernel)
    expect(inSoftmax.length).toBeGreaterThan(0)
    expect(JSON.parse(JSON.stringify(result.graphCosts()))).toEqual(result.graphCosts())
  })
})
