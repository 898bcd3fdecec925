// splitModule against PyTorch's results.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { inlineModule, splitModule } from 'tensorfx/fx/passes'
import { expectChildren, expectGraph, readExtra } from '../../golden.ts'
import type { GoldenGraph } from '../../golden.ts'

interface Split {
  readonly before?: GoldenGraph
  readonly after: GoldenGraph
  readonly subs: Readonly<Record<string, GoldenGraph>>
}

const golden = readExtra<{
  docs_example: Split
  'seq_{}': Split
  "seq_{'keep_original_order': True}": Split
  qualname_map: Split & { map: Readonly<Record<string, string>>; named_params: readonly string[] }
  string_partitions: { after: GoldenGraph }
}>('split_module_tests')

class MyModule extends nn.Module {
  param = new nn.Parameter(torch.rand([3, 4]))
  linear = new nn.Linear(4, 5)
  override forward(x: Tensor, y: Tensor): Tensor {
    const z = this.linear.call(x.add(this.param)).clamp({ min: 0, max: 1 })
    const w = this.linear.call(y).clamp({ min: 0, max: 1 })
    return z.add(w)
  }
}

const seq = (x: Tensor): Tensor[] => {
  const a = torch.relu(x)
  const b = torch.neg(a)
  const c = a.add(b)
  const d = c.mul(x)
  return [d, b]
}
const parts: Readonly<Record<string, number>> = { relu: 0, neg: 0, add: 1, mul: 2 }

