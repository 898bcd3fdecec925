// Blocks: the memory of tensor storages. Users need not free them: a FinalizationRegistry returns dead blocks to the heap.
//
// Finalizers do not run inside a synchronous loop. Past the heap's soft limit a new block therefore first asks Node for a collection and runs
// the finalizers at once, where that is possible; otherwise it is an ordinary ArrayBuffer (spilled), which the collector frees even inside the
// loop, and kernels work on a copy of it.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { OutOfMemoryError, allocate, countUse, free, heapBytes, heapGuard, heapStats, isPossibleSize, tryAllocate, withinSoftLimit } from './heap.ts'

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

interface CleanupRegistry {
  register(target: object, held: number, token?: object): void
  unregister(token: object): boolean
  cleanupSome?(): void
}

/** The registry holds one number per block: its address and, below 4 MiB, its size. (Addresses are below 2^31.) */
const SHIFT = 2 ** 22
/** The sizes of larger blocks, by address. */
const sizes = new Map<number, number>()

/** How many registrations belong to disposed blocks; their finalizers must not free again. (Unregistering needs a token, which doubles the cost of a block.) */
const disposed = new Map<number, number>()

function finalize(held: number): void {
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
  const bytes = sizes.get(address)
  if (bytes === undefined) throw new InternalError(`the block at address ${address} has no known size`)
  sizes.delete(address)
  free(address, bytes)
}

interface NodeCollector {
  readonly collect: () => void
  readonly Registry: { new (cleanup: (held: number) => void): CleanupRegistry; readonly prototype: CleanupRegistry }
}

/**
 * Node can run the collector and finalizers synchronously; browsers cannot. The flags of V8 that this takes are set only while a context is made that has the
 * functions, and are then as before.
 */
function nodeCollector(): NodeCollector | null {
  const host = 'process' in globalThis ? globalThis.process : null
  const v8 = host?.getBuiltinModule?.('node:v8')
  const vm = host?.getBuiltinModule?.('node:vm')
  if (v8 === undefined || vm === undefined) return null
  try {
    // A program that was started with one of the flags keeps it.
    const [hadCollect, hadCleanup]: readonly [boolean, boolean] = vm.runInNewContext(
      `[typeof gc === 'function', typeof FinalizationRegistry.prototype.cleanupSome === 'function']`,
    )
    try {
      if (!hadCollect) v8.setFlagsFromString('--expose-gc')
      if (!hadCleanup) v8.setFlagsFromString('--harmony-weak-refs-with-cleanup-some')
      const [collect, Registry]: readonly [NodeCollector['collect'] | undefined, NodeCollector['Registry']] = vm.runInNewContext(
        '[globalThis.gc, FinalizationRegistry]',
      )
      return typeof collect === 'function' && typeof Registry.prototype.cleanupSome === 'function' ? { collect, Registry } : null
    } finally {
      if (!hadCollect) v8.setFlagsFromString('--no-expose-gc')
      if (!hadCleanup) v8.setFlagsFromString('--no-harmony-weak-refs-with-cleanup-some')
    }
  } catch {
    return null
  }
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

const heldOf = (ptr: number, nbytes: number): number => ptr * SHIFT + (nbytes < SHIFT ? nbytes : 0)

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

/** Memory outside the heap. */
function newSpill(nbytes: number): Block {
  heapGuard()?.spill(nbytes)
  try {
    return new Block(0, nbytes, new ArrayBuffer(nbytes))
  } catch (error) {
    if (error instanceof RangeError) throw new OutOfMemoryError(nbytes)
    throw error
  }
}

/** A new block of `nbytes` bytes. Its contents are undefined. Throws OutOfMemoryError if there is no memory, or can never be that much. */
export function newBlock(nbytes: number): Block {
  // Kernels could not read a larger block, on or off the heap.
  if (!isPossibleSize(nbytes)) throw new OutOfMemoryError(nbytes)
  pollFinalizers(nbytes)
  if (!withinSoftLimit(nbytes)) {
    if (synchronousCollection) collectWhenWorthwhile(nbytes)
    if (!withinSoftLimit(nbytes)) return newSpill(nbytes)
  }
  const ptr = tryAllocate(nbytes)
  if (ptr === 0) return newSpill(nbytes)
  const block = new Block(ptr, nbytes, null)
  const held = heldOf(ptr, nbytes)
  if (nbytes === 0 || nbytes >= SHIFT) sizes.set(ptr, nbytes)
  ;(cleanup ?? startCleanup()).registry.register(block, held)
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
    const held = heldOf(block.ptr, block.nbytes)
    // A revived block is registered under itself; a new one is not, and its finalizer will come.
    if (cleanup?.registry.unregister(block) !== true) disposed.set(held, (disposed.get(held) ?? 0) + 1)
    sizes.delete(block.ptr)
    free(block.ptr, block.nbytes)
  }
  block.ptr = 0
  block.spill = null
}

