// Reducing a graph without running it: operators are cut off its ends and taken out of its middle, and what the rest needs of them becomes an input. For graphs that come
// without inputs, or that only the command can run.
import { CONCRETE_VALUE, operatorsOf } from '../../debug/minify/subgraph.ts'
import type { ReproState } from '../../debug/minify/subgraph.ts'
import { strategies } from '../../debug/minify/strategies.ts'
import { operator } from '../../fx/index.ts'
import type { Graph } from '../../fx/index.ts'

/** Shrinks the graph while `fails` is true of it. */
export async function reduceStructure(start: Graph, fails: (graph: Graph) => Promise<boolean>, print: (line: string) => void): Promise<Graph> {
  const judged = new Map<string, boolean>()
  const tester = async (state: ReproState | null): Promise<boolean> => {
    if (state === null) return false
    const key = String(state.graph)
    const known = judged.get(key)
    if (known !== undefined) return known
    const failed = await fails(state.graph)
    judged.set(key, failed)
    return failed
  }
  let state = stateOf(start)
  const take = async (name: keyof typeof strategies, granularity: number): Promise<boolean> => {
    const next = await strategies[name].run(stateOf(state.graph), granularity, tester)
    if (next === null) return false
    print(`${strategies[name].name}: ${state.graph.nodes.length} nodes -> ${next.graph.nodes.length}`)
    state = next
    return true
  }
  await take('truncateSuffix', 1)
  await take('isolateLast', 1)
  await take('truncatePrefix', 1)
  for (let granularity = 2 ** Math.floor(Math.log2(Math.max(1, operatorsOf(state.graph).length))); granularity >= 1; granularity /= 2) {
    // oxlint-disable-next-line no-await-in-loop -- one candidate after the other
    while (await take('deltaDebugging', granularity));
  }
  await take('eliminateDeadCode', 1)
  await take('removeUnusedInputs', 1)
  // oxlint-disable-next-line no-await-in-loop -- one candidate after the other
  while (await take('removeOutputs', 1));
  return state.graph
}

/** A copy in which every value may become an input, but those that have several parts. */
function stateOf(graph: Graph): ReproState {
  const copy = graph.deepCopy()
  for (const node of copy.nodes) {
    const isMany = [...node.users.keys()].some((user) => user.target === operator.getitem)
    if (node.op !== 'placeholder' && node.op !== 'output') node.meta[CONCRETE_VALUE] = isMany ? [] : null
  }
  return { graph: copy, inputs: copy.findNodes({ op: 'placeholder' }).map(() => null), earlier: [] }
}