describe('splitModule', () => {
  it('test_subgraph_creation: cuts PyTorch’s example into the same parts', () => {
    const model = new MyModule()
    const gm = symbolicTrace(model)
    expectGraph(gm, golden.docs_example.before as GoldenGraph)
    let i = 0
    const split = splitModule(gm, () => i++ % 3)
    expectGraph(split, golden.docs_example.after)
    expectChildren(split, golden.docs_example.subs)
    const [x, y] = [torch.randn([3, 4]), torch.randn([3, 4])]
    expect(torch.allclose(split.call(x, y) as Tensor, model.call(x, y))).toBe(true)
  })

  it.each(['seq_{}', "seq_{'keep_original_order': True}"] as const)('%s', (key) => {
    const split = splitModule(symbolicTrace(seq), (node) => parts[node.name] as number, key === 'seq_{}' ? {} : { keepOriginalOrder: true })
    // JavaScript returns an array.
    expectGraph(split, golden[key].after)
    expectChildren(split, golden[key].subs)
    const x = torch.randn([4])
    ;(split.call(x) as Tensor[]).forEach((value, n) => expect(torch.allclose(value, seq(x)[n] as Tensor)).toBe(true))
  })

  it('test_split_qualname_mapping: maps new paths to old ones', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU(), new nn.Linear(2, 2)))
    const qualnameMap = new Map<string, string>()
    let i = 0
    const split = splitModule(gm, () => (++i <= 2 ? 0 : 1), { qualnameMap })
    expect(Object.fromEntries(qualnameMap)).toEqual(golden.qualname_map.map)
    expectGraph(split, golden.qualname_map.after)
    expectChildren(split, golden.qualname_map.subs)
    expect([...split.namedParameters()].map(([name]) => name)).toEqual(golden.qualname_map.named_params)
  })

  it('names parts by strings, with an affix if asked', () => {
    expectGraph(
      splitModule(symbolicTrace(seq), (node) => `p${parts[node.name]}`),
      golden.string_partitions.after,
    )
    const split = splitModule(symbolicTrace(seq), (node) => parts[node.name] as number, { partitionAffix: 'gpu' })
    expect([...split.namedChildren()].map(([name]) => name)).toEqual(['submod_gpu_0', 'submod_gpu_1', 'submod_gpu_2'])
  })

  it('refuses parts that need each other', () => {
    const circle: Readonly<Record<string, number>> = { relu: 0, neg: 1, add: 0, mul: 1 }
    expect(() => splitModule(symbolicTrace(seq), (node) => circle[node.name] as number)).toThrow(/^cycle exists between partitions! The parts 0, 1/)
  })

  it('test_split_preserve_node_meta: meta goes with the nodes', () => {
    const gm = symbolicTrace(seq)
    for (const node of gm.graph.nodes) node.meta['note'] = node.name
    const split = splitModule(gm, (node) => parts[node.name] as number)
    const inside = split.attribute('submod_0') as GraphModule
    expect(inside.graph.findNodes({ op: 'call_function', target: torch.neg })[0]?.meta['note']).toBe('neg')
    expect(split.graph.findNodes({ op: 'placeholder' })[0]?.meta['note']).toBe('x')
  })

  it('keeps names when asked', () => {
    const gm = symbolicTrace((x) => torch.neg(torch.neg(torch.neg(x as Tensor))))
    const split = splitModule(gm, (node) => (node.name === 'neg' ? 0 : 1), { keepOriginalNodeName: true })
    expect([...(split.attribute('submod_1') as GraphModule).graph.nodes].map((n) => n.name)).toContain('neg_2')
    const named = splitModule(gm, (node) => (node.name === 'neg' ? 0 : 1), { keepOriginalInputName: false })
    expect([...(named.attribute('submod_1') as GraphModule).graph.nodes][0]?.name).toBe('arg_0')
  })

  it('is undone by inlineModule', () => {
    const gm = symbolicTrace(seq)
    const split = splitModule(gm, (node) => parts[node.name] as number)
    for (const call of split.graph.findNodes({ op: 'call_module' })) inlineModule(split, call)
    split.graph.lint()
    split.recompile()
    const x = torch.randn([4])
    ;(split.call(x) as Tensor[]).forEach((value, n) => expect(torch.allclose(value, seq(x)[n] as Tensor)).toBe(true))
    expect([...split.graph.nodes].map((n) => n.op)).toEqual([...gm.graph.nodes].map((n) => n.op))
  })

  it('called as in PyTorch, with a root module, says what is different', () => {
    const gm = symbolicTrace(seq)
    expect(() => splitModule(gm, gm as never)).toThrow(/second argument must be a function .* splitModule\(m, callback\)/)
  })

  /** Every n-th node goes into part n modulo 3. */
  const modulo = (n: number): (() => number) => {
    let count = 0
    return () => count++ % n
  }

  it('test_split_module_dead_code: parts that nobody needs compute nothing that is asked for', () => {
    const gm = symbolicTrace((x: Tensor) => {
      const output = x.mul(2)
      x.add(1)
      return output
    })
    const split = splitModule(gm, (node) => (node.name === 'mul' ? 1 : 2))
    const x = torch.randn([2])
    expect(torch.allclose(split.call(x), gm.call(x))).toBe(true)
  })

  it('test_split_module_return_node: a value that a part gives and another one takes and returns', () => {
    const gm = symbolicTrace((x: Tensor) => {
      const y = x.add(1)
      return [y, y.mul(2)]
    })
    const split = splitModule(gm, (node) => (node.name === 'add' ? 0 : 1))
    const x = torch.randn([2])
    ;(split.call(x) as Tensor[]).forEach((value, i) => expect(torch.allclose(value, gm.call(x)[i] as Tensor)).toBe(true))
  })

  it('test_split_module_default_arg, test_split_module_kwargs_expansion: defaults and options stay', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor | number = 3, { z = 2 } = {}) => x.add(y).mul(z))
    const split = splitModule(gm, modulo(2))
    const x = torch.tensor([1, 2])
    for (const args of [[x], [x, 5], [x, 5, { z: 7 }]]) {
      const want = (gm.call as (...a: unknown[]) => Tensor)(...args)
      expect(torch.allclose((split.call as (...a: unknown[]) => Tensor)(...args), want)).toBe(true)
    }
  })

  it('test_split_module_keep_original_order_and_noop_graph: a graph without calls', () => {
    const gm = symbolicTrace((x: Tensor) => x)
    const split = splitModule(gm, () => 0, { keepOriginalOrder: true })
    expect([...split.graph.nodes].map((n) => n.op)).toEqual(['placeholder', 'output'])
  })

  it('test_subgraph_uniquename, test_subgraph_trivial_resnet: a model in many parts and in one', () => {
    class Model extends nn.Module {
      layers = new nn.Sequential(new nn.Linear(4, 4), new nn.ReLU(), new nn.Linear(4, 4), new nn.ReLU())
      override forward(a: Tensor, b: Tensor): Tensor {
        const c = this.layers.call(a)
        return this.layers.call(b).add(c).add(a)
      }
    }
    const model = new Model()
    const gm = symbolicTrace(model)
    const [a, b] = [torch.randn([2, 4]), torch.randn([2, 4])]
    for (const partition of [(node: { name: string }): number => (node.name.startsWith('add') ? 1 : 0), (): number => 0]) {
      const split = splitModule(gm, partition)
      split.graph.lint()
      for (const [, child] of split.namedChildren()) if (child instanceof GraphModule) child.graph.lint()
      expect(torch.allclose(split.call(a, b), model.call(a, b))).toBe(true)
    }
  })
})
