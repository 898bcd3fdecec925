// Distributions with a place and a width: normal, Laplace, Cauchy, Gumbel, uniform; and the exponential distribution.
import { full, where } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { greaterThan, interval, lessThan, nonnegative, positive, real } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { Distribution, broadcastAll } from './distribution.ts'
import type { DistributionOptions, Parameter, SampleOptions } from './distribution.ts'
import { draws } from './draws.ts'

/** Euler's constant. */
export const EULER = 0.5772156649015329

/** A distribution with the parameters `loc`, its place, and `scale`, its width. */
abstract class LocationScale extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly loc: Tensor
  readonly scale: Tensor

  constructor(loc: Parameter, scale: Parameter, options: DistributionOptions) {
    const as = broadcastAll(new.target.name, { loc, scale })
    const [place, width] = [as(loc), as(scale)]
    super({ parameters: { loc: [place, real], scale: [width, positive] }, batchShape: place.shape, options })
    this.loc = place
    this.scale = width
  }

  override get support(): Constraint {
    return real
  }

  override get mean(): Tensor {
    return this.loc
  }

  override get mode(): Tensor {
    return this.loc
  }

  override get variance(): Tensor {
    return this.stddev.square()
  }

  /** How many widths a value is from the place. */
  protected standardized(value: Tensor): Tensor {
    return value.sub(this.loc).div(this.scale)
  }
}

/**
 * The normal distribution with the mean `loc` and the standard deviation `scale`. PyTorch's `Normal`.
 *
 * @throws ArgumentError unless `scale` is positive.
 * @example new Normal(0, 1).logProb(torch.tensor(0)).item().toFixed(4) // '-0.9189'
 */
export class Normal extends LocationScale {
  constructor(loc: Parameter, scale: Parameter, options: DistributionOptions = {}) {
    super(loc, scale, options)
  }

  override get stddev(): Tensor {
    return this.scale
  }

