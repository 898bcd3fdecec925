// Elements that are NaN or infinite.
import { dtypeInfo } from '../../kernels/index.ts'
import { exactElements, storedElements, tensorFromBytes } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** The two kinds of elements that a computation should not have. */
export type BadKind = 'nan' | 'infinite'

/** The first bad elements of a tensor: their places in row-major order. */
export interface Badness {
  readonly nan: number | null
  readonly infinite: number | null
  /** Whether the infinity is positive. */
  readonly isPositive: boolean
}

const NONE: Badness = { nan: null, infinite: null, isPositive: true }

/** Looks for bad elements. Fake tensors, and those that a compiled function has not computed yet, are not looked at: that would compute them. */
export function badnessOf(tensor: Tensor): Badness {
  if (!dtypeInfo[tensor.dtype].floating || tensor.storage === null || tensor.storage.writer !== null) return NONE
  const elements = dtypeInfo[tensor.dtype].size === 2 ? exactElements(tensor) : storedElements(tensor)
  let nan: number | null = null
  let infinite: number | null = null
  for (let i = 0; i < elements.length; i++) {
    const element = Number(elements[i])
    // A finite number minus itself is 0; NaN and infinities give NaN.
    if (element - element === 0) continue
    if (Number.isNaN(element)) nan ??= i
    else infinite ??= i
    if (nan !== null && infinite !== null) break
  }
  return nan === null && infinite === null ? NONE : { nan, infinite, isPositive: infinite !== null && Number(elements[infinite]) > 0 }
}

export const isBad = ({ nan, infinite }: Badness): boolean => nan !== null || infinite !== null

/** The bad elements of a tensor with the layout of `like` on other bytes. */
export const badnessOfBytes = (like: Tensor, bytes: Uint8Array): Badness => badnessOf(onBytes(like, bytes))

/** A tensor with the layout of `like` on a copy of other bytes: those of its whole storage. */
export function onBytes(like: Tensor, bytes: Uint8Array): Tensor {
  return tensorFromBytes(bytes.slice(like.offset * dtypeInfo[like.dtype].size), like.shape, like.dtype, like.strides)
}

/** The index of the element at a place in row-major order. */
export function indexOf(shape: readonly number[], place: number): readonly number[] {
  let rest = place
  return shape
    .toReversed()
    .map((size) => {
      const index = rest % size
      rest = Math.floor(rest / size)
      return index
    })
    .toReversed()
}

/** The element at an index. */
export function elementAt(tensor: Tensor, index: readonly number[]): number {
  const place = index.reduce((at, i, d) => at * (tensor.shape[d] ?? 1) + i, 0)
  return Number(exactElements(tensor)[place])
}

/** The largest magnitude among the finite elements; 0 if there are none. */
export function largestOf(tensor: Tensor): number {
  const elements = exactElements(tensor)
  let largest = 0
  for (let i = 0; i < elements.length; i++) {
    const element = Math.abs(Number(elements[i]))
    if (element > largest && element !== Infinity) largest = element
  }
  return largest
}
