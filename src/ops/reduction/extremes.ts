// Greatest and least values over dimensions: amax, amin, any, all, max, min.
import { ArgumentError } from '../../errors/index.ts'
import { sizeEq, Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { div, maximum, minimum, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, ne } from '../pointwise/comparison.ts'
import { gather } from '../view/indexing.ts'
import { squeeze, unsqueeze } from '../view/reshape.ts'
import { argmax, argmin } from './argExtremes.ts'
import { sum, withReducedDims } from './sum.ts'
import type { Dims, ReductionOptions } from './sum.ts'

/** The gradient of amax and amin: equal extremes share it evenly. */
function extremeGradient(g: Tensor, x: Tensor, out: Tensor, dim: Dims, keepdim: boolean): Tensor {
  const hits = to(eq(x, withReducedDims(out, x, dim, keepdim)), g.dtype)
  return mul(div(hits, sum(hits, dim, true)), withReducedDims(g, x, dim, keepdim))
}

/**
 * The greatest value over `dim`, or over all dimensions. PyTorch's `torch.amax`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @throws ArgumentError if there are no elements to compare.
 * @example torch.amax(torch.tensor([[1, 5], [7, 2]]), 1).toArray() // [5, 7]
 */
export const amax: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'amax(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'max', dtype: (d) => d },
  derivative: ([g], { args: [x, dim, keepdim], outputs: [out] }) => [extremeGradient(g, x, out, dim, keepdim), null, null],
})

/**
 * The least value over `dim`, or over all dimensions. PyTorch's `torch.amin`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @throws ArgumentError if there are no elements to compare.
 * @example torch.amin(torch.tensor([[1, 5], [7, 2]]), 1).toArray() // [1, 2]
 */
export const amin: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'min', dtype: (d) => d },
  derivative: ([g], { args: [x, dim, keepdim], outputs: [out] }) => [extremeGradient(g, x, out, dim, keepdim), null, null],
})

/**
 * Whether any element over `dim` is non-zero; false where there are none. PyTorch's `torch.any`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1. The result is bool.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.any(torch.tensor([[0, 0], [0, 3]]), 1).toArray() // [false, true]
 */
export const any: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self, dim, keepdim) =>
    sizeEq(self.symNumel, 0) ? ne(sum(self, dim, keepdim), 0) : to(amax(to(to(self, 'bool'), 'int32'), dim, keepdim), 'bool'),
})

/**
 * Whether all elements over `dim` are non-zero; true where there are none. PyTorch's `torch.all`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1. The result is bool.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.all(torch.tensor([[1, 2], [0, 3]]), 1).toArray() // [true, false]
 */
export const all: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self, dim, keepdim) =>
    sizeEq(self.symNumel, 0) ? eq(sum(self, dim, keepdim), 0) : to(amin(to(to(self, 'bool'), 'int32'), dim, keepdim), 'bool'),
})

type Extreme = {
  (self: Tensor): Tensor
  (self: Tensor, other: Tensor): Tensor
  (self: Tensor, dim: number | { readonly dim: number; readonly keepdim?: boolean }, keepdim?: boolean): readonly Tensor[]
}

function checkDim(op: string, dim: unknown): number {
  if (typeof dim === 'number' && Number.isInteger(dim)) return dim
  throw new ArgumentError(`${op}: argument 'dim' must be an integer, or a Tensor to compare with, got ${typeof dim}.`)
}

/** The pair of values and indices along one dimension. */
function valuesAndIndices(self: Tensor, dim: number, keepdim: boolean, indices: Tensor): readonly Tensor[] {
  const full = keepdim || self.ndim === 0 ? indices : unsqueeze(indices, dim)
  const values = self.ndim === 0 ? self : gather(self, dim, full)
  return [keepdim || self.ndim === 0 ? values : squeeze(values, dim), indices]
}

/**
 * The greatest of all values; with `dim`, [values, indices] along it; with another tensor, the elementwise maximum. PyTorch's `torch.max`.
 *
 * Shapes: a scalar; or twice the shape of `self` without `dim`; or the broadcast shape.
 *
 * @throws ArgumentError if `dim` is neither an integer nor a Tensor, or if there are no elements.
 * @throws ShapeError if `dim` is out of range, or the shapes do not broadcast.
 * @example
 * torch.max(torch.tensor([1, 5, 2])).item() // 5
 * torch.max(torch.tensor([[1, 5], [7, 2]]), 1).map((t) => t.toArray()) // [[5, 7], [1, 0]]
 */
export const max: OpFunction<Extreme> = defineOp({
  schema: 'max(Tensor self, any dim=None, bool keepdim=False) -> any',
  method: true,
  decompose: (self, dim, keepdim) => {
    if (dim === null) return amax(self)
    if (dim instanceof Tensor) return maximum(self, dim)
    const at = checkDim('torch.max', dim)
    return valuesAndIndices(self, at, keepdim, argmax(self, at, keepdim))
  },
})

/**
 * The least of all values; with `dim`, [values, indices] along it; with another tensor, the elementwise minimum. PyTorch's `torch.min`.
 *
 * Shapes: a scalar; or twice the shape of `self` without `dim`; or the broadcast shape.
 *
 * @throws ArgumentError if `dim` is neither an integer nor a Tensor, or if there are no elements.
 * @throws ShapeError if `dim` is out of range, or the shapes do not broadcast.
 * @example
 * torch.min(torch.tensor([1, 5, 2])).item() // 1
 * torch.min(torch.tensor([3, 4]), torch.tensor([1, 9])).toArray() // [1, 4]
 */
export const min: OpFunction<Extreme> = defineOp({
  schema: 'min(Tensor self, any dim=None, bool keepdim=False) -> any',
  method: true,
  decompose: (self, dim, keepdim) => {
    if (dim === null) return amin(self)
    if (dim instanceof Tensor) return minimum(self, dim)
    const at = checkDim('torch.min', dim)
    return valuesAndIndices(self, at, keepdim, argmin(self, at, keepdim))
  },
})
