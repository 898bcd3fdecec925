// splitModule against PyTorch's results.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { inlineModule, splitModule } from 'tensorfx/fx/passes'
import { expectChildren, expectGraph, readExtra } from '../golden.ts'
import type { GoldenGraph } from '../golden.ts'

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
  it('cuts PyTorch’s example into the same parts', () => {
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

  it('maps new paths to old ones', () => {
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
})
