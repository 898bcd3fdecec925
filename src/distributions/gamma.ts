// The gamma distribution and those that are made of it: chi-squared, Student's t, beta and Dirichlet.
import { stack, where, full } from '../ops/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { finfo } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { independent, nonnegative, positive, real, simplex, unitInterval } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { Distribution, broadcastAll } from './distribution.ts'
import type { DistributionOptions, Parameter, SampleOptions } from './distribution.ts'
import { draws } from './draws.ts'

/**
 * The gamma distribution with the shape `concentration` and the inverse scale `rate`. Gradients of samples are implicit. PyTorch's `Gamma`.
 *
 * @throws ArgumentError unless both parameters are positive.
 * @example new Gamma(3, 2).mean.item() // 1.5
 */
export class Gamma extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly concentration: Tensor
  readonly rate: Tensor

  constructor(concentration: Parameter, rate: Parameter, options: DistributionOptions = {}) {
    const as = broadcastAll(new.target.name, { concentration, rate })
    const [shape, inverse] = [as(concentration), as(rate)]
    super({ parameters: { concentration: [shape, positive], rate: [inverse, positive] }, batchShape: shape.shape, options })
    this.concentration = shape
    this.rate = inverse
  }

  override get support(): Constraint {
    return nonnegative
  }

  override get mean(): Tensor {
    return this.concentration.div(this.rate)
  }

  override get mode(): Tensor {
    return this.concentration.sub(1).div(this.rate).clamp(0)
  }

  override get variance(): Tensor {
    return this.concentration.div(this.rate.square())
  }

  override expand(batchShape: readonly number[]): Gamma {
    return new Gamma(this.expanded(this.concentration, batchShape), this.expanded(this.rate, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const draw = this.draw(sampleShape, options, this.concentration.dtype)
    const value = draws.gamma(this.concentration.expand(draw.shape), draw).div(this.rate)
    // What underflows has no density, and still a gradient.
    return value.add(value.detach().clamp(finfo(value.dtype).tiny).sub(value.detach()))
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const { concentration: a, rate } = this
    return a.xlogy(rate).add(a.sub(1).xlogy(value)).sub(rate.mul(value)).sub(a.lgamma())
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    const x = this.rate.mul(value)
    return this.concentration.expand(x.shape).igamma(x)
  }

  override entropy(): Tensor {
    const { concentration: a, rate } = this
    return a.sub(rate.log()).add(a.lgamma()).add(a.neg().add(1).mul(a.digamma()))
  }
}

/**
 * The sum of the squares of `df` standard normal numbers. PyTorch's `Chi2`.
 *
 * @throws ArgumentError unless `df` is positive.
 * @example new Chi2(3).mean.item() // 3
 */
export class Chi2 extends Gamma {
  constructor(df: Parameter, options: DistributionOptions = {}) {
    super(broadcastAll('Chi2', { df })(df).mul(0.5), 0.5, options)
  }

  get df(): Tensor {
    return this.concentration.mul(2)
  }

  override expand(batchShape: readonly number[]): Chi2 {
    return new Chi2(this.expanded(this.df, batchShape), this.options)
  }
}

/**
 * Student's t distribution with `df` degrees of freedom. PyTorch's `StudentT`.
 *
 * @throws ArgumentError unless `df` and `scale` are positive.
 * @example new StudentT(4).variance.item() // 2
 */
export class StudentT extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly df: Tensor
  readonly loc: Tensor
  readonly scale: Tensor

  constructor(df: Parameter, loc: Parameter = 0, scale: Parameter = 1, options: DistributionOptions = {}) {
    const as = broadcastAll('StudentT', { df, loc, scale })
    const [degrees, place, width] = [as(df), as(loc), as(scale)]
    super({ parameters: { df: [degrees, positive], loc: [place, real], scale: [width, positive] }, batchShape: degrees.shape, options })
    this.df = degrees
    this.loc = place
    this.scale = width
  }

  override get support(): Constraint {
    return real
  }

  override get mean(): Tensor {
    return where(this.df.gt(1), this.loc, NaN)
  }

  override get mode(): Tensor {
    return this.loc
  }

  override get variance(): Tensor {
    const finite = this.scale.square().mul(this.df).div(this.df.sub(2))
    return where(this.df.gt(2), finite, where(this.df.gt(1), full([], Infinity, { dtype: this.df.dtype }), NaN))
  }

  override expand(batchShape: readonly number[]): StudentT {
    return new StudentT(this.expanded(this.df, batchShape), this.expanded(this.loc, batchShape), this.expanded(this.scale, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const draw = this.draw(sampleShape, options, this.loc.dtype)
    const squares = draws.gamma(this.df.mul(0.5).expand(draw.shape), draw).mul(2)
    return draws.normal(draw).mul(squares.div(this.df).rsqrt()).mul(this.scale).add(this.loc)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const { df, scale } = this
    const y = value.sub(this.loc).div(scale)
    const norm = scale
      .log()
      .add(df.log().mul(0.5))
      .add(Math.log(Math.PI) / 2)
      .add(df.mul(0.5).lgamma())
      .sub(df.add(1).mul(0.5).lgamma())
    return df.add(1).mul(-0.5).mul(y.square().div(df).log1p()).sub(norm)
  }

  override entropy(): Tensor {
    const { df, scale } = this
    const [half, next] = [df.mul(0.5), df.add(1).mul(0.5)]
    const logBeta = half
      .lgamma()
      .add(Math.log(Math.PI) / 2)
      .sub(next.lgamma())
    return scale
      .log()
      .add(next.mul(next.digamma().sub(half.digamma())))
      .add(df.log().mul(0.5))
      .add(logBeta)
  }
}

/**
 * Dirichlet's distribution over vectors of positive numbers that add up to 1, by `concentration` along the last dimension. Gradients of samples are implicit. PyTorch's `Dirichlet`.
 *
 * @throws ArgumentError unless `concentration` has a dimension, and is positive.
 * @example new Dirichlet(torch.tensor([1, 3])).mean.toArray() // [0.25, 0.75]
 */
export class Dirichlet extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly concentration: Tensor

  constructor(concentration: Tensor, options: DistributionOptions = {}) {
    const value = broadcastAll('Dirichlet', { concentration })(concentration)
    if (value.ndim === 0) throw new ArgumentError("Dirichlet: parameter 'concentration' must have at least one dimension, got a number.")
    super({
      parameters: { concentration: [value, independent(positive, 1)] },
      batchShape: value.shape.slice(0, -1),
      eventShape: value.shape.slice(-1),
      options,
    })
    this.concentration = value
  }

  override get support(): Constraint {
    return simplex
  }

  override get mean(): Tensor {
    return this.concentration.div(this.concentration.sum(-1, true))
  }

  override get mode(): Tensor {
    const above = this.concentration.sub(1).clamp(0)
    const mode = above.div(above.sum(-1, true))
    // With all concentrations below 1, PyTorch names the first corner.
    const corner = full(this.eventShape, 0, { dtype: mode.dtype })
    corner.narrow(0, 0, 1).fill_(1)
    return where(this.concentration.lt(1).all(-1, true), corner, mode)
  }

  override get variance(): Tensor {
    const total = this.concentration.sum(-1, true)
    return this.concentration.mul(total.sub(this.concentration)).div(total.square().mul(total.add(1)))
  }

  override expand(batchShape: readonly number[]): Dirichlet {
    return new Dirichlet(this.expanded(this.concentration, batchShape, 1), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const draw = this.draw(sampleShape, options, this.concentration.dtype)
    return draws.dirichlet(this.concentration.expand(draw.shape), draw)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const { concentration: a } = this
    return a.sub(1).xlogy(value).sum(-1).add(a.sum(-1).lgamma()).sub(a.lgamma().sum(-1))
  }

  override entropy(): Tensor {
    const { concentration: a } = this
    const total = a.sum(-1)
    const size = this.eventShape[0] ?? 0
    return a.lgamma().sum(-1).sub(total.lgamma()).sub(total.neg().add(size).mul(total.digamma())).sub(a.sub(1).mul(a.digamma()).sum(-1))
  }
}

/**
 * The beta distribution over numbers between 0 and 1: large `concentration1` pulls to 1, large `concentration0` to 0. Gradients of samples are implicit. PyTorch's `Beta`.
 *
 * @throws ArgumentError unless both parameters are positive.
 * @example new Beta(3, 1).mean.item() // 0.75
 */
export class Beta extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly concentration1: Tensor
  readonly concentration0: Tensor
  readonly #dirichlet: Dirichlet

  constructor(concentration1: Parameter, concentration0: Parameter, options: DistributionOptions = {}) {
    const as = broadcastAll('Beta', { concentration1, concentration0 })
    const [one, zero] = [as(concentration1), as(concentration0)]
    super({ parameters: { concentration1: [one, positive], concentration0: [zero, positive] }, batchShape: one.shape, options })
    this.concentration1 = one
    this.concentration0 = zero
    this.#dirichlet = new Dirichlet(stack([one, zero], -1), { validateArgs: false })
  }

  override get support(): Constraint {
    return unitInterval
  }

  override get mean(): Tensor {
    return this.concentration1.div(this.total)
  }

  override get mode(): Tensor {
    return this.#dirichlet.mode.select(-1, 0)
  }

  override get variance(): Tensor {
    const { total } = this
    return this.concentration1.mul(this.concentration0).div(total.square().mul(total.add(1)))
  }

  private get total(): Tensor {
    return this.concentration1.add(this.concentration0)
  }

  override expand(batchShape: readonly number[]): Beta {
    return new Beta(this.expanded(this.concentration1, batchShape), this.expanded(this.concentration0, batchShape), this.options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.#dirichlet.rsample(sampleShape, options).select(-1, 0)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return this.#dirichlet.logProb(stack([value, value.neg().add(1)], -1))
  }

  override entropy(): Tensor {
    return this.#dirichlet.entropy()
  }
}
