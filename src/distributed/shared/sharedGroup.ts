// Collectives of ranks that share memory: threads, and processes of MPI on one machine. Each is a number of steps. In a step a rank posts bytes in a slot of its
// own, waits until those whose bytes it needs have posted theirs, and takes them. It takes less time than a non-blocking collective of MPI, and like one it can be
// given up.
import type { Task } from '../backend.ts'
import { DistributedError } from '../errors.ts'
import { exchangeOf } from './exchanges.ts'
import type { DirectMemory, Exchange, SharedCollective } from './exchanges.ts'

/** Bytes that a rank posts at a time. Larger data takes several steps, in which some ranks post while others take. */
export const SLOT_BYTES: number = 2 ** 16
/** The counters of a rank take a line of the cache of their own. */
const HEADER_BYTES = 64
/** What a rank shares: its counters, a slot for steps of even numbers, and one for the odd ones. */
export const PART_BYTES: number = HEADER_BYTES + 2 * SLOT_BYTES

/** Counters: steps that the rank has posted, and collectives that it has started. */
const [POSTED, STARTED] = [0, 1]

/** One rank's part of the shared memory. */
class Part {
  readonly counters: Int32Array
  readonly slots: readonly [Uint8Array, Uint8Array]

  constructor(buffer: ArrayBufferLike, start: number) {
    this.counters = new Int32Array(buffer, start, HEADER_BYTES / 4)
    const slot = (i: number): Uint8Array => new Uint8Array(buffer, start + HEADER_BYTES + i * SLOT_BYTES, SLOT_BYTES)
    this.slots = [slot(0), slot(1)]
  }
}

/** Where a part lies. */
export interface PartPlace {
  readonly buffer: ArrayBufferLike
  readonly start: number
}

class SharedTask implements Task {
  readonly #group: SharedGroup
  readonly exchange: Exchange
  /** Steps that this rank has taken. */
  taken = 0
  isPosted = false
  isOver = false

  constructor(group: SharedGroup, exchange: Exchange) {
    this.#group = group
    this.exchange = exchange
  }

  poll(): boolean {
    if (!this.isOver) this.#group.progressOrThrow()
    return this.isOver
  }
}

/** What the ranks' worlds add. */
export interface SharedGroupOptions {
  /** Called when this rank has posted something: wakes others that sleep. */
  readonly onPost?: () => void
  /** Called when a collective is waited for: lets the world's other business go on. It may throw. */
  readonly onWait?: () => void
}

/** The ranks of a group, and their parts of the memory. */
export class SharedGroup {
  readonly #parts: readonly Part[]
  readonly #own: Part
  readonly #me: number
  /** The ranks' slots for steps of even numbers, and for odd ones. */
  readonly #slots: readonly [readonly Uint8Array[], readonly Uint8Array[]]
  readonly #onPost: (() => void) | null
  readonly #onWait: (() => void) | null
  /** Set where all ranks may read each other's memory. */
  direct: DirectMemory | null = null
  /** Collectives that are not over; they run one after the other. */
  readonly #queue: SharedTask[] = []
  /** Steps that this rank has posted; it wraps around. */
  #step = 0
  #isClosed = false
  /** Why a collective broke off in the middle: this rank is out of step with the others then. */
  #failure: unknown = null

  constructor(places: readonly PartPlace[], me: number, { onPost, onWait }: SharedGroupOptions = {}) {
    this.#parts = places.map(({ buffer, start }) => new Part(buffer, start))
    this.#own = this.#parts[me] ?? new Part(new ArrayBuffer(PART_BYTES), 0)
    this.#me = me
    this.#slots = [this.#parts.map(({ slots }) => slots[0]), this.#parts.map(({ slots }) => slots[1])]
    this.#onPost = onPost ?? null
    this.#onWait = onWait ?? null
  }

  /** Sets this rank's counters to their start, in memory that is not empty. Before any rank starts a collective. */
  reset(): void {
    this.#own.counters.fill(0)
  }

  /** How many collectives are under way. */
  get pending(): number {
    return this.#queue.length
  }

  /** Starts a collective. All ranks start the same ones in the same order. */
  start(collective: SharedCollective): Task {
    const task = new SharedTask(this, exchangeOf(collective, { size: this.#parts.length, me: this.#me, capacity: SLOT_BYTES, direct: this.direct }))
    Atomics.store(this.#own.counters, STARTED, (Atomics.load(this.#own.counters, STARTED) + 1) | 0)
    this.#queue.push(task)
    if (this.#queue.length === 1) this.progress()
    return task
  }

  /** The ranks that have started fewer than `count` collectives. */
  absent(count: number): readonly number[] {
    return this.#parts.flatMap(({ counters }, rank) => (Atomics.load(counters, STARTED) < count ? [rank] : []))
  }

  /** What is under way never ends: the memory is about to go. */
  close(): void {
    this.#isClosed = true
  }

  /** Runs what is under way as far as it comes. */
  progress(): void {
    if (this.#isClosed || this.#failure !== null) return
    for (let task = this.#queue[0]; task !== undefined && this.#run(task); task = this.#queue[0]) this.#queue.shift()
  }

  /** The same where a collective is waited for. Throws DistributedError if the group is closed, and what a collective has failed with. */
  progressOrThrow(): void {
    if (this.#isClosed) throw new DistributedError('the process group was destroyed before this collective was over. Wait for every Work first.')
    this.#onWait?.()
    this.progress()
    if (this.#failure !== null) throw this.#failure
  }

  /** Runs the first collective as far as it comes, and returns whether it is over. */
  #run(task: SharedTask): boolean {
    const { exchange } = task
    try {
      while (task.taken < exchange.steps) {
        if (!task.isPosted) {
          // The slot still holds what was posted two steps ago. Ranks that have posted the step after that have taken it.
          if (!this.#haveAllPosted(this.#step)) return false
          this.#step = (this.#step + 1) | 0
          exchange.post(task.taken, this.#own.slots[this.#step & 1 ? 1 : 0])
          Atomics.store(this.#own.counters, POSTED, this.#step)
          this.#onPost?.()
          task.isPosted = true
        }
        if (!(exchange.from === null ? this.#haveAllPosted(this.#step) : this.#hasPosted(exchange.from, this.#step))) return false
        exchange.take(task.taken, this.#slots[this.#step & 1 ? 1 : 0])
        task.taken++
        task.isPosted = false
      }
    } catch (error) {
      this.#failure = error
      return false
    }
    task.isOver = true
    return true
  }

  #hasPosted(rank: number, step: number): boolean {
    const part = this.#parts[rank]
    return part === undefined || ((Atomics.load(part.counters, POSTED) - step) | 0) >= 0
  }

  #haveAllPosted(step: number): boolean {
    for (const { counters } of this.#parts) if (((Atomics.load(counters, POSTED) - step) | 0) < 0) return false
    return true
  }
}
