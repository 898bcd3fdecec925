// How much time a compiled function may spend on graphs that are used once. compile spends at most as long as the calls themselves have taken, plus `config.compileBudget`; then calls run
// eagerly. A graph that is used again costs nothing here, and gives back what it did cost. Times are only taken while something is owed.
import { config } from '../../config.ts'

/** Where times come from. Tests put a clock of their own here. */
export const clock: { now: () => number } = { now: () => performance.now() }

/** What compiling one graph took. */
export class Cost {
  readonly #budget: Budget
  #milliseconds = 0
  #isRepaid = false

  constructor(budget: Budget) {
    this.#budget = budget
  }

  /** Runs `compile`, which takes time for this graph. */
  of<T>(compile: () => T): T {
    const start = clock.now()
    try {
      return compile()
    } finally {
      const milliseconds = clock.now() - start
      this.#budget.compiling += milliseconds
      if (!this.#isRepaid) {
        this.#milliseconds += milliseconds
        this.#budget.owed += milliseconds
      }
    }
  }

  get isRepaid(): boolean {
    return this.#isRepaid
  }

  /** The graph is used again. */
  repay(): void {
    if (this.#isRepaid) return
    this.#isRepaid = true
    this.#budget.owed = Math.max(0, this.#budget.owed - this.#milliseconds)
  }
}

/** How a captured call has ended: on paths that were recorded, with new ones, or left to run eagerly. */
export type Outcome = 'replayed' | 'recorded' | 'left'

/** The times of one compiled function, in milliseconds. */
export class Budget {
  /** Spent on graphs that were used once. */
  owed = 0
  /** Spent on graphs since the present call began. */
  compiling = 0
  /** What calls have taken since something was owed, or a call was left, without compiling. */
  #taken = 0
  /** The next call is captured when so much was taken: the latest captured one was left. */
  #waitsFor = 0
  /** How many times the duration of a call that was left the next one waits. Doubles with each. */
  #patience = 1
  #isFree = true

  reset(): void {
    this.owed = 0
    this.#forget()
  }

  /** Nothing was in vain so far. */
  #forget(): void {
    this.#taken = 0
    this.#waitsFor = 0
    this.#patience = 1
    this.#isFree = this.owed === 0
  }

  /** Whether another graph may be compiled. With the debugger all may: it watches them. */
  get mayCompile(): boolean {
    return this.owed <= config.compileBudget + this.#taken || config.reproAfter !== null
  }

  /** Whether a call may be captured. */
  get mayCapture(): boolean {
    return this.#isFree || this.#taken >= this.#waitsFor
  }

  /** The start of a call, for {@link end}; null while nothing is measured. */
  begin(): number | null {
    if (this.#isFree) return null
    this.compiling = 0
    return clock.now()
  }

  /** Notes how long a captured call took, and how it ended. */
  end(start: number | null, outcome: Outcome): void {
    if (start === null && outcome === 'replayed') return
    const took = start === null ? 0 : clock.now() - start - this.compiling
    if (outcome === 'left') {
      this.#isFree = false
      this.#waitsFor = this.#taken + took * this.#patience
      this.#patience *= 2
      return
    }
    this.#taken += took
    if (outcome === 'recorded') this.#isFree = this.#isFree && this.owed === 0
    else if (this.owed === 0) this.#forget()
    else {
      this.#waitsFor = 0
      this.#patience = 1
    }
  }

  /** Runs a call that is not captured. */
  eagerly<T>(run: () => T): T {
    const start = clock.now()
    try {
      return run()
    } finally {
      this.#taken += clock.now() - start
    }
  }
}
