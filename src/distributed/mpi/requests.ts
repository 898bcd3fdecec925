// Requests: non-blocking calls of MPI that are under way. Their memory does not move and is used again and again, since a small collective takes less time than
// making an array.
import type { Task } from '../backend.ts'
import type { Patience } from '../patience.ts'
import type { Mpi, MpiCall } from './library.ts'

/** Memory for one request, and for what MPI says of it. Addresses are numbers. */
interface RequestSlot {
  readonly words: Int32Array
  readonly request: number
  readonly flag: number
  readonly status: number
  /** What MPI reads and writes until the request is over. */
  held: unknown
}

/** Where a slot has its flag and its status, in 32-bit words. The request takes at most 8 bytes, a status at most 40. */
const [FLAG, STATUS, SLOT_WORDS] = [2, 4, 32]

/** An all-reduce of more bytes is made of pieces of this size. Measured with 64 MiB on Open MPI and MPICH: both are fastest from 256 KiB to 1 MiB. */
export const PIECE_BYTES: number = 2 ** 19
const PIECES_AT_A_TIME = 2

class RequestTask implements Task {
  readonly #requests: Requests
  readonly #wantsSource: boolean
  #slot: RequestSlot | null
  source?: number

  constructor(requests: Requests, slot: RequestSlot, wantsSource: boolean) {
    this.#requests = requests
    this.#slot = slot
    this.#wantsSource = wantsSource
  }

  poll(): boolean {
    const slot = this.#slot
    if (slot === null) return true
    if (!this.#requests.isOver(slot, this.#wantsSource)) return false
    if (this.#wantsSource) this.source = this.#requests.sourceOf(slot)
    this.#slot = null
    this.#requests.release(slot)
    return true
  }
}

/**
 * A large collective as small ones, a few of them under way at a time: a piece stays in the processor's cache while it is reduced, so that all of them take
 * less time than one call. Every rank makes the same pieces.
 */
class PiecesTask implements Task {
  readonly #requests: Requests
  readonly #count: number
  readonly #launch: (piece: number) => Task
  readonly #running: Task[] = []
  #next = 0

  constructor(requests: Requests, count: number, launch: (piece: number) => Task) {
    this.#requests = requests
    this.#count = count
    this.#launch = launch
  }

  advance(): boolean {
    while (this.#running[0]?.poll() === true) {
      this.#running.shift()
      this.#requests.patience.restart()
    }
    while (this.#next < this.#count && this.#running.length < PIECES_AT_A_TIME) this.#running.push(this.#launch(this.#next++))
    return this.#next === this.#count
  }

  poll(): boolean {
    return this.advance() && this.#running.length === 0
  }
}

/** The requests of this rank. */
export class Requests {
  readonly #mpi: Mpi
  readonly patience: Patience
  readonly #test: MpiCall
  /** All slots: MPI may still write to one that no task refers to. */
  readonly #slots: RequestSlot[] = []
  readonly #free: RequestSlot[] = []

  constructor(mpi: Mpi, patience: Patience) {
    this.#mpi = mpi
    this.patience = patience
    this.#test = mpi.prepare('MPI_Test')
  }

  /** How many are under way. */
  get pending(): number {
    return this.#slots.length - this.#free.length
  }

  /** A slot for a request that is about to be made; `held` is kept until it is over. */
  take(held: unknown): RequestSlot {
    const slot = this.#free.pop() ?? this.#newSlot()
    slot.held = held
    return slot
  }

  #newSlot(): RequestSlot {
    const words = new Int32Array(SLOT_WORDS)
    const at = this.#mpi.addressOf(words.buffer)
    const slot: RequestSlot = { words, request: at, flag: at + 4 * FLAG, status: at + 4 * STATUS, held: null }
    this.#slots.push(slot)
    return slot
  }

  /** The task of a request that was made. */
  task(slot: RequestSlot, wantsSource = false): Task {
    return new RequestTask(this, slot, wantsSource)
  }

  /** Makes a request: `launch` gets the address for it, and returns what must be kept until it is over. */
  start(launch: (request: number) => unknown, wantsSource = false): Task {
    const slot = this.take(null)
    slot.held = launch(slot.request)
    return this.task(slot, wantsSource)
  }

  /** Makes a number of requests, one or two at a time. */
  inPieces(count: number, launch: (piece: number) => Task): Task {
    return new PiecesTask(this, count, launch)
  }

  isOver(slot: RequestSlot, wantsSource: boolean): boolean {
    this.#mpi.check('MPI_Test', this.#test(slot.request, slot.flag, wantsSource ? slot.status : this.#mpi.ignoreStatus))
    return slot.words[FLAG] !== 0
  }

  sourceOf({ words }: RequestSlot): number {
    return words[STATUS + this.#mpi.statusSource] ?? -1
  }

  release(slot: RequestSlot): void {
    slot.held = null
    this.#free.push(slot)
  }
}
