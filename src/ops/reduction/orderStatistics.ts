// Values by their rank along a dimension: kthvalue, median, mode, quantiles; sums and means without NaN.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor, sizeEq, sizeFloorDiv, sizeLess, sizeSub, scalarOf } from '../../tensor/index.ts'
import { rangeOf, scalarTensor } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, div, floorDivide, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, isnan, logicalNot } from '../pointwise/comparison.ts'
import { clamp, where } from '../pointwise/select.ts'
import { ceil, floor, round } from '../pointwise/unary.ts'
import { sizeAt } from '../shared/shapes.ts'
import { wrapDim } from '../../tensor/index.ts'
import { sort, topk } from '../order/sort.ts'
import { gather } from '../view/indexing.ts'
import { movedim } from '../view/arrange.ts'
import { transpose } from '../view/permute.ts'
import { reshape, squeeze, unsqueeze } from '../view/reshape.ts'
import { select } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { amax, amin, any } from './extremes.ts'
import { argmax } from './argExtremes.ts'
import { mean } from './mean.ts'
import { castFirst, sum } from './sum.ts'
import type { CastReductionOptions, Dims } from './sum.ts'

type Pair = readonly [Tensor, Tensor]

/** [values, indices] at one position of each line: `positions` has size 1 in `at`. */
function chosen(self: Tensor, at: number, positions: Tensor, keepdim: boolean): Pair {
  const values = gather(self, at, positions)
  return keepdim ? [values, positions] : [squeeze(values, at), squeeze(positions, at)]
}

/** A line for an operator along a dimension: a tensor without dimensions is one of one element. */
const lineOf = (op: string, self: Tensor, dim: number): readonly [line: Tensor, at: number, size: Size] => {
  const at = wrapDim(op, dim, self.ndim)
  const line = self.ndim === 0 ? reshape(self, [1]) : self
  const size = sizeAt(line.symSizes, at)
  if (sizeEq(size, 0)) throw new ArgumentError(`${op}: dimension ${dim} has no elements.`)
  return [line, at, size]
}

const without = (self: Tensor, keepdim: boolean, [values, indices]: Pair): Pair =>
  self.ndim === 0 && keepdim ? [reshape(values, []), reshape(indices, [])] : [values, indices]

/**
 * The k-th least value along a dimension, and its index: [value, index]. PyTorch's `torch.kthvalue`.
 *
 * Shapes: that of `self` without `dim`; with `keepdim` it stays, with size 1. The index is int64.
 *
 * @throws ArgumentError unless `k` is between 1 and the size of the dimension.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.kthvalue(torch.tensor([3, 9, 5]), 2).map((t) => t.item()) // [5, 2]
 */
export const kthvalue: Op['kthvalue'] = defineOp({
  schema: 'kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, k, dim, keepdim) => {
    const [line, at, size] = lineOf('torch.kthvalue', self, dim)
    if (k < 1 || sizeLess(size, k))
      throw new ArgumentError(`torch.kthvalue: k must be between 1 and ${size.toString()}, the size of dimension ${dim}, got ${k}.`)
    const indices = select(topk(line, k, at, false)[1], at, k - 1)
    return without(self, keepdim, chosen(line, at, unsqueeze(indices, at), keepdim))
  },
})

type Median = {
  (self: Tensor): Tensor
  (self: Tensor, dim: number | { readonly dim: number; readonly keepdim?: boolean }, keepdim?: boolean): readonly [Tensor, Tensor]
}

function medianAlong(op: string, self: Tensor, dim: number, keepdim: boolean, ignoreNaN: boolean): Pair {
  const [line, at, size] = lineOf(op, self, dim)
  const order = sort(line, at)[1]
  const missing = isnan(line)
  if (ignoreNaN) {
    const count = sum(to(logicalNot(missing), 'int64'), [at], true)
    const rank = clamp(floorDivide(sub(count, 1), 2), 0)
    return without(self, keepdim, chosen(line, at, gather(order, at, rank), keepdim))
  }
  const middle = unsqueeze(select(order, at, sizeFloorDiv(sizeSub(size, 1), 2)), at)
  const indices = self.isFloatingPoint() ? where(any(missing, [at], true), argmax(to(missing, 'int32'), at, true), middle) : middle
  return without(self, keepdim, chosen(line, at, indices, keepdim))
}

