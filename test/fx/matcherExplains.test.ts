// SubgraphMatcher: every reason that `explain` gives, literals, and the spellings that count as one operation.
import { describe, expect, it } from 'vitest'
import { operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, SubgraphMatcher, symbolicTrace } from 'tensorfx/fx'
import type { MatcherOptions, Node } from 'tensorfx/fx'

type Fn = (...args: never[]) => unknown
const graphOf = (fn: Fn): Graph => symbolicTrace(fn).graph

/** A graph that returns what `build` makes of the placeholders x and y. An unused y is left out. */
function built(build: (graph: Graph, x: Node, y: Node) => Node): Graph {
  const graph = new Graph()
  const [x, y] = [graph.placeholder('x'), graph.placeholder('y')]
  graph.output(build(graph, x, y))
  if (y.users.size === 0) graph.eraseNode(y)
  return graph
}

/** Why the pattern does not match at the node of that name; of the returned value by default. */
function why(pattern: Graph, target: Graph, name?: string): string | null {
  const node = [...target.nodes].find((n) => (name === undefined ? n === target.outputNode().args[0] : n.name === name))
  if (node === undefined) throw new Error(`no node ${name}`)
  return new SubgraphMatcher(pattern).explain(node)
}

const count = (pattern: Graph, target: Graph, options?: MatcherOptions): number => new SubgraphMatcher(pattern, options).match(target).length
const ours = (x: unknown): unknown => x
const others = (x: unknown): unknown => x

describe('explain', () => {
  it('one node of the pattern cannot be two of the graph', () => {
    const pattern = graphOf((x: Tensor) => {
      const a = torch.relu(x)
      return a.add(a)
    })
    const target = graphOf((x: Tensor, y: Tensor) => torch.relu(x).add(torch.relu(y)))
    expect(why(pattern, target)).toBe("'relu' of the pattern is both %relu and %relu_1")
    expect(count(pattern, target)).toBe(0)
  })

  it('two nodes of the pattern cannot be one of the graph', () => {
    const pattern = graphOf((x: Tensor, y: Tensor) => torch.relu(x).add(torch.relu(y)))
    const target = graphOf((x: Tensor) => {
      const a = torch.relu(x)
      return a.add(a)
    })
    expect(why(pattern, target)).toBe("%relu would have to be two nodes of the pattern, 'relu_1' one of them")
    expect(count(pattern, target)).toBe(0)
  })

  it('other literals, and a node where there is a literal', () => {
    const pattern = graphOf((x: Tensor) => torch.add(x, 1))
    expect(
      why(
        pattern,
        graphOf((x: Tensor) => torch.add(x, 2)),
      ),
    ).toBe("'add' of the pattern has 1 where %add has 2")
    expect(
      why(
        pattern,
        graphOf((x: Tensor, y: Tensor) => torch.add(x, y)),
      ),
    ).toBe("'add' of the pattern has 1 where %add has %y")
    expect(
      count(
        pattern,
        graphOf((x: Tensor, y: Tensor) => torch.add(x, y)),
        { ignoreLiterals: true },
      ),
    ).toBe(0)
  })

  it('a literal where there is a node', () => {
    const pattern = graphOf((x: Tensor, y: Tensor) => torch.add(x, torch.neg(y)))
    expect(
      why(
        pattern,
        graphOf((x: Tensor) => torch.add(x, 2)),
      ),
    ).toBe("'add' takes the node 'neg', %add takes 2")
  })

  it('two literals for one placeholder', () => {
    const pattern = graphOf((x: Tensor, s: Tensor) => x.mul(s).add(s))
    expect(
      why(
        pattern,
        graphOf((x: Tensor) => x.mul(3).add(4)),
      ),
    ).toBe("'s' of the pattern stands for two literals")
  })

  it('other arguments of a function without a schema', () => {
    const pattern = built((graph, x) => graph.callFunction(ours, [x], { a: 1, b: 2 }))
    expect(
      why(
        pattern,
        built((graph, x) => graph.callFunction(ours, [x, 1], { a: 1 })),
      ),
    ).toBe("'ours' of the pattern has other arguments than %ours: (%x, a: 1, b: 2) and (%x, 1, a: 1)")
  })

  it('a match that another one, found before, shares nodes with', () => {
    const pattern = graphOf((x: Tensor) => torch.neg(torch.neg(x)))
    const target = graphOf((x: Tensor) => torch.neg(torch.neg(torch.neg(x))))
    expect(why(pattern, target, 'neg_1')).toBeNull()
    expect(why(pattern, target, 'neg_2')).toBe('another match uses some of its nodes, or another returned value of the pattern was not found')
  })

  it('a value that leaves the match and comes back', () => {
    const pattern = graphOf((x: Tensor) => {
      const a = torch.relu(x)
      return [a, torch.add(torch.neg(a), 1)] as never
    })
    const inside = graphOf((x: Tensor) => {
      const a = torch.relu(x)
      return torch.add(torch.neg(torch.add(torch.exp(a), a)), 1)
    })
    expect(count(pattern, inside)).toBe(0)
  })

  it('the reason is that of the attempt that got furthest', () => {
    const pattern = graphOf((x: Tensor, y: Tensor) => torch.add(torch.relu(x), torch.neg(torch.exp(y))))
    const target = graphOf((x: Tensor, y: Tensor) => torch.add(torch.relu(x), torch.neg(torch.sin(y))))
    expect(why(pattern, target)).toBe("'exp' of the pattern is call_function torch.exp, but %sin is call_function torch.sin")
    // Nothing of an explanation stays behind.
    const matcher = new SubgraphMatcher(pattern)
    const [relu, add] = ['relu', 'add'].map((name) => [...target.nodes].find((n) => n.name === name))
    expect(matcher.explain(add as Node)).toMatch(/^'exp'/)
    expect(matcher.explain(relu as Node)).toBe("'add' of the pattern is call_function torch.add, but %relu is call_function torch.relu")
  })
})

