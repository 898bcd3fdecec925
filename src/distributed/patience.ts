// How long a rank has waited for others, and whether it should look again at once or give its core away.
/**
 * Milliseconds for which a rank looks again and again. It must be longer than it takes to wake a rank that sleeps: otherwise each falls asleep while it waits for the
 * other to wake up, in every collective anew.
 */
const SPIN = 0.2
/** After this many waits in which that was not enough, ranks do not have a core each: then a rank gives its core away at once, but for every RETRY-th wait. */
const [MISSES, RETRY] = [2, 32]

/** The part of node:os that is used. */
interface NodeOs {
  availableParallelism?(): number
}

/** Cores that this process may use; 1 if that is not known. */
function coreCount(): number {
  const os: NodeOs | undefined = globalThis.process?.getBuiltinModule?.('node:os')
  return os?.availableParallelism?.() ?? globalThis.navigator?.hardwareConcurrency ?? 1
}

/** The waits of a rank. */
export class Patience {
  readonly #hasCores: boolean
  /** Waits, one after the other, that looking again and again did not end. */
  #misses = 0
  #isOverdue = false
  #since = 0
  #spin = SPIN
  #isNew = true

  /** `ranks` counts those on this machine: where there are more than cores, a rank that looks again keeps from running the one that it waits for. */
  constructor(ranks: number) {
    this.#hasCores = ranks <= coreCount()
  }

  /** What is waited for has come nearer, so that the wait begins anew. */
  restart(): void {
    this.#isNew = true
  }

  /** Milliseconds since a rank should have stopped to look again at once; 0 or less while it should not. `attempt` is 0 where a wait begins. */
  overdue(attempt: number): number {
    const now = performance.now()
    if (attempt === 0 || this.#isNew) this.#begin(now)
    const time = now - this.#since - this.#spin
    this.#isOverdue ||= time > 0
    return time
  }

  #begin(now: number): void {
    this.#misses = this.#isOverdue ? this.#misses + 1 : 0
    this.#spin = this.#hasCores && (this.#misses < MISSES || this.#misses % RETRY === 0) ? SPIN : 0
    this.#isOverdue = false
    this.#since = now
    this.#isNew = false
  }
}
