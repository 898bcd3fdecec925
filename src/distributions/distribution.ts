// Distribution: what all distributions have in common. PyTorch's torch.distributions.Distribution.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError, UnsupportedError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { full } from '../ops/index.ts'
import { checkOptions, uncalledHint, valueText } from '../protocol/index.ts'
import { Generator, Tensor, broadcastShapes, checkTensor, formatShape, getDefaultDtype } from '../tensor/index.ts'
import type { Constraint } from './constraints.ts'
import type { Draw } from './draws.ts'

/** Options of every distribution. */
export interface DistributionOptions {
  /** Whether parameters and values are checked, which reads them. Default: what {@link setDefaultValidateArgs} says, which is true. */
  readonly validateArgs?: boolean
}

/** Options of samples. */
export interface SampleOptions {
  /** Where the random numbers come from. Default: the generator that `torch.manualSeed` seeds. */
  readonly generator?: Generator | null
}

/** A parameter of a distribution. */
export type Parameter = Tensor | number

/** What a subclass says of itself. */
export interface DistributionFacts {
  /** The parameters as given, by name, broadcast against each other; with what they must satisfy. */
  readonly parameters: Readonly<Record<string, readonly [value: Tensor, constraint: Constraint]>>
  /** What parameters that were not given must satisfy: `logits` beside `probs`. */
  readonly others?: Readonly<Record<string, Constraint>>
  readonly batchShape: readonly number[]
  readonly eventShape?: readonly number[]
  readonly options: DistributionOptions
}

let validatesByDefault = true

/**
 * Sets whether distributions that are made from now on check their arguments. PyTorch's `Distribution.set_default_validate_args`. Throws ArgumentError unless `value` is true or
 * false.
 */
export function setDefaultValidateArgs(value: boolean): void {
  if (typeof value !== 'boolean') throw new ArgumentError(`setDefaultValidateArgs: argument 'value' must be true or false, got ${valueText(value)}.`)
  validatesByDefault = value
}

/**
 * How the parameters of a distribution become tensors of one shape and dtype: numbers get the dtype of the tensors beside them, and the default dtype if there are none. Throws
 * ArgumentError, which names the parameter, for anything but tensors and numbers; ShapeError if the shapes do not broadcast.
 */
export function broadcastAll(where: string, given: Readonly<Record<string, Parameter>>): (value: Parameter) => Tensor {
  for (const [name, value] of Object.entries(given))
    if (typeof value !== 'number' && !(value instanceof Tensor))
      throw new ArgumentError(`${where}: argument '${name}' must be a Tensor or a number, got ${valueText(value)}.${uncalledHint(value)}`)
  const tensors = Object.values(given).flatMap((value) => (value instanceof Tensor ? [value] : []))
  const dtype = tensors.find((tensor) => tensor.isFloatingPoint())?.dtype ?? getDefaultDtype()
  const shape = tensors.map((tensor) => tensor.shape).reduce<readonly number[]>((a, b) => broadcastShapes(where, a, b), [])
  return (value) => (typeof value === 'number' ? full(shape, value, { dtype }) : (value.isFloatingPoint() ? value : value.to(dtype)).expand(shape))
}

/** The sum over the last `count` dimensions. */
export const sumOfLast = (x: Tensor, count: number): Tensor => (count === 0 ? x : x.flatten(x.ndim - count).sum(-1))

/** Whether all elements hold; in a trace, where they have no data, they count as right. */
const allHold = (holds: Tensor): boolean => holds.isFake || Boolean(holds.all().item())

/**
 * A distribution of random tensors: `batchShape` are the dimensions of independent distributions with parameters of their own, `eventShape` those of one sample. PyTorch's
 * `torch.distributions.Distribution`; a method that a distribution does not have throws UnsupportedError.
 *
 * @example
 * const x = new Normal(torch.zeros([3]), 1).sample([2]) // shape [2, 3]
 */
export abstract class Distribution {
  /** The shape of the independent distributions. */
  readonly batchShape: readonly number[]
  /** The shape of one sample of one of them. */
  readonly eventShape: readonly number[]
  /** Whether arguments of methods are checked. */
  readonly validateArgs: boolean
  readonly #constraints: Readonly<Record<string, Constraint>>
  readonly #parameters: Readonly<Record<string, Tensor>>

  constructor({ parameters, others = {}, batchShape, eventShape = [], options }: DistributionFacts) {
    const where = this.constructor.name
    checkOptions(where, options, { validateArgs: 'boolean' })
    this.batchShape = batchShape
    this.eventShape = eventShape
    this.#constraints = { ...others, ...Object.fromEntries(Object.entries(parameters).map(([name, [, constraint]]) => [name, constraint])) }
    this.#parameters = Object.fromEntries(Object.entries(parameters).map(([name, [value]]) => [name, value]))
    this.validateArgs = options.validateArgs ?? validatesByDefault
    if (!this.validateArgs) return
    for (const [name, [value, constraint]] of Object.entries(parameters))
      if (!allHold(constraint.check(value)))
        throw new ArgumentError(`${where}: parameter '${name}' must satisfy ${String(constraint)}, got ${foundText(value)}.`)
  }

  /** What each parameter must satisfy, by its name. */
  get argConstraints(): Readonly<Record<string, Constraint>> {
    return this.#constraints
  }

  /** Whether samples have gradients with respect to the parameters. */
  get hasRsample(): boolean {
    return false
  }

  /** Whether {@link enumerateSupport} lists all values. */
  get hasEnumerateSupport(): boolean {
    return false
  }

  /** The values that samples may have. */
  abstract get support(): Constraint

