// Random tensors of other distributions, from uniform and normal numbers: categories, Poisson's, exponential and normal ones.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { scalarOps } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor, broadcastShapes, formatShape, sizeEq, sizeLess, sizeSub, tensorFromValues } from '../../tensor/index.ts'
import type { Generator } from '../../tensor/index.ts'
import type { Size } from '../../protocol/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { asFloating } from '../eager/promotion.ts'
import { add, div, mul, neg } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { lt } from '../pointwise/comparison.ts'
import { copy_ } from '../pointwise/fill.ts'
import { log1p } from '../pointwise/unary.ts'
import { rand, randn } from './random.ts'
import type { RandomOptions } from './random.ts'
import { cumsum } from '../reduction/cumsum.ts'
import { amax, amin } from '../reduction/extremes.ts'
import { sum } from '../reduction/sum.ts'
import { searchsorted } from '../order/searchsorted.ts'
import { checkOperand, sizeAt } from '../shared/shapes.ts'
import { topk } from '../order/sort.ts'
import { narrow } from '../view/slicing.ts'

/** Where the random numbers come from. */
export interface DrawOptions {
  readonly generator?: Generator | null
}

export interface BernoulliOptions extends DrawOptions {
  /** The probability of 1. Default 0.5. */
  readonly p?: number
}

const isTensor = (value: unknown): value is Tensor => value instanceof Tensor

/** Exponential numbers with mean 1. */
const exponentials = (shape: readonly Size[], generator: Generator | null): Tensor => neg(log1p(neg(rand(shape, { generator }))))

/**
 * Positions along the last dimension, drawn with the probabilities (or any weights that are not negative) that `self` has there. PyTorch's `torch.multinomial`.
 *
 * Shape: [n] gives [numSamples], [m, n] gives [m, numSamples]. The result is int64.
 *
 * @throws ShapeError unless `self` has 1 or 2 dimensions, DTypeError unless it is floating.
 * @throws ArgumentError if `numSamples` is not positive, or without `replacement` more than there are positions.
 * @example torch.multinomial(torch.tensor([0, 3, 0]), 2, true).toArray() // [1, 1]
 */
export const multinomial: OpFunction<
  (self: Tensor, numSamples: number, replacement?: boolean | (DrawOptions & { readonly replacement?: boolean }), options?: DrawOptions) => Tensor
> = defineOp({
  schema: 'multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor',
  method: true,
  tags: ['random'],
  decompose: (self, count, replacement, generator) => {
    if (!self.isFloatingPoint()) throw new DTypeError(`torch.multinomial: self holds probabilities and must be floating, got ${self.dtype}.`)
    if (self.ndim !== 1 && self.ndim !== 2)
      throw new ShapeError(`torch.multinomial: self must have 1 or 2 dimensions, got shape ${formatShape(self.symSizes)}.`)
    const size = sizeAt(self.symSizes, -1)
    if (sizeEq(size, 0) || count < 1 || (!replacement && sizeLess(size, count)))
      throw new ArgumentError(
        `torch.multinomial: cannot draw ${count} of ${size.toString()} positions${replacement ? '' : ' without replacement; draw fewer, or with { replacement: true }'}.`,
      )
    const weights = to(self.detach(), 'float32')
    if (!weights.isFake) checkProbabilities(weights)
    // The k smallest of exponential numbers whose rates are the weights.
    if (!replacement) return topk(div(weights, add(exponentials(self.symSizes, generator), 1e-30)), count, -1)[1]
    const sums = cumsum(weights, -1)
    const limits = div(sums, narrow(sums, -1, sizeSub(size, 1), 1))
    return searchsorted(limits, rand([...self.symSizes.slice(0, -1), count], { generator }), { right: true })
  },
})

/** Throws unless the rows of numbers can be weights of a draw. */
function checkProbabilities(weights: Tensor): void {
  const least = amin(weights).item()
  if (!(least >= 0) || !Number.isFinite(amax(weights).item()))
    throw new ArgumentError('torch.multinomial: self holds probabilities, which must be finite numbers that are not negative; one of them is not.')
  if (amin(sum(weights, -1)).item() <= 0)
    throw new ArgumentError('torch.multinomial: self must hold a positive probability in each row; one has none.')
}

/** The smallest k at which the distribution function of Poisson's distribution reaches u. */
function poissonQuantile(rate: number, u: number): number {
  if (!(rate >= 0)) throw new ArgumentError(`torch.poisson: rates must not be negative, got ${rate}.`)
  const reaches = (k: number): boolean => rate === 0 || scalarOps.igammac.reference('float64', k + 1, rate, NaN) >= u
  let high = Math.ceil(rate)
  for (let step = 1 + Math.ceil(Math.sqrt(rate)); !reaches(high); step *= 2) high += step
  let low = -1
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (reaches(middle)) high = middle
    else low = middle
  }
  return high
}

/**
 * For each rate the smallest number at which the distribution function of Poisson's distribution reaches `u`, which is below 1. Internal; PyTorch has no such operator.
 *
 * Shapes: `self` and `u` have the same shape, and so has the result.
 *
 * @throws ArgumentError if a rate is negative.
 * @throws ShapeError if the shapes differ.
 * @example torch.ops.tensorfx.poissonQuantiles(torch.tensor([0, 2, 2]), torch.tensor([0.5, 0.5, 0.99])).toArray() // [0, 2, 6]
 */
