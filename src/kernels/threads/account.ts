// Whether launches pay: what they lose against one thread, less what others gain. Where that is too much, there are none for a while.

/** Milliseconds of the first rest; each is twice as long as the one before, up to the longest, until launches have gained again. */
const FIRST_REST = 50
const LONGEST_REST = 2000

/** What launches have lost, less what others have gained, and a time without threads where that is too much. */
export class Account {
  readonly #most: number
  #lost = 0
  #until = 0
  #next = FIRST_REST

  constructor(most: number) {
    this.#most = most
  }

  /** Whether it is such a time now. */
  get rests(): boolean {
    return this.#until !== 0 && performance.now() < this.#until
  }

  /** Notes a loss, or a gain where it is less than 0. Gains are remembered up to as much as may be lost. */
  note(loss: number, now: number): void {
    this.#lost = Math.max(-this.#most, this.#lost + loss)
    if (this.#lost === -this.#most) this.#next = FIRST_REST
    if (this.#lost <= this.#most) return
    this.#lost = 0
    this.#until = now + this.#next
    this.#next = Math.min(2 * this.#next, LONGEST_REST)
  }
}
