// One of several values: categories, as numbers and as vectors with a 1.
import { ArgumentError } from '../errors/index.ts'
import { eye, full, multinomial, oneHot as oneHotVectors } from '../ops/index.ts'
import { finfo, numelOf } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { integerInterval, oneHot, realVector, simplex } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { allValues } from './discrete.ts'
import { Distribution, broadcastAll } from './distribution.ts'
import type { DistributionOptions, Parameter, SampleOptions } from './distribution.ts'
import { clampProbs } from './draws.ts'
import { givenOf } from './probabilities.ts'
import type { ProbabilityOptions } from './probabilities.ts'

/**
 * The numbers 0 to K - 1, with K probabilities along the last dimension, which are normalized: `new Categorical(probs)`, `new Categorical({ logits })`. PyTorch's `Categorical`.
 *
 * @throws ArgumentError unless one of both is given, with at least one dimension; for negative probabilities.
 * @example new Categorical(torch.tensor([1, 3])).logProb(torch.tensor(1)).exp().item() // 0.75
 */
export class Categorical extends Distribution {
  override get hasEnumerateSupport(): boolean {
    return true
  }
  readonly #given: Tensor
  readonly #isProbs: boolean

  constructor(probs: Parameter | ProbabilityOptions, options: DistributionOptions = {}) {
    const where = new.target.name
    const { name, value, options: rest } = givenOf(where, probs, options)
    const given = broadcastAll(where, { [name]: value })(value)
    if (given.ndim === 0) throw new ArgumentError(`${where}: parameter '${name}' must have at least one dimension, got a number.`)
    const isProbs = name === 'probs'
    const normalized = isProbs ? given.div(given.sum(-1, true)) : given.sub(given.logsumexp(-1, { keepdim: true }))
    super({
      parameters: { [name]: [normalized, isProbs ? simplex : realVector] },
      others: { probs: simplex, logits: realVector },
      batchShape: given.shape.slice(0, -1),
      options: rest,
    })
    this.#given = normalized
    this.#isProbs = isProbs
  }

  /** The probabilities, which add up to 1. Shape: the batch shape, then [K]. */
  get probs(): Tensor {
    return this.#isProbs ? this.#given : this.#given.softmax(-1)
  }

  /** The logarithms of the probabilities. Shape: as {@link probs}. */
  get logits(): Tensor {
    return this.#isProbs ? clampProbs(this.#given).log() : this.#given
  }

  /** K. */
  get numEvents(): number {
    return this.#given.shape.at(-1) ?? 0
  }

  override get support(): Constraint {
    return integerInterval(0, this.numEvents - 1)
  }

  /** NaN: categories have no mean. */
  override get mean(): Tensor {
    return full(this.batchShape, NaN, { dtype: this.#given.dtype })
  }

  override get mode(): Tensor {
    return this.probs.argmax(-1)
  }

  /** NaN: categories have no mean. */
  override get variance(): Tensor {
    return this.mean
  }

  override expand(batchShape: readonly number[]): Categorical {
    return new Categorical(this.expandedOdds(batchShape))
  }

  /** The options of an {@link expand}. */
  expandedOdds(batchShape: readonly number[]): ProbabilityOptions {
    const value = this.expanded(this.#given, batchShape, 1)
    return this.#isProbs ? { probs: value, ...this.options } : { logits: value, ...this.options }
  }

  override sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const { shape, generator } = this.draw(sampleShape, options, this.#given.dtype)
    const rows = this.probs.detach().reshape([-1, this.numEvents])
    const count = numelOf(sampleShape)
    if (count === 0 || rows.shape[0] === 0) return full(shape, 0, { dtype: 'int64' })
    return multinomial(rows, count, true, { generator }).t().reshape(shape)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const { logits } = this
    const shape = broadcastAll('Categorical.logProb', { value: value.to(logits.dtype), batch: logits.select(-1, 0) })(0).shape
    const index = value.to('int64').expand(shape).unsqueeze(-1)
    return logits
      .expand([...shape, this.numEvents])
      .gather(-1, index)
      .squeeze(-1)
  }

  override entropy(): Tensor {
    const { logits, probs } = this
    // The logarithm of 0 times 0 is 0.
    return logits.clamp(finfo(logits.dtype).min).mul(probs).sum(-1).neg()
  }

  override enumerateSupport(expand = true): Tensor {
    return allValues(this, this.numEvents, { dtype: 'int64' }, expand)
  }
}

/**
 * Vectors with a 1 in the place of the category, and zeros: `new OneHotCategorical(probs)`, `new OneHotCategorical({ logits })`. PyTorch's `OneHotCategorical`.
 *
 * @throws ArgumentError unless one of both is given, with at least one dimension; for negative probabilities.
 * @example new OneHotCategorical(torch.tensor([0, 1])).sample().toArray() // [0, 1]
 */
export class OneHotCategorical extends Distribution {
  override get hasEnumerateSupport(): boolean {
    return true
  }
  /** The distribution of the places. */
  readonly categorical: Categorical

  constructor(probs: Parameter | ProbabilityOptions, options: DistributionOptions = {}) {
    const { name, value, options: rest } = givenOf('OneHotCategorical', probs, options)
    const categorical = new Categorical({ [name]: value, ...rest })
    const { batchShape, numEvents, argConstraints } = categorical
    super({ parameters: {}, others: argConstraints, batchShape, eventShape: [numEvents], options: rest })
    this.categorical = categorical
  }

  get probs(): Tensor {
    return this.categorical.probs
  }

  get logits(): Tensor {
    return this.categorical.logits
  }

  override get support(): Constraint {
    return oneHot
  }

  override get mean(): Tensor {
    return this.probs
  }

  override get mode(): Tensor {
    return this.vectors(this.categorical.mode)
  }

  override get variance(): Tensor {
    return this.probs.mul(this.probs.neg().add(1))
  }

  override expand(batchShape: readonly number[]): OneHotCategorical {
    return new OneHotCategorical(this.categorical.expandedOdds(batchShape))
  }

  override sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.vectors(this.categorical.sample(sampleShape, options))
  }

  private vectors(places: Tensor): Tensor {
    return oneHotVectors(places, this.categorical.numEvents).to(this.probs.dtype)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    return this.categorical.logProb(value.argmax(-1))
  }

  override entropy(): Tensor {
    return this.categorical.entropy()
  }

  override enumerateSupport(expand = true): Tensor {
    const n = this.categorical.numEvents
    const values = eye(n, { dtype: this.probs.dtype }).view([n, ...this.batchShape.map(() => 1), n])
    return expand ? values.expand([n, ...this.batchShape, n]) : values
  }

  override toString(): string {
    return `${this.constructor.name}(${String(this.categorical)})`
  }
}
