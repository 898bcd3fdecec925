// Judges candidates outside this process (in a child process in Node, a worker in browsers), so that a trap, an endless loop or exhausted memory does
// not end the search. One helper answers many queries; it is replaced only if it dies or hangs.
import type { GraphModule } from '../../fx/index.ts'
import { checkOptions, checkPositive } from '../../protocol/index.ts'
import { isDeath, isSameDeath } from '../judge/death.ts'
import type { Calls } from '../runs/history.ts'
import type { FailureSpec, Outcome } from '../judge/judge.ts'
import type { Helper, StartHelper } from './helper.ts'
import { PendingQuery } from './pendingQuery.ts'
import type { QueryEnd, ReportedUsage } from './pendingQuery.ts'
import { QueryEncoder } from './protocol.ts'

/** Options of {@link Isolator}: how long a query may take. */
export interface IsolatorOptions {
  /**
   * Milliseconds before a query counts as hanging, after the imports: of processor time where the helper reports it, otherwise of time. A candidate that uses no
   * processor time has five times as long. Default 30,000.
   */
  readonly timeoutMs?: number
  /** Milliseconds for the imports of a query. Default 120,000. */
  readonly importTimeoutMs?: number
  /** Modules that register the backend and custom functions; the helper imports them. */
  readonly imports?: readonly string[]
  /** Any death or hang of the helper counts as the failure, not as an unrelated one. Default false; `FailureSpec.death` names one kind. */
  readonly deathFails?: boolean
}

/** Runs queries one after the other in a helper. Call `close()` when done. */
export class Isolator {
  readonly #start: StartHelper
  readonly #options: Required<IsolatorOptions>
  #helper: Helper | null = null
  /** Helpers that were started ahead. */
  readonly #waiting: Promise<Helper>[] = []
  #isWarm = false
  #encoder = new QueryEncoder()
  #usage: ReportedUsage = { cpuMs: null }
  /** Helpers that have been asked so far: 1 unless one died, hung or was replaced. */
  started = 0
  /** The longest that a candidate took to answer. */
  readonly longest: { cpuMs: number; wallMs: number } = { cpuMs: 0, wallMs: 0 }

  constructor(start: StartHelper, options: IsolatorOptions = {}) {
    checkOptions('Isolator', options, { timeoutMs: 'number', importTimeoutMs: 'number', imports: true, deathFails: 'boolean' })
    this.#start = start
    this.#options = { timeoutMs: 30_000, importTimeoutMs: 120_000, imports: [], deathFails: false, ...options }
    checkPositive('Isolator', 'options.timeoutMs', this.#options.timeoutMs)
    checkPositive('Isolator', 'options.importTimeoutMs', this.#options.importTimeoutMs)
  }

  /** Judges one candidate. `timeoutMs`: before it counts as hanging; default that of the isolator. `earlier`: the inputs of the calls before, oldest first. */
  async query(
    gm: GraphModule,
    inputs: readonly unknown[],
    spec: FailureSpec,
    timeoutMs: number = this.#options.timeoutMs,
    earlier: Calls = [],
  ): Promise<Outcome> {
    const { imports, importTimeoutMs } = this.#options
    const helper = this.#helper ?? (await this.#nextHelper())
    const query = this.#encoder.encode(gm, [...earlier, inputs], spec, imports)
    const end = await new Promise<QueryEnd>((resolve) => {
      const onEnd = (ended: QueryEnd): void => {
        if (ended.kind === 'lost') this.#replaceHelper()
        resolve(ended)
      }
      new PendingQuery(helper, query, { importTimeoutMs, timeoutMs }, this.#usage, onEnd).send()
    })
    if (end.kind === 'lost') return this.#outcomeOfLoss(end.message, end.death, spec)
    this.longest.cpuMs = Math.max(this.longest.cpuMs, end.cpuMs ?? end.wallMs)
    this.longest.wallMs = Math.max(this.longest.wallMs, end.wallMs)
    return end.outcome
  }

  #outcomeOfLoss(message: string, death: string | null, spec: FailureSpec): Outcome {
    if (death === null) return { status: 'unrelated', message }
    const isFailure = this.#options.deathFails || (isDeath(spec.death) && isSameDeath(spec.death, death))
    return { status: isFailure ? 'fails' : 'unrelated', message, signature: death }
  }

  #replaceHelper(): void {
    this.renew()
    // Where one candidate ends its process, others will.
    if (this.#isWarm) this.#startAhead()
  }

  /** Starts two helpers ahead, at the same time: one for the next query, and one to take its place. From here on, one that dies or hangs is replaced ahead too. */
  warmUp(): void {
    this.#isWarm = true
    while (this.#waiting.length < 2) this.#startAhead()
  }

  #startAhead(): void {
    const helper = this.#start()
    // What prevents the start is thrown by the query that needs the helper.
    helper.catch(() => {})
    this.#waiting.push(helper)
  }

  /** A helper that was started ahead, or else a new one. It answers queries from here on. */
  async #nextHelper(): Promise<Helper> {
    this.started++
    this.#usage = { cpuMs: null }
    this.#encoder = new QueryEncoder()
    this.#helper = await (this.#waiting.shift() ?? this.#start())
    return this.#helper
  }

  /** Ends the helper: the next query is answered by another one. */
  renew(): void {
    this.#helper?.kill()
    this.#helper = null
  }

  /** Ends all helpers. */
  close(): void {
    this.renew()
    this.#isWarm = false
    for (const waiting of this.#waiting.splice(0))
      void waiting.then(
        (helper) => helper.kill(),
        () => {},
      )
  }
}