/** The median of all elements. Its gradient is shared by those that are equal to it, as that of amax is. */
function medianOfAll(op: string, self: Tensor, ignoreNaN: boolean): Tensor {
  const line = reshape(self, [-1])
  const [value] = medianAlong(op, line.detach(), 0, false, ignoreNaN)
  return self.isFloatingPoint() ? amax(where(where(isnan(value), isnan(line), eq(line, value)), line, -Infinity)) : value
}

/**
 * The median of all elements, the lower one of two; with `dim`, [values, indices] along it. NaN if there is one. PyTorch's `torch.median`.
 *
 * Shapes: a scalar; or twice that of `self` without `dim`; with `keepdim` it stays, with size 1.
 *
 * @throws ArgumentError if there are no elements.
 * @throws ShapeError if `dim` is out of range.
 * @example
 * torch.median(torch.tensor([3, 9, 5, 7])).item() // 5
 * torch.median(torch.tensor([[3, 9, 5]]), 1).map((t) => t.toArray()) // [[5], [2]]
 */
export const median: OpFunction<Median> = defineOp({
  schema: 'median(Tensor self, int? dim=None, bool keepdim=False) -> any',
  method: true,
  decompose: (self, dim, keepdim) =>
    dim === null ? medianOfAll('torch.median', self, false) : medianAlong('torch.median', self, dim, keepdim, false),
})

/**
 * {@link median} of the elements that are not NaN. PyTorch's `torch.nanmedian`.
 *
 * Shapes: a scalar; or twice that of `self` without `dim`; with `keepdim` it stays, with size 1.
 *
 * @throws ArgumentError if there are no elements.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.nanmedian(torch.tensor([3, NaN, 5, 7])).item() // 5
 */
export const nanmedian: OpFunction<Median> = defineOp({
  schema: 'nanmedian(Tensor self, int? dim=None, bool keepdim=False) -> any',
  method: true,
  decompose: (self, dim, keepdim) =>
    dim === null ? medianOfAll('torch.nanmedian', self, true) : medianAlong('torch.nanmedian', self, dim, keepdim, true),
})

/**
 * The most frequent value along a dimension, the least of several, and where it stands last: [values, indices]. PyTorch's `torch.mode`.
 *
 * Shapes: that of `self` without `dim`; with `keepdim` it stays, with size 1. The indices are int64.
 *
 * @throws ArgumentError if there are no elements.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.mode(torch.tensor([3, 9, 3, 5])).map((t) => t.item()) // [3, 2]
 */
export const mode: Op['mode'] = defineOp({
  schema: 'mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, dim, keepdim) => {
    const [given, at, size] = lineOf('torch.mode', self, dim)
    const line = transpose(given, at, -1)
    const counts = sum(to(eq(unsqueeze(line, -1), unsqueeze(line, -2)), 'int64'), [-1])
    const frequent = eq(counts, amax(counts, [-1], true))
    // NaN equals nothing, so that it is the most frequent one only among nothing else.
    const value = amin(where(frequent, line, line.isFloatingPoint() ? Infinity : amax(line, [-1], true)), [-1], true)
    const last = argmax(mul(to(eq(line, value), 'int64'), rangeOf(1, 1, size, 'int64')), -1, true)
    return without(self, keepdim, chosen(given, at, transpose(last, at, -1), keepdim))
  },
})

/** How a quantile between two elements follows from them. */
export type QuantileInterpolation = 'linear' | 'lower' | 'higher' | 'midpoint' | 'nearest'

export interface QuantileOptions {
  readonly dim?: number | null
  readonly keepdim?: boolean
  readonly interpolation?: QuantileInterpolation
}

const INTERPOLATIONS: readonly string[] = ['linear', 'lower', 'higher', 'midpoint', 'nearest']

