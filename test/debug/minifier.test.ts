// The minifier: six strategies, few queries, candidates judged in a child process.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { childEntry, minifier, minifyBackendFailure, MinifierError } from 'tensorfx/debug'
import { distUrl } from './processes.ts'

childEntry.url = distUrl('entries/debugChild.js')

/** x through 200 pointwise operators; the one at position 137 is relu. */
function chain(length: number, bad: number): GraphModule {
  const graph = new Graph()
  let node = graph.placeholder('x')
  const ops = [torch.sin, torch.cos, torch.tanh, torch.sigmoid]
  for (let i = 0; i < length; i++) node = graph.callFunction(i === bad ? torch.relu : (ops[i % ops.length] as typeof torch.sin), [node])
  graph.output([node])
  return new GraphModule({}, graph)
}

const uses = (gm: GraphModule, fn: unknown): boolean => [...gm.graph.nodes].some((n) => n.target === fn)

describe('the minifier', () => {
  it('brings a chain of 200 operators down to the bad one in at most 20 queries, in one child process and a fresh one for the final check', async () => {
    const gm = chain(200, 137)
    const result = await minifyBackendFailure(gm, [torch.randn([4, 4])], { backend: 'relu_compile_error_TESTING_ONLY', print: () => {} })
    expect([...result.gm.graph.nodes].map((n) => n.op)).toEqual(['placeholder', 'call_function', 'output'])
    expect(uses(result.gm, torch.relu)).toBe(true)
    expect(result.queries).toBeLessThanOrEqual(20)
    expect(result.isolated).toBe(true)
    expect(result.processes).toBe(2)
    expect(result.checks).toBeLessThanOrEqual(20)
    expect(result.failureRate).toBe(1)
    // Values are shrunk too.
    expect((result.inputs as readonly Tensor[]).map((t) => t.toArray())).toEqual([[1]])
  })

  it('prints PyTorch-like progress', async () => {
    const lines: string[] = []
    await minifier(chain(12, 5), [torch.randn([2])], (gm) => uses(gm, torch.relu), { print: (line) => lines.push(line) })
    expect(lines).toContain('Started off with 14 nodes')
    expect(lines.some((l) => /^Strategy: Truncate suffix \(G: 8\) \(14 nodes, 1 inputs\)$/.test(l))).toBe(true)
    expect(lines.some((l) => /^SUCCESS: Went from 14 to \d+ nodes$/.test(l))).toBe(true)
    expect(lines.at(-1)).toMatch(/^Made \d+ queries$/)
  })

  it('finds a mul in a graph of five operators: 4 nodes, 2 inputs', async () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => {
      const a = torch.sin(x)
      const b = torch.cos(y)
      const c = torch.mul(a, b)
      return [torch.add(c, x), torch.sub(c, y)]
    })
    const result = await minifier(gm, [torch.randn([3]), torch.randn([3])], (g) => uses(g, torch.mul))
    expect(result.gm.graph.nodes.length).toBe(4)
    expect(result.inputs).toHaveLength(2)
  })

  it('keeps only the producer of a NaN: 3 nodes, 1 input', async () => {
    const gm = symbolicTrace((x: Tensor) => {
      const y = torch.sin(torch.abs(x))
      return [torch.cos(torch.log(torch.sub(y, 10)))]
    })
    const result = await minifier(gm, [torch.rand([4])], (g, inputs) => {
      const outputs = g.forward(...inputs) as Tensor[]
      const hasNaN = (t: Tensor): boolean => Boolean(torch.isnan(t).any().item())
      return outputs.some(hasNaN) && !(inputs as readonly Tensor[]).some(hasNaN)
    })
    expect(result.gm.graph.nodes.length).toBe(3)
    expect(result.inputs).toHaveLength(1)
    expect(uses(result.gm, torch.log)).toBe(true)
  })

  it('an input that is returned: 2 nodes, 1 input', async () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor) => [torch.sin(a), b, torch.cos(b)])
    const result = await minifier(gm, [torch.ones([2]), torch.ones([2])], (g) =>
      g.graph.outputNode().allInputNodes.some((n) => n.op === 'placeholder'),
    )
    expect(result.gm.graph.nodes.length).toBe(2)
    expect(result.inputs).toHaveLength(1)
  })

  it('an operator with several results before an add: 4 nodes, 2 inputs', async () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const pair = graph.callFunction(torch.topk, [x, 1])
    const first = graph.callFunction(operator.getitem as never, [pair, 0])
    const other = graph.callFunction(torch.sin, [x])
    const sum = graph.callFunction(torch.add, [first, other])
    graph.output([graph.callFunction(torch.cos, [sum])])
    const result = await minifier(new GraphModule({}, graph), [torch.randn([3])], (g) => uses(g, torch.add))
    expect(result.gm.graph.nodes.length).toBe(4)
    expect(result.inputs).toHaveLength(2)
  })

  it('the graph given is not changed, and one that does not fail is an error', async () => {
    const gm = chain(6, 3)
    const before = String(gm.graph)
    await expect(minifier(gm, [torch.ones([2])], () => false)).rejects.toThrow(MinifierError)
    await minifier(gm, [torch.ones([2])], (g) => uses(g, torch.relu))
    expect(String(gm.graph)).toBe(before)
    await expect(minifier(gm, [], () => true)).rejects.toThrow(/1 placeholders but 0 inputs/)
    await expect(minifier(gm, [torch.ones([2])], () => true, { maxGranularity: 3 })).rejects.toThrow(/power of two/)
  })
})
