// Judges candidates outside this process (in a child process in Node, a worker in browsers), so that a trap, an endless loop or exhausted memory does
// not end the search. One helper answers many queries; it is replaced only if it dies or hangs.
import type { GraphModule } from '../../fx/index.ts'
import { checkOptions, checkPositive } from '../../protocol/index.ts'
import { HANG, deathOf, isDeath, isSameDeath } from '../death.ts'
import type { Calls } from '../history.ts'
import type { FailureSpec, Outcome } from '../judge.ts'
import { LOOK_MS, whyHung } from './clock.ts'
import type { Elapsed } from './clock.ts'
import { QueryEncoder, isAnswerTo, outcomeOf, progressOf } from './protocol.ts'
import type { Query } from './protocol.ts'

/** A running helper: a child process or worker. */
export interface Helper {
  post(query: Query): void
  /** `onMessage` gets whatever the helper sends, which is checked there; `onDeath` the reason if the helper ends without having been killed. */
  listen(onMessage: (message: unknown) => void, onDeath: (reason: string) => void): void
  kill(): void
  /** Whether it says of each query that its modules are imported. If not, only queries with imports are waited for in this way. Default false. */
  readonly announces?: boolean
}

export type StartHelper = () => Promise<Helper>

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
  /** Processor time that the helper has used, as it said last. */
  #cpuMs: number | null = null
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
    const helper = this.#helper ?? (await this.#fresh())
    const query = this.#encoder.encode(gm, [...earlier, inputs], spec, imports)
    return new Promise((resolve) => {
      let isImporting = helper.announces === true || imports.length > 0
      let since = { wall: performance.now(), cpu: this.#cpuMs }
      const elapsed = (): Elapsed => ({
        wallMs: performance.now() - since.wall,
        cpuMs: this.#cpuMs === null ? null : this.#cpuMs - (since.cpu ?? 0),
      })
      const lost = (message: string, death: string | null): void => {
        clearTimeout(timer)
        this.renew()
        // Where one candidate ends its process, others will.
        if (this.#isWarm) this.#startAhead()
        const isFailure = death !== null && (this.#options.deathFails || (isDeath(spec.death) && isSameDeath(spec.death, death)))
        resolve({ status: isFailure ? 'fails' : 'unrelated', message, ...(death === null ? {} : { signature: death }) })
      }
      const look = (): void => {
        if (isImporting) return lost(`the modules of the backend were not imported within ${importTimeoutMs} ms`, null)
        const why = whyHung(elapsed(), timeoutMs)
        if (why === null) timer = setTimeout(look, LOOK_MS)
        else lost(why, HANG)
      }
      let timer = setTimeout(look, isImporting ? importTimeoutMs : timeoutMs)
      const follow = (message: unknown): void => {
        const progress = progressOf(message)
        if (progress === null) return
        this.#cpuMs = progress.cpuMs ?? this.#cpuMs
        if (progress.imported !== query.id) return
        isImporting = false
        since = { wall: performance.now(), cpu: this.#cpuMs }
        clearTimeout(timer)
        timer = setTimeout(look, timeoutMs)
      }
      helper.listen(
        (message) => {
          // A backend may send messages of its own, and an older query's answer may be late.
          if (!isAnswerTo(query, message)) return follow(message)
          const outcome = outcomeOf(message)
          if (outcome === null) return lost('the isolated process sent an answer that cannot be read', null)
          clearTimeout(timer)
          this.#took(typeof message.cpuMs === 'number' ? message.cpuMs : null, elapsed().wallMs)
          resolve(outcome)
        },
        (reason) => lost(`the isolated process died: ${reason}`, deathOf(reason)),
      )
      helper.post(query)
    })
  }

  #took(cpuMs: number | null, wallMs: number): void {
    this.longest.cpuMs = Math.max(this.longest.cpuMs, cpuMs ?? wallMs)
    this.longest.wallMs = Math.max(this.longest.wallMs, wallMs)
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

  async #fresh(): Promise<Helper> {
    this.started++
    this.#cpuMs = null
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
