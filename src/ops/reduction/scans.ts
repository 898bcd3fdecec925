// Running products, extremes and log-sums along a dimension, and differences of neighbours. Each scan combines parts of doubling length, so that it is composed of a
// few operators whose gradients are exact, also at zeros.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, sizeLess, sizeMax, sizeMin, sizeSub } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { rangeOf } from '../create/creation.ts'
import type { DType } from '../../kernels/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { cat } from '../join/join.ts'
import { add, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { ge, isnan, le, logicalOr } from '../pointwise/comparison.ts'
import { logicalXor } from '../pointwise/classify.ts'
import { logaddexp } from '../pointwise/logaddexp.ts'
import { where } from '../pointwise/select.ts'
import { dimAndSize } from '../shared/shapes.ts'
import { gather } from '../view/indexing.ts'
import { reshape } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { cumsum } from './cumsum.ts'
import type { CastAlongDim } from './cumsum.ts'
import { castFirst, summedType, sum } from './sum.ts'

type AlongDim = (self: Tensor, dim: number | { readonly dim: number }) => Tensor

/** The scan of `x` along `dim` with an associative function of two parts of equal length, the earlier one first. */
function scan(op: string, x: Tensor, dim: number, combine: (earlier: Tensor, later: Tensor) => Tensor): Tensor {
  if (x.ndim === 0) return x
  const [at, size] = dimAndSize(op, x, dim)
  let out = x
  for (let step = 1; sizeLess(step, size); step *= 2)
    out = cat([narrow(out, at, 0, step), combine(narrow(out, at, 0, sizeSub(size, step)), narrow(out, at, step, sizeSub(size, step)))], at)
  return out
}

/**
 * Products of the elements up to each position of a dimension; those of integers and bools are int64. PyTorch's `torch.cumprod`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.cumprod(torch.tensor([1, 2, 3]), 0).toArray() // [1, 2, 6]
 */
export const cumprod: OpFunction<(self: Tensor, dim: number | CastAlongDim, options?: { readonly dtype?: DType | null }) => Tensor> = defineOp({
  schema: 'cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  prepare: castFirst,
  inPlace: 'method',
  decompose: (self, dim) => scan('torch.cumprod', to(self, summedType(self.dtype)), dim, mul),
})

/**
 * Logarithms of the sums of e^x up to each position of a dimension, without overflow. PyTorch's `torch.logcumsumexp`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.logcumsumexp(torch.tensor([0, 0]), 0).toArray() // [0, 0.693147]
 */
export const logcumsumexp: OpFunction<AlongDim> = defineOp({
  schema: 'logcumsumexp(Tensor self, int dim) -> Tensor',
  autocast: 'untouched',
  method: true,
  decompose: (self, dim) => scan('torch.logcumsumexp', self, dim, logaddexp),
})

/** The values at the last extreme up to each position, and where it is. NaN counts as the extreme from where it stands on. */
function runningExtreme(op: string, self: Tensor, dim: number, wins: (later: Tensor, earlier: Tensor) => Tensor): readonly [Tensor, Tensor] {
  if (self.dtype === 'bool') {
    const [values, indices] = runningExtreme(op, to(self, 'uint8'), dim, wins)
    return [to(values, 'bool'), indices]
  }
  if (self.ndim === 0) return [self, to(sub(self, self), 'int64')]
  const [at, size] = dimAndSize(op, self, dim)
  const along = reshape(
    rangeOf(0, 1, size, 'int64'),
    self.symSizes.map((_, d) => (d === at ? size : 1)),
  )
  const indices = scan(op, expand(along, self.symSizes), at, (earlier, later) => {
    const [before, after] = [gather(self, at, earlier), gather(self, at, later)]
    return where(logicalOr(isnan(after), wins(after, before)), later, earlier)
  })
  return [gather(self, at, indices), indices]
}

/**
 * The greatest element up to each position of a dimension, and where it is: [values, indices]. PyTorch's `torch.cummax`.
 *
 * Shapes: both have the shape of `self`. The indices are int64; the last of equal elements counts.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.cummax(torch.tensor([3, 1, 5]), 0).map((t) => t.toArray()) // [[3, 3, 5], [0, 0, 2]]
 */
export const cummax: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => readonly [Tensor, Tensor]> = defineOp({
  schema: 'cummax(Tensor self, int dim) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, dim) => runningExtreme('torch.cummax', self, dim, ge),
})

/**
 * The least element up to each position of a dimension, and where it is: [values, indices]. PyTorch's `torch.cummin`.
 *
 * Shapes: both have the shape of `self`. The indices are int64; the last of equal elements counts.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.cummin(torch.tensor([3, 1, 5]), 0).map((t) => t.toArray()) // [[3, 1, 1], [0, 1, 1]]
 */
export const cummin: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => readonly [Tensor, Tensor]> = defineOp({
  schema: 'cummin(Tensor self, int dim) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, dim) => runningExtreme('torch.cummin', self, dim, le),
})

export interface DiffOptions {
  readonly n?: number
  readonly dim?: number
  /** Elements to put in front before differences are taken. */
  readonly prepend?: Tensor | null
  /** Elements to put behind. */
  readonly append?: Tensor | null
}

/**
 * Differences of neighbours along a dimension, taken `n` times; of bools, whether they differ. PyTorch's `torch.diff`.
 *
 * Shape: that of `self`, with `n` fewer elements in `dim`, and those of `prepend` and `append` more.
 *
 * @throws ShapeError if `dim` is out of range; ArgumentError if `n` is negative.
 * @example torch.diff(torch.tensor([1, 4, 9, 16])).toArray() // [3, 5, 7]
 */
export const diff: OpFunction<
  (self: Tensor, n?: number | DiffOptions, dim?: number | Omit<DiffOptions, 'n'>, prepend?: Tensor | null, append?: Tensor | null) => Tensor
> = defineOp({
  schema: 'diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor',
  method: true,
  decompose: (self, n, dim, prepend, append) => {
    const [at] = dimAndSize('torch.diff', self, dim)
    const parts = [prepend, self, append].filter((part) => part !== null)
    let out = parts.length === 1 ? self : cat(parts, at)
    if (n < 0) throw new ArgumentError(`torch.diff: n must be at least 0, got ${n}.`)
    const [, total] = dimAndSize('torch.diff', out, at)
    // After this many differences nothing is left; one of nothing has their dtype.
    const isMore = sizeLess(total, n)
    const rounds = isMore ? 1 : n
    if (isMore) out = narrow(out, at, 0, 0)
    for (let k = 0; k < rounds; k++) {
      const [, size] = dimAndSize('torch.diff', out, at)
      const left = sizeMax(0, sizeSub(size, 1))
      const [later, earlier] = [narrow(out, at, sizeMin(1, size), left), narrow(out, at, 0, left)]
      out = out.dtype === 'bool' ? logicalXor(later, earlier) : sub(later, earlier)
    }
    return out
  },
})

export interface TrapezoidOptions {
  /** The distance of neighbours. */
  readonly dx?: number
  readonly dim?: number
}

/** The areas between neighbours, without the factor 1/2, and the dimension. `x` holds positions along it, or is null for steps of `dx`. */
function areas(op: string, y: Tensor, x: Tensor | null, dx: number, dim: number): readonly [Tensor, number] {
  const [at, size] = dimAndSize(op, y, dim)
  const n = sizeMax(0, sizeSub(size, 1))
  const sums = add(narrow(y, at, sizeMin(1, size), n), narrow(y, at, 0, n))
  if (x === null) return [mul(sums, dx), at]
  if (x.ndim !== 1 && x.ndim !== y.ndim)
    throw new ShapeError(`${op}: x must have 1 dimension or those of y ${formatShape(y.symSizes)}, got shape ${formatShape(x.symSizes)}.`)
  if (x.ndim !== 1) return [mul(sums, diff(x, 1, at)), at]
  const steps = diff(x)
  return [
    mul(
      sums,
      reshape(
        steps,
        y.symSizes.map((_, d) => (d === at ? steps.symNumel : 1)),
      ),
    ),
    at,
  ]
}

type Trapezoid = (y: Tensor, x?: Tensor | TrapezoidOptions | null, options?: TrapezoidOptions) => Tensor

/**
 * The integral along a dimension by the trapezoidal rule, at positions `x` or in steps of `dx`. PyTorch's `torch.trapezoid`.
 *
 * Shape: that of `y` without `dim`.
 *
 * @throws ShapeError if `dim` is out of range, or `x` does not fit.
 * @example torch.trapezoid(torch.tensor([1, 3, 5])).item() // 6
 */
export const trapezoid: OpFunction<Trapezoid> = defineOp({
  schema: 'trapezoid(Tensor y, Tensor? x=None, *, Scalar dx=1, int dim=-1) -> Tensor',
  decompose: (y, x, dx, dim) => {
    const [each, at] = areas('torch.trapezoid', y, x, dx, dim)
    return mul(sum(each, [at]), 0.5)
  },
})

/**
 * The integrals up to each position by the trapezoidal rule. PyTorch's `torch.cumulative_trapezoid`.
 *
 * Shape: that of `y`, with one element fewer in `dim`.
 *
 * @throws ShapeError if `dim` is out of range, or `x` does not fit.
 * @example torch.cumulativeTrapezoid(torch.tensor([1, 3, 5])).toArray() // [2, 6]
 */
export const cumulativeTrapezoid: OpFunction<Trapezoid> = defineOp({
  schema: 'cumulative_trapezoid(Tensor y, Tensor? x=None, *, Scalar dx=1, int dim=-1) -> Tensor',
  decompose: (y, x, dx, dim) => {
    const [each, at] = areas('torch.cumulative_trapezoid', y, x, dx, dim)
    return mul(cumsum(each, at), 0.5)
  },
})