  override expand(batchShape: readonly number[]): Normal {
    return new Normal(this.expanded(this.loc, batchShape), this.expanded(this.scale, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return draws
      .normal(this.draw(sampleShape, options, this.loc.dtype))
      .mul(this.scale)
      .add(this.loc)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return this.standardized(value)
      .square()
      .div(-2)
      .sub(this.scale.log())
      .sub(Math.log(2 * Math.PI) / 2)
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    return this.standardized(value).mul(Math.SQRT1_2).erf().add(1).div(2)
  }

  override icdf(probability: Tensor): Tensor {
    return probability.mul(2).sub(1).erfinv().mul(this.scale).mul(Math.SQRT2).add(this.loc)
  }

  override entropy(): Tensor {
    return this.scale.log().add(0.5 + Math.log(2 * Math.PI) / 2)
  }
}

/**
 * Laplace's distribution: exponential to both sides of `loc`. PyTorch's `Laplace`.
 *
 * @throws ArgumentError unless `scale` is positive.
 * @example new Laplace(0, 1).logProb(torch.tensor(0)).item().toFixed(4) // '-0.6931'
 */
export class Laplace extends LocationScale {
  constructor(loc: Parameter, scale: Parameter, options: DistributionOptions = {}) {
    super(loc, scale, options)
  }

  override get stddev(): Tensor {
    return this.scale.mul(Math.SQRT2)
  }

  override expand(batchShape: readonly number[]): Laplace {
    return new Laplace(this.expanded(this.loc, batchShape), this.expanded(this.scale, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const u = draws.symmetric(this.draw(sampleShape, options, this.loc.dtype))
    return this.loc.sub(this.scale.mul(u.sign()).mul(u.abs().neg().log1p()))
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return this.scale.mul(2).log().neg().sub(value.sub(this.loc).abs().div(this.scale))
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    const distance = value.sub(this.loc)
    return distance.sign().mul(distance.abs().neg().div(this.scale).expm1()).mul(-0.5).add(0.5)
  }

  override icdf(probability: Tensor): Tensor {
    const centered = probability.sub(0.5)
    return this.loc.sub(this.scale.mul(centered.sign()).mul(centered.abs().mul(-2).log1p()))
  }

  override entropy(): Tensor {
    return this.scale.mul(2).log().add(1)
  }
}

/**
 * Cauchy's distribution, which has no mean. PyTorch's `Cauchy`.
 *
 * @throws ArgumentError unless `scale` is positive.
 * @example new Cauchy(0, 1).cdf(torch.tensor(1)).item() // 0.75
 */
export class Cauchy extends LocationScale {
  constructor(loc: Parameter, scale: Parameter, options: DistributionOptions = {}) {
    super(loc, scale, options)
  }

  override get mean(): Tensor {
    return full(this.batchShape, NaN, { dtype: this.loc.dtype })
  }

  override get variance(): Tensor {
    return full(this.batchShape, Infinity, { dtype: this.loc.dtype })
  }

  override get stddev(): Tensor {
    return this.variance
  }

  override expand(batchShape: readonly number[]): Cauchy {
    return new Cauchy(this.expanded(this.loc, batchShape), this.expanded(this.scale, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.icdf(draws.uniform(this.draw(sampleShape, options, this.loc.dtype)))
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return this.standardized(value).square().log1p().add(this.scale.log()).add(Math.log(Math.PI)).neg()
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    return this.standardized(value).atan().div(Math.PI).add(0.5)
  }

  override icdf(probability: Tensor): Tensor {
    return probability.sub(0.5).mul(Math.PI).tan().mul(this.scale).add(this.loc)
  }

  override entropy(): Tensor {
    return this.scale.log().add(Math.log(4 * Math.PI))
  }
}

/**
 * Gumbel's distribution, of the largest of many numbers. PyTorch's `Gumbel`.
 *
 * @throws ArgumentError unless `scale` is positive.
 * @example new Gumbel(0, 1).cdf(torch.tensor(0)).item().toFixed(4) // '0.3679'
 */
export class Gumbel extends LocationScale {
  constructor(loc: Parameter, scale: Parameter, options: DistributionOptions = {}) {
    super(loc, scale, options)
  }

  override get mean(): Tensor {
    return this.loc.add(this.scale.mul(EULER))
  }

  override get stddev(): Tensor {
    return this.scale.mul(Math.PI / Math.sqrt(6))
  }

  override expand(batchShape: readonly number[]): Gumbel {
    return new Gumbel(this.expanded(this.loc, batchShape), this.expanded(this.scale, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.loc.sub(
      draws
        .exponential(this.draw(sampleShape, options, this.loc.dtype))
        .log()
        .mul(this.scale),
    )
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const y = this.standardized(value).neg()
    return y.sub(y.exp()).sub(this.scale.log())
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    return this.standardized(value).neg().exp().neg().exp()
  }

  override icdf(probability: Tensor): Tensor {
    return this.loc.sub(probability.log().neg().log().mul(this.scale))
  }

  override entropy(): Tensor {
    return this.scale.log().add(1 + EULER)
  }
}

/**
 * The uniform distribution from `low` (included) to `high` (excluded). PyTorch's `Uniform`.
 *
 * @throws ArgumentError unless `low` is less than `high`.
 * @example new Uniform(0, 4).entropy().item().toFixed(4) // '1.3863'
 */
export class Uniform extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly low: Tensor
  readonly high: Tensor

  constructor(low: Parameter, high: Parameter, options: DistributionOptions = {}) {
    const as = broadcastAll('Uniform', { low, high })
    const [from, to] = [as(low), as(high)]
    super({ parameters: { low: [from, lessThan(to)], high: [to, greaterThan(from)] }, batchShape: from.shape, options })
    this.low = from
    this.high = to
  }

  override get support(): Constraint {
    return interval(this.low, this.high)
  }

  override get mean(): Tensor {
    return this.low.add(this.high).div(2)
  }

  /** NaN: all values are as likely. */
  override get mode(): Tensor {
    return this.high.mul(NaN)
  }

  override get variance(): Tensor {
    return this.width.square().div(12)
  }

  private get width(): Tensor {
    return this.high.sub(this.low)
  }

  override expand(batchShape: readonly number[]): Uniform {
    return new Uniform(this.expanded(this.low, batchShape), this.expanded(this.high, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return draws
      .uniform(this.draw(sampleShape, options, this.low.dtype))
      .mul(this.width)
      .add(this.low)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const isInside = this.low.le(value).logicalAnd(this.high.gt(value))
    return isInside.to(this.low.dtype).log().sub(this.width.log())
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    return value.sub(this.low).div(this.width).clamp(0, 1)
  }

  override icdf(probability: Tensor): Tensor {
    return probability.mul(this.width).add(this.low)
  }

  override entropy(): Tensor {
    return this.width.log()
  }
}

/**
 * The exponential distribution: waiting times for what happens `rate` times in a unit of time. PyTorch's `Exponential`.
 *
 * @throws ArgumentError unless `rate` is positive.
 * @example new Exponential(2).mean.item() // 0.5
 */
export class Exponential extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly rate: Tensor

  constructor(rate: Parameter, options: DistributionOptions = {}) {
    const value = broadcastAll('Exponential', { rate })(rate)
    super({ parameters: { rate: [value, positive] }, batchShape: value.shape, options })
    this.rate = value
  }

  override get support(): Constraint {
    return nonnegative
  }

  override get mean(): Tensor {
    return this.rate.reciprocal()
  }

  override get mode(): Tensor {
    return this.rate.mul(0)
  }

  override get stddev(): Tensor {
    return this.rate.reciprocal()
  }

  override get variance(): Tensor {
    return this.rate.pow(-2)
  }

  override expand(batchShape: readonly number[]): Exponential {
    return new Exponential(this.expanded(this.rate, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return draws.exponential(this.draw(sampleShape, options, this.rate.dtype)).div(this.rate)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return this.rate.log().sub(this.rate.mul(value))
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    return this.rate.mul(value).neg().exp().neg().add(1)
  }

  override icdf(probability: Tensor): Tensor {
    return probability.neg().log1p().neg().div(this.rate)
  }

  override entropy(): Tensor {
    return this.rate.log().neg().add(1)
  }
}

/**
 * The absolute values of normal numbers with mean 0. PyTorch's `HalfNormal`.
 *
 * @throws ArgumentError unless `scale` is positive.
 * @example new HalfNormal(1).mean.item().toFixed(4) // '0.7979'
 */
export class HalfNormal extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly scale: Tensor
  /** The normal distribution of both signs. */
  readonly base: Normal

  constructor(scale: Parameter, options: DistributionOptions = {}) {
    const width = broadcastAll('HalfNormal', { scale })(scale)
    super({ parameters: { scale: [width, positive] }, batchShape: width.shape, options })
    this.scale = width
    this.base = new Normal(0, width, { validateArgs: false })
  }

  override get support(): Constraint {
    return nonnegative
  }

  override get mean(): Tensor {
    return this.scale.mul(Math.sqrt(2 / Math.PI))
  }

  override get mode(): Tensor {
    return this.scale.mul(0)
  }

  override get variance(): Tensor {
    return this.scale.square().mul(1 - 2 / Math.PI)
  }

  override expand(batchShape: readonly number[]): HalfNormal {
    return new HalfNormal(this.expanded(this.scale, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.base.rsample(sampleShape, options).abs()
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return where(value.ge(0), this.base.logProb(value).add(Math.LN2), -Infinity)
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    return this.base.cdf(value).mul(2).sub(1)
  }

  override icdf(probability: Tensor): Tensor {
    return this.base.icdf(probability.add(1).div(2))
  }

  override entropy(): Tensor {
    return this.base.entropy().sub(Math.LN2)
  }
}
