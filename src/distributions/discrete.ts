// Distributions over counts: Bernoulli, binomial, geometric, Poisson.
import { UnsupportedError } from '../errors/index.ts'
import { amax, amin, arange, binaryCrossEntropyWithLogits, full, poisson, where } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { boolean, greaterThanEq, integerInterval, nonnegativeInteger, real, unitInterval } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { Distribution, broadcastAll } from './distribution.ts'
import type { DistributionFacts, DistributionOptions, Parameter, SampleOptions } from './distribution.ts'
import { draws } from './draws.ts'
import { givenOf, logitsOf } from './probabilities.ts'
import type { Given, ProbabilityOptions } from './probabilities.ts'

/** The entropy of a yes with these logits, times minus 1 where `target` are the probabilities. */
const crossEntropy = (logits: Tensor, target: Tensor): Tensor => binaryCrossEntropyWithLogits(logits, target, { reduction: 'none' })

/** A distribution with the probability of a yes: `probs`, or its `logits`. */
abstract class YesOrNo extends Distribution {
  readonly #given: Tensor
  readonly #isProbs: boolean

  constructor({ name }: Given, value: Tensor, facts: Omit<DistributionFacts, 'batchShape'>) {
    const constraints = { probs: unitInterval, logits: real }
    super({ ...facts, parameters: { ...facts.parameters, [name]: [value, constraints[name]] }, others: constraints, batchShape: value.shape })
    this.#given = value
    this.#isProbs = name === 'probs'
  }

  /** The probability of a yes. */
  get probs(): Tensor {
    return this.#isProbs ? this.#given : this.#given.sigmoid()
  }

  /** The logarithm of the odds of a yes. */
  get logits(): Tensor {
    return this.#isProbs ? logitsOf(this.#given) : this.#given
  }

  /** The options of an {@link expand}. */
  protected odds(batchShape: readonly number[]): ProbabilityOptions {
    const value = this.expanded(this.#given, batchShape)
    return this.#isProbs ? { probs: value, ...this.options } : { logits: value, ...this.options }
  }

  /** Samples are no functions of the parameters. */
  override sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.drawn(sampleShape, options)
  }

  protected abstract drawn(sampleShape: readonly number[], options: SampleOptions): Tensor
}

/**
 * 1 with the probability `probs`, else 0: `new Bernoulli(probs)`, `new Bernoulli({ logits })`. PyTorch's `Bernoulli`.
 *
 * @throws ArgumentError unless one of both is given; for probabilities outside of 0 to 1.
 * @example new Bernoulli(0.25).logProb(torch.tensor(1)).item().toFixed(4) // '-1.3863'
 */
export class Bernoulli extends YesOrNo {
  override get hasEnumerateSupport(): boolean {
    return true
  }

  constructor(probs: Parameter | ProbabilityOptions, options: DistributionOptions = {}) {
    const given = givenOf('Bernoulli', probs, options)
    super(given, broadcastAll('Bernoulli', { [given.name]: given.value })(given.value), { parameters: {}, options: given.options })
  }

  override get support(): Constraint {
    return boolean
  }

  override get mean(): Tensor {
    return this.probs
  }

  /** NaN where both are as likely. */
  override get mode(): Tensor {
    const { probs } = this
    return where(probs.eq(0.5), NaN, probs.ge(0.5).to(probs.dtype))
  }

  override get variance(): Tensor {
    return this.probs.mul(this.probs.neg().add(1))
  }

  override expand(batchShape: readonly number[]): Bernoulli {
    return new Bernoulli(this.odds(batchShape))
  }

  protected override drawn(sampleShape: readonly number[], options: SampleOptions): Tensor {
    const probs = this.probs.detach()
    return draws
      .uniform(this.draw(sampleShape, options, probs.dtype))
      .lt(probs)
      .to(probs.dtype)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const [logits, target] = together(this.logits, value)
    return crossEntropy(logits, target).neg()
  }

  override entropy(): Tensor {
    return crossEntropy(this.logits, this.probs)
  }

  override enumerateSupport(expand = true): Tensor {
    return allValues(this, 2, this.probs, expand)
  }
}

/** Two tensors, broadcast against each other, in the dtype of the first. */
function together(first: Tensor, second: Tensor): readonly [Tensor, Tensor] {
  const as = broadcastAll('logProb', { first, second: second.to(first.dtype) })
  return [as(first), as(second.to(first.dtype))]
}

/** The numbers below `count` along a first dimension, before those of the batch. */
export function allValues({ batchShape }: Distribution, count: number, { dtype }: { readonly dtype: Tensor['dtype'] }, expand: boolean): Tensor {
  const values = arange(count, { dtype }).view([count, ...batchShape.map(() => 1)])
  return expand ? values.expand([count, ...batchShape]) : values
}

/**
 * How many of `totalCount` trials succeed, each with the probability `probs`: `new Binomial(10, probs)`, `new Binomial(10, { logits })`. PyTorch's `Binomial`.
 *
 * @throws ArgumentError unless one of both is given; for probabilities outside of 0 to 1, and counts that are not whole numbers.
 * @example new Binomial(10, 0.5).mean.item() // 5
 */
export class Binomial extends YesOrNo {
  override get hasEnumerateSupport(): boolean {
    return true
  }
  readonly totalCount: Tensor

