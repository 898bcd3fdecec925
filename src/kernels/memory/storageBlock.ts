// Blocks: the memory of tensor storages. Users need not free them: a FinalizationRegistry returns dead blocks to the heap.
//
// Finalizers do not run inside a synchronous loop. Past the heap's soft limit a new block therefore first asks Node for a collection and runs
// the finalizers at once, where that is possible; otherwise it is an ordinary ArrayBuffer (spilled), which the collector frees even inside the
// loop, and kernels work on a copy of it. The same happens before a request fails because of the memory limit.
import { ArgumentError, InternalError } from '../../errors/index.ts'
import {
  beyondLimit,
  budget,
  countAfterTasks,
  countAtOnce,
  countSpilled,
  isAffordable,
  memoryLimit,
  reclaimables,
  refreshBudget,
  withinSoftLimit,
} from './budget.ts'
import { nodeCollector } from './collector.ts'
import type { CleanupRegistry } from './collector.ts'
import { free, heapBytes, heapGuard, heapStats, isPossibleSize, releaseChunks, roundedSize, tryAllocate } from './heap.ts'
import { OutOfMemoryError } from './outOfMemory.ts'
import type { BlockRecord } from './owners.ts'
import { RECORDED_BYTES, dropRecord, heapRecords, keepRecord, newRecord, recordsAll, spillRecords } from './owners.ts'

/** The memory of a storage: on the heap, or spilled into an ArrayBuffer. */
export class Block {
  /** Byte address in the heap; 0 when the block is spilled or disposed. */
  ptr: number
  readonly nbytes: number
  /** Holds the data of a spilled block; otherwise null. */
  spill: ArrayBuffer | null

  constructor(ptr: number, nbytes: number, spill: ArrayBuffer | null) {
    this.ptr = ptr
    this.nbytes = nbytes
    this.spill = spill
  }
}

/**
 * The registry holds one number per block. For a block on the heap it is the address and the size, or 0 for the size if the block has a record. (Addresses are below 2^31.) For a
 * spilled block it is its number, negated.
 */
const SHIFT = RECORDED_BYTES

/** How many registrations belong to disposed blocks; their finalizers must not free again. (Unregistering needs a token, which doubles the cost of a block.) */
const disposed = new Map<number, number>()

function finalize(held: number): void {
  if (held < 0) return endSpill(-held)
  const idle = disposed.get(held)
  if (idle !== undefined) {
    if (idle === 1) disposed.delete(held)
    else disposed.set(held, idle - 1)
    return
  }
  // Remainders of numbers beyond 2^31 are slow.
  const address = Math.floor(held / SHIFT)
  const small = held - address * SHIFT
  if (small !== 0) return free(address, small)
  const record = dropRecord(heapRecords, address)
  if (record === undefined) throw new InternalError(`the block at address ${address} has no known size`)
  free(address, record.bytes)
}

/** How dead blocks are found. */
interface Cleanup {
  readonly registry: CleanupRegistry
  /** Runs the collector; null where the host cannot. */
  readonly collect: (() => void) | null
}

let cleanup: Cleanup | null = null

/** Made with the first block, so that importing the library does nothing. */
function startCleanup(): Cleanup {
  const collector = nodeCollector()
  const registry: CleanupRegistry = collector === null ? new FinalizationRegistry<number>(finalize) : new collector.Registry(finalize)
  cleanup = { registry, collect: collector?.collect ?? null }
  return cleanup
}

let synchronousCollection = true
/** Bytes in use above which a collection is requested. It rises when a collection frees little. */
let collectAbove = 0

/** Whether allocations past the soft limit may run the collector (Node only). When off, they spill, as in browsers. Returns the previous setting. */
export function setSynchronousCollection(on: boolean): boolean {
  const possible = (cleanup ?? startCleanup()).collect !== null
  const before = synchronousCollection && possible
  synchronousCollection = on && possible
  return before
}

/** Runs the collector and frees dead blocks now. Returns whether the host can do that. */
export function collectBlocks(): boolean {
  const { registry, collect } = cleanup ?? startCleanup()
  collect?.()
  registry.cleanupSome?.()
  return collect !== null
}

/** Whether finalizers can be run within a task. */
const collects = (): boolean => synchronousCollection && (cleanup ?? startCleanup()).collect !== null

/** Bytes allocated since finalizers last ran. */
let unpolled = 0
const POLL_BYTES = 16 * 2 ** 20
/** What a block costs besides its bytes. Without it, a loop that makes empty tensors would never free any. */
const BLOCK_COST = 64

