// The heap: one WebAssembly memory in which tensors live, and its allocator. Kernels import this memory and take byte addresses in it.
import { TensorfxError } from '../errors/index.ts'
import { dtypeInfo } from './dtype.ts'
import type { DType, StorageArray, TypedArray } from './dtype.ts'

/**
 * The heap cannot grow any further.
 *
 * Fix: use smaller batches, run inference inside `torch.noGrad`, and release large tensors early with `dispose()`.
 */
export class OutOfMemoryError extends TensorfxError {
  constructor(bytes: number) {
    super(
      'TFX_OUT_OF_MEMORY',
      `the heap has no room for ${bytes} bytes (${stats.inUse} in use of at most ${MAX_BYTES}); release tensors with dispose(), or use smaller ones.`,
    )
  }
}

/** Addresses stay below 2 GiB, so that they are positive as i32. */
const MAX_BYTES = 2 ** 31 - 65536
const PAGE = 65536
/** The first bytes are never allocated: address 0 means "not on the heap". */
const START = 1024
const ALIGN = 16

let memory: WebAssembly.Memory | null = null
const views = new Map<DType, StorageArray>()
let u8 = new Uint8Array(0)

const stats = { inUse: 0, softLimit: 512 * 2 ** 20 }

/** The memory itself; created at the first use. */
export function heapMemory(): WebAssembly.Memory {
  memory ??= new WebAssembly.Memory({ initial: 64, maximum: Math.floor(MAX_BYTES / PAGE) })
  return memory
}

/** The whole heap as elements of a dtype. Growing the heap detaches the view: get a new one after any allocation. */
export function heapView(dtype: Exclude<DType, 'int64'>): TypedArray
export function heapView(dtype: DType): StorageArray
export function heapView(dtype: DType): StorageArray {
  let view = views.get(dtype)
  if (view === undefined) {
    view = new dtypeInfo[dtype].array(heapMemory().buffer)
    views.set(dtype, view)
  }
  return view
}

/** The whole heap as bytes; see {@link heapView}. */
export function heapBytes(): Uint8Array {
  if (u8.length === 0) u8 = new Uint8Array(heapMemory().buffer)
  return u8
}

// Small blocks: size classes, four per power of two, each with a stack of free addresses; carved from chunks.
const SMALL = 65536
const smallFree: number[][] = []
// Large blocks: free runs, by address and by size; adjacent runs are merged.
const freeByStart = new Map<number, number>()
const freeByEnd = new Map<number, number>()
const bins: Set<number>[] = []
let top = START
let chunkAt = 0
let chunkEnd = 0
const CHUNK = 2 ** 20

/** The size class of a small block: 16, 32, 48, 64, 80, 96, 112, 128, 160, … four steps to the next power of two. */
function classOf(bytes: number): number {
  if (bytes <= 64) return (bytes + 15) >> 4
  const log = 31 - Math.clz32(bytes - 1)
  return 4 * (log - 5) + ((bytes - 1) >> (log - 2)) - 3
}

function classBytes(index: number): number {
  if (index <= 4) return index << 4
  const log = ((index - 1) >> 2) + 5
  return (((index - 1) % 4) + 5) << (log - 2)
}

const LARGE_STEP = 4096
// In doubles: a size may be beyond 32 bits.
const roundLarge = (bytes: number): number => Math.ceil(bytes / LARGE_STEP) * LARGE_STEP
const binOf = (bytes: number): number => 31 - Math.clz32(bytes)

/** Allocates at least `bytes` bytes, 16-byte aligned. Throws OutOfMemoryError when the heap is full. */
export function allocate(bytes: number): number {
  const address = tryAllocate(bytes)
  if (address === 0) throw new OutOfMemoryError(bytes)
  return address
}

