// What SubgraphMatcher finds in the pattern classes of PyTorch's test_fx_passes, for outputs and placeholders that must or need not match; and named nodes.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { SubgraphMatcher, symbolicTrace } from 'tensorfx/fx'
import { SubgraphMatcherWithNameNodeMap } from 'tensorfx/fx/passes'
import type { Graph, GraphModule, Node } from 'tensorfx/fx'

type Program = (...xs: Tensor[]) => unknown
/** matchOutput, matchPlaceholder, number of matches, removeOverlappingMatches. */
type Expected = readonly [boolean, boolean, number, boolean?]
const F = torch.nn.functional

const patterns: readonly (readonly [name: string, program: Program, pattern: Program, ...Expected[]])[] = [
  [
    'SingleNodePattern',
    ((x: Tensor) => {
      const val = torch.neg(x)
      return torch.add(val, val)
    }) as Program,
    ((a: Tensor) => torch.neg(a)) as Program,
    [false, false, 1],
    [true, false, 0],
    [false, true, 1],
    [true, true, 0],
  ],
  [
    'SimplePattern',
    ((x: Tensor, w1: Tensor, w2: Tensor) => {
      const m1 = torch.cat([w1, w2]).sum()
      const m2 = torch.cat([w2, w1]).sum()
      const m3 = torch.cat([m1, m2]).sum()
      return x.add(torch.amax(m1)).add(torch.amax(m2)).add(torch.amax(m3))
    }) as Program,
    ((a: Tensor, b: Tensor) => torch.cat([a, b]).sum()) as Program,
    [false, false, 3],
    [true, false, 0],
    [false, true, 2],
    [true, true, 0],
  ],
  [
    'SimpleFullGraphMatching',
    ((x: Tensor) => {
      const a = torch.neg(x)
      return torch.add(a, a)
    }) as Program,
    ((x: Tensor) => {
      const a = torch.neg(x)
      return torch.add(a, a)
    }) as Program,
    [false, false, 1],
    [true, false, 1],
    [false, true, 1],
    [true, true, 1],
  ],
  [
    'DiamondShapePattern',
    ((x: Tensor) => {
      const a = torch.neg(x).relu()
      return a.sigmoid().add(a.relu())
    }) as Program,
    ((x: Tensor) => {
      const a = x.relu()
      return a.sigmoid().add(a.relu())
    }) as Program,
    [false, false, 1],
    [true, false, 1],
    [false, true, 0],
    [true, true, 0],
  ],
  [
    'NonFullyContainedMatches: a value inside of the pattern leaks',
    ((x: Tensor, w1: Tensor, w2: Tensor, b1: Tensor, b2: Tensor) => {
      const t0 = torch.addmm(b1, torch.cat([w1, w2]), torch.cat([x, b2]).t())
      const m3 = torch.cat([w1, w2])
      torch.addmm(b1, m3, torch.cat([x, b2]).t())
      return [torch.sum(t0), torch.sum(m3)]
    }) as Program,
    ((x: Tensor, w1: Tensor, w2: Tensor, b1: Tensor, b2: Tensor) => torch.addmm(b1, torch.cat([w1, w2]), torch.cat([x, b2]).t())) as Program,
    [false, false, 1],
    [true, false, 0],
    [false, true, 1],
  ],
  [
    'ChainRepeatedPattern',
    ((x: Tensor) => torch.sigmoid(torch.sigmoid(torch.sigmoid(torch.sigmoid(x))))) as Program,
    ((x: Tensor) => torch.sigmoid(torch.sigmoid(x))) as Program,
    [false, false, 3, false],
    [false, false, 2, true],
    [true, false, 1],
    [false, true, 1],
    [true, true, 0],
  ],
  [
    'QuantizationModel, QuantizationFp8Pattern: chains with literals',
    ((x: Tensor) => torch.clamp(torch.round(x.mul(0.5)), 0, 255).mul(2)) as Program,
    ((x: Tensor) => torch.clamp(torch.round(x.mul(0.5)), 0, 255).mul(2)) as Program,
    [false, false, 1],
    [true, false, 1],
    [false, true, 1],
    [true, true, 1],
  ],
  [
    'MultipleOutputsWithDependency',
    ((x: Tensor) => {
      const y = x.sigmoid()
      return [y.sigmoid(), y]
    }) as Program,
    ((a: Tensor) => {
      const b = a.sigmoid()
      return [b, b.sigmoid()]
    }) as Program,
    [false, false, 1],
    [true, false, 0],
    [false, true, 1],
    [true, true, 0],
  ],
  [
    'MultipleOutputsWithoutDependency',
    ((x: Tensor) => {
      const a = x.add(1).relu()
      const z = a.sum()
      return a.sigmoid().sigmoid().add(z.sum())
    }) as Program,
    ((x: Tensor) => {
      const a = x.relu()
      return [a.sigmoid(), a.sum()]
    }) as Program,
    [false, false, 1],
    [true, false, 0],
    [false, true, 0],
    [true, true, 0],
  ],
  [
    'MultipleOutputsMultipleOverlappingMatches',
    ((x: Tensor) => {
      const a = x.add(1).relu()
      return a.sum().add(a.sum()).add(a.sigmoid()).add(a.sigmoid())
    }) as Program,
    ((x: Tensor) => {
      const a = x.relu()
      return [a, a.sigmoid(), a.sum()]
    }) as Program,
    [false, false, 4, false],
    [false, false, 1, true],
    [true, false, 0],
    [false, true, 0],
  ],
  [
    'MultipleOutputsMultipleNonOverlappingMatches',
    ((x: Tensor) => {
      const a = x.add(1).relu()
      const z = a.sum()
      const y = a.sigmoid()
      const b = y.relu()
      return z.add(b.sum()).add(y).add(b.sigmoid())
    }) as Program,
    ((x: Tensor) => {
      const a = x.relu()
      return [a.sigmoid(), a.sum()]
    }) as Program,
    [false, false, 2],
    [true, false, 0],
  ],
  [
    'MultipleOutputsIdenticalAnchor',
    ((x: Tensor) => {
      const a = x.add(1).relu()
      return [a.sigmoid(), a.sigmoid()]
    }) as Program,
    ((x: Tensor) => {
      const a = x.relu()
      return [a.sigmoid(), a.sigmoid()]
    }) as Program,
    [true, false, 1],
    [false, true, 0],
  ],
  [
    'MultipleOutputsHorizontalPattern',
    ((x: Tensor) => {
      const a = x.add(1)
      return [a.relu(), a.sigmoid()]
    }) as Program,
    ((a: Tensor) => [a.relu(), a.sigmoid()]) as Program,
    [false, false, 1],
    [true, false, 1],
    [false, true, 0],
    [true, true, 0],
  ],
  [
    'MultiOutputWithWithInvalidMatches: what the pattern takes depends on what it gives',
    ((x: Tensor, w: Tensor) => {
      const lin = F.linear(x, w)
      return lin.mul(torch.sigmoid(lin)).sum({ dim: 1 })
    }) as Program,
    ((a: Tensor, b: Tensor, c: Tensor) => {
      const lin = F.linear(a, b)
      return [lin, lin.mul(c)]
    }) as Program,
    [false, false, 0],
    [true, false, 0],
    [false, true, 0],
  ],
  [
    'NoAnchorFound',
    ((x: Tensor) => x.add(1)) as Program,
    ((a: Tensor) => a.relu()) as Program,
    [false, false, 0],
    [true, false, 0],
    [false, true, 0],
    [true, true, 0],
  ],
]

