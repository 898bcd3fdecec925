// Sums and products over dimensions, and sumToSize, which undoes broadcasting.
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { div, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { reshape } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'

/** The dimensions of a reduction: one, several, or all (null, or an empty list). */
export type Dims = number | readonly number[] | null

export interface ReductionOptions {
  readonly dim?: Dims
  /** Whether reduced dimensions stay, with size 1. Default false. */
  readonly keepdim?: boolean
}

/** The gradient of a reduction, spread over the reduced dimensions again. */
export function spread(grad: Tensor, like: Tensor, dim: Dims, keepdim: boolean): Tensor {
  return expand(withReducedDims(grad, like, dim, keepdim), like.shape)
}

/** A reduction's result (or gradient) with its reduced dimensions put back, with size 1. */
export function withReducedDims(value: Tensor, like: Tensor, dim: Dims, keepdim: boolean): Tensor {
  if (keepdim || like.ndim === 0) return value
  const list = dim === null ? [] : typeof dim === 'number' ? [dim] : dim
  const reduced = new Set(list.map((d) => (d < 0 ? d + like.ndim : d)))
  return reshape(
    value,
    like.shape.map((size, i) => (reduced.size === 0 || reduced.has(i) ? 1 : size)),
  )
}

/** The dtype of sums and products: int64 for integers and bools. */
export const summedType = (dtype: DType): DType => (dtypeInfo[dtype].floating ? dtype : 'int64')

/**
 * The sum over `dim`, or over all dimensions; sums of integers and bools are int64. PyTorch's `torch.sum`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example
 * torch.sum(torch.tensor([[1, 2], [3, 4]])).item() // 10
 * torch.sum(torch.tensor([[1, 2], [3, 4]]), 0).toArray() // [4, 6]
 */
export const sum: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'sum.dim_IntList(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'add', dtype: summedType },
  derivative: ([g], { args: [self, dim, keepdim] }) => [spread(g, self, dim, keepdim), null, null],
})

/**
 * The product over `dim`, or over all dimensions; products of integers and bools are int64. PyTorch's `torch.prod`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.prod(torch.tensor([[1, 2], [3, 4]]), 1).toArray() // [2, 12]
 */
export const prod: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'prod(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'mul', dtype: summedType },
  derivative: ([g], { args: [self, dim, keepdim] }) => {
    const whole = (value: Tensor): Tensor => spread(value, self, dim, keepdim)
    // The gradient of an element is the product of the others. With one zero in a line only that element has any; with two, none has.
    const isZero = eq(self, 0)
    const zeros = whole(sum(to(isZero, 'int32'), dim, keepdim))
    const filled = where(isZero, 1, self)
    const others = div(whole(prod(filled, dim, keepdim)), filled)
    const reached = eq(zeros, to(isZero, 'int32'))
    return [mul(whole(g), where(reached, others, 0)), null, null]
  },
})

/**
 * Sums over the dimensions that broadcasting added or grew, so that the result has shape `size`. PyTorch's `Tensor.sum_to_size`.
 *
 * Shape: `size`, which must broadcast to the shape of `self`.
 *
 * @throws ShapeError if `self` cannot be summed to that shape.
 * @example torch.ones([2, 3]).sumToSize([1, 3]).toArray() // [[2, 2, 2]]
 */
export const sumToSize: OpFunction<(self: Tensor, size: readonly number[]) => Tensor> = defineOp({
  schema: 'sum_to_size(Tensor self, int[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, size) => {
    if (sameShape(self.shape, size)) return self
    const lead = self.ndim - size.length
    const dims = self.shape.flatMap((n, i) => (i < lead || (size[i - lead] === 1 && n !== 1) ? [i] : []))
    const summed = dims.length === 0 ? self : sum(self, dims, true)
    return sameShape(summed.shape, size) ? summed : reshape(summed, size)
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link sum} */
    sum(dim?: Dims | ReductionOptions, keepdim?: boolean): Tensor
    /** {@link prod} */
    prod(dim?: Dims | ReductionOptions, keepdim?: boolean): Tensor
    /** {@link sumToSize} */
    sumToSize(size: readonly number[]): Tensor
  }
}
