// Filling a tensor with random numbers: integers, and logarithmic normal, Cauchy and geometric ones. normal_, uniform_, bernoulli_ and exponential_ are beside their functions.
import { ArgumentError, DTypeError } from '../../errors/index.ts'
import { realDType } from '../../kernels/index.ts'
import type { DType, RealDType } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { DrawOptions } from './distributions.ts'
import { add, div, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { copy_ } from '../pointwise/fill.ts'
import { tan } from '../pointwise/trigonometry.ts'
import { ceil, exp, log1p } from '../pointwise/unary.ts'
import { clampMin } from '../pointwise/variations.ts'
import { rand, randint, randn } from './random.ts'

/** How many numbers, from 0 on, `random_` without bounds draws from: those up to the greatest one, or as far as every integer is a number of the dtype. int64 has 2^53. */
const COUNTS: Readonly<Record<RealDType, number>> = {
  bool: 2,
  uint8: 2 ** 8,
  int8: 2 ** 7,
  int16: 2 ** 15,
  int32: 2 ** 31,
  int64: 2 ** 53,
  float16: 2 ** 11 + 1,
  bfloat16: 2 ** 8 + 1,
  float32: 2 ** 24 + 1,
  float64: 2 ** 53,
}

/** The dtype to compute in. */
const wide = (self: Tensor): DType => (self.dtype === 'float64' ? 'float64' : 'float32')

function checkFloating(op: string, self: Tensor): void {
  if (!self.isFloatingPoint()) throw new DTypeError(`${op}: self must be floating, got ${self.dtype}. Use random_ for integers.`)
}

/**
 * Fills `self` with uniform random integers from `from` (included) to `to` (excluded); with one number, from 0 to below it; without, from 0 to the greatest number of the
 * dtype, or as far as it has every integer (int64: below 2^53). PyTorch's `Tensor.random_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError unless `from` and `to` are integers with from < to.
 * @example torch.zeros([2]).random_(7, 8).toArray() // [7, 7]
 */
export const random_: OpFunction<(self: Tensor, from?: number | DrawOptions, to?: number | DrawOptions, options?: DrawOptions) => Tensor> = defineOp({
  schema: 'random_(Tensor(a!) self, int? from=None, int? to=None, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, from, to, generator) => {
    const draw = (low: number, high: number): Tensor => randint(low, high, self.symSizes, { generator })
    const [low, high] = from === null ? [0, COUNTS[realDType(self.dtype)]] : to === null ? [0, from] : [from, to]
    if (high === 2 ** 53) return copy_(self, add(mul(draw(0, 2 ** 26), 2 ** 27), draw(0, 2 ** 27)))
    return copy_(self, draw(low, high))
  },
})

/**
 * Fills `self` with numbers whose logarithms are normal, with this mean and standard deviation. PyTorch's `Tensor.log_normal_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws DTypeError unless `self` is floating, ArgumentError unless `std` is positive.
 * @example torch.zeros([2]).logNormal_(0, 1e-30).toArray() // [1, 1]
 */
export const logNormal_: OpFunction<(self: Tensor, mean?: number, std?: number, options?: DrawOptions) => Tensor> = defineOp({
  schema: 'log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, mean, std, generator) => {
    checkFloating('logNormal_', self)
    if (!(std > 0)) throw new ArgumentError(`logNormal_: std must be positive, got ${std}.`)
    return copy_(self, exp(add(mul(randn(self.symSizes, { generator, dtype: wide(self) }), std), mean)))
  },
})

/**
 * Fills `self` with numbers of a Cauchy distribution. PyTorch's `Tensor.cauchy_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws DTypeError unless `self` is floating, ArgumentError unless `sigma` is positive.
 * @example torch.zeros([2]).cauchy_(3, 1e-30).toArray() // [3, 3]
 */
export const cauchy_: OpFunction<(self: Tensor, median?: number, sigma?: number, options?: DrawOptions) => Tensor> = defineOp({
  schema: 'cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, median, sigma, generator) => {
    checkFloating('cauchy_', self)
    if (!(sigma > 0)) throw new ArgumentError(`cauchy_: sigma must be positive, got ${sigma}.`)
    const angles = mul(sub(rand(self.symSizes, { generator, dtype: wide(self) }), 0.5), Math.PI)
    return copy_(self, add(mul(tan(angles), sigma), median))
  },
})

/**
 * Fills `self` with how many trials it takes until one succeeds, each with probability `p`: 1, 2, …. PyTorch's `Tensor.geometric_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError unless 0 < p < 1.
 * @example torch.zeros([2]).geometric_(1 - 1e-15).toArray() // [1, 1]
 */
export const geometric_: OpFunction<(self: Tensor, p: number, options?: DrawOptions) => Tensor> = defineOp({
  schema: 'geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, p, generator) => {
    if (!(p > 0 && p < 1)) throw new ArgumentError(`geometric_: p must be between 0 and 1, got ${p}.`)
    const logs = log1p(neg(rand(self.symSizes, { generator, dtype: wide(self) })))
    return copy_(self, clampMin(ceil(div(logs, Math.log1p(-p))), 1))
  },
})