describe('test_subgraph_matcher', () => {
  it.each(patterns.flatMap(([name, program, pattern, ...cases]) => cases.map((c) => [name, c, program, pattern] as const)))(
    '%s: matchOutput, matchPlaceholder, matches: %j',
    (_, [matchOutput, matchPlaceholder, count, removeOverlappingMatches = true], program, pattern) => {
      const graphs = [program, pattern].map((p) => symbolicTrace(p).graph) as [Graph, Graph]
      const matches = new SubgraphMatcher(graphs[1], { matchOutput, matchPlaceholder, removeOverlappingMatches }).match(graphs[0])
      expect(matches).toHaveLength(count)
      for (const match of matches) {
        for (const node of graphs[1].nodes) {
          if (node.op === 'output' && !matchOutput) continue
          expect(match.nodesMap.has(node) || node.op === 'output').toBe(true)
        }
        expect(match.placeholderNodes).toHaveLength(graphs[1].findNodes({ op: 'placeholder' }).length)
      }
    },
  )
})

describe('SubgraphMatcherWithNameNodeMap', () => {
  const pattern = (): GraphModule =>
    symbolicTrace((x: Tensor, weight: Tensor) => {
      const conv = F.conv2d(x, weight)
      const relu = F.relu(conv)
      return [relu, relu.mul(2), { conv, relu }]
    })

  it('test_split_to_graph_and_name_node_map: the names are no part of the pattern, which stays as it is', () => {
    const gm = pattern()
    const before = String(gm.graph)
    const target = symbolicTrace((x: Tensor, w: Tensor) => {
      const relu = F.relu(F.conv2d(x, w))
      return relu.add(relu.mul(2))
    })
    const [match] = new SubgraphMatcherWithNameNodeMap(gm).match(target.graph)
    expect(match?.returningNodes.map((n) => n.name)).toEqual(['relu', 'mul'])
    expect([...(match?.nameNodeMap.keys() ?? [])]).toEqual(['conv', 'relu'])
    expect(String(gm.graph)).toBe(before)
  })

  it('test_matcher_with_name_node_map_function: each match says what its names stand for', () => {
    const target = symbolicTrace((x: Tensor, w: Tensor) => {
      const relu = F.relu(F.conv2d(x.mul(2), w.mul(3)))
      return relu.add(relu.mul(2))
    })
    const matches = new SubgraphMatcherWithNameNodeMap(pattern()).match(target.graph)
    expect(matches).toHaveLength(1)
    for (const { nameNodeMap } of matches) (nameNodeMap.get('conv') as Node).meta['custom_annotation'] = 'annotation'
    expect([...target.graph.nodes].filter((n) => n.meta['custom_annotation'] === 'annotation').map((n) => n.name)).toEqual(['conv2d'])
  })

  it('test_matcher_with_name_node_map_module: patterns of modules, and names of inputs', () => {
    class M extends nn.Module {
      weight = new nn.Parameter(torch.ones([5, 5]))
      override forward(x: Tensor): unknown {
        const linear = F.linear(x, this.weight)
        return [linear, { linear, x }]
      }
    }
    class Target extends nn.Module {
      w = new nn.Parameter(torch.ones([5, 5]))
      override forward(y: Tensor): Tensor {
        return F.linear(y.neg(), this.w).relu()
      }
    }
    const target = symbolicTrace(new Target())
    const [match] = new SubgraphMatcherWithNameNodeMap(symbolicTrace(new M())).match(target.graph)
    expect([...(match?.nameNodeMap ?? [])].map(([name, node]) => [name, String(node)])).toEqual([
      ['linear', 'linear'],
      ['x', 'neg'],
    ])
  })

  it('patterns that name nothing are refused', () => {
    const make = (fn: Program) => (): unknown => new SubgraphMatcherWithNameNodeMap(symbolicTrace(fn) as GraphModule)
    expect(make((x) => (x as Tensor).neg())).toThrow('Expecting the pattern graph to return a tuple')
    expect(make((x) => [(x as Tensor).neg()])).toThrow('at least two outputs')
    expect(make((x) => [(x as Tensor).neg(), (x as Tensor).abs()])).toThrow('a dict output as the last element')
  })
})
