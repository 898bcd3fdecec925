// Small all-reduces of ranks on one machine, through memory that MPI lets them share: every rank posts its values, and reduces those of all ranks itself, in the order
// of the ranks. It takes less time than a non-blocking collective, and like one it can be given up.
import { dtypeInfo, heapMemory } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { Task } from '../backend.ts'
import { tensorBytes } from '../bytes.ts'
import type { BackendReduceOp } from '../collective.ts'
import { DistributedError } from '../errors.ts'

type Numbers = Float32Array<ArrayBufferLike> | Float64Array<ArrayBufferLike> | Int32Array<ArrayBufferLike>

/** Bytes of the largest tensor that goes this way. */
const DATA_BYTES = 1024
/** A slot begins with the number of the reduction whose values it holds, in a line of the cache of its own. */
const HEADER_BYTES = 64
const SLOT_BYTES = HEADER_BYTES + DATA_BYTES
/** What a rank shares: a slot for the reductions of even numbers, and one for the odd ones. */
export const WINDOW_BYTES: number = 2 * SLOT_BYTES

const ARRAYS = { float32: Float32Array, float64: Float64Array, int32: Int32Array } as const
type SmallDType = keyof typeof ARRAYS
const SMALL_OPS: ReadonlySet<BackendReduceOp> = new Set(['sum', 'min', 'max'])

const isSmall = (dtype: DType): dtype is SmallDType => dtype in ARRAYS

/** A buffer as arrays of each type. */
class Views {
  readonly buffer: ArrayBufferLike
  readonly float32: Float32Array
  readonly float64: Float64Array
  readonly int32: Int32Array

  constructor(buffer: ArrayBufferLike) {
    this.buffer = buffer
    this.float32 = new Float32Array(buffer, 0, Math.floor(buffer.byteLength / 4))
    this.float64 = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / 8))
    this.int32 = new Int32Array(buffer, 0, Math.floor(buffer.byteLength / 4))
  }
}

let heap = new Views(new ArrayBuffer(0))

function heapViews(): Views {
  const { buffer } = heapMemory()
  if (heap.buffer !== buffer) heap = new Views(buffer)
  return heap
}

function accumulate(op: BackendReduceOp, to: Numbers, at: number, from: Numbers, start: number, count: number): void {
  if (op === 'sum') for (let i = 0; i < count; i++) to[at + i] = (to[at + i] ?? 0) + (from[start + i] ?? 0)
  else if (op === 'max') for (let i = 0; i < count; i++) to[at + i] = Math.max(to[at + i] ?? 0, from[start + i] ?? 0)
  else for (let i = 0; i < count; i++) to[at + i] = Math.min(to[at + i] ?? 0, from[start + i] ?? 0)
}

class SmallReduction implements Task {
  readonly #window: SharedWindow
  readonly data: Tensor
  readonly dtype: SmallDType
  readonly op: BackendReduceOp
  isOver = false

  constructor(window: SharedWindow, data: Tensor, dtype: SmallDType, op: BackendReduceOp) {
    this.#window = window
    this.data = data
    this.dtype = dtype
    this.op = op
  }

  poll(): boolean {
    if (!this.isOver) this.#window.progress()
    return this.isOver
  }
}

/** The memory that the ranks of a group share. */
export class SharedWindow {
  readonly #ranks: readonly Views[]
  readonly #own: Views
  /** Reductions that are not over. The first is posted; one that follows is posted when all ranks have posted those before it, so two slots are enough. */
  readonly #queue: SmallReduction[] = []
  #number = 0
  #isClosed = false

  /** `parts` are the ranks' shares of the memory, of which `rank` is this one's. */
  constructor(parts: readonly ArrayBuffer[], rank: number) {
    this.#ranks = parts.map((part) => new Views(part))
    this.#own = this.#ranks[rank] ?? new Views(new ArrayBuffer(WINDOW_BYTES))
    this.#own.int32.fill(0)
  }

  /** How many are under way. */
  get pending(): number {
    return this.#queue.length
  }

  /** Starts to reduce a tensor in place; null if it has to go another way. All ranks come to the same answer. */
  start(data: Tensor, op: BackendReduceOp): Task | null {
    const { dtype } = data
    if (!isSmall(dtype) || data.numel * dtypeInfo[dtype].size > DATA_BYTES || !SMALL_OPS.has(op)) return null
    const reduction = new SmallReduction(this, data, dtype, op)
    this.#queue.push(reduction)
    if (this.#queue.length === 1) this.#post(reduction)
    return reduction
  }

  /** What is under way never ends: the memory is about to go. */
  close(): void {
    this.#isClosed = true
  }

  /** Ends what can be ended, and posts what comes next. Throws DistributedError if something is under way in a window that is closed. */
  progress(): void {
    if (this.#isClosed && this.#queue.length > 0)
      throw new DistributedError('the process group was destroyed before this all-reduce was over. Wait for every Work first.')
    for (let first = this.#queue[0]; first !== undefined && this.#allHavePosted(); first = this.#queue[0]) {
      this.#reduce(first)
      first.isOver = true
      this.#queue.shift()
      const next = this.#queue[0]
      if (next !== undefined) this.#post(next)
    }
  }

  /** Where the slot for the present reduction begins, in bytes. */
  get #slot(): number {
    return (this.#number & 1) * SLOT_BYTES
  }

  #post({ data, dtype }: SmallReduction): void {
    this.#number = (this.#number + 1) | 0
    const slot = this.#slot
    const { size } = dtypeInfo[dtype]
    const to = this.#own[dtype]
    const at = (slot + HEADER_BYTES) / size
    const [from, start] = this.#elements(data, dtype)
    for (let i = 0; i < data.numel; i++) to[at + i] = from[start + i] ?? 0
    Atomics.store(this.#own.int32, slot / 4, this.#number)
  }

  #allHavePosted(): boolean {
    const at = this.#slot / 4
    for (const { int32 } of this.#ranks) if (Atomics.load(int32, at) !== this.#number) return false
    return true
  }

  #reduce({ data, dtype, op }: SmallReduction): void {
    const at = (this.#slot + HEADER_BYTES) / dtypeInfo[dtype].size
    const [to, start] = this.#elements(data, dtype)
    let isFirst = true
    for (const rank of this.#ranks) {
      const from = rank[dtype]
      if (isFirst) for (let i = 0; i < data.numel; i++) to[start + i] = from[at + i] ?? 0
      else accumulate(op, to, start, from, at, data.numel)
      isFirst = false
    }
  }

  /** The elements of a contiguous tensor: an array, and where they begin in it. */
  #elements(data: Tensor, dtype: SmallDType): readonly [Numbers, number] {
    const { block } = data.realize()
    if (block.ptr !== 0) return [heapViews()[dtype], block.ptr / dtypeInfo[dtype].size + data.offset]
    const { buffer, byteOffset } = tensorBytes(data)
    return [new Views(buffer)[dtype], byteOffset / dtypeInfo[dtype].size]
  }
}
