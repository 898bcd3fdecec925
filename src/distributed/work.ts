// A collective under way.
import type { Backend, Task } from './backend.ts'
import { CollectiveTimeoutError, DistributedError } from './errors.ts'

/** Milliseconds between looks at whether the other ranks are still there. */
const LOOK_EVERY = 50

/** What a Work needs to know of its collective when it does not end. */
export interface WorkOrigin {
  readonly backend: Backend
  /** Milliseconds. */
  readonly timeout: number
  /** Lets other collectives go on: other ranks may need them before they come to this one. */
  progress(): void
  /** The collective, for messages: `barrier(), number 3 of group '0'`. */
  readonly what: () => string
  /** Throws DistributedError if the collective cannot end, because another rank has ended. */
  checkOthers(): void
  /** The message of the timeout error. It may ask the other ranks. */
  describeTimeout(): string
}

/** What a collective throws: where a backend has found that another rank has ended, it does not know for which collective. */
export function withCollective(error: unknown, what: () => string): unknown {
  if (!(error instanceof DistributedError) || error.endedRank === null) return error
  return new DistributedError(`${what()}: ${error.message}`, { endedRank: error.endedRank })
}

/**
 * A collective that was started; what `asyncOp: true` returns. The tensors must not be touched until it is over. PyTorch's `Work`.
 *
 * @example
 * const work = allReduce(grad, { asyncOp: true })
 * computeSomethingElse()
 * work.wait()
 */
export class Work implements PromiseLike<void> {
  readonly #task: Task
  readonly #origin: WorkOrigin
  readonly #finish: (() => void) | null
  readonly #deadline: number
  #done = false
  #failure: unknown = null
  /** When the other ranks are checked next. */
  #look = 0

  /** @internal */
  constructor(task: Task, origin: WorkOrigin, finish: (() => void) | null) {
    this.#task = task
    this.#origin = origin
    this.#finish = finish
    this.#deadline = performance.now() + origin.timeout
  }

  /** Makes progress without waiting, and tells whether the collective is over. Throws what `wait` would throw. PyTorch's `is_completed`. */
  isCompleted(): boolean {
    if (this.#failure !== null) throw this.#failure
    if (this.#done) return true
    try {
      this.#origin.progress()
      if (!this.#task.poll()) return false
      this.#finish?.()
    } catch (error) {
      this.#failure = withCollective(error, this.#origin.what)
      throw this.#failure
    }
    this.#done = true
    return true
  }

  /** Waits until the collective is over. Throws CollectiveTimeoutError after the group's timeout, and DistributedError if a rank has ended. */
  wait(): void {
    const { backend } = this.#origin
    for (let attempt = 0; !this.isCompleted(); attempt++) {
      if (attempt % 64 === 63) this.#checkTime()
      backend.idle(attempt)
    }
  }

  #checkTime(): void {
    const now = performance.now()
    if (now >= this.#look) this.#checkOthers(now)
    if (now < this.#deadline || this.isCompleted()) return
    this.#failure = new CollectiveTimeoutError(this.#origin.describeTimeout())
    throw this.#failure
  }

  /** What a rank that has ended sent before its end may still arrive, so the collective has a last chance. */
  #checkOthers(now: number): void {
    this.#look = now + LOOK_EVERY
    try {
      this.#origin.checkOthers()
    } catch (error) {
      if (this.isCompleted()) return
      this.#failure = error
      throw error
    }
  }

  /** The rank that sent, within the group, if this is a receive that is over. PyTorch's `source_rank`. */
  get source(): number | undefined {
    return this.#task.source
  }

  /** `await work` waits without blocking the thread. */
  // eslint-disable-next-line unicorn/no-thenable -- waiting for a Work with await is what it is for
  then<A = void, B = never>(
    onDone?: ((value: void) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#poll().then(onDone, onError)
  }

  async #poll(): Promise<void> {
    while (!this.isCompleted()) {
      this.#checkTime()
      await new Promise((resolve) => {
        setTimeout(resolve, 0)
      })
    }
  }
}
