// One query that a helper is answering: follows the helper's messages, and ends the wait when the candidate hangs or the helper dies.
import { HANG, deathOf } from '../judge/death.ts'
import type { Outcome } from '../judge/judge.ts'
import { LOOK_MS, whyHung } from './clock.ts'
import type { Elapsed } from './clock.ts'
import type { Helper } from './helper.ts'
import { isAnswerTo, outcomeOf, progressOf } from './protocol.ts'
import type { Query } from './protocol.ts'

/** The processor time of a helper as it reported it last, in milliseconds; null until it reports any. */
export interface ReportedUsage {
  cpuMs: number | null
}

/** How long the phases of a query may take, in milliseconds. */
export interface QueryLimits {
  readonly importTimeoutMs: number
  readonly timeoutMs: number
}

/** How a query ended. */
export type QueryEnd =
  | { readonly kind: 'answered'; readonly outcome: Outcome; readonly cpuMs: number | null; readonly wallMs: number }
  /** There will be no answer, and the helper must be replaced. `death` is the candidate's; null if the candidate is not the cause. */
  | { readonly kind: 'lost'; readonly message: string; readonly death: string | null }

/** A point in time, by the clock and by the helper's processor time. */
interface Moment {
  readonly wallMs: number
  readonly cpuMs: number | null
}

export class PendingQuery {
  readonly #helper: Helper
  readonly #query: Query
  readonly #limits: QueryLimits
  readonly #usage: ReportedUsage
  readonly #onEnd: (end: QueryEnd) => void
  #phase: 'importing' | 'judging'
  /** When the phase began. */
  #start: Moment
  #timer: ReturnType<typeof setTimeout> | undefined = undefined

  constructor(helper: Helper, query: Query, limits: QueryLimits, usage: ReportedUsage, onEnd: (end: QueryEnd) => void) {
    this.#helper = helper
    this.#query = query
    this.#limits = limits
    this.#usage = usage
    this.#onEnd = onEnd
    this.#phase = helper.announces === true || query.imports.length > 0 ? 'importing' : 'judging'
    this.#start = this.#now()
  }

  /** Sends the query to the helper. `onEnd` is called once. */
  send(): void {
    this.#lookAfter(this.#phase === 'importing' ? this.#limits.importTimeoutMs : this.#limits.timeoutMs)
    this.#helper.listen(
      (message) => this.#receive(message),
      (reason) => this.#lose(`the isolated process died: ${reason}`, deathOf(reason)),
    )
    this.#helper.post(this.#query)
  }

  #receive(message: unknown): void {
    // A backend may send messages of its own, and the answer to an older query may come late.
    if (!isAnswerTo(this.#query, message)) return this.#noteProgress(message)
    const outcome = outcomeOf(message)
    if (outcome === null) return this.#lose('the isolated process sent an answer that cannot be read', null)
    const cpuMs = typeof message.cpuMs === 'number' ? message.cpuMs : null
    this.#end({ kind: 'answered', outcome, cpuMs, wallMs: this.#elapsed().wallMs })
  }

  #noteProgress(message: unknown): void {
    const progress = progressOf(message)
    if (progress === null) return
    this.#usage.cpuMs = progress.cpuMs ?? this.#usage.cpuMs
    if (progress.imported === this.#query.id) this.#beginJudging()
  }

  #beginJudging(): void {
    this.#phase = 'judging'
    this.#start = this.#now()
    this.#lookAfter(this.#limits.timeoutMs)
  }

  #lookAfter(milliseconds: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#look(), milliseconds)
  }

  /** Ends the wait if the phase has taken too long; otherwise looks again soon. */
  #look(): void {
    if (this.#phase === 'importing') return this.#lose(`the modules of the backend were not imported within ${this.#limits.importTimeoutMs} ms`, null)
    const why = whyHung(this.#elapsed(), this.#limits.timeoutMs)
    if (why === null) this.#lookAfter(LOOK_MS)
    else this.#lose(why, HANG)
  }

  #now(): Moment {
    return { wallMs: performance.now(), cpuMs: this.#usage.cpuMs }
  }

  /** The time since the phase began. */
  #elapsed(): Elapsed {
    const now = this.#now()
    return { wallMs: now.wallMs - this.#start.wallMs, cpuMs: now.cpuMs === null ? null : now.cpuMs - (this.#start.cpuMs ?? 0) }
  }

  #lose(message: string, death: string | null): void {
    this.#end({ kind: 'lost', message, death })
  }

  #end(end: QueryEnd): void {
    clearTimeout(this.#timer)
    this.#onEnd(end)
  }
}
