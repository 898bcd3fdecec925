// Means, variances and norms.
import type { Size } from '../../protocol/index.ts'
import { sizeMax, sizeMul, sizeNumber, sizeSub, scalarOf } from '../../tensor/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { call } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { checkAdmits } from '../eager/admittedTypes.ts'
import { accumulatedIn } from '../eager/promotion.ts'
import { abs, div, mul, pow, sign, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { sqrt, square } from '../pointwise/unary.ts'
import { sizeAt } from '../shared/shapes.ts'
import { amax, amin } from './extremes.ts'
import { castFirst, spread, sum } from './sum.ts'
import type { CastReductionOptions, Dims, ReductionOptions } from './sum.ts'

/** How many elements each result of a reduction combines. */
export function reducedCount(x: Tensor, dim: Dims): Size {
  const list = dim === null ? [] : typeof dim === 'number' ? [dim] : dim
  return list.length === 0 || x.ndim === 0 ? x.symNumel : list.reduce<Size>((n, d) => sizeMul(n, sizeAt(x.symSizes, d)), 1)
}

/**
 * The mean over `dim`, or over all dimensions. PyTorch's `torch.mean`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self`, or `dtype`, is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.mean(torch.tensor([[1, 2], [3, 4]]), 1).toArray() // [1.5, 3.5]
 */
export const mean: OpFunction<
  (self: Tensor, dim?: Dims | CastReductionOptions, keepdim?: boolean | CastReductionOptions, options?: CastReductionOptions) => Tensor
> = defineOp({
  schema: 'mean.dim(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  prepare: castFirst,
  reduction: { combine: 'add', dtypes: 'floating', dtype: (d) => d, finish: (acc, count) => call('div', acc, count) },
  derivative: ([g], { args: [self, dim, keepdim] }) => [div(spread(g, self, dim, keepdim), scalarOf(reducedCount(self, dim))), null, null, null],
})

/** Options of `torch.var`, {@link std} and related functions. */
export interface MomentOptions extends ReductionOptions {
  /** What is subtracted from the number of elements in the divisor. Default 1, the unbiased estimate. */
  readonly correction?: number | null
  /** PyTorch's older name: true is a correction of 1, false of 0. */
  readonly unbiased?: boolean | null
}

/** The correction that the options ask for. */
const corrected = (correction: number | null, unbiased: boolean | null): number => (unbiased === null ? (correction ?? 1) : Number(unbiased))

/** The divisor of a variance of `count` elements. Sizes are whole, so a correction that is not makes it a number. */
const divisorOf = (count: Size, correction: number): Size =>
  Number.isInteger(correction) ? sizeMax(0, sizeSub(count, correction)) : Math.max(0, sizeNumber(count) - correction)

/** `x.var(true)` is PyTorch's older `x.var(unbiased=True)`. */
function prepareMoments(args: readonly Arg[]): readonly Arg[] {
  const [self = null, dim, , ...rest] = args
  return typeof dim === 'boolean' ? [self, null, dim, ...rest] : args
}

const numberOf = (value: number | boolean | null): number | null => (value === null ? null : Number(value))

/** The dimensions that a moment is taken over. */
function dimsOf(op: string, dim: unknown): Dims {
  if (dim === null || typeof dim === 'number') return dim
  if (Array.isArray(dim) && dim.every((d): d is number => typeof d === 'number')) return dim
  throw new ArgumentError(`${op}: argument 'dim' must be a number, an array of integers or null, got ${valueText(dim)}.`)
}

/** The arguments of var, std and their pairs with the mean, in PyTorch's several orders. */
type MomentOf<R> = (
  self: Tensor,
  dim?: Dims | boolean | MomentOptions,
  unbiased?: boolean | null | MomentOptions,
  keepdim?: boolean,
  options?: MomentOptions,
) => R

/**
 * The variance over `dim`, or over all dimensions; `correction` 1 (the default) divides by n - 1. PyTorch's `torch.var`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example
 * torch.var(torch.tensor([1, 2, 3, 4])).item() // 1.66667
 * torch.var(torch.tensor([[1, 3], [2, 6]]), 1, { correction: 0 }).toArray() // [1, 4]
 */
export const variance: OpFunction<MomentOf<Tensor>> = defineOp({
  schema: 'var.correction(Tensor self, any? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar? correction=None) -> Tensor',
  method: true,
  prepare: prepareMoments,
  decompose: (self, given, unbiased, keepdim, correction) => {
    checkAdmits('torch.var', 'floating', self.dtype)
    const dim = dimsOf('torch.var', given)
    const x = to(self, accumulatedIn(self.dtype))
    const centered = sub(x, mean(x, dim, true))
    return to(
      div(sum(square(centered), dim, keepdim), scalarOf(divisorOf(reducedCount(self, dim), corrected(numberOf(correction), unbiased)))),
      self.dtype,
    )
  },
})

/**
 * The standard deviation over `dim`, or over all dimensions; `correction` 1 (the default) divides by n - 1. PyTorch's `torch.std`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.std(torch.tensor([[1, 3], [2, 6]]), 1, { correction: 0 }).toArray() // [1, 2]
 */
export const std: OpFunction<MomentOf<Tensor>> = defineOp({
  schema: 'std.correction(Tensor self, any? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar? correction=None) -> Tensor',
  method: true,
  prepare: prepareMoments,
  decompose: (self, dim, unbiased, keepdim, correction) =>
    sqrt(variance(self, dimsOf('torch.std', dim), { unbiased, keepdim, correction: numberOf(correction) })),
})

/**
 * The variance and the mean: [variance, mean]. PyTorch's `torch.var_mean`.
 *
 * Shapes: both have the shape of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.varMean(torch.tensor([1, 2, 3])).map((t) => t.item()) // [1, 2]
 */
export const varMean: OpFunction<MomentOf<readonly Tensor[]>> = defineOp({
  schema: 'var_mean.correction(Tensor self, any? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar? correction=None) -> (Tensor, Tensor)',
  prepare: prepareMoments,
  decompose: (self, given, unbiased, keepdim, correction) => {
    const dim = dimsOf('torch.var_mean', given)
    return [variance(self, dim, { unbiased, keepdim, correction: numberOf(correction) }), mean(self, dim, keepdim)]
  },
})

/**
 * The standard deviation and the mean: [std, mean]. PyTorch's `torch.std_mean`.
 *
 * Shapes: both have the shape of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.stdMean(torch.tensor([1, 3, 5])).map((t) => t.item()) // [2, 3]
 */
export const stdMean: OpFunction<MomentOf<readonly Tensor[]>> = defineOp({
  schema: 'std_mean.correction(Tensor self, any? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar? correction=None) -> (Tensor, Tensor)',
  prepare: prepareMoments,
  decompose: (self, given, unbiased, keepdim, correction) => {
    const dim = dimsOf('torch.std_mean', given)
    return [std(self, dim, { unbiased, keepdim, correction: numberOf(correction) }), mean(self, dim, keepdim)]
  },
})

/** `fn` of the elements that are not 0; at 0, where the slope of `fn` is infinite, 0 with the gradient 0. */
function whereNot0(x: Tensor, fn: (x: Tensor) => Tensor): Tensor {
  const isZero = eq(x, 0)
  return where(isZero, 0, fn(where(isZero, 1, x)))
}

function normOf(x: Tensor, p: number, dim: Dims, keepdim: boolean): Tensor {
  if (p === 2) return whereNot0(sum(mul(x, x), dim, keepdim), sqrt)
  if (p === 1) return sum(abs(x), dim, keepdim)
  // The sign of 0 is 0, with the gradient 0 that PyTorch gives.
  if (p === 0) return sum(where(eq(x, 0), sign(x), 1), dim, keepdim)
  if (p === Infinity) return amax(abs(x), dim, keepdim)
  if (p === -Infinity) return amin(abs(x), dim, keepdim)
  const powers = p > 0 && p < 1 ? whereNot0(abs(x), (a) => pow(a, p)) : pow(abs(x), p)
  return whereNot0(sum(powers, dim, keepdim), (s) => pow(s, 1 / p))
}

/** The p-norm of `self`, which `op` computes in a dtype that holds the sum. */
export function pNorm(op: string, self: Tensor, p: number, dim: Dims, keepdim: boolean): Tensor {
  checkAdmits(op, 'floating', self.dtype)
  return to(normOf(to(self, accumulatedIn(self.dtype)), p, dim, keepdim), self.dtype)
}
