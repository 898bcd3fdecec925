// The heap: one WebAssembly memory in which tensors live, and its allocator. Kernels import this memory and take byte addresses in it.
import { budget, heapMayHave, notePeak, noteReserved, spillsAbove } from './budget.ts'
import { decideSharing } from '../engine/threads.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType, StorageArray, TypedArray } from '../numbers/dtype.ts'
import type { Param, Stmt } from '../ir/loopIr.ts'

/** Addresses stay below 2 GiB, so that they are positive as i32. */
export const MAX_BYTES: number = 2 ** 31 - 65536
const PAGE = 65536
/** The first bytes are never allocated: address 0 means "not on the heap". */
const START = 1024
const ALIGN = 16

let memory: WebAssembly.Memory | null = null
const views = new Map<DType, StorageArray>()
let u8 = new Uint8Array(0)

/** Stands between the heap and its users: tests check the heap with one, and let allocations fail. */
export interface HeapGuard {
  /** What is in use, not counting what the guard adds; null if it adds nothing. */
  readonly inUse: number | null
  /** Answers a request; `take` asks the allocator. Returns 0, or throws, if there is no room. */
  allocate(bytes: number, take: (bytes: number) => number): number
  /** Takes memory back; `give` returns it to the allocator. */
  free(address: number, bytes: number, give: (address: number, bytes: number) => void): void
  /** Called before memory outside the heap is allocated. */
  spill(bytes: number): void
  /** The function to call instead of a compiled kernel. */
  kernel(name: string, params: readonly Param[], body: readonly Stmt[], run: (...args: number[]) => void): (...args: number[]) => void
}

let guard: HeapGuard | null = null

/** The guard of the heap; null without one. */
export const heapGuard = (): HeapGuard | null => guard

/** Sets the guard of the heap, or removes it, and returns the one before. A guard sees the memory that was allocated since, so that a checking one is set first of all. */
export function setHeapGuard(next: HeapGuard | null): HeapGuard | null {
  const before = guard
  guard = next
  return before
}

/** The most pages that the heap may have; a module that imports a shared memory names it. */
export const MAX_PAGES: number = Math.floor(MAX_BYTES / PAGE)

/** The memory itself; created at the first use, shared if threads are wanted by then. */
export function heapMemory(): WebAssembly.Memory {
  memory ??= decideSharing((shared) => new WebAssembly.Memory({ initial: 64, maximum: MAX_PAGES, shared }))
  return memory
}

/** Whether threads can work on the heap. Creates it. */
export const isHeapShared = (): boolean => !(heapMemory().buffer instanceof ArrayBuffer)

let held = false

/** Runs `fn`, while which the heap does not grow: threads work on it. */
export function holdingHeap(fn: () => void): void {
  held = true
  try {
    fn()
  } finally {
    held = false
  }
}

const ballast: ArrayBuffer[] = []

/**
 * Lets the host's garbage collector count a shared heap, as it counts one that is not shared. Otherwise it runs so seldom that tensors which nothing refers to take twice the memory
 * (632 MB instead of 348 in a loop that trains convolutions). The buffer is never touched, so that it takes addresses, but no memory.
 */
function weigh(bytes: number): void {
  try {
    ballast[0] = new ArrayBuffer(bytes)
  } catch {
    // Without room for it there is none for tensors soon, and then the collector runs anyway.
  }
}

/** The whole heap as elements of a dtype. A view is as long as the heap was when it was made, or detached once the heap has grown: get a new one after any allocation. */
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
/** The chunks that small blocks were carved from, and where the carved part of each ends; the last one is still in use. */
const chunks = new Map<number, number>()
let chunkStart = 0
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

/** The bytes that a request takes up. */
export const roundedSize = (bytes: number): number => (bytes <= SMALL ? classBytes(classOf(Math.max(bytes, ALIGN))) : roundLarge(bytes))

/** Whether there could be that much memory. False for NaN and negative sizes too. */
export const isPossibleSize = (bytes: number): boolean => bytes >= 0 && bytes <= MAX_BYTES

/** The address of at least `bytes` bytes, 16-byte aligned; 0 when the heap is full. */
export function tryAllocate(bytes: number): number {
  return guard === null ? take(bytes) : guarded(guard, bytes)
}

function guarded(by: HeapGuard, bytes: number): number {
  if (!isPossibleSize(bytes)) return 0
  if (budget.overdrafts === 0) return by.allocate(bytes, take)
  try {
    return by.allocate(bytes, take)
  } catch {
    // What has begun must end: see beyondLimit.
    return by.allocate(bytes, take)
  }
}

