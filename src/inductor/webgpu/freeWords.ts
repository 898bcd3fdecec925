// Which words of a slab are in use by tensors on the GPU.

/** Ranges begin at multiples of this many words. */
const ALIGN = 64

/** Words that are free. */
interface Run {
  start: number
  length: number
}

/** The words that a range of `words` words takes. */
export const lengthOf = (words: number): number => Math.max(1, Math.ceil(words / ALIGN)) * ALIGN

/** Which words of a slab are free. */
export class FreeWords {
  readonly slab: number
  readonly #most: number
  /** In the order of their places; no two of them touch. */
  readonly #free: Run[] = []
  /** The words from here on were never taken. */
  top = 0

  constructor(slab: number, most: number) {
    this.slab = slab
    this.#most = most
  }

  /** The first of `length` words that are free now; -1 if there are none. */
  take(length: number): number {
    const at = this.#free.findIndex((run) => run.length >= length)
    const run = this.#free[at]
    if (run === undefined) {
      if (this.top + length > this.#most) return -1
      this.top += length
      return this.top - length
    }
    const { start } = run
    run.start += length
    run.length -= length
    if (run.length === 0) this.#free.splice(at, 1)
    return start
  }

  give(start: number, length: number): void {
    const after = this.#free.findIndex((run) => run.start > start)
    const at = after < 0 ? this.#free.length : after
    const [before, next] = [this.#free[at - 1], this.#free[at]]
    const joinsBefore = before !== undefined && before.start + before.length === start
    const joinsNext = next !== undefined && start + length === next.start
    if (joinsBefore) {
      before.length += length + (joinsNext ? next.length : 0)
      if (joinsNext) this.#free.splice(at, 1)
    } else if (joinsNext) {
      next.start = start
      next.length += length
    } else this.#free.splice(at, 0, { start, length })
  }

  /** Whether nothing of it is in use. */
  get isFree(): boolean {
    const [only] = this.#free
    return this.top === 0 || (only?.start === 0 && only.length === this.top)
  }
}