/**
 * Frees blocks that the collector has already found dead. Without this a synchronous loop keeps writing to new memory, which is not in any cache, until it
 * reaches the soft limit.
 */
function pollFinalizers(nbytes: number): void {
  unpolled += nbytes + BLOCK_COST
  if (unpolled < POLL_BYTES) return
  unpolled = 0
  if (synchronousCollection) cleanup?.registry.cleanupSome?.()
}

/** Whether `bytes` more may be in use. */
export const affordable = (bytes: number): boolean => isAffordable(roundedSize(bytes), heapStats().inUse)

/**
 * Looks for memory that is not needed: dead tensors, where the host can find them within a task, copies of data, and with `scratch` the scratch memory that is not in use. What it finds becomes whole
 * again as far as possible.
 */
export function reclaim(scratch: boolean): void {
  budget.retries++
  if (collects()) collectBlocks()
  for (const memory of reclaimables) if (scratch || memory.holdsCopies === true) memory.reclaim()
  releaseChunks()
}

/** Throws OutOfMemoryError unless `bytes` more may be in use, after dead tensors were given back if necessary. `use` is what it is for. */
export function ensureRoom(bytes: number, use: string): void {
  if (budget.heap + bytes <= budget.quick || affordable(bytes)) return
  reclaim(true)
  if (affordable(bytes)) return
  budget.failures++
  throw new OutOfMemoryError(bytes, use)
}

let spills = 0
/** The numbers of spilled blocks. */
const spillNumbers = new WeakMap<Block, number>()

