// Copies of spilled blocks on the heap, for kernels.
import { countUse } from './budget.ts'
import { free, heapBytes } from './heap.ts'
import { allocate } from './scratch.ts'
import { spillOf } from './storageBlock.ts'
import type { Block } from './storageBlock.ts'

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
