// Questions about layouts that more than one file asks.
import { checkArray } from '../protocol/index.ts'
import { sameShape } from '../tensor/index.ts'
import type { Layout, Tensor } from '../tensor/index.ts'

/** Whether each element of a layout has a place of its own. (False for some odd layouts where it has.) */
export function isApart(shape: readonly number[], strides: readonly number[]): boolean {
  checkArray('isApart', 'shape', shape)
  checkArray('isApart', 'strides', strides)
  const dims = shape.map((size, i) => [size, Math.abs(strides[i] ?? 0)] as const).filter(([size]) => size > 1)
  let reach = 0
  return dims
    .toSorted(([, a], [, b]) => a - b)
    .every(([size, stride]) => {
      if (stride <= reach) return false
      reach += (size - 1) * stride
      return true
    })
}

/** Whether two tensors of one shape have the same strides, where these matter. */
export const sameStrides = (a: Tensor, b: Tensor): boolean => a.shape.every((size, i) => size <= 1 || a.strides[i] === b.strides[i])

export const layoutOf = ({ sizes, steps, offset }: Layout): Layout => ({ sizes, steps, offset })

export const sameLayout = (a: Layout, b: Layout): boolean => sameShape(a.sizes, b.sizes) && sameShape(a.steps, b.steps) && a.offset === b.offset
