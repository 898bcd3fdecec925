// Questions about layouts that more than one file asks.
import { checkArray } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { sameShape, sizeAtMost, sizeEq } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** Whether each element of a layout has a place of its own. (False for some odd layouts where it has.) */
export function isApart(shape: readonly Size[], strides: readonly Size[]): boolean {
  checkArray('isApart', 'shape', shape)
  checkArray('isApart', 'strides', strides)
  const dims = shape.map((size, i) => [Number(size), Math.abs(Number(strides[i] ?? 0))] as const).filter(([size]) => size > 1)
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
export const sameStrides = (a: Tensor, b: Tensor): boolean =>
  a.symSizes.every((size, i) => sizeAtMost(size, 1) || sizeEq(a.symSteps[i], b.symSteps[i]))

/** Where a tensor lies in its memory, in numbers or symbols. */
export interface TensorLayout {
  readonly sizes: readonly Size[]
  readonly steps: readonly Size[]
  readonly offset: Size
}

export const layoutOf = (tensor: Tensor): TensorLayout => ({ sizes: tensor.symSizes, steps: tensor.symSteps, offset: tensor.symOffset })

export const sameLayout = (a: TensorLayout, b: TensorLayout): boolean =>
  sameShape(a.sizes, b.sizes) && sameShape(a.steps, b.steps) && sizeEq(a.offset, b.offset)
