// The minifier's strategies. Each takes a state (a graph and one input per placeholder), tries smaller variants, and returns one that still fails, or null. It may
// change the state that it gets. Where PyTorch walks through a graph in steps, these search by halves: most failures come from one operator, and then the prefixes
// that reach it fail and the others do not.
import type { Argument } from '../../fx/index.ts'
import type { Calls } from '../runs/history.ts'
import { keepOnly, operatorsOf, withoutAttributes, withoutUnusedInputs } from './subgraph.ts'
import type { ReproState } from './subgraph.ts'

/** Judges a candidate; null is a candidate that cannot be made, which does not fail. */
export type Tester = (state: ReproState | null) => Promise<boolean>

export interface Strategy {
  readonly name: string
  readonly run: (state: ReproState, granularity: number, fails: Tester) => Promise<ReproState | null>
}

/** The smallest number above `low` for which `test` holds, if it holds for `high`, for all numbers above one that it holds for, and not for `low`. */
async function bisect(low: number, high: number, test: (at: number) => Promise<boolean>): Promise<number> {
  let [without, holds] = [low, high]
  while (holds - without > 1) {
    const middle = Math.floor((without + holds) / 2)
    if (await test(middle)) holds = middle
    else without = middle
  }
  return holds
}

/** Drops calls before the failing one: all but the last few that are needed, then those among them that are not. */
const dropCalls: Strategy = {
  name: 'Drop calls',
  async run({ graph, inputs, earlier }, _granularity, fails) {
    const whole = earlier.length
    if (whole === 0) return null
    const withCalls = (calls: Calls): ReproState => ({ graph, inputs, earlier: calls })
    const latest = (count: number): ReproState => withCalls(earlier.slice(whole - count))
    if (await fails(latest(0))) return latest(0)
    let state = latest(await bisect(0, whole, async (count) => count === whole || fails(latest(count))))
    // Without the first of them it does not fail.
    for (let at = state.earlier.length - 1; at > 0; at--) {
      const next = withCalls(state.earlier.toSpliced(at, 1))
      if (await fails(next)) state = next
    }
    return state.earlier.length === whole ? null : state
  },
}

/** Drops consecutive chunks of the returned values. */
const removeOutputs: Strategy = {
  name: 'Remove outputs',
  async run(state, granularity, fails) {
    const step = Math.max(1, granularity / 2)
    const output = state.graph.outputNode()
    const values = output.args[0]
    if (!Array.isArray(values) || values.length <= 1) return null
    for (let at = 0; at < values.length; at += step) {
      const rest: readonly Argument[] = [...values.slice(0, at), ...values.slice(at + step)]
      if (rest.length === 0) continue
      output.args = [rest]
      if (await fails(state)) return state
    }
    return null
  },
}

const eliminateDeadCode: Strategy = {
  name: 'Eliminate dead code',
  async run(state, _granularity, fails) {
    return state.graph.eliminateDeadCode() && (await fails(state)) ? state : null
  },
}

const removeUnusedInputs: Strategy = {
  name: 'Remove unused inputs',
  async run(state, _granularity, fails) {
    const next = withoutUnusedInputs(state)
    return (await fails(next)) ? next : null
  },
}

/** Turns tensors that the graph holds or loads into inputs, so that later strategies can drop or shrink them. */
const consolidateInputs: Strategy = {
  name: 'Consolidate Inputs',
  async run(state, _granularity, fails) {
    const next = withoutAttributes(state)
    return (await fails(next)) ? next : null
  },
}

/** Returns early: the shortest prefix that fails. */
const truncateSuffix: Strategy = {
  name: 'Truncate suffix',
  async run(state, _granularity, fails) {
    const operators = operatorsOf(state.graph)
    const prefix = (length: number): ReproState | null => keepOnly(state, operators.slice(0, length))
    const whole = operators.length
    if (!(await fails(prefix(whole - 1)))) return null
    return prefix(await bisect(-1, whole - 1, (length) => fails(prefix(length))))
  },
}

/** Keeps the last operator, on inputs with the values that it had. */
const isolateLast: Strategy = {
  name: 'Isolate the last operator',
  async run(state, _granularity, fails) {
    const next = keepOnly(state, operatorsOf(state.graph).slice(-1))
    return (await fails(next)) ? next : null
  },
}

/** Starts late: the shortest suffix that fails. One that begins with the last operator was tried before. */
const truncatePrefix: Strategy = {
  name: 'Truncate prefix',
  async run(state, _granularity, fails) {
    const operators = operatorsOf(state.graph)
    const suffix = (length: number): ReproState | null => keepOnly(state, operators.slice(operators.length - length))
    return suffix(await bisect(1, operators.length, (at) => fails(suffix(at))))
  },
}

/** Replaces runs of operators by inputs with the values that they had. */
const deltaDebugging: Strategy = {
  name: 'Delta Debugging',
  async run(state, granularity, fails) {
    const operators = operatorsOf(state.graph)
    for (let start = 0; start < operators.length; start += granularity) {
      const rest = [...operators.slice(0, start), ...operators.slice(start + granularity)]
      const next = keepOnly(state, rest, true)
      if (await fails(next)) return next
    }
    return null
  },
}

export const strategies = {
  dropCalls,
  removeOutputs,
  eliminateDeadCode,
  removeUnusedInputs,
  consolidateInputs,
  truncateSuffix,
  isolateLast,
  truncatePrefix,
  deltaDebugging,
} satisfies Readonly<Record<string, Strategy>>
