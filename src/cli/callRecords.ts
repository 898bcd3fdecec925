// What compile makes of the functions of a program, from the stream of events: what `explain` says of one call, for every function and all its calls.
import { onEvent } from '../events/index.ts'
import type { CallOutcome, CompileEvent, GraphEvent } from '../events/index.ts'
import type { Frame } from '../provenance/index.ts'
import { CapturedStack } from '../provenance/index.ts'

/** A graph break. */
export interface BreakRecord {
  readonly code: string
  readonly reason: string
  /** Where the program was, in PyTorch's form, innermost last. */
  readonly stack: string
  /** `file:line` of the innermost frame; null if it is not known. */
  readonly place: string | null
}

/** A path that was recorded after the first. */
export interface RecompileRecord {
  readonly reason: string
  readonly expected: string
  readonly actual: string
  readonly place: string | null
}

/** A compiled function. */
export interface FunctionRecord {
  readonly name: string
  readonly calls: number
  /** How many calls were answered in which way. */
  readonly outcomes: Readonly<Partial<Record<CallOutcome, number>>>
  /** The operators of each captured graph. */
  readonly graphs: readonly (readonly string[])[]
  readonly breaks: readonly BreakRecord[]
  readonly recompiles: readonly RecompileRecord[]
  /** Limits that were reached, and backends that failed. */
  readonly limits: readonly string[]
  readonly failures: readonly string[]
  /** Milliseconds of each call of the backend. */
  readonly compileTimes: readonly number[]
}

interface Mutable {
  name: string
  calls: number
  readonly outcomes: Partial<Record<CallOutcome, number>>
  readonly graphs: (readonly string[])[]
  readonly breaks: BreakRecord[]
  readonly recompiles: RecompileRecord[]
  readonly limits: string[]
  readonly failures: string[]
  readonly compileTimes: number[]
}

const KINDS = ['call', 'graph', 'break', 'recompile', 'limit', 'failure', 'compiled'] as const

const placeOf = (frame: Frame | null | undefined): string | null => (frame === null || frame === undefined ? null : `${frame.file}:${frame.line}`)

const operatorsOf = ({ nodes }: GraphEvent): readonly string[] =>
  nodes.filter(({ op }) => op === 'call_function').map(({ text, name }) => /target=([^\]]*)/.exec(text)?.[1] ?? name)

/** Records from its construction until `stop`. */
export class CallRecords {
  readonly #functions = new Map<number, Mutable>()
  /** Ends the recording. */
  readonly stop: () => void

  constructor() {
    this.stop = onEvent((event) => this.#add(event), { kinds: KINDS })
  }

  /** The functions that were called, in the order of their first calls. */
  functions(): readonly FunctionRecord[] {
    return [...this.#functions.values()]
  }

  #add(event: CompileEvent<(typeof KINDS)[number]>): void {
    if (event.fn === null) return
    let record = this.#functions.get(event.fn)
    if (record === undefined) {
      record = { name: 'anonymous', calls: 0, outcomes: {}, graphs: [], breaks: [], recompiles: [], limits: [], failures: [], compileTimes: [] }
      this.#functions.set(event.fn, record)
    }
    switch (event.kind) {
      case 'call':
        record.name = event.name
        if (event.phase === 'start') record.calls++
        else record.outcomes[event.outcome] = (record.outcomes[event.outcome] ?? 0) + 1
        return
      case 'graph':
        if (event.role === 'captured') record.graphs.push(operatorsOf(event))
        return
      case 'break': {
        const { code, reason, stack } = event
        record.breaks.push({ code, reason, stack: String(CapturedStack.of(stack)), place: placeOf(stack.at(-1)) })
        return
      }
      case 'recompile': {
        const { reason, expected, actual, user } = event
        record.recompiles.push({ reason, expected, actual, place: placeOf(user) })
        return
      }
      case 'limit':
        record.limits.push(event.reason)
        return
      case 'failure':
        record.failures.push(event.message)
        return
      case 'compiled':
        record.compileTimes.push(event.milliseconds)
    }
  }
}
