// Judges candidates outside this process (in a child process in Node, a worker in browsers), so that a trap, an endless loop or exhausted memory does
// not end the search. One helper answers many queries; it is replaced only if it dies or hangs.
import type { GraphModule } from '../../fx/index.ts'
import { checkOptions } from '../../protocol/index.ts'
import { HANG, deathOf, isDeath, isSameDeath } from '../death.ts'
import type { FailureSpec, Outcome } from '../judge.ts'
import { QueryEncoder, isAnswerTo, outcomeOf } from './protocol.ts'
import type { Query } from './protocol.ts'

/** A running helper: a child process or worker. */
export interface Helper {
  post(query: Query): void
  /** `onMessage` gets whatever the helper sends, which is checked there; `onDeath` the reason if the helper ends without having been killed. */
  listen(onMessage: (message: unknown) => void, onDeath: (reason: string) => void): void
  kill(): void
}

export type StartHelper = () => Promise<Helper>

export interface IsolatorOptions {
  /** Milliseconds before a query counts as hanging. Default 30,000. */
  readonly timeoutMs?: number
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
  /** Helpers that have been asked so far: 1 unless one died, hung or was replaced. */
  started = 0

  constructor(start: StartHelper, options: IsolatorOptions = {}) {
    checkOptions('Isolator', options, { timeoutMs: true, imports: true, deathFails: true })
    this.#start = start
    this.#options = { timeoutMs: 30_000, imports: [], deathFails: false, ...options }
  }

  /** Judges one candidate. `timeoutMs`: before it counts as hanging; default that of the isolator. */
  async query(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, timeoutMs: number = this.#options.timeoutMs): Promise<Outcome> {
    const helper = this.#helper ?? (await this.#fresh())
    const query = this.#encoder.encode(gm, inputs, spec, this.#options.imports)
    return new Promise((resolve) => {
      const lost = (message: string, death: string | null): void => {
        clearTimeout(timer)
        this.renew()
        // Where one candidate ends its process, others will.
        if (this.#isWarm) this.#startAhead()
        const isFailure = death !== null && (this.#options.deathFails || (isDeath(spec.death) && isSameDeath(spec.death, death)))
        resolve({ status: isFailure ? 'fails' : 'unrelated', message, ...(death === null ? {} : { signature: death }) })
      }
      const timer = setTimeout(() => lost(`no answer within ${timeoutMs} ms (an endless loop?)`, HANG), timeoutMs)
      helper.listen(
        (message) => {
          // A backend may send messages of its own, and an older query's answer may be late.
          if (!isAnswerTo(query, message)) return
          const outcome = outcomeOf(message)
          if (outcome === null) return lost('the isolated process sent an answer that cannot be read', null)
          clearTimeout(timer)
          resolve(outcome)
        },
        (reason) => lost(`the isolated process died: ${reason}`, deathOf(reason)),
      )
      helper.post(query)
    })
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