export const poissonQuantiles: Op['poissonQuantiles'] = defineOp({
  schema: 'poisson_quantiles(Tensor self, Tensor u) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['rejectsData'],
  halvesInFloat32: true,
  vmap: { leading: ['self', 'u'] },
  onnx: { none: 'runtimes draw other random numbers' },
  autocast: 'as is',
  meta: (self, u) => {
    checkOperand('torch.poisson', 'u', u, self.symSizes, u.dtype)
    return { shape: self.symSizes, dtype: self.dtype }
  },
  kernel: (self, u) => {
    checkOperand('torch.poisson', 'u', u, self.symSizes, u.dtype)
    const [rates, parts] = [Array.from(self.contiguous().toTypedArray(), Number), Array.from(u.contiguous().toTypedArray(), Number)]
    return tensorFromValues(
      rates.map((rate, i) => poissonQuantile(rate, parts[i] ?? 0)),
      self.sizes,
      self.dtype,
    )
  },
})

/**
 * Numbers of Poisson's distribution, elementwise with the rates that `self` holds. PyTorch's `torch.poisson`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError if a rate is negative.
 * @example torch.poisson(torch.tensor([0, 0])).toArray() // [0, 0]
 */
export const poisson: OpFunction<(self: Tensor, options?: DrawOptions) => Tensor> = defineOp({
  schema: 'poisson(Tensor self, Generator? generator=None) -> Tensor',
  tags: ['random'],
  decompose: (self, generator) => {
    if (!self.isFloatingPoint()) throw new DTypeError(`torch.poisson: self holds rates and must be floating, got ${self.dtype}.`)
    // A gradient of 0, and not none.
    return add(poissonQuantiles(self.detach(), rand(self.symSizes, { generator, dtype: 'float32' })), mul(self, 0))
  },
})

/**
 * Fills `self` with 1 with probability `p`, a number or a tensor of them, else 0. PyTorch's `Tensor.bernoulli_`.
 *
 * Shape: that of `self`, to which `p` broadcasts. Returns `self`.
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @example torch.zeros([2]).bernoulli_(1).toArray() // [1, 1]
 */
export const bernoulli_: OpFunction<(self: Tensor, p?: number | Tensor | BernoulliOptions, options?: DrawOptions) => Tensor> = defineOp({
  schema: 'bernoulli_(Tensor(a!) self, any p=0.5, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.ops.tensorfx',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, p, generator) => {
    if (!isTensor(p) && !(typeof p === 'number' && p >= 0 && p <= 1))
      throw new ArgumentError(`bernoulli_: p must be a Tensor or a number between 0 and 1, got ${valueText(p)}.`)
    return copy_(self, to(lt(rand(self.symSizes, { generator, dtype: 'float32' }), p), self.dtype))
  },
})

/**
 * Fills `self` with numbers of an exponential distribution of rate `lambd`. PyTorch's `Tensor.exponential_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError unless `lambd` is positive.
 * @example torch.zeros([2]).exponential_(Infinity).toArray() // [0, 0]
 */
export const exponential_: OpFunction<(self: Tensor, lambd?: number | (DrawOptions & { readonly lambd?: number }), options?: DrawOptions) => Tensor> =
  defineOp({
    schema: 'exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)',
    namespace: 'torch.ops.tensorfx',
    method: true,
    tags: ['random', 'mutates'],
    meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
    decompose: (self, lambd, generator) => {
      if (!(lambd > 0)) throw new ArgumentError(`exponential_: lambd must be positive, got ${lambd}.`)
      return copy_(self, mul(exponentials(self.symSizes, generator), 1 / lambd))
    },
  })

/**
 * Normal numbers with these means and standard deviations, elementwise; if both are numbers, `size` of them. PyTorch's `torch.normal`.
 *
 * Shapes: `mean` and `std` broadcast; the result has the broadcast shape, or `size`.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError if `std` is a negative number, or `size` is missing or does not belong.
 * @example torch.normal(torch.tensor([1, 2]), 0).toArray() // [1, 2]
 * torch.normal(3, 0, [2]).toArray() // [3, 3]
 */
export const normal: OpFunction<{
  (mean: Tensor, std?: Tensor | number | DrawOptions, options?: DrawOptions): Tensor
  (mean: number, std: Tensor, options?: DrawOptions): Tensor
  (mean: number, std: number, size: readonly number[], options?: RandomOptions): Tensor
}> = defineOp({
  schema: 'normal(any mean, any std=1, int[]? size=None, *, Generator? generator=None, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['random'],
  decompose: (mean, std, size, generator, dtype, requiresGrad) => {
    if (typeof std === 'number' ? !(std >= 0) : !isTensor(std))
      throw new ArgumentError(`torch.normal: std must be a Tensor or a number of at least 0, got ${valueText(std)}.`)
    if (typeof mean !== 'number' && !isTensor(mean))
      throw new ArgumentError(`torch.normal: mean must be a Tensor or a number, got ${valueText(mean)}.`)
    const tensors = [mean, std].filter(isTensor)
    const [first] = tensors
    if ((first === undefined) !== (size !== null))
      throw new ArgumentError(`torch.normal: give 'size' if mean and std are numbers, and only then; got size ${valueText(size)}.`)
    const shape = size ?? tensors.map((t) => t.symSizes).reduce((a, b) => broadcastShapes('torch.normal', a, b))
    const numbers = randn(shape, { generator, dtype: first === undefined ? dtype : asFloating(first.dtype) })
    const result = add(mul(numbers, isTensor(std) ? std : Number(std)), mean)
    return requiresGrad ? result.requiresGrad_() : result
  },
})
