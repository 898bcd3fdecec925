// What the ranks of a thread world share: one SharedArrayBuffer with a bell, mailboxes for messages between two ranks, and one region per group.
import { DistributedError } from '../errors.ts'

/** Bytes that a rank can post at a time in a group. */
const SLOT_BYTES = 2 ** 20
/** Bytes that a mailbox holds. */
const MAILBOX_BYTES = 2 ** 16
/** The counters of a rank in a group take one line of the cache each. */
const LINE = 64

/** Bytes of shared memory. Pages that are never touched cost nothing. */
export const SHARED_BYTES = 2 ** 28

const MAILBOX_HEADER = LINE
const [BELL, ABORTED] = [0, 1]

/** One rank's counters and slot in a group. */
export interface Post {
  /** Steps that the rank has posted, steps that it has read, and collectives that it has started: indices into `control`. */
  readonly posted: number
  readonly read: number
  readonly started: number
  readonly slot: Uint8Array
}

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

  constructor(buffer: SharedArrayBuffer, size: number) {
    this.#buffer = buffer
    this.size = size
    this.control = new Int32Array(buffer)
    this.#left = this.#take(4 * size) / 4
  }

  #take(bytes: number): number {
    const start = this.#next
    this.#next += Math.ceil(bytes / LINE) * LINE
    if (this.#next > this.#buffer.byteLength)
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

  /** The region of a group of `count` ranks. */
  posts(count: number): readonly Post[] {
    return Array.from({ length: count }, () => {
      const counters = this.#take(3 * LINE) / 4
      const slot = new Uint8Array(this.#buffer, this.#take(SLOT_BYTES), SLOT_BYTES)
      return { posted: counters, read: counters + LINE / 4, started: counters + (2 * LINE) / 4, slot }
    })
  }

  load(index: number): number {
    return Atomics.load(this.control, index)
  }

  /** Stores a value, and wakes all who wait. */
  store(index: number, value: number): void {
    Atomics.store(this.control, index, value)
    Atomics.add(this.control, BELL, 1)
    Atomics.notify(this.control, BELL)
  }

  bell(): number {
    return this.load(BELL)
  }

  /** Waits until the bell has rung since it was `heard`, at most `ms` milliseconds. */
  wait(heard: number, ms: number): void {
    Atomics.wait(this.control, BELL, heard, ms)
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