/** Gives a disposed block memory again, with undefined contents: tensors and views that were made before see the new memory. No effect on one that has memory. */
export function reviveBlock(block: Block): void {
  if (block.ptr !== 0 || block.spill !== null) return
  pollFinalizers(block.nbytes)
  block.ptr = withinSoftLimit(block.nbytes) ? tryAllocate(block.nbytes) : 0
  if (block.ptr === 0) {
    block.spill = newSpill(block.nbytes).spill
    return
  }
  const held = heldOf(block.ptr, block.nbytes)
  if (block.nbytes === 0 || block.nbytes >= SHIFT) sizes.set(block.ptr, block.nbytes)
  ;(cleanup ?? startCleanup()).registry.register(block, held, block)
}

/** The data of a block that is not on the heap. Throws ArgumentError when the block has been disposed. */
export function spillOf(block: Block): ArrayBuffer {
  if (block.spill === null && block.nbytes > 0)
    throw new ArgumentError('this tensor has been disposed, so its data is gone; dispose() it later, or clone() what is still needed first.')
  return block.spill ?? new ArrayBuffer(0)
}

/** What copies of spilled blocks are called in messages. */
const COPIES = 'copies of tensors outside the heap'

/** Gives kernels the addresses of blocks. A spilled block is copied to the heap; the copy lives until {@link BlockCopies.finish}. */
export class BlockCopies {
  // Spilled blocks are rare: most calls need no collections.
  #copies: Map<Block, number> | null = null
  #written: Set<Block> | null = null

  /** The address of a block's data. Throws ArgumentError when the block has been disposed. */
  address(block: Block): number {
    if (block.ptr !== 0) return block.ptr
    this.#copies ??= new Map()
    let copy = this.#copies.get(block)
    if (copy === undefined) {
      const spill = spillOf(block)
      copy = allocate(Math.max(block.nbytes, 1), COPIES)
      this.#copies.set(block, copy)
      countUse(COPIES, block.nbytes)
      heapBytes().set(new Uint8Array(spill), copy)
    }
    return copy
  }

  /** Declares that the kernel writes to this block, so a copy must be copied back. */
  written(block: Block): void {
    if (block.ptr !== 0) return
    this.#written ??= new Set()
    this.#written.add(block)
  }

  /** Copies back what has been written so far, and keeps the copies. */
  writeBack(): void {
    if (this.#written === null) return
    for (const block of this.#written) {
      const copy = this.#copies?.get(block)
      if (copy !== undefined) new Uint8Array(spillOf(block)).set(heapBytes().subarray(copy, copy + block.nbytes))
    }
  }

  /** Copies back what was written and frees the copies. */
  finish(): void {
    this.writeBack()
    this.discard()
  }

  /** Frees the copies without copying back. */
  discard(): void {
    this.#written = null
    if (this.#copies === null) return
    for (const [block, copy] of this.#copies) {
      free(copy, Math.max(block.nbytes, 1))
      countUse(COPIES, -block.nbytes)
    }
    this.#copies = null
  }
}

/** Runs `kernel` with the address of each block (see {@link BlockCopies}). `written` says which blocks the kernel writes to. */
export function withPointers(blocks: readonly Block[], written: readonly boolean[], kernel: (pointers: readonly number[]) => void): void {
  const copies = new BlockCopies()
  try {
    const pointers = blocks.map((block) => copies.address(block))
    kernel(pointers)
    blocks.forEach((block, i) => {
      if (written[i] === true) copies.written(block)
    })
    copies.finish()
  } finally {
    copies.discard()
  }
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