/** Like {@link allocate}, but returns 0 when the heap is full. */
export function tryAllocate(bytes: number): number {
  if (bytes <= SMALL) {
    const index = classOf(Math.max(bytes, ALIGN))
    const free = (smallFree[index] ??= [])
    const known = free.pop()
    const size = classBytes(index)
    const address = known ?? carve(size)
    if (address !== 0) stats.inUse += size
    return address
  }
  // Also refuses what is not a number.
  if (!(bytes <= MAX_BYTES)) return 0
  const size = roundLarge(bytes)
  const address = takeLarge(size)
  if (address !== 0) stats.inUse += size
  return address
}

function carve(size: number): number {
  if (chunkAt + size > chunkEnd) {
    const chunk = takeLarge(CHUNK)
    if (chunk === 0) return 0
    chunkAt = chunk
    chunkEnd = chunk + CHUNK
  }
  const address = chunkAt
  chunkAt += size
  return address
}

function takeLarge(size: number): number {
  for (let bin = binOf(size); bin < bins.length; bin++) {
    const starts = bins[bin]
    if (starts === undefined) continue
    for (const start of starts) {
      const length = freeByStart.get(start) ?? 0
      if (length < size) continue
      dropRun(start, length)
      if (length > size) addRun(start + size, length - size)
      return start
    }
  }
  const start = (top + 63) & ~63
  const need = start + size
  if (need > MAX_BYTES) return 0
  const have = heapMemory().buffer.byteLength
  if (need > have) {
    // Growing by a quarter keeps it rare.
    const target = Math.min(MAX_BYTES, Math.max(need, have + have / 4))
    try {
      heapMemory().grow(Math.ceil((target - have) / PAGE))
    } catch {
      try {
        heapMemory().grow(Math.ceil((need - have) / PAGE))
      } catch {
        return 0
      }
    }
    // The old buffer is detached.
    views.clear()
    u8 = new Uint8Array(0)
  }
  top = need
  return start
}

function addRun(start: number, length: number): void {
  freeByStart.set(start, length)
  freeByEnd.set(start + length, start)
  ;(bins[binOf(length)] ??= new Set()).add(start)
}

function dropRun(start: number, length: number): void {
  freeByStart.delete(start)
  freeByEnd.delete(start + length)
  bins[binOf(length)]?.delete(start)
}

/** Frees memory. `bytes` must be what was allocated. */
export function free(address: number, bytes: number): void {
  if (bytes <= SMALL) {
    const index = classOf(Math.max(bytes, ALIGN))
    ;(smallFree[index] ??= []).push(address)
    stats.inUse -= classBytes(index)
    return
  }
  let start = address
  let length = roundLarge(bytes)
  stats.inUse -= length
  const after = freeByStart.get(start + length)
  if (after !== undefined) {
    dropRun(start + length, after)
    length += after
  }
  const before = freeByEnd.get(start)
  if (before !== undefined) {
    const size = start - before
    dropRun(before, size)
    start = before
    length += size
  }
  if (start + length === top) top = start
  else addRun(start, length)
}

/** Memory that kernels use as they please: it grows to the largest size requested, and its contents are kept only until the next request. */
export class ScratchMemory {
  #address = 0
  #size = 0

  /** The address of at least `bytes` bytes. */
  reserve(bytes: number): number {
    if (bytes > this.#size) {
      if (this.#size > 0) free(this.#address, this.#size)
      // Nothing is reserved if the allocation fails.
      this.#size = 0
      const size = Math.max(bytes, SMALL)
      this.#address = allocate(size)
      this.#size = size
    }
    return this.#address
  }
}

/** Bytes in use, the soft limit beyond which new storage spills, and the current size of the heap. */
export function heapStats(): { readonly inUse: number; readonly softLimit: number; readonly capacity: number } {
  return { inUse: stats.inUse, softLimit: stats.softLimit, capacity: memory?.buffer.byteLength ?? 0 }
}

/** Sets the soft limit in bytes. The default is 512 MiB. */
export function setSoftLimit(bytes: number): void {
  stats.softLimit = bytes
}

/** Whether `bytes` more would stay within the soft limit. */
export const withinSoftLimit = (bytes: number): boolean => stats.inUse + bytes <= stats.softLimit
