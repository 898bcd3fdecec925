// Sums and products over dimensions, and sumToSize, which undoes broadcasting.
import type { DType } from '../../kernels/index.ts'
import { sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { div, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { expand, reshape } from '../view/index.ts'

type Dims = number | readonly number[] | null
export interface ReductionOptions {
  readonly dim?: Dims
  readonly keepdim?: boolean
}

/** The gradient of a reduction, spread over the reduced dimensions again. */
export function spread(grad: Tensor, like: Tensor, dim: Dims, keepdim: boolean): Tensor {
  return expand(withReducedDims(grad, like, dim, keepdim), like.shape)
}

/** A reduction's result (or gradient) with its reduced dimensions of size 1 put back. */
export function withReducedDims(value: Tensor, like: Tensor, dim: Dims, keepdim: boolean): Tensor {
  if (keepdim || like.ndim === 0) return value
  const list = dim === null ? [] : typeof dim === 'number' ? [dim] : dim
  const reduced = new Set(list.map((d) => (d < 0 ? d + like.ndim : d)))
  return reshape(
    value,
    like.shape.map((size, i) => (reduced.size === 0 || reduced.has(i) ? 1 : size)),
  )
}

const accumulated = (dtype: DType): DType => (dtype === 'bool' ? 'int32' : dtype)

/** Sum over `dim` (all dimensions by default); of bools in int32. PyTorch's `torch.sum`. */
export const sum: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'sum.dim_IntList(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'add', dtype: accumulated },
  derivative: ([g], { args: [x, dim, keepdim] }) => [spread(g as Tensor, x as Tensor, dim as Dims, keepdim as boolean), null, null],
})

/** Product over `dim`. PyTorch's `torch.prod`. */
export const prod: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'prod(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'mul', dtype: accumulated },
  derivative: ([g], { args: [x, dim, keepdim] }) => {
    const self = x as Tensor
    const whole = (value: Tensor): Tensor => spread(value, self, dim as Dims, keepdim as boolean)
    // The product of the others: with one zero in a line, only that element has any; with two, none.
    const isZero = eq(self, 0)
    const zeros = whole(sum(to(isZero, 'int32'), dim as Dims, keepdim as boolean))
    const filled = where(isZero, 1, self)
    const others = div(whole(prod(filled, dim as Dims, keepdim as boolean)), filled)
    const reached = eq(zeros, to(isZero, 'int32'))
    return [mul(whole(g as Tensor), where(reached, others, 0)), null, null]
  },
})

/** Sums over the dimensions that were broadcast, so that the result has `size`. PyTorch's `Tensor.sum_to_size`. */
export const sumToSize: OpFunction<(self: Tensor, size: readonly number[]) => Tensor> = defineOp({
  schema: 'sum_to_size(Tensor self, int[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self: Tensor, size: readonly number[]): Tensor => {
    if (sameShape(self.shape, size)) return self
    const lead = self.ndim - size.length
    const dims = self.shape.flatMap((n, i) => (i < lead || (size[i - lead] === 1 && n !== 1) ? [i] : []))
    const summed = dims.length === 0 ? self : sum(self, dims, true)
    return sameShape(summed.shape, size) ? summed : reshape(summed, size)
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    sum(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    prod(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    sumToSize(size: readonly number[]): Tensor
  }
}