describe('literals', () => {
  const twice = built((graph, x, y) => graph.callFunction(ours, [graph.callFunction(ours, [x, y]), y]))
  const given = (first: unknown, second: unknown): number =>
    count(
      twice,
      built((graph, x) => graph.callFunction(ours, [graph.callFunction(ours, [x, first as never]), second as never])),
    )

  it('a placeholder stands for equal literals, also nested ones', () => {
    const equal: readonly (readonly [unknown, unknown])[] = [
      [1, 1],
      [NaN, NaN],
      [null, null],
      [
        [1, [2]],
        [1, [2]],
      ],
      [
        { a: 1, b: [2] },
        { a: 1, b: [2] },
      ],
    ]
    for (const [a, b] of equal) expect(given(a, b)).toBe(1)
  })

  it('and not for literals that differ', () => {
    const different: readonly (readonly [unknown, unknown])[] = [
      [1, 2],
      [1, '1'],
      [0, -0],
      [null, []],
      [[], null],
      [1, [1]],
      [[1], 1],
      [[1], [2]],
      [[1], [1, 2]],
      [
        [1, 2],
        [1, 3],
      ],
      [[1], { 0: 1 }],
      [{ a: 1 }, { b: 1 }],
      [{ a: undefined }, { b: 1 }],
      [
        { a: 1, b: 2 },
        { a: 1, b: 3 },
      ],
    ]
    for (const [a, b] of different) expect(given(a, b)).toBe(0)
  })

  it('options of a function without a schema are compared by name', () => {
    const call = (options: Record<string, number>): Graph => built((graph, x) => graph.callFunction(ours, [x], options))
    expect(count(call({ a: 1, b: 2 }), call({ a: 1, b: 2 }))).toBe(1)
    for (const options of [{ a: 1, b: 3 }, { a: 1, c: 2 }, { c: 1, b: 2 }, { a: 1 }, { a: 1, b: 2, c: 3 }])
      expect(count(call({ a: 1, b: 2 }), call(options))).toBe(0)
  })

  it('another function is another operation', () => {
    const call = (fn: (x: unknown) => unknown): Graph => built((graph, x) => graph.callFunction(fn, [x]))
    expect([count(call(ours), call(ours)), count(call(ours), call(others))]).toEqual([1, 0])
  })
})

