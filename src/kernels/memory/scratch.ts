// Memory on the heap for something else than tensors: what kernels need beside their operands.
import { beyondLimit, budget, countUse, reclaimables } from './budget.ts'
import type { Reclaimable } from './budget.ts'
import { free, tryAllocate } from './heap.ts'
import { OutOfMemoryError } from './outOfMemory.ts'
import { affordable, reclaim } from './storageBlock.ts'

/** Scratch memory is at least that large. */
export const SMALLEST_SCRATCH = 65536

/** Allocates at least `bytes` bytes, 16-byte aligned. Throws OutOfMemoryError, which names the `use`, when the limit or the end of the heap is reached. */
export function allocate(bytes: number, use?: string): number {
  let address = affordable(bytes) ? tryAllocate(bytes) : 0
  if (address === 0) {
    // Scratch memory may be in use: only dead tensors give theirs back.
    reclaim(false)
    // The heap grows if its free parts are too small.
    if (budget.overdrafts > 0 || affordable(bytes)) address = beyondLimit(() => tryAllocate(bytes))
  }
  if (address === 0) throw new OutOfMemoryError(bytes, use)
  return address
}

/** Memory that kernels use as they please: it grows to the largest size requested, and its contents are kept only until the next request. */
export class ScratchMemory implements Reclaimable {
  #address = 0
  #size = 0
  readonly #use: string
  readonly #isIdle: () => boolean

  /** `use` is what it is for, in the message of OutOfMemoryError. `isIdle` says whether it may be given back when memory runs out, while a tensor is made. */
  constructor(use: string = 'scratch memory', isIdle: () => boolean = () => true) {
    this.#use = use
    this.#isIdle = isIdle
    reclaimables.push(this)
  }

  /** Its size; 0 before the first request. */
  get bytes(): number {
    return this.#size
  }

  /** Where it is; 0 before the first request. */
  get address(): number {
    return this.#address
  }

  /** The address of at least `bytes` bytes. Throws OutOfMemoryError when the heap is full; nothing is reserved then. */
  reserve(bytes: number): number {
    if (bytes > this.#size) {
      this.release()
      const size = Math.max(bytes, SMALLEST_SCRATCH)
      this.#address = allocate(size, this.#use)
      this.#size = size
      countUse(this.#use, size)
    }
    return this.#address
  }

  reclaim(): void {
    if (this.#isIdle()) this.release()
  }

  /** Frees it. The next request allocates again. */
  release(): void {
    if (this.#size === 0) return
    free(this.#address, this.#size)
    countUse(this.#use, -this.#size)
    this.#size = 0
    this.#address = 0
  }
}
