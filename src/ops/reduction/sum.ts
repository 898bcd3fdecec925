// Sums and products over dimensions, and sumToSize, which undoes broadcasting.
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { sameShape, sizeEq, Tensor } from '../../tensor/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { div, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { eye, onesLike } from '../create/creation.ts'
import { sizeAt } from '../shared/shapes.ts'
import { permute } from '../view/permute.ts'
import { reshape, unsqueeze } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'

/** The dimensions of a reduction: one, several, or all (null, or an empty list). */
export type Dims = number | readonly number[] | null

export interface ReductionOptions {
  readonly dim?: Dims
  /** Whether reduced dimensions stay, with size 1. Default false. */
  readonly keepdim?: boolean
}

/** The options of a reduction that may compute in another dtype. */
export interface CastReductionOptions extends ReductionOptions {
  /** The dtype in which the values are combined, and of the result: they are cast first. */
  readonly dtype?: DType | null
}

/** What operators whose last argument is a dtype to compute in do first: they cast the first argument. */
export function castFirst(args: readonly Arg[]): readonly Arg[] {
  const dtype = args.at(-1)
  const [self, ...rest] = args
  return self instanceof Tensor && isDType(dtype) ? [to(self, dtype), ...rest.slice(0, -1), null] : args
}

/** The gradient of a reduction, spread over the reduced dimensions again. */
export function spread(grad: Tensor, like: Tensor, dim: Dims, keepdim: boolean): Tensor {
  return expand(withReducedDims(grad, like, dim, keepdim), like.symSizes)
}

/** A reduction's result (or gradient) with its reduced dimensions put back, with size 1. */
export function withReducedDims(value: Tensor, like: Tensor, dim: Dims, keepdim: boolean): Tensor {
  if (keepdim || like.ndim === 0) return value
  const list = dim === null ? [] : typeof dim === 'number' ? [dim] : dim
  const reduced = new Set(list.map((d) => (d < 0 ? d + like.ndim : d)))
  return reshape(
    value,
    like.symSizes.map((size, i) => (reduced.size === 0 || reduced.has(i) ? 1 : size)),
  )
}

/** The dtype of sums and products: int64 for integers and bools. */
export const summedType = (dtype: DType): DType => (dtypeInfo[dtype].differentiable ? dtype : 'int64')

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
export const sum: OpFunction<
  (self: Tensor, dim?: Dims | CastReductionOptions, keepdim?: boolean | CastReductionOptions, options?: CastReductionOptions) => Tensor
> = defineOp({
  schema: 'sum.dim_IntList(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  prepare: castFirst,
  reduction: { combine: 'add', dtype: summedType },
  derivative: ([g], { args: [self, dim, keepdim] }) => [spread(g, self, dim, keepdim), null, null, null],
})

/**
 * The product over `dim`, or over all dimensions; products of integers and bools are int64. PyTorch's `torch.prod`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.prod(torch.tensor([[1, 2], [3, 4]]), 1).toArray() // [2, 12]
 */
export const prod: OpFunction<
  (self: Tensor, dim?: Dims | CastReductionOptions, keepdim?: boolean | CastReductionOptions, options?: CastReductionOptions) => Tensor
> = defineOp({
  schema: 'prod(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  autocast: 'float32',
  prepare: castFirst,
  reduction: { combine: 'mul', dtype: summedType },
  derivative: ([g], { args: [self, dim, keepdim] }) => [prodBackward(g, self, dim, keepdim), null, null, null],
})

/** `self` with the reduced dimensions last, as one: [.., n]. */
function asLines(self: Tensor, reduced: readonly number[]): Tensor {
  const kept = self.symSizes.flatMap((_, d) => (reduced.includes(d) ? [] : [d]))
  return reshape(permute(self, [...kept, ...reduced]), [...kept.map((d) => sizeAt(self.symSizes, d)), -1])
}

/**
 * The gradient of prod: `grad` times the product of the other elements. Internal; PyTorch has no such operator.
 *
 * Shapes: `grad` has the shape of `prod(self, dim, keepdim)`; the result has the shape of `self`.
 *
 * @throws ShapeError if `grad` does not have the shape of the products.
 * @example torch.ops.tensorfx.prodBackward(torch.tensor(1), torch.tensor([2, 3, 0])).toArray() // [0, 0, 6]
 */
export const prodBackward: OpFunction<(grad: Tensor, self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'prod_backward(Tensor grad, Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  decompose: (grad, self, dim, keepdim) => {
    const whole = (value: Tensor): Tensor => spread(value, self, dim, keepdim)
    // With one zero in a line only that element has a product of others that is not 0; with two, none has.
    const isZero = eq(self, 0)
    const zeros = whole(sum(to(isZero, 'int32'), dim, keepdim))
    const filled = where(isZero, 1, self)
    const others = div(whole(prod(filled, dim, keepdim)), filled)
    return mul(whole(grad), where(eq(zeros, to(isZero, 'int32')), others, 0))
  },
  derivative: ([g], { args: [grad, self, dim, keepdim], needs }) => {
    const ones = onesLike(grad)
    const toGrad = needs[0] ? sum(mul(g, prodBackward(ones, self, dim, keepdim)), dim, keepdim) : null
    if (!needs[1]) return [toGrad, null, null, null]
    // Row i of the square is the line with element i replaced by 1, so that its product is that of the others, zeros or not.
    const dims = dim === null || dim.length === 0 ? self.sizes.map((_, d) => d) : dim.map((d) => (d < 0 ? d + self.ndim : d))
    const line = asLines(self, dims)
    const n = sizeAt(line.sizes, -1)
    const isOwn = to(eye(n), 'bool')
    const square = where(isOwn, 1, unsqueeze(line, -2))
    const weights = unsqueeze(asLines(mul(g, spread(grad, self, dim, keepdim)), dims), -1)
    const slopes = sum(where(isOwn, 0, prodBackward(weights, square, [-1], true)), -2)
    // Back to the order and the sizes of the dimensions of self.
    const order = [...self.sizes.flatMap((_, d) => (dims.includes(d) ? [] : [d])), ...dims]
    const moved = reshape(
      slopes,
      order.map((d) => sizeAt(self.sizes, d)),
    )
    return [
      toGrad,
      permute(
        moved,
        self.sizes.map((_, d) => order.indexOf(d)),
      ),
      null,
      null,
    ]
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
export const sumToSize: OpFunction<(self: Tensor, ...size: readonly (Size | readonly Size[])[]) => Tensor> = defineOp({
  schema: 'sum_to_size(Tensor self, SymInt[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, size) => {
    if (sameShape(self.symSizes, size)) return self
    const lead = self.ndim - size.length
    const dims = self.symSizes.flatMap((n, i) => (i < lead || (sizeEq(size[i - lead], 1) && !sizeEq(n, 1)) ? [i] : []))
    const summed = dims.length === 0 ? self : sum(self, dims, true)
    return sameShape(summed.symSizes, size) ? summed : reshape(summed, size)
  },
})
