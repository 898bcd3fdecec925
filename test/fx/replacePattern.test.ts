// replacePattern and replacePatternWithFilters: PyTorch's test_subgraph_rewriter, and what is promised beyond it.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, Node, replacePattern, replacePatternWithFilters, symbolicTrace } from 'tensorfx/fx'
import type { InternalMatch, NodeType } from 'tensorfx/fx'
import { expectGraph, readExtra } from './golden.ts'
import type { GoldenGraph } from './golden.ts'

type Fn = (...args: Tensor[]) => unknown

/** Replaces in the traced program; the result computes what `expected` does. Returns the module and the number of matches. */
function replaced(program: Fn, pattern: Fn, replacement: Fn, expected: Fn, inputs: readonly Tensor[]): { gm: GraphModule; count: number } {
  const gm = symbolicTrace(program)
  const matches = replacePattern(gm, pattern, replacement)
  gm.graph.lint()
  const flat = (value: unknown): Tensor[] => (Array.isArray(value) ? (value as unknown[]).flatMap(flat) : [value as Tensor])
  const [want, got] = [flat(expected(...inputs)), flat(gm.call(...inputs))]
  expect(got).toHaveLength(want.length)
  got.forEach((value, i) => expect(torch.allclose(value, want[i] as Tensor)).toBe(true))
  return { gm, count: matches.length }
}

const u = torch.randn([3, 3])
const v = torch.randn([3, 3])
const w = torch.randn([3, 3])

