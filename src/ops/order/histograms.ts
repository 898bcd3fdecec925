// Histograms: how many elements fall into intervals, of one dimension or of several.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { checkCount, valueText } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { checkTensor, formatShape, sameShape, scalarOf, sizeEq, sizeMax, sizeProduct, sizeSub, Tensor, hasNoElements } from '../../tensor/index.ts'
import { arange, ones, scalarTensor, zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, div, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, ge, le, logicalAnd, lt } from '../pointwise/comparison.ts'
import { clamp, where } from '../pointwise/select.ts'
import { floor } from '../pointwise/unary.ts'
import { rsub } from '../pointwise/variations.ts'
import { amax, amin } from '../reduction/extremes.ts'
import { diff } from '../reduction/scans.ts'
import { sum } from '../reduction/sum.ts'
import { places } from './searchsorted.ts'
import { sizeAt } from '../shared/shapes.ts'
import { scatterAdd } from '../view/indexing.ts'
import { contiguous, reshape } from '../view/reshape.ts'
import { narrow, select } from '../view/slicing.ts'

/** How much falls into each of `bins` intervals of equal width: the sums of `weights`, or the number of elements. */
function binned(x: Tensor, low: Tensor, high: Tensor, bins: number, weights: Tensor | null): Tensor {
  const flat = reshape(x, [-1])
  const inside = logicalAnd(ge(flat, low), le(flat, high))
  const bin = floor(mul(div(sub(flat, low), sub(high, low)), bins))
  const index = to(clamp(where(inside, bin, 0), 0, bins - 1), 'int64')
  const values = where(inside, weights === null ? ones(flat.symSizes, { dtype: x.dtype }) : reshape(weights, [-1]), 0)
  return scatterAdd(zeros([bins], { dtype: values.dtype }), 0, index, values)
}

/** The range of a histogram: the given one, or that of the elements. It is never empty: `margin` is added on both sides of a single value. */
function rangeOf(x: Tensor, given: readonly [number, number] | null, margin: number): readonly [Tensor, Tensor] {
  const of = (value: number): Tensor => scalarTensor(value, { dtype: x.dtype })
  const [least, greatest] = given !== null ? [of(given[0]), of(given[1])] : [amin(x), amax(x)]
  const same = mul(to(eq(least, greatest), x.dtype), margin)
  return [sub(least, same), add(greatest, same)]
}

/**
 * How many elements fall into each of `bins` intervals of equal width between `min` and `max`; if these are equal, between the least and the greatest element. PyTorch's `torch.histc`.
 *
 * Shape: [bins].
 *
 * @throws ArgumentError if `bins` is not positive, or `max` is less than `min`.
 * @example torch.histc(torch.tensor([1, 2, 1]), 4, 0, 4).toArray() // [0, 2, 1, 0]
 */
export const histc: Op['histc'] = defineOp({
  schema: 'histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor',
  method: true,
  decompose: (self, bins, min, max) => {
    if (bins < 1) throw new ArgumentError(`torch.histc: bins must be positive, got ${bins}.`)
    if (max < min) throw new ArgumentError(`torch.histc: max must not be less than min, got ${min} and ${max}.`)
    const [low, high] = rangeOf(self, min === max && !hasNoElements(self.symSizes) ? null : [min, max], 1)
    return binned(self.detach(), low, high, bins, null)
  },
})

export interface HistogramOptions {
  /** [least, greatest]; default: those of the elements. */
  readonly range?: readonly number[] | null
  readonly weight?: Tensor | null
  /** Whether the result is a density, whose integral is 1. */
  readonly density?: boolean
}

