// Blocks: the memory of tensor storages. Nobody has to free one: a FinalizationRegistry returns dead blocks to the heap.
//
// Finalizers do not run inside a synchronous loop. Past the heap's soft limit a new block therefore first asks Node for a collection and runs
// the finalizers at once, where that is possible; else it is an ordinary ArrayBuffer (spilled), which the collector frees even inside the loop,
// and kernels work on a copy of it.
import { ArgumentError } from '../errors/index.ts'
import { allocate, free, heapStats, heapU8, tryAllocate, withinSoftLimit } from './heap.ts'

export class Block {
  /** Byte address in the heap; 0 when spilled or disposed. */
  ptr: number
  readonly nbytes: number
  spill: ArrayBuffer | null

  constructor(ptr: number, nbytes: number, spill: ArrayBuffer | null) {
    this.ptr = ptr
    this.nbytes = nbytes
    this.spill = spill
  }
}

interface CleanupRegistry {
  register(target: object, held: number): void
  cleanupSome?(): void
}

/** Held values are one number: address and size packed (addresses are below 2^31, sizes too). */
const SHIFT = 2 ** 22
const sizes = new Map<number, number>()

/** Registrations of blocks that were disposed: their finalizers have nothing to do. (Unregistering would need a token, which doubles the cost of every block.) */
const disposed = new Map<number, number>()

function finalize(held: number): void {
  const idle = disposed.get(held)
  if (idle !== undefined) {
    if (idle === 1) disposed.delete(held)
    else disposed.set(held, idle - 1)
    return
  }
  // Sizes up to 4 MiB travel in the number itself; larger ones in the map.
  const address = Math.floor(held / SHIFT)
  let bytes = held % SHIFT
  if (bytes === 0) {
    bytes = sizes.get(address) as number
    sizes.delete(address)
  }
  free(address, bytes)
}

interface NodeCollector {
  readonly collect: () => void
  readonly Registry: new (cleanup: (held: number) => void) => CleanupRegistry
}

/** Node can collect and finalize synchronously; browsers cannot. */
function nodeCollector(): NodeCollector | null {
  const host = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } }
  const v8 = host.process?.getBuiltinModule?.('node:v8') as { setFlagsFromString(flag: string): void } | undefined
  const vm = host.process?.getBuiltinModule?.('node:vm') as { runInNewContext(code: string): unknown } | undefined
  if (v8 === undefined || vm === undefined) return null
  try {
    v8.setFlagsFromString('--expose-gc')
    v8.setFlagsFromString('--harmony-weak-refs-with-cleanup-some')
    const collect = vm.runInNewContext('gc') as (() => void) | undefined
    const Registry = vm.runInNewContext('FinalizationRegistry') as NodeCollector['Registry'] & { prototype: CleanupRegistry }
    return typeof collect === 'function' && typeof Registry.prototype.cleanupSome === 'function' ? { collect, Registry } : null
  } catch {
    return null
  }
}

const collector = nodeCollector()
const registry: CleanupRegistry = collector === null ? new FinalizationRegistry<number>(finalize) : new collector.Registry(finalize)

let synchronousCollection = collector !== null
/** Bytes in use above which a collection is asked for; rises when one frees little. */
let collectAbove = 0

/** Whether blocks past the soft limit may ask for a collection (Node). Off: they spill, as in browsers. Returns the former setting. */
export function setSynchronousCollection(on: boolean): boolean {
  const before = synchronousCollection
  synchronousCollection = on && collector !== null
  return before
}

/** Runs the collector and returns dead blocks to the heap now, where the host allows it. */
export function collectNow(): void {
  if (collector === null) return
  collector.collect()
  registry.cleanupSome?.()
}

const heldOf = (ptr: number, nbytes: number): number => ptr * SHIFT + (nbytes < SHIFT ? nbytes : 0)

/** Bytes handed out since dead blocks were last looked for. */
let unpolled = 0
const POLL_BYTES = 16 * 2 ** 20

/** A synchronous loop would write to ever new memory, past all caches, until the soft limit: what the collector has found dead on its own is taken back earlier. */
function pollFinalizers(nbytes: number): void {
  unpolled += nbytes
  if (unpolled < POLL_BYTES) return
  unpolled = 0
  if (synchronousCollection) registry.cleanupSome?.()
}

/** A block of that many bytes, not cleared. */
export function newBlock(nbytes: number): Block {
  pollFinalizers(nbytes)
  if (!withinSoftLimit(nbytes)) {
    if (synchronousCollection) collectWhenWorthwhile(nbytes)
    if (!withinSoftLimit(nbytes)) return new Block(0, nbytes, new ArrayBuffer(nbytes))
  }
  const ptr = tryAllocate(nbytes)
  if (ptr === 0) return new Block(0, nbytes, new ArrayBuffer(nbytes))
  const block = new Block(ptr, nbytes, null)
  const held = heldOf(ptr, nbytes)
  if (held % SHIFT === 0) sizes.set(ptr, nbytes)
  registry.register(block, held)
  return block
}

function collectWhenWorthwhile(nbytes: number): void {
  const { inUse, softLimit } = heapStats()
  if (inUse + nbytes <= collectAbove) return
  collectNow()
  const freed = inUse - heapStats().inUse
  // A program that really holds that much gains nothing from collecting at every allocation.
  collectAbove = freed < softLimit / 4 ? heapStats().inUse + softLimit / 4 : 0
}

/** Frees the block's memory now. Using it afterwards is the caller's error. */
export function disposeBlock(block: Block): void {
  if (block.ptr !== 0) {
    const held = heldOf(block.ptr, block.nbytes)
    disposed.set(held, (disposed.get(held) ?? 0) + 1)
    sizes.delete(block.ptr)
    free(block.ptr, block.nbytes)
  }
  block.ptr = 0
  block.spill = null
}

/**
 * Runs `kernel` with an address for each block: its own, or, for a spilled one, that of a temporary copy, which is copied back when `written`.
 * The same block gets one address.
 */
export function withPointers(blocks: readonly Block[], written: readonly boolean[], kernel: (pointers: readonly number[]) => void): void {
  const copies = new Map<Block, number>()
  const pointers = blocks.map((block) => {
    if (block.ptr !== 0) return block.ptr
    let copy = copies.get(block)
    if (copy === undefined) {
      if (block.spill === null && block.nbytes > 0)
        throw new ArgumentError(
          'the data of this tensor was given back with dispose(); keep the tensor, or clone() what is still needed, before disposing.',
        )
      copy = allocate(Math.max(block.nbytes, 1))
      copies.set(block, copy)
      if (block.spill !== null) heapU8().set(new Uint8Array(block.spill), copy)
    }
    return copy
  })
  try {
    kernel(pointers)
    blocks.forEach((block, i) => {
      const copy = copies.get(block)
      if (copy !== undefined && written[i] === true && block.spill !== null)
        new Uint8Array(block.spill).set(heapU8().subarray(copy, copy + block.nbytes))
    })
  } finally {
    for (const [block, copy] of copies) free(copy, Math.max(block.nbytes, 1))
  }
}

/** The block's bytes, copied out. */
export function readBlock(block: Block, start: number, end: number): Uint8Array {
  if (block.spill !== null) return new Uint8Array(block.spill.slice(start, end))
  return heapU8().slice(block.ptr + start, block.ptr + end)
}

/** Copies bytes into the block. */
export function writeBlock(block: Block, start: number, bytes: Uint8Array): void {
  if (block.spill !== null) new Uint8Array(block.spill).set(bytes, start)
  else heapU8().set(bytes, block.ptr + start)
}
