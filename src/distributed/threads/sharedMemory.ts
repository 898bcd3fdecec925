// What the ranks of a thread world share: one SharedArrayBuffer with a bell, mailboxes for messages between two ranks, and a part for each rank of each group.
import { DistributedError } from '../errors.ts'
import { PART_BYTES } from '../shared/sharedGroup.ts'
import type { PartPlace } from '../shared/sharedGroup.ts'

/** Bytes that a mailbox holds. */
const MAILBOX_BYTES = 2 ** 16
/** A line of the processor's cache. */
const LINE = 64

/** Bytes of shared memory. Pages that are never touched cost nothing. */
export const SHARED_BYTES = 2 ** 28

const MAILBOX_HEADER = LINE
const [BELL, ABORTED, SLEEPERS] = [0, 1, 2]

/** Messages from one rank to another: a header, and the bytes of one piece. */
export interface Mailbox {
  /** Index into `control`: 1 when a piece lies there. Then: its bytes, the bytes of the whole message, the channel, the tag. */
  readonly full: number
  readonly data: Uint8Array
}

/** The shared memory as one rank sees it. All ranks ask for the same things in the same order, so they find each other's. */
export class SharedMemory {
  readonly control: Int32Array
  readonly size: number
  readonly #buffer: SharedArrayBuffer
  /** Index of a word for each rank: 1 when it has left. */
  readonly #left: number
  #next = LINE
  #end: number

  constructor(buffer: SharedArrayBuffer, size: number) {
    this.#buffer = buffer
    this.size = size
    this.control = new Int32Array(buffer)
    this.#end = buffer.byteLength
    this.#left = this.#take(4 * size) / 4
  }

  #take(bytes: number): number {
    const start = this.#next
    this.#next += Math.ceil(bytes / LINE) * LINE
    if (this.#next > this.#end)
      throw new DistributedError(
        `the thread world's shared memory (${this.#buffer.byteLength} bytes) is used up. Make fewer groups, or pass a larger sharedBytes to runRanks.`,
      )
    return start
  }

  /** A mailbox from each rank to each other. */
  mailboxes(): readonly (readonly Mailbox[])[] {
    const ranks = Array.from({ length: this.size }, (_, i) => i)
    return ranks.map(() =>
      ranks.map(() => {
        const start = this.#take(MAILBOX_HEADER + MAILBOX_BYTES)
        return { full: start / 4, data: new Uint8Array(this.#buffer, start + MAILBOX_HEADER, MAILBOX_BYTES) }
      }),
    )
  }

  /** Bytes of each rank for texts. They are taken from the end, since ranks may ask for them at different times. */
  texts(bytes: number): (rank: number) => Uint8Array {
    const start = this.#buffer.byteLength - bytes * this.size
    this.#end = start
    if (start < this.#next)
      throw new DistributedError(`the thread world's shared memory (${this.#buffer.byteLength} bytes) is too small for a history.`)
    return (rank) => new Uint8Array(this.#buffer, start + rank * bytes, bytes)
  }

  /** The parts of the ranks of a group of `count`. */
  parts(count: number): readonly PartPlace[] {
    return Array.from({ length: count }, () => ({ buffer: this.#buffer, start: this.#take(PART_BYTES) }))
  }

  load(index: number): number {
    return Atomics.load(this.control, index)
  }

  /** Stores a value, and wakes all who wait. */
  store(index: number, value: number): void {
    Atomics.store(this.control, index, value)
    this.ring()
  }

  /** Wakes all who wait. A rank that is about to wait has counted itself before it compares the bell, so it is woken or does not fall asleep. */
  ring(): void {
    Atomics.add(this.control, BELL, 1)
    if (Atomics.load(this.control, SLEEPERS) > 0) Atomics.notify(this.control, BELL)
  }

  bell(): number {
    return this.load(BELL)
  }

  /** Waits until the bell has rung since it was `heard`, at most `ms` milliseconds. */
  wait(heard: number, ms: number): void {
    Atomics.add(this.control, SLEEPERS, 1)
    Atomics.wait(this.control, BELL, heard, ms)
    Atomics.sub(this.control, SLEEPERS, 1)
  }

  /** Says to all ranks that `rank` has ended. */
  abort(rank: number): void {
    this.store(ABORTED, rank + 1)
  }

  /** Says to all ranks that `rank` has left without a failure. */
  leave(rank: number): void {
    this.store(this.#left + rank, 1)
  }

  hasLeft(rank: number): boolean {
    return this.load(this.#left + rank) !== 0
  }

  /** The rank that failed; null if none did. */
  aborted(): number | null {
    const value = this.load(ABORTED)
    return value === 0 ? null : value - 1
  }
}