  constructor(totalCount: Parameter, probs: Parameter | ProbabilityOptions, options: DistributionOptions = {}) {
    const given = givenOf('Binomial', probs, options)
    const as = broadcastAll('Binomial', { totalCount, [given.name]: given.value })
    const counts = as(totalCount)
    super(given, as(given.value), { parameters: { totalCount: [counts, nonnegativeInteger] }, options: given.options })
    this.totalCount = counts
  }

  override get support(): Constraint {
    return integerInterval(0, this.totalCount)
  }

  override get mean(): Tensor {
    return this.totalCount.mul(this.probs)
  }

  override get mode(): Tensor {
    return this.totalCount.add(1).mul(this.probs).floor().minimum(this.totalCount)
  }

  override get variance(): Tensor {
    return this.mean.mul(this.probs.neg().add(1))
  }

  override expand(batchShape: readonly number[]): Binomial {
    return new Binomial(this.expanded(this.totalCount, batchShape), this.odds(batchShape))
  }

  protected override drawn(sampleShape: readonly number[], options: SampleOptions): Tensor {
    const probs = this.probs.detach()
    const draw = this.draw(sampleShape, options, probs.dtype)
    const most = this.totalCount.numel === 0 ? 0 : amax(this.totalCount).item()
    // Trial by trial, so that the memory does not grow with their count.
    let sum = full(draw.shape, 0, { dtype: probs.dtype })
    for (let i = 0; i < most; i++) sum = sum.add(draws.uniform(draw).lt(probs).logicalAnd(this.totalCount.gt(i)))
    return sum
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const { totalCount: n, logits } = this
    const norm = n.mul(clampedAbove0(logits)).add(n.mul(logits.abs().neg().exp().log1p())).sub(n.add(1).lgamma())
    return value.mul(logits).sub(value.add(1).lgamma()).sub(n.sub(value).add(1).lgamma()).sub(norm)
  }

  override entropy(): Tensor {
    const logs = this.logProb(this.enumerateSupport(false))
    return logs.exp().mul(logs).sum(0).neg()
  }

  /** @throws UnsupportedError if the counts differ. */
  override enumerateSupport(expand = true): Tensor {
    const count = amax(this.totalCount).item()
    if (amin(this.totalCount).item() !== count)
      throw new UnsupportedError(
        'Binomial.enumerateSupport: the counts of trials differ, so that the values do too; make a distribution for each count.',
      )
    return allValues(this, count + 1, this.totalCount, expand)
  }
}

/** max(x, 0), with the gradient 1/2 at 0. */
const clampedAbove0 = (x: Tensor): Tensor => x.clamp(0).add(x).sub(x.clamp(null, 0)).div(2)

/**
 * How many trials fail before the first success, each succeeding with the probability `probs`: `new Geometric(probs)`, `new Geometric({ logits })`. PyTorch's `Geometric`.
 *
 * @throws ArgumentError unless one of both is given; for probabilities that are not above 0 and at most 1.
 * @example new Geometric(0.25).mean.item() // 3
 */
export class Geometric extends YesOrNo {
  constructor(probs: Parameter | ProbabilityOptions, options: DistributionOptions = {}) {
    const given = givenOf('Geometric', probs, options)
    super(given, broadcastAll('Geometric', { [given.name]: given.value })(given.value), { parameters: {}, options: given.options })
  }

  override get support(): Constraint {
    return nonnegativeInteger
  }

  override get mean(): Tensor {
    return this.probs.reciprocal().sub(1)
  }

  override get mode(): Tensor {
    return this.probs.mul(0)
  }

  override get variance(): Tensor {
    return this.mean.div(this.probs)
  }

  override expand(batchShape: readonly number[]): Geometric {
    return new Geometric(this.odds(batchShape))
  }

  protected override drawn(sampleShape: readonly number[], options: SampleOptions): Tensor {
    const probs = this.probs.detach()
    const u = draws.uniform(this.draw(sampleShape, options, probs.dtype))
    return u.neg().log1p().div(probs.neg().log1p()).floor()
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const { probs } = this
    // With the probability 1, the logarithm of a failure is -Infinity, and there is none.
    const failing = probs.maskedFill(probs.eq(1).logicalAnd(value.eq(0)), 0)
    return value.mul(failing.neg().log1p()).add(probs.log())
  }

  override entropy(): Tensor {
    return crossEntropy(this.logits, this.probs).div(this.probs)
  }
}

/**
 * Poisson's distribution: how often what happens `rate` times on average happens. PyTorch's `Poisson`.
 *
 * @throws ArgumentError for negative rates.
 * @example new Poisson(4).variance.item() // 4
 */
export class Poisson extends Distribution {
  readonly rate: Tensor

  constructor(rate: Parameter, options: DistributionOptions = {}) {
    const value = broadcastAll('Poisson', { rate })(rate)
    super({ parameters: { rate: [value, greaterThanEq(0)] }, batchShape: value.shape, options })
    this.rate = value
  }

  override get support(): Constraint {
    return nonnegativeInteger
  }

  override get mean(): Tensor {
    return this.rate
  }

  override get mode(): Tensor {
    return this.rate.floor()
  }

  override get variance(): Tensor {
    return this.rate
  }

  override expand(batchShape: readonly number[]): Poisson {
    return new Poisson(this.expanded(this.rate, batchShape), this.options)
  }

  override sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const { shape, generator } = this.draw(sampleShape, options, this.rate.dtype)
    return poisson(this.rate.detach().expand(shape), { generator })
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return value.xlogy(this.rate).sub(this.rate).sub(value.add(1).lgamma())
  }
}