function take(bytes: number): number {
  if (bytes <= SMALL) {
    const index = classOf(Math.max(bytes, ALIGN))
    const free = (smallFree[index] ??= [])
    const known = free.pop()
    const size = classBytes(index)
    const address = known ?? carve(size)
    if (address !== 0) count(size)
    return address
  }
  // Also refuses what is not a number.
  if (!(bytes <= MAX_BYTES)) return 0
  const size = roundLarge(bytes)
  const address = takeLarge(size)
  if (address !== 0) count(size)
  return address
}

function count(size: number): void {
  budget.allocations++
  budget.heap += size
  if (budget.heap > budget.mark) notePeak()
}

function carve(size: number): number {
  if (chunkAt + size > chunkEnd) {
    const chunk = takeLarge(CHUNK)
    if (chunk === 0) return 0
    if (chunkStart !== 0) chunks.set(chunkStart, chunkAt)
    chunkStart = chunk
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
  const have = heapMemory().buffer.byteLength
  if (need > have) {
    const most = Math.min(MAX_BYTES, Math.floor(heapMayHave(have) / PAGE) * PAGE)
    if (need > most || held) return 0
    // Growing by a quarter keeps it rare.
    const target = Math.min(most, Math.max(need, have + have / 4))
    try {
      heapMemory().grow(Math.ceil((target - have) / PAGE))
    } catch {
      try {
        heapMemory().grow(Math.ceil((need - have) / PAGE))
      } catch {
        return 0
      }
    }
    // The old buffer is detached or, where it is shared, too short.
    views.clear()
    u8 = new Uint8Array(0)
    noteReserved(heapMemory().buffer.byteLength)
    if (isHeapShared()) weigh(heapMemory().buffer.byteLength)
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
  if (guard !== null) guard.free(address, bytes, give)
  else give(address, bytes)
}

function give(address: number, bytes: number): void {
  budget.frees++
  if (bytes <= SMALL) {
    const index = classOf(Math.max(bytes, ALIGN))
    ;(smallFree[index] ??= []).push(address)
    budget.heap -= classBytes(index)
    return
  }
  const length = roundLarge(bytes)
  budget.heap -= length
  giveRun(address, length)
}

function giveRun(address: number, size: number): void {
  let start = address
  let length = size
  const after = freeByStart.get(start + length)
  if (after !== undefined) {
    dropRun(start + length, after)
    length += after
  }
  const before = freeByEnd.get(start)
  if (before !== undefined) {
    const gap = start - before
    dropRun(before, gap)
    start = before
    length += gap
  }
  if (start + length === top) top = start
  else addRun(start, length)
}

/** Gives chunks of which no small block is in use back to all sizes. It looks at every free block, so it is for when there is no other room. */
export function releaseChunks(): void {
  const starts = Float64Array.from(chunks.keys()).toSorted()
  /** The chunk that an address is in; undefined for the one that is still carved. */
  const chunkOf = (address: number): number | undefined => {
    let [low, high] = [0, starts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((starts[middle] ?? 0) <= address) low = middle + 1
      else high = middle
    }
    const start = starts[low - 1]
    return start !== undefined && address < start + CHUNK ? start : undefined
  }
  const freeBytes = new Map<number, number>()
  smallFree.forEach((addresses, index) => {
    for (const address of addresses) {
      const chunk = chunkOf(address)
      if (chunk !== undefined) freeBytes.set(chunk, (freeBytes.get(chunk) ?? 0) + classBytes(index))
    }
  })
  const unused = new Set([...chunks].filter(([start, end]) => freeBytes.get(start) === end - start).map(([start]) => start))
  if (unused.size === 0) return
  smallFree.forEach((addresses, index) => (smallFree[index] = addresses.filter((address) => !unused.has(chunkOf(address) ?? 0))))
  for (const start of unused) {
    chunks.delete(start)
    giveRun(start, CHUNK)
  }
}

/** Bytes in use, the soft limit beyond which new storage spills, and the current size of the heap. */
export function heapStats(): { readonly inUse: number; readonly softLimit: number; readonly capacity: number } {
  return { inUse: guard?.inUse ?? budget.heap, softLimit: spillsAbove(), capacity: memory?.buffer.byteLength ?? 0 }
}

/** The largest piece that an allocation can get. `capacity` is what the heap has. */
export function largestFree(capacity: number): number {
  return Math.max(Math.min(MAX_BYTES, heapMayHave(capacity)) - top, ...freeByStart.values())
}
