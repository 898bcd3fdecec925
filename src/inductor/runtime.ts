// What compiled programs use while they run: addresses of tensors, the arena of their temporaries, and copies for data that is off the heap.
import { Block, allocate, dtypeInfo, free, heapU8 } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { Storage, Tensor } from '../tensor/index.ts'

let base = 0
let size = 0

/** The arena, at least that large: one for all programs, since none of them leaves values in it between calls. */
export const arena: ((bytes: number) => number) & {
  tensor(address: number, shape: readonly number[], dtype: DType, strides: readonly number[], offset: number): Tensor
} = Object.assign(
  (bytes: number): number => {
    if (bytes > size) {
      if (base !== 0) free(base, size)
      size = Math.max(bytes, 65536)
      base = allocate(size)
    }
    return base
  },
  {
    /** A tensor over a temporary, for an eager kernel; it must not outlive the call. */
    tensor: (address: number, shape: readonly number[], dtype: DType, strides: readonly number[], offset: number): Tensor =>
      new Tensor(shape, dtype, new Storage(new Block(address, 0, null), 0), strides, offset),
  },
)

/** Copies of spilled blocks for the time of one call. */
export class Staging {
  readonly #copies = new Map<Block, number>()
  readonly #written = new Set<Block>()

  address(block: Block): number {
    let copy = this.#copies.get(block)
    if (copy === undefined) {
      copy = allocate(Math.max(block.nbytes, 1))
      this.#copies.set(block, copy)
      if (block.spill !== null) heapU8().set(new Uint8Array(block.spill), copy)
    }
    return copy
  }

  /** The program writes to this tensor: what is written to a copy is copied back. */
  written(tensor: Tensor): void {
    const { block } = tensor.realize()
    if (block.ptr === 0) this.#written.add(block)
  }

  finish(): void {
    for (const [block, copy] of this.#copies) {
      if (this.#written.has(block) && block.spill !== null) new Uint8Array(block.spill).set(heapU8().subarray(copy, copy + block.nbytes))
      free(copy, Math.max(block.nbytes, 1))
    }
    this.#copies.clear()
  }
}

/** Byte address of a tensor's first element. */
export function addressOf(tensor: Tensor, staging: Staging): number {
  const { block } = tensor.storage ?? tensor.realize()
  return (block.ptr === 0 ? staging.address(block) : block.ptr) + tensor.offset * dtypeInfo[tensor.dtype].size
}
