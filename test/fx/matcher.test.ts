// SubgraphMatcher: what it finds, and why it does not.
import { describe, expect, it } from 'vitest'
import { nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphError, GraphModule, Slice, SubgraphMatcher, symbolicTrace } from 'tensorfx/fx'
import type { InternalMatch, Node } from 'tensorfx/fx'
import { readExtra } from './golden.ts'

const graphOf = (fn: (...args: Tensor[]) => unknown): Graph => symbolicTrace(fn).graph
const names = (match: InternalMatch): Record<string, string> =>
  Object.fromEntries([...match.nodesMap].map(([k, v]) => [k.name, (v as Node).name ?? String(v)]))

describe('SubgraphMatcher', () => {
  it('finds what PyTorch finds, with the same maps', () => {
    const golden = readExtra<{ matches: { anchors: string[]; nodes_map: object; placeholder_nodes: string[]; returning_nodes: string[] }[] }>(
      'matcher',
    )
    const target = graphOf((x, y) => {
      const a = torch.relu(x as Tensor).add(y as Tensor)
      const b = torch.relu(a).add(y as Tensor)
      return b.mul(2)
    })
    const matcher = new SubgraphMatcher(graphOf((x, y) => torch.relu(x as Tensor).add(y as Tensor)))
    const found = matcher.match(target).map((m) => ({
      anchors: m.anchors.map((n) => n.name),
      nodes_map: names(m),
      placeholder_nodes: m.placeholderNodes.map((n) => (n as Node).name),
      returning_nodes: m.returningNodes.map((n) => n.name),
    }))
    expect(found).toEqual(golden.matches)
  })

  it('refuses an empty pattern and one with dead code', () => {
    expect(() => new SubgraphMatcher(graphOf((x) => x))).toThrow('SubgraphMatcher cannot be initialized with an empty pattern')
    const dead = graphOf((_x, y) => torch.relu(y as Tensor))
    expect(() => new SubgraphMatcher(dead)).toThrow(GraphError)
    expect(() => new SubgraphMatcher(dead)).toThrow("'_x' is unused")
  })

  it('test_subgraph_matcher_with_attributes: attributes match any attribute', () => {
    class WithWeight extends nn.Module {
      weight = new nn.Parameter(torch.ones([2]))
      override forward(x: Tensor): Tensor {
        return x.mul(this.weight)
      }
    }
    class Other extends nn.Module {
      scale = new nn.Parameter(torch.zeros([2]))
      override forward(x: Tensor): Tensor {
        return torch.relu(x).mul(this.scale)
      }
    }
    expect(new SubgraphMatcher(symbolicTrace(new WithWeight()).graph).match(symbolicTrace(new Other()).graph)).toHaveLength(1)
  })

  it('test_subgraph_matcher_with_list: lists match element by element', () => {
    const matcher = new SubgraphMatcher(graphOf((x, y) => torch.cat([x as Tensor, y as Tensor])))
    expect(matcher.match(graphOf((a, b) => torch.cat([torch.relu(a as Tensor), b as Tensor])))).toHaveLength(1)
  })

  it('test_subgraph_matcher_with_list_bad: lists of other lengths do not match', () => {
    const matcher = new SubgraphMatcher(graphOf((x, y) => torch.cat([x as Tensor, y as Tensor])))
    const target = graphOf((a, b, c) => torch.cat([a as Tensor, b as Tensor, c as Tensor]))
    expect(matcher.match(target)).toEqual([])
    expect(matcher.explain(target.findNodes({ op: 'call_function', target: torch.cat })[0] as Node)).toBe(
      "a list of 'cat' has 2 elements, that of %cat has 3",
    )
  })

  it('test_subgraph_matcher_ignore_literals: literals are compared unless told otherwise', () => {
    const pattern = graphOf((x) => (x as Tensor).add(1))
    const target = graphOf((x) => (x as Tensor).add(2))
    expect(new SubgraphMatcher(pattern).match(target)).toEqual([])
    expect(new SubgraphMatcher(pattern, { ignoreLiterals: true }).match(target)).toHaveLength(1)
  })

  it('test_variatic_arg_matching: options and positions, given and default, are one spelling', () => {
    const pattern = graphOf((x) => torch.sum(x as Tensor, 1))
    for (const spelled of [
      (x: Tensor) => torch.sum(x, { dim: 1 }),
      (x: Tensor) => torch.sum(x, 1, false),
      (x: Tensor) => torch.sum(x, { dim: 1, keepdim: false }),
      (x: Tensor) => x.sum(1),
    ])
      expect(new SubgraphMatcher(pattern).match(symbolicTrace(spelled).graph)).toHaveLength(1)
    expect(new SubgraphMatcher(pattern).match(graphOf((x) => torch.sum(x as Tensor, 1, true)))).toEqual([])
  })

  it('takes functions, methods and Python operators for one operation (difference: one-operation)', () => {
    const spellings = [
      (x: Tensor, y: Tensor) => torch.relu(torch.add(x, y)),
      (x: Tensor, y: Tensor) => x.add(y).relu(),
      (x: Tensor, y: Tensor) => torch.relu(operator.add(x, y)),
    ].map((fn) => symbolicTrace(fn).graph)
    for (const pattern of spellings) for (const target of spellings) expect(new SubgraphMatcher(pattern).match(target)).toHaveLength(1)
  })

  it('matches a placeholder of the pattern with a literal, the same one everywhere', () => {
    const pattern = graphOf((x, s) => (x as Tensor).mul(s as Tensor).add(s as Tensor))
    const same = graphOf((x) => (x as Tensor).mul(3).add(3))
    const [match] = new SubgraphMatcher(pattern).match(same)
    expect(match?.placeholderNodes[1]).toBe(3)
    expect(new SubgraphMatcher(pattern).match(graphOf((x) => (x as Tensor).mul(3).add(4)))).toEqual([])
  })

  it('explains why the nearest candidate did not match', () => {
    const matcher = new SubgraphMatcher(graphOf((x) => torch.relu(torch.neg(x as Tensor))))
    const explain = (fn: (x: Tensor) => unknown): string | null => {
      const { graph } = symbolicTrace(fn)
      return matcher.explain(graph.outputNode().allInputNodes[0] as Node)
    }
    expect(explain((x) => torch.relu(torch.neg(x)))).toBeNull()
    expect(explain((x) => torch.relu(torch.exp(x)))).toBe("'neg' of the pattern is call_function torch.neg, but %exp is call_function torch.exp")
    expect(explain((x) => torch.sigmoid(x))).toBe("'relu' of the pattern is call_function torch.relu, but %sigmoid is call_function torch.sigmoid")
    const leaky = symbolicTrace((x) => {
      const a = torch.neg(x as Tensor)
      return [torch.relu(a), a.mul(2)]
    }).graph
    expect(matcher.explain(leaky.findNodes({ op: 'call_function', target: torch.relu })[0] as Node)).toBe(
      "%neg is inside the match ('neg' of the pattern), but %mul outside of it uses it",
    )
  })

  it('does not report a match through which a value flows from outside', () => {
    const pattern = graphOf((x) => [torch.relu(x as Tensor), torch.neg(x as Tensor)] as never)
    const matcher = new SubgraphMatcher(pattern)
    const separate = graphOf((x) => torch.relu(x as Tensor).add(torch.neg(x as Tensor)))
    expect(matcher.match(separate)).toHaveLength(1)
    const between = graphOf((x, y) => {
      const a = torch.relu(x as Tensor)
      return torch.sub(torch.sub(a, y as Tensor), torch.neg(x as Tensor))
    })
    expect(matcher.match(between)).toHaveLength(1)
  })

  it('finds 5,000 matches in a chain of 10,000 nodes', () => {
    const { graph } = symbolicTrace((x) => {
      let y = x as Tensor
      for (let i = 0; i < 5000; i++) y = torch.relu(torch.neg(y))
      return y
    })
    expect(new SubgraphMatcher(graphOf((x) => torch.relu(torch.neg(x as Tensor)))).match(graph)).toHaveLength(5000)
  })

  it('a pattern may be as long as a graph', () => {
    const long = (): Graph =>
      graphOf((x) => {
        let y = x as Tensor
        for (let i = 0; i < 20_000; i++) y = torch.relu(y)
        return y
      })
    const [match] = new SubgraphMatcher(long(), { matchOutput: true }).match(long())
    expect(match?.nodesMap.size).toBe(20_002)
  })

  it('compares records and slices value by value', () => {
    const record = (names: readonly string[]): Graph => {
      const graph = new Graph()
      const x = graph.placeholder('x')
      const values = names.map((name) => [name, graph.callFunction(torch.relu, [x])] as const)
      graph.output(Object.fromEntries(values))
      return graph
    }
    const found = (pattern: readonly string[], target: readonly string[]): number =>
      new SubgraphMatcher(record(pattern), { matchOutput: true }).match(record(target)).length
    expect([found(['a', 'b'], ['b', 'a']), found(['a'], ['b']), found(['a'], ['a', 'b'])]).toEqual([1, 0, 0])
    const rows = (by: 'stop' | 'start'): Graph => {
      const graph = new Graph()
      const [x, n] = [graph.placeholder('x'), graph.callFunction(operator.add, [graph.placeholder('n'), 1])]
      graph.output(graph.callFunction(operator.getitem, [x, by === 'stop' ? new Slice<Node | number>(0, n) : new Slice<Node | number>(n, 0)]))
      return graph
    }
    const sliced = (pattern: 'stop' | 'start', target: 'stop' | 'start'): number => new SubgraphMatcher(rows(pattern)).match(rows(target)).length
    expect([sliced('stop', 'stop'), sliced('stop', 'start')]).toEqual([1, 0])
  })

  it('keeps module targets apart', () => {
    const net = (): nn.Module => new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU(), new nn.Linear(2, 2))
    const target = symbolicTrace(net())
    const pattern = new GraphModule(target, target.graph.deepCopy())
    expect(new SubgraphMatcher(pattern.graph).match(target.graph)).toHaveLength(1)
  })
})
