// Where a kernel's scratch memory lies: one block, which the caller gives it as its last argument. Each part begins on a cache line.
import { dtypeInfo } from '../numbers/dtype.ts'
import type { Kernel, Scratch } from './loopIr.ts'
import { roundedUp, sizeProduct, sizeSum, sizeValue } from './sizes.ts'
import type { Size, SizeParam } from './sizes.ts'

const CACHE_LINE = 64

export interface ScratchLayout {
  /** The offset of each part in bytes from the block's first cache line. */
  readonly offsets: ReadonlyMap<Scratch, Size>
  /** The bytes of the block, which may begin between two cache lines; 0 if there is no part. */
  readonly bytes: Size
}

export function scratchLayout(parts: readonly Scratch[]): ScratchLayout {
  const offsets = new Map<Scratch, Size>()
  let bytes: Size = 0
  for (const part of parts) {
    offsets.set(part, bytes)
    bytes = sizeSum(bytes, roundedUp(sizeProduct(part.elements, dtypeInfo[part.dtype].size), CACHE_LINE))
  }
  return { offsets, bytes: parts.length === 0 ? 0 : sizeSum(bytes, CACHE_LINE) }
}

/** The bytes of scratch memory that a call of a kernel needs, with these values of its sizes. */
export const scratchBytes = (kernel: Pick<Kernel, 'scratch'>, of: (param: SizeParam) => number): number =>
  sizeValue(scratchLayout(kernel.scratch ?? []).bytes, of)
