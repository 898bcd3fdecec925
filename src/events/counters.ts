// Counters of what compile did, by section; PyTorch's torch._dynamo.utils.counters. They count what is reported to the stream, with or without listeners.
import type { BreakEvent, FailureEvent, GraphEvent, JointEvent, LimitEvent, LowerEvent, RecompileEvent } from './types.ts'

/** What is counted of an event: fields that cost nothing. */
export type Fact =
  | { readonly kind: 'path'; readonly ok: boolean }
  | Pick<GraphEvent, 'kind' | 'role' | 'operators'>
  | Pick<BreakEvent, 'kind' | 'reason'>
  | Pick<RecompileEvent, 'kind' | 'reason'>
  | Pick<JointEvent, 'kind' | 'ok'>
  | Pick<LimitEvent, 'kind' | 'what'>
  | Pick<FailureEvent, 'kind' | 'code'>
  | (Pick<LowerEvent, 'kind'> & { readonly externs: number; readonly rewrites: number })

type Section = 'frames' | 'stats' | 'graph_break' | 'recompiles' | 'limits' | 'failures' | 'aot_autograd' | 'inductor'

/** Numbers by name; those that were not counted are missing. */
export type CounterSection = Readonly<Record<string, number>>

/** {@link counters}. */
export interface Counters extends Readonly<Record<Section, CounterSection>> {
  /** Sets all to 0. */
  clear(): void
}

/** A section: an object without prototype, since reasons are its keys. */
const section = (): Record<string, number> => Object.create(null)

const counted: Readonly<Record<Section, Record<string, number>>> = {
  frames: section(),
  stats: section(),
  graph_break: section(),
  recompiles: section(),
  limits: section(),
  failures: section(),
  aot_autograd: section(),
  inductor: section(),
}

/**
 * What compile did in this process, by PyTorch's names: `counters.stats.calls_captured` (operators in captured graphs) and `unique_graphs`, `counters.frames.total` and `ok` (calls that recorded a path),
 * `counters.graph_break` and `counters.recompiles` by reason, `counters.limits`, `counters.failures` by code of the error, `counters.aot_autograd.total`, `ok` and `not_ok` (joint graphs),
 * `counters.inductor.pattern_matcher_count` (rewrites) and `extern_calls`. `counters.clear()` sets all to 0. PyTorch's torch._dynamo.utils.counters.
 */
export const counters: Counters = {
  ...counted,
  clear: () => {
    for (const numbers of Object.values(counted)) for (const name of Object.keys(numbers)) Reflect.deleteProperty(numbers, name)
  },
}

function add(name: Section, key: string, by = 1): void {
  counted[name][key] = (counted[name][key] ?? 0) + by
}

/** Counts a fact. */
export function count(fact: Fact): void {
  switch (fact.kind) {
    case 'path':
      add('frames', 'total')
      if (fact.ok) add('frames', 'ok')
      break
    case 'graph':
      if (fact.role !== 'captured') break
      add('stats', 'unique_graphs')
      add('stats', 'calls_captured', fact.operators)
      break
    case 'break':
      add('graph_break', fact.reason)
      break
    case 'recompile':
      add('recompiles', fact.reason)
      break
    case 'joint':
      add('aot_autograd', 'total')
      add('aot_autograd', fact.ok ? 'ok' : 'not_ok')
      break
    case 'limit':
      add('limits', fact.what)
      break
    case 'failure':
      add('failures', fact.code)
      break
    case 'lower':
      if (fact.rewrites > 0) add('inductor', 'pattern_matcher_count', fact.rewrites)
      if (fact.externs > 0) add('inductor', 'extern_calls', fact.externs)
  }
}