const isRange = (value: unknown): value is readonly [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every((v) => typeof v === 'number')

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 1

/** The edges of intervals: these, or those of `bins` intervals of equal width over the range of the elements of `x`. */
function edgesOf(op: string, x: Tensor, bins: unknown, range: readonly [number, number] | null): Tensor {
  if (bins instanceof Tensor) {
    if (bins.ndim !== 1 || sizeEq(bins.symNumel, 0))
      throw new ShapeError(`${op}: edges must have 1 dimension and at least one element, got shape ${formatShape(bins.symSizes)}.`)
    if (bins.dtype !== x.dtype) throw new DTypeError(`${op}: edges must have the dtype of the elements, ${x.dtype}, got ${bins.dtype}.`)
    return bins
  }
  if (!isCount(bins)) throw new ArgumentError(`${op}: bins must be a positive number or a Tensor of edges, got ${valueText(bins)}.`)
  if (range !== null && !(range[0] <= range[1])) throw new ArgumentError(`${op}: range must not end before it begins, got ${valueText(range)}.`)
  const [low, high] = rangeOf(x, range ?? (sizeEq(x.symNumel, 0) ? [0, 1] : null), 0.5)
  // From both ends, so that the last edge is the end of the range exactly.
  const places = arange(0, bins + 1, { dtype: x.dtype })
  const step = div(sub(high, low), bins)
  return where(lt(places, Math.floor((bins + 1) / 2)), add(low, mul(places, step)), sub(high, mul(rsub(places, bins), step)))
}

/** The interval of each element, and whether it lies in one. The last interval has both of its ends. */
function intervalsOf(x: Tensor, edges: Tensor): { readonly interval: Tensor; readonly inside: Tensor } {
  const count = sizeSub(edges.symNumel, 1)
  const inside = logicalAnd(ge(x, narrow(edges, 0, 0, 1)), le(x, narrow(edges, 0, count, 1)))
  return { interval: clamp(sub(places(edges, contiguous(x), false, true), 1), 0, scalarOf(sizeMax(0, sizeSub(count, 1)))), inside }
}

/** The histogram of points, whose coordinates `columns` has, dimension by dimension. */
function counted(op: string, columns: readonly Tensor[], edges: readonly Tensor[], weight: Tensor | null, density: boolean): Tensor {
  const [first] = columns
  if (first === undefined) throw new ArgumentError(`${op}: the input has no dimension to count in.`)
  const counts = edges.map((edge) => sizeSub(edge.symNumel, 1))
  let index = zeros(first.symSizes, { dtype: 'int64' })
  let inside = ones(first.symSizes, { dtype: 'bool' })
  columns.forEach((x, d) => {
    const found = intervalsOf(x, edges[d] ?? x)
    index = add(mul(index, scalarOf(counts[d] ?? 1)), found.interval)
    inside = logicalAnd(inside, found.inside)
  })
  const total = sizeProduct(counts)
  const flat = zeros([total], { dtype: (weight ?? first).dtype })
  const values = where(inside, weight ?? ones(first.symSizes, { dtype: first.dtype }), 0)
  const sums = reshape(sizeEq(total, 0) ? flat : scatterAdd(flat, 0, index, values), counts)
  if (!density) return sums
  const along = (edge: Tensor, d: number): Tensor =>
    reshape(
      diff(edge),
      counts.map((n, k) => (k === d ? n : 1)),
    )
  return edges.reduce((out, edge, d) => div(out, along(edge, d)), div(sums, sum(sums)))
}

/** A weight for each point, in one dimension. */
function weightsOf(op: string, weight: Tensor | null, shape: readonly Size[], like: Tensor): Tensor | null {
  if (weight === null) return null
  if (!sameShape(weight.symSizes, shape))
    throw new ShapeError(`${op}: weight must have the shape ${formatShape(shape)}, got ${formatShape(weight.symSizes)}.`)
  if (weight.dtype !== like.dtype) throw new DTypeError(`${op}: weight must have the dtype of the elements, ${like.dtype}, got ${weight.dtype}.`)
  return reshape(weight, [-1])
}

/**
 * How many elements fall into intervals, `bins` of equal width or with these edges: [histogram, edges]. PyTorch's `torch.histogram`.
 *
 * Shapes: [bins] and [bins + 1].
 *
 * @throws ShapeError if `weight` has another shape than `self`; DTypeError if it, or the edges, have another dtype.
 * @throws ArgumentError if `bins` is neither a positive number nor a Tensor of edges, or `range` not a pair.
 * @example torch.histogram(torch.tensor([1, 2, 1]), 2, { range: [0, 4] }).map((t) => t.toArray()) // [[2, 1], [0, 2, 4]]
 */
export const histogram: OpFunction<(self: Tensor, bins: number | Tensor, options?: HistogramOptions) => readonly [Tensor, Tensor]> = defineOp({
  schema: 'histogram(Tensor self, any bins, *, any? range=None, Tensor? weight=None, bool density=False) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, bins, range, weight, density): readonly [Tensor, Tensor] => {
    const op = 'torch.histogram'
    if (range !== null && !isRange(range)) throw new ArgumentError(`${op}: range must be a pair [min, max], got ${valueText(range)}.`)
    const edges = edgesOf(op, self, bins, range)
    return [counted(op, [reshape(self, [-1])], [edges], weightsOf(op, weight, self.symSizes, self), density), edges]
  },
})

export interface HistogramddOptions {
  /** Least and greatest coordinate of each dimension, one after the other; default: those of the points. */
  readonly range?: readonly number[] | null
  readonly weight?: Tensor | null
  /** Whether the result is a density, whose integral is 1. */
  readonly density?: boolean
}

/**
 * How many points fall into the cells of a grid: [histogram, edges of each dimension]. The last dimension of `self` has the coordinates of a point. `bins` is a number of intervals for all
 * dimensions, or a number or a Tensor of edges for each. PyTorch's `torch.histogramdd`.
 *
 * Throws ShapeError or ArgumentError unless there are bins for each dimension, and a weight for each point.
 */
export function histogramdd(
  self: Tensor,
  bins: number | readonly (number | Tensor)[],
  { range = null, weight = null, density = false }: HistogramddOptions = {},
): readonly [Tensor, readonly Tensor[]] {
  checkCount('torch.histogramdd', arguments, 3)
  const op = 'torch.histogramdd'
  checkTensor(op, 'self', self)
  if (self.ndim < 2)
    throw new ShapeError(`${op}: self must have at least 2 dimensions [.., points, coordinates], got shape ${formatShape(self.symSizes)}.`)
  const n = sizeAt(self.sizes, -1)
  const perDimension: readonly unknown[] = Array.isArray(bins) ? bins : Array.from({ length: n }, () => bins)
  if (perDimension.length !== n)
    throw new ArgumentError(`${op}: bins must hold one item for each of the ${n} coordinates, got ${perDimension.length}.`)
  if (range !== null && (range.length !== 2 * n || range.some((v) => !Number.isFinite(v))))
    throw new ArgumentError(`${op}: range must hold two numbers for each of the ${n} coordinates, got ${valueText(range)}.`)
  const points = reshape(self.detach(), [-1, n])
  const columns = perDimension.map((_, d) => select(points, 1, d))
  const edges = columns.map((x, d) => edgesOf(op, x, perDimension[d], range === null ? null : [range[2 * d] ?? 0, range[2 * d + 1] ?? 0]))
  return [counted(op, columns, edges, weightsOf(op, weight, self.sizes.slice(0, -1), self), density), edges]
}
