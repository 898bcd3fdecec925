// Whole searches of the minifier: each line that is printed, each event, each state that is reached, and the result.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { MinifierError, minifier, onEvent } from 'tensorfx/debug'
import type { MinifierOptions, ModuleFails } from 'tensorfx/debug'

const t = torch.tensor

/** The operators of a graph, and what it returns. */
const told = (gm: GraphModule): string => {
  const nodes = [...gm.graph.nodes]
  const names = (list: readonly { name: string }[]): string => list.map((node) => node.name).join(' ')
  const calls = nodes.filter((node) => node.op === 'call_function').map((node) => `${node.name}(${names(node.allInputNodes)})`)
  return `${names(nodes.filter((node) => node.op === 'placeholder'))} -> ${calls.join(' ')} -> ${names(gm.graph.outputNode().allInputNodes)}`
}
const valuesOf = (inputs: readonly unknown[]): unknown[] => inputs.map((input) => (input as Tensor).toArray())
const calls = (gm: GraphModule, ...names: string[]): boolean =>
  names.every((name) => [...gm.graph.nodes].some((node) => node.op === 'call_function' && node.name.startsWith(name)))

/** A search, with all that it tells. */
async function search(gm: GraphModule, inputs: readonly unknown[], fails: ModuleFails, options: MinifierOptions = {}) {
  const lines: string[] = []
  const dumped: string[] = []
  const events: string[] = []
  const listening = onEvent((event) => {
    if (event.kind === 'minify.step')
      events.push(`${event.strategy}, ${event.nodes} nodes: ${event.verdict}${event.why === null ? '' : `, ${event.why}`}`)
    if (event.kind === 'minify.end') events.push(`end: ${event.nodes} nodes, ${event.queries} queries, rate ${event.failureRate}`)
  })
  let end: unknown
  try {
    const {
      gm: found,
      inputs: left,
      earlier,
      ...rest
    } = await minifier(gm, inputs, fails, {
      ...options,
      print: (line) => void lines.push(line),
      dumpState: (state, values, before) => void dumped.push(`${told(state)} on ${JSON.stringify(valuesOf(values))}, ${before.length} before`),
    })
    const steps = rest.steps.map(
      ({ strategy, granularity, nodes, inputs: count, queries }) => `${strategy} ${granularity}: ${nodes} nodes, ${count} inputs, ${queries} queries`,
    )
    end = { ...rest, steps, graph: told(found), inputs: valuesOf(left), earlier: earlier.map(valuesOf) }
  } catch (error) {
    if (!(error instanceof MinifierError)) throw error
    end = error.message
  } finally {
    listening[Symbol.dispose]()
  }
  return { lines, dumped, events, end }
}