describe('replacePattern', () => {
  it('gives the graph of PyTorch’s example, and the same matches', () => {
    const golden = readExtra<{ before: GoldenGraph; after: GoldenGraph; matches: { anchor: string; nodes_map: Record<string, string> }[] }>(
      'docs_replace_pattern',
    )
    class M extends nn.Module {
      override forward(x: Tensor, w1: Tensor, w2: Tensor): Tensor {
        const m1 = torch.cat([w1, w2]).sum()
        const m2 = torch.cat([w1, w2]).sum()
        return x.add(torch.max(m1)).add(torch.max(m2))
      }
    }
    const gm = symbolicTrace(new M())
    expectGraph(gm, golden.before)
    const matches = replacePattern(
      gm,
      (w1: Tensor, w2: Tensor) => torch.cat([w1, w2]),
      (w1: Tensor, w2: Tensor) => torch.stack([w1, w2]),
    )
    expectGraph(gm, golden.after)
    expect(
      matches.map((m) => ({ anchor: m.anchor.name, nodes_map: Object.fromEntries([...m.nodesMap].map(([k, v]) => [k.name, (v as Node).name])) })),
    ).toEqual(golden.matches)
  })

  it('test_subgraph_rewriter_preserves_logic: without a match nothing changes', () => {
    const program: Fn = (a) => torch.neg((a as Tensor).add(torch.relu(a as Tensor)))
    const { gm, count } = replaced(
      program,
      (a) => torch.exp(a as Tensor),
      (a) => torch.sin(a as Tensor),
      program,
      [u],
    )
    expect(count).toBe(0)
    expect(String(gm.graph)).toBe(String(symbolicTrace(program).graph))
  })

  it('test_subgraph_rewriter_with_oneliner_pattern', () => {
    const neg: Fn = (a) => torch.neg(a as Tensor)
    replaced(
      (a) => torch.neg(a as Tensor).add(1),
      neg,
      (a) => torch.relu(a as Tensor),
      (a) => torch.relu(a as Tensor).add(1),
      [u],
    )
  })

  it('test_subgraph_rewriter_with_trivial_replacement: a replacement without operations', () => {
    const { gm } = replaced(
      (a) => torch.relu(torch.neg(torch.neg(a as Tensor))),
      (a) => torch.neg(torch.neg(a as Tensor)),
      (a) => a,
      (a) => torch.relu(a as Tensor),
      [u],
    )
    expect(gm.graph.nodes.length).toBe(3)
  })

  it('test_subgraph_rewriter_single_pattern_match', () => {
    const pattern: Fn = (a) => torch.neg(a as Tensor).add(torch.relu(a as Tensor))
    const { count } = replaced(
      (a) => (pattern(a as Tensor) as Tensor).sum(0),
      pattern,
      (a) => torch.relu(a as Tensor),
      (a) => torch.relu(a as Tensor).sum(0),
      [u],
    )
    expect(count).toBe(1)
  })

  it('test_subgraph_rewriter_multiple_pattern_match', () => {
    const pattern: Fn = (a, b) => torch.cat([a as Tensor, b as Tensor]).sum()
    const program: Fn = (a, b, c) =>
      (c as Tensor).add(torch.max(pattern(a as Tensor, b as Tensor) as Tensor)).add(torch.max(pattern(a as Tensor, b as Tensor) as Tensor))
    const { count } = replaced(
      program,
      pattern,
      (a, b) => torch.stack([a as Tensor, b as Tensor]),
      (a, b, c) => {
        const s = torch.max(torch.stack([a as Tensor, b as Tensor]))
        return (c as Tensor).add(s).add(s)
      },
      [u, v, w],
    )
    expect(count).toBe(2)
  })

  it('test_subgraph_rewriter_graph_argument_order: parameters go by position', () => {
    replaced(
      (a, b) => torch.mm(a as Tensor, b as Tensor),
      (a, b) => torch.mm(a as Tensor, b as Tensor),
      (a, b) => torch.mm(b as Tensor, a as Tensor),
      (a, b) => torch.mm(b as Tensor, a as Tensor),
      [u, v],
    )
  })

  it('test_subgraph_rewriter_correct_output_replacement', () => {
    const pattern: Fn = (a) => torch.neg(a as Tensor).add(torch.neg(a as Tensor))
    replaced(
      (a, b) => [torch.neg(b as Tensor), pattern(a as Tensor)],
      pattern,
      (a) => torch.relu(a as Tensor),
      (a, b) => [torch.neg(b as Tensor), torch.relu(a as Tensor)],
      [u, v],
    )
  })

  it('test_subgraph_rewriter_traced_as_callable: a module with the replacement’s code', () => {
    class Replacement extends nn.Module {
      override forward(a: Tensor): Tensor {
        return torch.sigmoid(a)
      }
    }
    const gm = symbolicTrace((a) => torch.relu(a as Tensor))
    replacePattern(gm, (a: Tensor) => torch.relu(a), new Replacement())
    expect(torch.allclose(gm.call(u) as Tensor, torch.sigmoid(u))).toBe(true)
  })

  it('test_subgraph_rewriter_pattern_is_entire_graph', () => {
    const all: Fn = (a) => torch.relu(torch.neg(a as Tensor))
    replaced(
      all,
      all,
      (a) => torch.sigmoid(a as Tensor),
      (a) => torch.sigmoid(a as Tensor),
      [u],
    )
  })

  it('test_subgraph_rewriter_pattern_output_pattern_node_can_have_users_that_are_not_matched', () => {
    const program: Fn = (a) => {
      const r = torch.relu(a as Tensor)
      return torch.add(r, r).sub(r)
    }
    const { count } = replaced(
      program,
      (a) => torch.relu(a as Tensor),
      (a) => torch.neg(a as Tensor),
      (a) => torch.neg(a as Tensor),
      [u],
    )
    expect(count).toBe(1)
  })

  it('test_subgraph_rewriter_internal_pattern_nodes_cannot_have_users_that_are_not_matched', () => {
    const program: Fn = (a) => {
      const n = torch.neg(a as Tensor)
      return [torch.relu(n), n.mul(2)]
    }
    const { count } = replaced(
      program,
      (a) => torch.relu(torch.neg(a as Tensor)),
      (a) => a,
      program,
      [u],
    )
    expect(count).toBe(0)
  })

  it('test_subgraph_rewriter_placeholder_matching: a parameter stands for anything', () => {
    class M extends nn.Module {
      p = new nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))
      override forward(a: Tensor): Tensor {
        return torch.relu(a.add(this.p).sub(2))
      }
    }
    const gm = symbolicTrace(new M())
    const matches = replacePattern(
      gm,
      (a: Tensor) => torch.relu(a),
      (a: Tensor) => torch.neg(a),
    )
    expect(matches.map((m) => [...m.nodesMap.values()].map((n) => (n as Node).name))).toEqual([['relu', 'sub']])
    expect(gm.code).toContain('torch.neg(sub)')
  })

  it('test_subgraph_rewriter_replaces_referenced_submodules: modules of the replacement come along, unused ones go', () => {
    class M extends nn.Module {
      sigmoid = new nn.Sigmoid()
      submod = new nn.ReLU()
      override forward(a: Tensor): Tensor {
        return this.sigmoid.call(this.submod.call(a.add(1)))
      }
    }
    class Pattern extends nn.Module {
      sigmoid = new nn.Sigmoid()
      submod = new nn.ReLU()
      override forward(a: Tensor): Tensor {
        return this.sigmoid.call(this.submod.call(a))
      }
    }
    class Replacement extends nn.Module {
      tanh = new nn.Tanh()
      submod = new nn.ReLU()
      override forward(a: Tensor): Tensor {
        return this.submod.call(this.tanh.call(a))
      }
    }
    const gm = symbolicTrace(new M())
    replacePattern(gm, new Pattern(), new Replacement())
    expect(torch.allclose(gm.call(u) as Tensor, torch.relu(torch.tanh(u.add(1))))).toBe(true)
    expect([...gm.namedChildren()].map(([name]) => name).sort()).toEqual(['submod', 'tanh'])
  })

  it('test_subgraph_rewriter_replace_consecutive_submodules: one match may feed the next', () => {
    const program: Fn = (a) => torch.sigmoid(torch.sigmoid(torch.sigmoid(a as Tensor)))
    const { count } = replaced(
      program,
      (a) => torch.sigmoid(a as Tensor),
      (a) => torch.exp(a as Tensor),
      (a) => torch.exp(torch.exp(torch.exp(a as Tensor))),
      [u],
    )
    expect(count).toBe(3)
  })

  it('test_subgraph_rewriter_with_overlapping_matches: the first wins', () => {
    const program: Fn = (a) => torch.neg(torch.neg(torch.neg(a as Tensor)))
    const { count, gm } = replaced(
      program,
      (a) => torch.neg(torch.neg(a as Tensor)),
      (a) => torch.erf(a as Tensor),
      (a) => torch.neg(torch.erf(a as Tensor)),
      [u],
    )
    expect(count).toBe(1)
    expect(gm.graph.nodes.length).toBe(4)
  })

  it('test_subgraph_rewriter_replace_with_multiple_outputs', () => {
    const program: Fn = (a) => {
      const r = torch.relu(a as Tensor)
      return torch.exp(r).add(torch.neg(r))
    }
    const pattern: Fn = (a) => {
      const r = torch.relu(a as Tensor)
      return [torch.exp(r), torch.neg(r)]
    }
    replaced(
      program,
      pattern,
      (a) => [torch.sin(a as Tensor), torch.cos(a as Tensor)],
      (a) => torch.sin(a as Tensor).add(torch.cos(a as Tensor)),
      [u],
    )
  })

  it('test_subgraph_rewriter_replace_with_duplicated_outputs: one value may be returned twice', () => {
    const program: Fn = (a, b) => torch.relu(a as Tensor).add(torch.neg(b as Tensor))
    const pattern: Fn = (a, b) => {
      const [r, n] = [torch.relu(a as Tensor), torch.neg(b as Tensor)]
      return [r, n, r]
    }
    const replacement: Fn = (a, b) => {
      const [s, c] = [torch.sin(a as Tensor), torch.cos(b as Tensor)]
      return [s, c, s]
    }
    replaced(program, pattern, replacement, (a, b) => torch.sin(a as Tensor).add(torch.cos(b as Tensor)), [u, v])
  })

  it('test_subgraph_rewriter_with_unused_args: parameters of the program that nobody uses stay', () => {
    const { gm } = replaced(
      (a, b, _c) => (a as Tensor).add(b as Tensor),
      (a, b) => (a as Tensor).add(b as Tensor),
      (a, b) => (a as Tensor).sub(b as Tensor),
      (a, b) => (a as Tensor).sub(b as Tensor),
      [u, v, w],
    )
    expect(gm.graph.findNodes({ op: 'placeholder' })).toHaveLength(3)
  })

  it('test_subgraph_rewriter_call_method', () => {
    const pattern: Fn = (a) => (a as Tensor).sigmoid().neg()
    replaced(
      (a) => (pattern(a as Tensor) as Tensor).add(1),
      pattern,
      (a) => (a as Tensor).relu(),
      (a) => (a as Tensor).relu().add(1),
      [u],
    )
  })

  it('test_subgraph_rewriter_nodes_with_kwargs', () => {
    const pattern: Fn = (a) => torch.sum(a as Tensor, { dim: 0 })
    replaced(
      (a) => torch.sum(a as Tensor, { dim: 0 }).mul(2),
      pattern,
      (a) => torch.mean(a as Tensor, { dim: 0 }),
      (a) => torch.mean(a as Tensor, { dim: 0 }).mul(2),
      [u],
    )
  })

  it('test_subgraph_rewriter_local_revert: replaced and replaced back is the same program', () => {
    const gm = symbolicTrace((a, b) => (a as Tensor).add(b as Tensor))
    const before = gm.call(u, v) as Tensor
    const [add, sub]: Fn[] = [(a, b) => (a as Tensor).add(b as Tensor), (a, b) => torch.sub(a as Tensor, b as Tensor)] as [Fn, Fn]
    replacePattern(gm, add as Fn, sub as Fn)
    expect(torch.allclose(gm.call(u, v) as Tensor, u.sub(v))).toBe(true)
    replacePattern(gm, sub as Fn, add as Fn)
    expect(torch.allclose(gm.call(u, v) as Tensor, before)).toBe(true)
  })

  it('test_matching_pattern_with_list_type_arg', () => {
    replaced(
      (a, b) => torch.cat([a as Tensor, b as Tensor]),
      (a, b) => torch.cat([a as Tensor, b as Tensor]),
      (a, b) => torch.stack([a as Tensor, b as Tensor]),
      (a, b) => torch.stack([a as Tensor, b as Tensor]),
      [u, v],
    )
  })

  it('test_replacement_with_attrs: parameters of the replacement come along', () => {
    class Replacement extends nn.Module {
      shift = new nn.Parameter(torch.tensor([1, 2, 3]))
      override forward(a: Tensor): Tensor {
        return a.sub(this.shift)
      }
    }
    const gm = symbolicTrace((a) => torch.relu(a as Tensor))
    replacePattern(gm, (a: Tensor) => torch.relu(a), new Replacement())
    expect(torch.allclose(gm.call(u) as Tensor, u.sub(torch.tensor([1, 2, 3])))).toBe(true)
    expect([...gm.namedParameters()].map(([name]) => name)).toEqual(['shift'])
  })

  it('test_matching_variable_arguments: options left out match their defaults', () => {
    const gm = symbolicTrace((a) => torch.nn.functional.maxPool2d(a as Tensor, 2))
    const matches = replacePattern(
      gm,
      (a: Tensor) => torch.nn.functional.maxPool2d(a, 2, { stride: null, padding: 0 }),
      (a: Tensor) => torch.neg(a),
    )
    expect(matches).toHaveLength(1)
  })

  it('new nodes take over the stack and the module path of what they replace', () => {
    class Inner extends nn.Module {
      override forward(a: Tensor): Tensor {
        return torch.relu(a)
      }
    }
    class Outer extends nn.Module {
      inner = new Inner()
      override forward(a: Tensor): Tensor {
        return this.inner.call(a)
      }
    }
    const gm = symbolicTrace(new Outer())
    const [old] = gm.graph.findNodes({ op: 'call_function', target: torch.relu })
    const { stackTrace, meta } = old as Node
    replacePattern(
      gm,
      (a: Tensor) => torch.relu(a),
      (a: Tensor) => torch.exp(torch.neg(a)),
    )
    for (const node of gm.graph.findNodes({ op: 'call_function', target: torch.exp })) {
      expect(node.stackTrace).toBe(stackTrace)
      expect(node.meta['nn_module_stack']).toBe(meta['nn_module_stack'])
    }
  })

  it('test_subgraph_rewriter_annotations_int: types of what is not replaced stay', () => {
    const gm = symbolicTrace((x: Tensor) => torch.add(x, torch.neg(x)))
    for (const node of gm.graph.nodes) if (node.op !== 'output') node.type = 'int'
    const types = (m: GraphModule): (NodeType | null)[] => [...m.graph.nodes].filter((n) => n.name !== 'relu').map((n) => n.type)
    expect(types(gm.deepCopy())).toEqual(['int', 'int', 'int', null])
    replacePattern(
      gm,
      (x: Tensor) => torch.neg(x),
      (x: Tensor) => torch.relu(x),
    )
    expect(types(gm)).toEqual(['int', 'int', null])
  })

  it('changes nothing when the replacement does not fit', () => {
    const gm = symbolicTrace((a, b) => (a as Tensor).add(b as Tensor))
    const before = String(gm.graph)
    const add = (a: Tensor, b: Tensor): Tensor => a.add(b)
    expect(() => replacePattern(gm, add, (a: Tensor) => a.neg())).toThrow('the pattern has 2 parameters but the replacement has 1')
    expect(() => replacePattern(gm, add, (a: Tensor, b: Tensor) => [a.neg(), b])).toThrow(
      'the pattern returns 1 values but the replacement returns 2',
    )
    expect(() => replacePattern(gm, add, (_a: Tensor, _b: Tensor) => 3)).toThrow('must return values that it computes')
    expect(() => replacePattern(((a: Tensor) => a) as unknown as GraphModule, add, add)).toThrow(
      "argument 'gm' must be a GraphModule, got a function",
    )
    expect(String(gm.graph)).toBe(before)
  })

  it('changes nothing when the replacement refers to what it does not have', () => {
    const gm = symbolicTrace((a: Tensor) => torch.relu(a))
    const before = [String(gm.graph), gm.code]
    const broken = new Graph()
    broken.output(broken.callModule('missing', [broken.placeholder('a')]))
    expect(() => replacePattern(gm, (a: Tensor) => torch.relu(a), broken)).toThrow(
      'Attempted to create a "call_module" node during subgraph rewriting with target missing, but the referenced attribute does not exist',
    )
    expect([String(gm.graph), gm.code]).toEqual(before)
    expect(Object.keys(Object.fromEntries(gm.namedBuffers()))).toEqual([])
  })

  it('a replacement may use values from outside: they keep apart from those of the program', () => {
    const [two, ten] = [torch.tensor([2]), torch.tensor([10])]
    const gm = symbolicTrace((a: Tensor) => torch.relu(a.mul(two)))
    replacePattern(
      gm,
      (a: Tensor) => torch.relu(a),
      (a: Tensor) => a.add(ten),
    )
    expect(gm.call(torch.tensor([1])).toArray()).toEqual([12])
    replacePattern(
      gm,
      (a: Tensor, b: Tensor) => a.add(b),
      (a: Tensor, b: Tensor) => a.add(b).mul(two),
    )
    expect(gm.call(torch.tensor([1])).toArray()).toEqual([24])
    expect([...gm.namedBuffers()].map(([name]) => name)).toHaveLength(2)
  })

  it('replaces 5,000 matches in a chain of 10,000 nodes', () => {
    const gm = symbolicTrace((a) => {
      let value = a as Tensor
      for (let i = 0; i < 5000; i++) value = torch.relu(torch.neg(value))
      return value
    })
    expect(
      replacePattern(
        gm,
        (a: Tensor) => torch.relu(torch.neg(a)),
        (a: Tensor) => torch.exp(a),
      ),
    ).toHaveLength(5000)
    expect(gm.graph.nodes.length).toBe(5002)
  })
})