function quantiles(op: string, self: Tensor, given: unknown, dim: number | null, keepdim: boolean, how: string, ignoreNaN: boolean): Tensor {
  if (!INTERPOLATIONS.includes(how))
    throw new ArgumentError(`${op}: interpolation must be one of ${INTERPOLATIONS.join(', ')}, got ${valueText(how)}.`)
  if (!(given instanceof Tensor) && !(typeof given === 'number' && given >= 0 && given <= 1))
    throw new ArgumentError(`${op}: q must be a number between 0 and 1, or a Tensor of them, got ${valueText(given)}.`)
  const q = given instanceof Tensor ? given : scalarTensor(given, { dtype: self.dtype })
  const flat = dim === null ? reshape(self, [-1]) : self
  const [line, at, size] = lineOf(op, flat, dim ?? 0)
  const [sorted] = sort(movedim(line, at, -1), -1)
  const missing = isnan(sorted)
  const last = ignoreNaN
    ? clamp(sub(sum(to(logicalNot(missing), sorted.dtype), [-1], true), 1), 0)
    : scalarTensor(scalarOf(sizeSub(size, 1)), { dtype: sorted.dtype })
  const lead = sorted.symSizes.slice(0, -1)
  // [.., quantiles]: the rank of each in its line.
  const rank = expand(mul(reshape(q, [-1]), last), [...lead, q.symNumel])
  const at_ = (position: Tensor): Tensor => gather(sorted, -1, to(position, 'int64'))
  const [low, high] = [at_(floor(rank)), at_(ceil(rank))]
  const between =
    how === 'lower'
      ? low
      : how === 'higher'
        ? high
        : how === 'nearest'
          ? at_(round(rank))
          : add(low, mul(sub(high, low), how === 'midpoint' ? 0.5 : sub(rank, floor(rank))))
  const values = ignoreNaN ? between : where(any(missing, [-1], true), NaN, between)
  // The dimension of the quantiles stands first, or not at all for a single one.
  const first = movedim(values, -1, 0)
  const rest = line.symSizes.filter((_, d) => d !== at)
  const kept = dim === null ? self.symSizes.map(() => 1) : flat.ndim === 0 ? [] : line.symSizes.with(at, 1)
  return reshape(first, [...q.symSizes, ...(keepdim ? kept : dim === null ? [] : rest)])
}

type Quantile = (self: Tensor, q: number | Tensor, dim?: number | null | QuantileOptions, keepdim?: boolean, options?: QuantileOptions) => Tensor

/**
 * The value below which a part `q` of the elements lies, between elements as `interpolation` says. PyTorch's `torch.quantile`.
 *
 * Shapes: that of `q`, followed by that of `self` without `dim`; with `keepdim` it stays, with size 1.
 *
 * @throws ArgumentError unless `q` is between 0 and 1, and for an unknown `interpolation`.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.quantile(torch.tensor([1, 2, 4]), 0.75).item() // 3
 */
export const quantile: OpFunction<Quantile> = defineOp({
  schema: "quantile(Tensor self, any q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
  method: true,
  autocast: 'float32',
  decompose: (self, q, dim, keepdim, how) => quantiles('torch.quantile', self, q, dim, keepdim, how, false),
})

/**
 * {@link quantile} of the elements that are not NaN. PyTorch's `torch.nanquantile`.
 *
 * Shapes: as for quantile.
 *
 * @throws ArgumentError unless `q` is between 0 and 1, and for an unknown `interpolation`.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.nanquantile(torch.tensor([1, NaN, 2, 4]), 0.75).item() // 3
 */
export const nanquantile: OpFunction<Quantile> = defineOp({
  schema: "nanquantile(Tensor self, any q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
  method: true,
  autocast: 'float32',
  decompose: (self, q, dim, keepdim, how) => quantiles('torch.nanquantile', self, q, dim, keepdim, how, true),
})

/** The elements that are numbers; 0 in place of NaN. */
const numbersOf = (self: Tensor): Tensor => where(isnan(self), 0, self)

/**
 * The sum of the elements that are not NaN. PyTorch's `torch.nansum`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.nansum(torch.tensor([1, NaN, 2])).item() // 3
 */
export const nansum: OpFunction<
  (self: Tensor, dim?: Dims | CastReductionOptions, keepdim?: boolean | CastReductionOptions, options?: CastReductionOptions) => Tensor
> = defineOp({
  schema: 'nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  prepare: castFirst,
  decompose: (self, dim, keepdim) => sum(self.isFloatingPoint() ? numbersOf(self) : self, dim, keepdim),
})

/**
 * The mean of the elements that are not NaN. PyTorch's `torch.nanmean`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.nanmean(torch.tensor([1, NaN, 2])).item() // 1.5
 */
export const nanmean: OpFunction<
  (self: Tensor, dim?: Dims | CastReductionOptions, keepdim?: boolean | CastReductionOptions, options?: CastReductionOptions) => Tensor
> = defineOp({
  schema: 'nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  prepare: castFirst,
  decompose: (self, dim, keepdim) =>
    self.isFloatingPoint()
      ? div(sum(numbersOf(self), dim, keepdim), sum(to(logicalNot(isnan(self)), self.dtype), dim, keepdim))
      : mean(self, dim, keepdim),
})