describe('spellings', () => {
  it('Python’s operators are torch’s functions of other names', () => {
    const pairs: readonly (readonly [Fn, Fn])[] = [
      [(x: Tensor, y: Tensor) => operator.truediv(x, y), (x: Tensor, y: Tensor) => torch.div(x, y)],
      [(x: Tensor, y: Tensor) => operator.floordiv(x, y), (x: Tensor, y: Tensor) => torch.floorDivide(x, y)],
      [(x: Tensor, y: Tensor) => operator.mod(x, y), (x: Tensor, y: Tensor) => torch.remainder(x, y)],
      [(x: Tensor, y: Tensor) => operator.mul(x, y), (x: Tensor, y: Tensor) => x.mul(y)],
    ]
    for (const [a, b] of pairs) {
      expect([count(graphOf(a), graphOf(b)), count(graphOf(b), graphOf(a))]).toEqual([1, 1])
      for (const [c] of pairs) if (c !== a) expect(count(graphOf(a), graphOf(c))).toBe(0)
    }
  })

  it('a method’s camelCase name is the function’s name in PyTorch', () => {
    expect(
      count(
        graphOf((x: Tensor) => torch.logSoftmax(x, 1)),
        graphOf((x: Tensor) => x.logSoftmax(1)),
      ),
    ).toBe(1)
  })

  it('a method with options is the function with options', () => {
    const pattern = graphOf((x: Tensor) => torch.sum(x, 1, true))
    expect(
      count(
        pattern,
        graphOf((x: Tensor) => x.sum({ dim: 1, keepdim: true })),
      ),
    ).toBe(1)
    expect(
      count(
        pattern,
        graphOf((x: Tensor) => x.sum({ dim: 1 })),
      ),
    ).toBe(0)
    expect(
      count(
        pattern,
        graphOf((x: Tensor) => x.sum({ dim: 0, keepdim: true })),
      ),
    ).toBe(0)
  })

  it('an option or an argument that the schema lacks matches nothing', () => {
    const sum = (args: readonly (number | boolean)[], options: Record<string, number>): Graph =>
      built((graph, x) => graph.callFunction(torch.sum, [x, ...args], options))
    expect(count(sum([1], {}), sum([], { dim: 1 }))).toBe(1)
    expect(count(sum([1], {}), sum([1], { other: 1 }))).toBe(0)
    expect(count(sum([1], {}), sum([1, false, 3, 4, 5], {}))).toBe(0)
  })

  it('a method that no operator has matches by its name', () => {
    const call = (name: string, args: readonly number[] = []): Graph => built((graph, x) => graph.callMethod(name, [x, ...args]))
    expect([
      count(call('ownMethod'), call('ownMethod')),
      count(call('ownMethod'), call('otherMethod')),
      count(call('ownMethod'), call('ownMethod', [1])),
    ]).toEqual([1, 0, 0])
  })

  it('modules match by their path, with equal arguments', () => {
    const call = (path: string, args: readonly number[] = []): Graph => built((graph, x) => graph.callModule(path, [x, ...args]))
    expect([count(call('fc'), call('fc')), count(call('fc'), call('fc2')), count(call('fc'), call('fc', [1]))]).toEqual([1, 0, 0])
    expect(
      count(
        call('relu'),
        built((graph, x) => graph.callMethod('relu', [x])),
      ),
    ).toBe(0)
  })
})

describe('options', () => {
  it('matchOutput wants the pattern at the end of the graph', () => {
    const pattern = graphOf((x: Tensor) => torch.relu(x))
    const [end, middle] = [graphOf((x: Tensor) => torch.relu(torch.neg(x))), graphOf((x: Tensor) => torch.neg(torch.relu(x)))]
    expect([count(pattern, end, { matchOutput: true }), count(pattern, middle, { matchOutput: true }), count(pattern, middle)]).toEqual([1, 0, 1])
  })

  it('matchPlaceholder wants placeholders where the pattern has them', () => {
    const pattern = graphOf((x: Tensor) => torch.relu(x))
    const target = graphOf((x: Tensor) => torch.relu(torch.relu(x)))
    expect([count(pattern, target, { matchPlaceholder: true }), count(pattern, target)]).toEqual([1, 2])
  })

  it('removeOverlappingMatches: false reports matches that share nodes', () => {
    const pattern = graphOf((x: Tensor, y: Tensor) => [torch.relu(x), torch.neg(y)] as never)
    const target = graphOf((x: Tensor) => [torch.relu(x), torch.relu(x.add(1)), torch.neg(x.mul(2))] as never)
    expect([count(pattern, target), count(pattern, target, { removeOverlappingMatches: false })]).toEqual([1, 2])
  })
})