describe('replacePatternWithFilters', () => {
  it('gives PyTorch’s graph and replacements', () => {
    const golden = readExtra<{ after: GoldenGraph; n: number; replacements: string[][] }>('replace_with_filters')
    const gm = symbolicTrace((x, y) => torch.relu((x as Tensor).add(1)).add(torch.relu((y as Tensor).add(2))))
    const hasOne = (match: InternalMatch): boolean => [...match.nodesMap.values()].some((v) => v instanceof Node && v.args.includes(1))
    const matches = replacePatternWithFilters(
      gm,
      (a: Tensor, b: Tensor) => torch.relu(a.add(b)),
      (a: Tensor, b: Tensor) => torch.tanh(a.mul(b)),
      {
        matchFilters: [hasOne],
      },
    )
    expectGraph(gm, golden.after)
    expect(matches).toHaveLength(golden.n)
    expect(matches.map((m) => m.replacements.map((n) => n.name))).toEqual(golden.replacements)
  })

  it('test_replace_pattern_with_filters: only matches that all filters accept', () => {
    const gm = symbolicTrace((a, b) => torch.relu(a as Tensor).add(torch.relu(b as Tensor)))
    const second = (match: InternalMatch, graph: Graph): boolean => match.placeholderNodes[0] === graph.findNodes({ op: 'placeholder' })[1]
    expect(
      replacePatternWithFilters(
        gm,
        (a: Tensor) => torch.relu(a),
        (a: Tensor) => torch.neg(a),
        { matchFilters: [second, () => false] },
      ),
    ).toEqual([])
    expect(
      replacePatternWithFilters(
        gm,
        (a: Tensor) => torch.relu(a),
        (a: Tensor) => torch.neg(a),
        { matchFilters: [second] },
      ),
    ).toHaveLength(1)
    expect(torch.allclose(gm.call(u, v) as Tensor, torch.relu(u).add(torch.neg(v)))).toBe(true)
  })

  it('test_replaced_nodes: the nodes that came in are reported', () => {
    const gm = symbolicTrace((a, b) => (a as Tensor).add(b as Tensor))
    const [match] = replacePatternWithFilters(
      gm,
      (a: Tensor, b: Tensor) => a.add(b),
      (a: Tensor, b: Tensor) => torch.neg(a.sub(b)),
    )
    expect(match?.replacements.map((n) => n.name)).toEqual(['sub', 'neg'])
  })

  it('test_replace_pattern_with_callback: another replacement for each match', () => {
    const gm = symbolicTrace((a) => (a as Tensor).add(3).add(4))
    replacePatternWithFilters(gm, (a: Tensor, b: Tensor) => a.add(b), null, {
      replacementCallback: (match) =>
        match.placeholderNodes[1] === 3
          ? symbolicTrace((a: Tensor, b: Tensor) => a.mul(b)).graph
          : symbolicTrace((a: Tensor, b: Tensor) => a.sub(b)).graph,
    })
    expect(torch.allclose(gm.call(u) as Tensor, u.mul(3).sub(4))).toBe(true)
    expect(() => replacePatternWithFilters(gm, (a: Tensor) => a.neg(), null)).toThrow(
      'Must provide either a replacement GraphModule or a replacement callback',
    )
  })
})