describe('a whole search', () => {
  const program = symbolicTrace((a: Tensor, b: Tensor) => [torch.relu(torch.mul(torch.sin(a), b)), torch.neg(b)])
  const inputs = (): Tensor[] => [t([0.5, 1]), t([2, 3])]

  it('with calls before, a control, and values that are shrunk', async () => {
    const earlier = [
      [t([1, 1]), t([1, 1])],
      [t([7, 7]), t([8, 8])],
      [t([2, 2]), t([2, 2])],
    ]
    const report = await search(
      program,
      inputs(),
      // The call with sevens is needed.
      (gm, _values, before) => calls(gm, 'relu') && before.some(([x]) => [...(x as Tensor).toTypedArray()].every((value) => value === 7)),
      { earlier, control: (gm) => calls(gm, 'mul'), shrinkValues: true },
    )
    expect(report).toMatchInlineSnapshot(`
      {
        "dumped": [
          "a b -> sin(a) mul(sin b) relu(mul) neg(b) -> relu neg on [[0.5,1],[2,3]], 3 before",
          "a b -> sin(a) mul(sin b) relu(mul) neg(b) -> relu neg on [[0.5,1],[2,3]], 1 before",
          "a b -> sin(a) mul(sin b) relu(mul) -> relu on [[0.5,1],[2,3]], 1 before",
          "a b -> sin(a) mul(sin b) relu(mul) -> relu on [[0],[2]], 1 before",
          "a b -> sin(a) mul(sin b) relu(mul) -> relu on [[0],[2]], 1 before",
        ],
        "end": {
          "checks": 14,
          "controls": 15,
          "earlier": [
            [
              [
                7,
              ],
              [
                8,
              ],
            ],
          ],
          "failureRate": 1,
          "graph": "a b -> sin(a) mul(sin b) relu(mul) -> relu",
          "inputs": [
            [
              0,
            ],
            [
              2,
            ],
          ],
          "queries": 11,
          "steps": [
            "original 0: 7 nodes, 2 inputs, 1 queries",
            "Drop calls 1: 7 nodes, 2 inputs, 5 queries",
            "Truncate suffix 4: 6 nodes, 2 inputs, 8 queries",
            "Shrink shapes 1: 6 nodes, 2 inputs, 14 queries",
            "Round values 1: 6 nodes, 2 inputs, 17 queries",
          ],
        },
        "events": [
          "original, 7 nodes: fails",
          "Drop calls, 7 nodes: passes, it does not fail",
          "Drop calls, 7 nodes: passes, it does not fail",
          "Drop calls, 7 nodes: fails",
          "Drop calls, 7 nodes: fails",
          "Truncate suffix, 6 nodes: fails",
          "Truncate suffix, 3 nodes: passes, it does not fail",
          "Truncate suffix, 5 nodes: passes, it does not fail",
          "Isolate the last operator, 3 nodes: passes, it does not fail",
          "Truncate prefix, 5 nodes: passes, it does not fail",
          "Delta Debugging, 5 nodes: other, it fails on a backend that is right too",
          "Shrink values, 6 nodes: passes, it does not fail",
          "Shrink values, 6 nodes: passes, it does not fail",
          "Shrink values, 6 nodes: fails",
          "Shrink values, 6 nodes: passes, it does not fail",
          "Shrink values, 6 nodes: passes, it does not fail",
          "Shrink values, 6 nodes: fails",
          "end: 6 nodes, 11 queries, rate 1",
        ],
        "lines": [
          "Started off with 7 nodes",
          "",
          "Strategy: Drop calls (G: 1) (7 nodes, 2 inputs)",
          "SUCCESS: Went from 4 to 2 calls",
          "",
          "Strategy: Truncate suffix (G: 4) (7 nodes, 2 inputs)",
          "SUCCESS: Went from 7 to 6 nodes",
          "SUCCESS: Went from 2 to 1 outputs",
          "",
          "Strategy: Isolate the last operator (G: 4) (6 nodes, 2 inputs)",
          "FAIL: Isolate the last operator",
          "",
          "Strategy: Truncate prefix (G: 4) (6 nodes, 2 inputs)",
          "FAIL: Truncate prefix",
          "",
          "Strategy: Delta Debugging (G: 2) (6 nodes, 2 inputs)",
          "FAIL: Delta Debugging",
          "",
          "Strategy: Delta Debugging (G: 1) (6 nodes, 2 inputs)",
          "FAIL: Delta Debugging",
          "",
          "Strategy: Eliminate dead code (G: 1) (6 nodes, 2 inputs)",
          "FAIL: Eliminate dead code",
          "",
          "Strategy: Consolidate Inputs (G: 1) (6 nodes, 2 inputs)",
          "FAIL: Consolidate Inputs",
          "",
          "Strategy: Remove unused inputs (G: 1) (6 nodes, 2 inputs)",
          "FAIL: Remove unused inputs",
          "",
          "Strategy: Remove outputs (G: 1) (6 nodes, 2 inputs)",
          "FAIL: Remove outputs",
          "",
          "Strategy: Shrink values (4 elements)",
          "SUCCESS: Shrink shapes (2 elements)",
          "SUCCESS: Round values (2 elements)",
          "Made 11 queries",
        ],
      }
    `)
  })

  it('of a failure that comes and goes', async () => {
    let count = 0
    expect(await search(program, inputs(), (gm) => calls(gm, 'relu') && ++count % 3 === 0)).toMatchInlineSnapshot(`
      {
        "dumped": [
          "a b -> sin(a) mul(sin b) relu(mul) neg(b) -> relu neg on [[0.5,1],[2,3]], 0 before",
          "a b -> sin(a) mul(sin b) relu(mul) -> relu on [[0.5,1],[2,3]], 0 before",
          "mul -> relu(mul) -> relu on [[0.9588510990142822,2.5244128704071045]], 0 before",
          "mul -> relu(mul) -> relu on [[0.9588510990142822,2.5244128704071045]], 0 before",
        ],
        "end": {
          "checks": 16,
          "controls": 0,
          "earlier": [],
          "failureRate": 0.3125,
          "graph": "mul -> relu(mul) -> relu",
          "inputs": [
            [
              0.9588510990142822,
              2.5244128704071045,
            ],
          ],
          "queries": 25,
          "steps": [
            "original 0: 7 nodes, 2 inputs, 3 queries",
            "Truncate suffix 4: 6 nodes, 2 inputs, 22 queries",
            "Isolate the last operator 4: 3 nodes, 1 inputs, 25 queries",
          ],
        },
        "events": [
          "original, 7 nodes: passes, it does not fail",
          "original, 7 nodes: passes, it does not fail",
          "original, 7 nodes: fails",
          "Truncate suffix, 6 nodes: fails",
          "Truncate suffix, 3 nodes: passes, it does not fail",
          "Truncate suffix, 5 nodes: passes, it does not fail",
          "Isolate the last operator, 3 nodes: fails",
          "end: 3 nodes, 25 queries, rate 0.3125",
        ],
        "lines": [
          "The failure comes and goes (33% of the runs so far): each candidate gets up to 8 runs",
          "Started off with 7 nodes",
          "",
          "Strategy: Truncate suffix (G: 4) (7 nodes, 2 inputs)",
          "SUCCESS: Went from 7 to 6 nodes",
          "SUCCESS: Went from 2 to 1 outputs",
          "",
          "Strategy: Isolate the last operator (G: 4) (6 nodes, 2 inputs)",
          "SUCCESS: Went from 6 to 3 nodes",
          "SUCCESS: Went from 2 to 1 inputs",
          "",
          "Strategy: Truncate prefix (G: 2) (3 nodes, 1 inputs)",
          "FAIL: Truncate prefix",
          "",
          "Strategy: Delta Debugging (G: 1) (3 nodes, 1 inputs)",
          "FAIL: Delta Debugging",
          "",
          "Strategy: Eliminate dead code (G: 1) (3 nodes, 1 inputs)",
          "FAIL: Eliminate dead code",
          "",
          "Strategy: Consolidate Inputs (G: 1) (3 nodes, 1 inputs)",
          "FAIL: Consolidate Inputs",
          "",
          "Strategy: Remove unused inputs (G: 1) (3 nodes, 1 inputs)",
          "FAIL: Remove unused inputs",
          "",
          "Strategy: Remove outputs (G: 1) (3 nodes, 1 inputs)",
          "FAIL: Remove outputs",
          "The failure comes and goes: 31% of the final runs failed",
          "Made 25 queries",
        ],
      }
    `)
  })

  it('whose result fails no more, but what was reached before does', async () => {
    const found = await search(program, inputs(), (gm) => calls(gm, 'relu'), { finalCheck: (gm) => calls(gm, 'sin') })
    expect([found.end, found.lines.slice(-1), found.dumped.slice(-1)]).toMatchInlineSnapshot(`
      [
        {
          "checks": 40,
          "controls": 0,
          "earlier": [],
          "failureRate": 1,
          "graph": "a b -> sin(a) mul(sin b) relu(mul) -> relu",
          "inputs": [
            [
              0.5,
              1,
            ],
            [
              2,
              3,
            ],
          ],
          "queries": 5,
          "steps": [
            "original 0: 7 nodes, 2 inputs, 1 queries",
            "Truncate suffix 4: 6 nodes, 2 inputs, 4 queries",
            "Isolate the last operator 4: 3 nodes, 1 inputs, 5 queries",
          ],
        },
        [
          "Made 5 queries",
        ],
        [
          "a b -> sin(a) mul(sin b) relu(mul) -> relu on [[0.5,1],[2,3]], 0 before",
        ],
      ]
    `)
  })

  it('of what does not fail, or fails where it must not', async () => {
    const ends: unknown[] = []
    const fails: ModuleFails = (gm) => calls(gm, 'relu')
    ends.push((await search(program, inputs(), () => false)).end)
    ends.push((await search(program, inputs(), fails, { control: () => false })).end)
    ends.push((await search(program, inputs(), fails, { finalCheck: () => false })).end)
    ends.push((await search(program, inputs(), fails, { control: (_gm, _values, isFinal) => !isFinal })).end)
    expect(ends).toEqual([
      'Input graph did not fail the tester (in 8 runs)',
      'Input graph fails on a backend that is right too, so its failure is not that of the backend.',
      'Uh oh, something went wrong :( Final graph is not failing, nor is any before it, when each is judged anew.',
      'Uh oh, something went wrong :( Final graph is not failing, nor is any before it, when each is judged anew. On a backend that is right it fails too.',
    ])
  })

  it('of one value that is no list, and of inputs that are no tensors', async () => {
    const graph = new Graph()
    const [x, n] = [graph.placeholder('x'), graph.placeholder('n')]
    graph.output(graph.callFunction(torch.relu, [graph.callFunction(torch.mul, [x, n])]))
    const lines: string[] = []
    const { queries, checks, steps } = await minifier(new GraphModule({}, graph), [t([0.5, 1.5, 2]), 3], (gm) => calls(gm, 'mul'), {
      shrinkValues: true,
      print: (line) => void lines.push(line),
    })
    expect([lines.filter((line) => line !== ''), queries, checks, steps.at(-1)]).toMatchInlineSnapshot(`
      [
        [
          "Started off with 5 nodes",
          "Strategy: Truncate suffix (G: 4) (5 nodes, 2 inputs)",
          "SUCCESS: Went from 5 to 4 nodes",
          "Strategy: Isolate the last operator (G: 4) (4 nodes, 2 inputs)",
          "FAIL: Isolate the last operator",
          "Strategy: Truncate prefix (G: 4) (4 nodes, 2 inputs)",
          "FAIL: Truncate prefix",
          "Strategy: Delta Debugging (G: 2) (4 nodes, 2 inputs)",
          "FAIL: Delta Debugging",
          "Strategy: Delta Debugging (G: 1) (4 nodes, 2 inputs)",
          "FAIL: Delta Debugging",
          "Strategy: Eliminate dead code (G: 1) (4 nodes, 2 inputs)",
          "FAIL: Eliminate dead code",
          "Strategy: Consolidate Inputs (G: 1) (4 nodes, 2 inputs)",
          "FAIL: Consolidate Inputs",
          "Strategy: Remove unused inputs (G: 1) (4 nodes, 2 inputs)",
          "FAIL: Remove unused inputs",
          "Strategy: Remove outputs (G: 1) (4 nodes, 2 inputs)",
          "FAIL: Remove outputs",
          "Strategy: Shrink values (4 elements)",
          "SUCCESS: Simplify inputs (2 elements)",
          "Made 2 queries",
        ],
        2,
        6,
        {
          "granularity": 1,
          "inputs": 2,
          "nodes": 4,
          "queries": 3,
          "strategy": "Simplify inputs",
        },
      ]
    `)
  })

  it('has values for its calls before', async () => {
    const fails = (): boolean => true
    await expect(minifier(program, inputs(), fails, { earlier: 3 as never })).rejects.toThrow("minifier: argument 'earlier' must be an array")
    await expect(minifier(program, inputs(), fails, { earlier: [3 as never] })).rejects.toThrow("minifier: argument 'earlier[0]' must be an array")
    await expect(minifier(program, inputs(), fails, { earlier: [inputs(), [t([1])]] })).rejects.toThrow(
      'minifier: the graph has 2 placeholders but earlier[1] has 1 inputs.',
    )
  })
})
