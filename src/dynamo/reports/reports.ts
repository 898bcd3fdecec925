// What a compiled function reports: the facts of its calls, each in one place. Users ask for them (recompileReasons, graphs, explain), and the stream of events is told.
import type { KernelSummary } from '../../aot/index.ts'
import { announce, emit, newId, wants } from '../../events/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { captureStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { config } from '../../config.ts'
import type { BreakReason } from './breaks.ts'

/** What a call was expected to be, and what it is. */
export interface Mismatch {
  readonly expected: string
  readonly actual: string
  /** Both in a sentence. */
  readonly text: string
}

/** What was compiled, for reports. */
export interface GraphRecord {
  readonly gm: GraphModule
  readonly kernels: readonly KernelSummary[]
  /** Time in the backend, in milliseconds. */
  readonly milliseconds: number
  /** Records the sizes that the graph takes as symbols, for who reads it; null if it takes none, or if that was done. */
  recordSizes: (() => void) | null
}

export class Reports {
  /** The number of the compiled function. */
  readonly fn: number = newId('fn')
  readonly name: string
  /** What was compiled, why paths after the first were recorded, and all graph breaks. */
  readonly records: GraphRecord[] = []
  readonly reasons: string[] = []
  readonly breaks: BreakReason[] = []
  readonly #warned = new Set<string>()

  constructor(name: string) {
    this.name = name === '' ? 'anonymous' : name
  }

  /** What was compiled, with symbols for sizes. Most graphs have no readers, and finding their symbols takes longer than compiling them. */
  graphs(): readonly GraphModule[] {
    return this.records.map((record) => {
      record.recordSizes?.()
      record.recordSizes = null
      return record.gm
    })
  }

  reset(): void {
    this.records.length = 0
    this.reasons.length = 0
    this.breaks.length = 0
    this.#warned.clear()
  }

  /** A call differs from what was recorded, and a new path is recorded or, at the limit, it runs eagerly. */
  missed(what: 'arguments' | 'step', { expected, actual, text }: Mismatch, isAllowed: boolean): void {
    const { name } = this
    const user = (): Frame | null => captureStack().userFrame ?? null
    if (wants('guard')) emit({ kind: 'guard', what, expected, actual, user: user() })
    if (isAllowed) {
      this.reasons.push(text)
      announce({ kind: 'recompile', reason: text }, () => ({
        kind: 'recompile',
        name,
        reason: text,
        expected,
        actual,
        user: user(),
      }))
      return
    }
    this.#limited('recompileLimit', text)
    this.#warnOnce(
      'limit',
      `config.recompileLimit (${config.recompileLimit}) reached for '${name}'. Calls that take a path that is not recorded run eagerly from now on. Last reason: ${text}. ` +
        'compiled.recompileReasons() lists all reasons. Raise config.recompileLimit, or move what changes out of the compiled function.',
    )
  }

  /** What is new in a call runs eagerly: graphs that were used once have taken this many milliseconds. `change`: how it differs from what was recorded, if that is known. */
  overBudget(milliseconds: number, change: string | null): void {
    const last = change ?? this.reasons.at(-1)
    const text = `graphs that were used once took ${Math.round(milliseconds)} ms`
    this.#limited('compileBudget', last === undefined ? text : `${text}. Last change: ${last}`)
    this.#warnOnce(
      'budget',
      `'${this.name}' has taken paths that have not come again so far: ${text}, more than its calls and config.compileBudget (${config.compileBudget} ms). Calls on new paths run eagerly for now; ` +
        `when calls repeat they are compiled again. ${last === undefined ? '' : `Last change: ${last}. `}` +
        'Compile only the part that repeats, pad what changes to a few fixed sizes, or raise config.compileBudget.',
    )
  }

  /** A graph break that was not known. */
  broke(found: BreakReason): void {
    this.breaks.push(found)
    const { code, reason, userStack } = found
    announce({ kind: 'break', reason }, () => ({ kind: 'break', code, reason, stack: userStack.frames }))
  }

  /** The function is async: what follows its first await runs eagerly. */
  isAsync(): void {
    const message = `'${this.name}' is async: it is captured up to its first await, and what follows runs eagerly.`
    this.#limited('async', message)
    this.#warnOnce('async', `${message} Compile the synchronous part, and await around it.`)
  }

  #limited(what: 'recompileLimit' | 'compileBudget' | 'async', reason: string): void {
    announce({ kind: 'limit', what }, () => ({ kind: 'limit', what, name: this.name, reason }))
  }

  #warnOnce(kind: string, message: string): void {
    if (this.#warned.has(kind)) return
    this.#warned.add(kind)
    console.warn(`compile: ${message}`)
  }
}