/** Memory outside the heap; null if the host has none. */
function takeSpill(nbytes: number): ArrayBuffer | null {
  try {
    heapGuard()?.spill(nbytes)
  } catch (error) {
    // What has begun must end: see beyondLimit.
    if (budget.overdrafts === 0) throw error
  }
  try {
    return new ArrayBuffer(nbytes)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** Forgets a spilled block, which is dead or was disposed. */
function endSpill(number: number): void {
  const record = dropRecord(spillRecords, number)
  if (record === undefined) return
  countSpilled(-record.bytes, heapStats().capacity)
}

/** Whether the heap and what is outside of it, together, would stay within the limit. */
const maySpill = (nbytes: number): boolean => budget.overdrafts > 0 || heapStats().capacity + budget.spilled + nbytes <= memoryLimit() || !collects()

/** Gives the block memory if there is some: on the heap up to the soft limit, then outside, and then wherever there is room. */
function tryPlace(block: Block): boolean {
  const { nbytes } = block
  if (withinSoftLimit(nbytes)) block.ptr = tryAllocate(nbytes)
  if (block.ptr === 0 && maySpill(nbytes)) block.spill = takeSpill(nbytes)
  if (block.ptr === 0 && block.spill === null) block.ptr = tryAllocate(nbytes)
  return block.ptr !== 0 || block.spill !== null
}

/** What a request is for, in the message of OutOfMemoryError. */
function useText(shape: readonly number[] | null, dtype: string | null): string {
  if (dtype === null) return 'a tensor'
  const { operator } = newRecord(0, shape, dtype)
  return `a ${dtype} tensor of shape [${shape?.join(', ') ?? ''}]${operator === null ? '' : `, which ${operator} makes`}`
}

/** Gives the block memory, where that takes more than a look at one number. */
function place(block: Block, shape: readonly number[] | null, dtype: string | null): void {
  const { nbytes } = block
  refreshBudget()
  if (!collects()) countAfterTasks()
  else {
    countAtOnce()
    if (!withinSoftLimit(nbytes)) collectWhenWorthwhile(nbytes)
  }
  if (affordable(nbytes) && tryPlace(block)) return
  reclaim(true)
  if (affordable(nbytes)) {
    // The heap grows if its free parts are too small.
    if (tryPlace(block) || beyondLimit(() => tryPlace(block))) return
  } else if (budget.overdrafts > 0 && tryPlace(block)) return
  budget.failures++
  throw new OutOfMemoryError(nbytes, useText(shape, dtype))
}

/** What the registry holds for a block that has memory; what is not small is recorded. */
function heldFor(block: Block, shape: readonly number[] | null, dtype: string | null): number {
  const { ptr, nbytes } = block
  if (ptr === 0) {
    const number = ++spills
    keepRecord(spillRecords, number, newRecord(nbytes, shape, dtype))
    spillNumbers.set(block, number)
    countSpilled(nbytes, heapStats().capacity)
    return -number
  }
  if (nbytes > 0 && nbytes < RECORDED_BYTES && !recordsAll()) return ptr * SHIFT + nbytes
  keepRecord(heapRecords, ptr, newRecord(nbytes, shape, dtype))
  return ptr * SHIFT
}

/** Gives a block memory, and sees to it that it is returned. `token`: the registration can be undone. */
function furnish(block: Block, shape: readonly number[] | null, dtype: string | null, token: Block | null): void {
  const { nbytes } = block
  pollFinalizers(nbytes)
  const ptr = budget.heap + nbytes <= budget.quick ? tryAllocate(nbytes) : 0
  if (ptr !== 0) block.ptr = ptr
  else place(block, shape, dtype)
  const { registry } = cleanup ?? startCleanup()
  const held = heldFor(block, shape, dtype)
  // A token, even an undefined one, makes this slower.
  if (token === null) registry.register(block, held)
  else registry.register(block, held, token)
}

/**
 * A new block of `nbytes` bytes, whose contents are undefined, for a tensor of that shape and dtype. Throws OutOfMemoryError if there is no memory, or can never be that much; dead
 * tensors are given back before, as far as the host can find them.
 */
export function newBlock(nbytes: number, shape: readonly number[] | null = null, dtype: string | null = null): Block {
  // Kernels could not read a larger block, on or off the heap.
  if (!isPossibleSize(nbytes)) throw new OutOfMemoryError(nbytes, useText(shape, dtype))
  const block = new Block(0, nbytes, null)
  furnish(block, shape, dtype, null)
  return block
}

function collectWhenWorthwhile(nbytes: number): void {
  const { inUse, softLimit } = heapStats()
  if (inUse + nbytes <= collectAbove) return
  collectBlocks()
  const freed = inUse - heapStats().inUse
  // A program that really uses this much memory gains nothing from a collection at every allocation.
  collectAbove = freed < softLimit / 4 ? heapStats().inUse + softLimit / 4 : 0
}

/** Frees the block's memory now. The block must not be used afterwards, unless {@link reviveBlock} gives it memory again. */
export function disposeBlock(block: Block): void {
  if (block.ptr !== 0) {
    const held = block.ptr * SHIFT + (heapRecords.has(block.ptr) ? 0 : block.nbytes)
    // A revived block is registered under itself; a new one is not, and its finalizer will come.
    if (cleanup?.registry.unregister(block) !== true) disposed.set(held, (disposed.get(held) ?? 0) + 1)
    dropRecord(heapRecords, block.ptr)
    free(block.ptr, block.nbytes)
  }
  if (block.spill !== null) endSpill(spillNumbers.get(block) ?? 0)
  block.ptr = 0
  block.spill = null
}

/** Gives a disposed block memory again, with undefined contents: tensors and views that were made before see the new memory. No effect on one that has memory. */
export function reviveBlock(block: Block): void {
  if (block.ptr === 0 && block.spill === null) furnish(block, null, null, block)
}

/** The data of a block that is not on the heap. Throws ArgumentError when the block has been disposed. */
export function spillOf(block: Block): ArrayBuffer {
  if (block.spill === null && block.nbytes > 0)
    throw new ArgumentError('this tensor has been disposed, so its data is gone; dispose() it later, or clone() what is still needed first.')
  return block.spill ?? new ArrayBuffer(0)
}

/** The block's bytes themselves. Any allocation may detach the view: get a new one afterwards. */
export const blockBytes = (block: Block): Uint8Array =>
  block.ptr === 0 ? new Uint8Array(spillOf(block)) : heapBytes().subarray(block.ptr, block.ptr + block.nbytes)

/** A copy of some of the block's bytes. */
export function readBlock(block: Block, start: number, end: number): Uint8Array {
  return block.ptr === 0 ? new Uint8Array(spillOf(block).slice(start, end)) : heapBytes().slice(block.ptr + start, block.ptr + end)
}

/** Copies bytes into the block. */
export function writeBlock(block: Block, start: number, bytes: Uint8Array): void {
  if (block.ptr === 0) new Uint8Array(spillOf(block)).set(bytes, start)
  else heapBytes().set(bytes, block.ptr + start)
}

/** The record of a block; undefined if it has none. */
export const recordOf = (block: Block): BlockRecord | undefined =>
  block.ptr === 0 ? spillRecords.get(spillNumbers.get(block) ?? 0) : heapRecords.get(block.ptr)