  /** The distributions with the batch shape `batchShape`, to which theirs must broadcast. PyTorch's `expand`. */
  abstract expand(batchShape: readonly number[]): Distribution

  /** The logarithm of the density, or of the probability, at `value`. Shape: that of `value`, broadcast with the batch shape, without the event shape. */
  abstract logProb(value: Tensor): Tensor

  get mean(): Tensor {
    return this.unsupported('mean')
  }

  /** The most likely value. */
  get mode(): Tensor {
    return this.unsupported('mode')
  }

  get variance(): Tensor {
    return this.unsupported('variance')
  }

  /** The standard deviation. */
  get stddev(): Tensor {
    return this.variance.sqrt()
  }

  /** Samples of shape `sampleShape`, then the batch shape, then the event shape, without gradients. */
  sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return noGrad(() => this.rsample(sampleShape, options))
  }

  /**
   * Samples as {@link sample} gives them, with gradients with respect to the parameters: the samples are functions of them and of random numbers.
   *
   * @throws UnsupportedError for distributions whose samples have no gradients, see {@link hasRsample}.
   */
  rsample(_sampleShape?: readonly number[], _options?: SampleOptions): Tensor {
    return this.unsupported('rsample', 'its samples have no gradients: use sample, and logProb for a score-function estimate')
  }

  /** The probability of values up to `value`, elementwise. */
  cdf(_value: Tensor): Tensor {
    return this.unsupported('cdf')
  }

  /** The inverse of {@link cdf}: the value that samples do not exceed with this probability. */
  icdf(_probability: Tensor): Tensor {
    return this.unsupported('icdf')
  }

  /** The differential entropy, or the entropy, in nats. Shape: the batch shape. */
  entropy(): Tensor {
    return this.unsupported('entropy')
  }

  /** e to the {@link entropy}. */
  perplexity(): Tensor {
    return this.entropy().exp()
  }

  /** All values of a discrete distribution along a first dimension; for each of the batch, or with `expand` false with sizes of 1 in its place. */
  enumerateSupport(_expand = true): Tensor {
    return this.unsupported('enumerateSupport')
  }

  /** The options of an {@link expand}. */
  protected get options(): DistributionOptions {
    return { validateArgs: this.validateArgs }
  }

  /** The shape of samples. Throws ArgumentError if `sampleShape` is no array of sizes. */
  protected sampled(sampleShape: readonly number[]): readonly number[] {
    if (!Array.isArray(sampleShape) || !sampleShape.every((n) => Number.isSafeInteger(n) && n >= 0))
      throw new ArgumentError(
        `${this.constructor.name}.sample: argument 'sampleShape' must be an array of sizes, such as [2, 3], got ${valueText(sampleShape)}.`,
      )
    return [...sampleShape, ...this.batchShape, ...this.eventShape]
  }

  /** What random numbers of samples are drawn with: their shape, dtype and generator. Throws ArgumentError if the option `generator` is no torch.Generator. */
  protected draw(sampleShape: readonly number[], options: SampleOptions, dtype: DType): Draw {
    const shape = this.sampled(sampleShape)
    checkOptions(`${this.constructor.name}.sample`, options, { generator: true })
    const { generator = null } = options
    if (generator !== null && !(generator instanceof Generator))
      throw new ArgumentError(`${this.constructor.name}.sample: option 'generator' must be a torch.Generator, got ${valueText(generator)}.`)
    return { shape, dtype, generator }
  }

  /** Throws unless `value` may be a sample: ArgumentError if it is not a tensor or outside of the support, ShapeError if its shape does not broadcast. */
  protected checkSample(method: string, value: Tensor): void {
    const where = `${this.constructor.name}.${method}`
    checkTensor(where, 'value', value)
    if (!this.validateArgs) return
    this.checkShape(where, value)
    const { support } = this
    if (!allHold(support.check(value)))
      throw new ArgumentError(`${where}: argument 'value' must be within the support, ${String(support)}, got ${foundText(value)}.`)
  }

  protected checkShape(where: string, value: Tensor): void {
    const wanted = [...this.batchShape, ...this.eventShape]
    const events = this.eventShape.length
    const same = value.ndim >= events && this.eventShape.every((n, i) => value.shape[value.ndim - events + i] === n)
    const fits = wanted.every((n, i) => {
      const at = value.ndim - wanted.length + i
      return at < 0 || n === 1 || value.shape[at] === 1 || value.shape[at] === n
    })
    if (!same || !fits)
      throw new ShapeError(
        `${where}: argument 'value' must broadcast with the batch shape ${formatShape(this.batchShape)} and end with the event shape ${formatShape(this.eventShape)}, got shape ${formatShape(value.shape)}.`,
      )
  }

  protected unsupported(member: string, why = 'PyTorch has none either'): never {
    throw new UnsupportedError(`${this.constructor.name}.${member}: there is no ${member} for this distribution; ${why}.`)
  }

  /** The parameters of an {@link expand}: each to a batch shape. */
  protected expanded(parameter: Tensor, batchShape: readonly number[], eventDims = 0): Tensor {
    return parameter.expand([...batchShape, ...parameter.shape.slice(parameter.ndim - eventDims)])
  }

  toString(): string {
    const parts = Object.entries(this.#parameters).map(
      ([name, value]) => `${name}: ${value.numel === 1 ? String(value.item()) : formatShape(value.shape)}`,
    )
    return `${this.constructor.name}(${parts.join(', ')})`
  }
}

/** A tensor in a message: its elements, as far as there are few. */
const foundText = (value: Tensor): string => (value.numel <= 20 ? String(value) : `a tensor of shape ${formatShape(value.shape)} with other values`)
