// Collectives that are not started yet.
import type { Task } from './backend.ts'

/** A collective that waits for its check, and for those before it. */
export class QueuedTask implements Task {
  readonly #check: Task | null
  readonly #start: () => Task
  #started: Task | null = null
  #failure: unknown = null

  constructor(check: Task | null, start: () => Task) {
    this.#check = check
    this.#start = start
  }

  /** Whether it has left the queue: all of it was started, or its check has failed. */
  tryToStart(): boolean {
    try {
      if (this.#started === null && this.#check?.poll() === false) return false
      this.#started ??= this.#start()
      return this.#started.advance?.() !== false
    } catch (error) {
      this.#failure = error
    }
    return true
  }

  poll(): boolean {
    if (this.#failure !== null) throw this.#failure
    return this.#started?.poll() === true
  }

  get source(): number | undefined {
    return this.#started?.source
  }
}
