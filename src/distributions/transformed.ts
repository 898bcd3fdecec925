// Distributions made of others: transformed, independent, and logarithms that are normal.
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { checkOptions, valueText } from '../protocol/index.ts'
import { Tensor, formatShape, sameShape } from '../tensor/index.ts'
import { independent, positive } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { Distribution, broadcastAll, sumOfLast } from './distribution.ts'
import type { DistributionOptions, Parameter, SampleOptions } from './distribution.ts'
import { ExpTransform } from './elementTransforms.ts'
import { Normal } from './normal.ts'
import { ComposeTransform, Transform, checkTransforms, widened } from './transform.ts'

function checkDistribution(where: string, value: Distribution): void {
  if (!(value instanceof Distribution)) throw new ArgumentError(`${where}: argument 'base' must be a Distribution, got ${valueText(value)}.`)
}

/**
 * A distribution whose last `count` batch dimensions belong to the event: their densities are multiplied. PyTorch's `Independent`.
 *
 * @throws ArgumentError unless the base has that many batch dimensions.
 * @example new Independent(new Normal(torch.zeros([3]), 1), 1).eventShape // [3]
 */
export class Independent extends Distribution {
  readonly base: Distribution
  /** How many dimensions of the batch of `base` belong to the event. PyTorch's `reinterpreted_batch_ndims`. */
  readonly reinterpretedBatchNdims: number

  constructor(base: Distribution, reinterpretedBatchNdims: number, options: DistributionOptions = {}) {
    checkDistribution('Independent', base)
    const count = reinterpretedBatchNdims
    if (!Number.isInteger(count) || count < 0 || count > base.batchShape.length)
      throw new ArgumentError(
        `Independent: argument 'reinterpretedBatchNdims' must be an integer from 0 to ${base.batchShape.length}, the batch dimensions of ${String(base)}, got ${valueText(count)}.`,
      )
    const cut = base.batchShape.length - count
    super({
      parameters: {},
      batchShape: base.batchShape.slice(0, cut),
      eventShape: [...base.batchShape.slice(cut), ...base.eventShape],
      options,
    })
    this.base = base
    this.reinterpretedBatchNdims = count
  }

  override get hasRsample(): boolean {
    return this.base.hasRsample
  }

  override get hasEnumerateSupport(): boolean {
    return this.reinterpretedBatchNdims === 0 && this.base.hasEnumerateSupport
  }

  override get support(): Constraint {
    return this.reinterpretedBatchNdims === 0 ? this.base.support : independent(this.base.support, this.reinterpretedBatchNdims)
  }

  override get mean(): Tensor {
    return this.base.mean
  }

  override get mode(): Tensor {
    return this.base.mode
  }

  override get variance(): Tensor {
    return this.base.variance
  }

  override expand(batchShape: readonly number[]): Independent {
    const count = this.reinterpretedBatchNdims
    return new Independent(this.base.expand([...batchShape, ...this.eventShape.slice(0, count)]), count, this.options)
  }

  override sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.base.sample(sampleShape, options)
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.base.rsample(sampleShape, options)
  }

  override logProb(value: Tensor): Tensor {
    return sumOfLast(this.base.logProb(value), this.reinterpretedBatchNdims)
  }

  override entropy(): Tensor {
    return sumOfLast(this.base.entropy(), this.reinterpretedBatchNdims)
  }

  override enumerateSupport(expand = true): Tensor {
    return this.reinterpretedBatchNdims === 0
      ? this.base.enumerateSupport(expand)
      : this.unsupported('enumerateSupport', 'the values of several dimensions would be all combinations')
  }

  override toString(): string {
    return `${this.constructor.name}(${String(this.base)}, ${this.reinterpretedBatchNdims})`
  }
}

/**
 * The distribution of what transforms, the first one applied first, make of samples of `base`. PyTorch's `TransformedDistribution`.
 *
 * @throws ShapeError if the base has fewer dimensions than the transforms take.
 * @example new TransformedDistribution(new Normal(0, 1), [new ExpTransform()]).support.toString() // 'GreaterThan(lowerBound=0)'
 */
export class TransformedDistribution extends Distribution {
  readonly base: Distribution
  readonly transforms: readonly Transform[]

  constructor(base: Distribution, transforms: Transform | readonly Transform[], options: DistributionOptions = {}) {
    const where = new.target.name
    checkDistribution(where, base)
    const list = transforms instanceof Transform ? [transforms] : transforms
    checkTransforms(where, 'transforms', list)
    const shape = [...base.batchShape, ...base.eventShape]
    const whole = list.length === 0 ? null : new ComposeTransform(list)
    const [from, to] = whole === null ? [0, 0] : [whole.domain.eventDim, whole.codomain.eventDim]
    if (shape.length < from)
      throw new ShapeError(
        `${where}: the transforms take events of ${from} dimensions, but ${String(base)} has the shape ${formatShape(shape)}; give it a batch by expand.`,
      )
    const forward = whole?.forwardShape(shape) ?? shape
    const needed = whole?.inverseShape(forward) ?? shape
    const expanded = sameShape(needed, shape) ? base : base.expand(needed.slice(0, needed.length - base.eventShape.length))
    const joined = from - base.eventShape.length
    const eventDim = Math.max(to, base.eventShape.length + to - from)
    super({
      parameters: {},
      batchShape: forward.slice(0, forward.length - eventDim),
      eventShape: forward.slice(forward.length - eventDim),
      options,
    })
    this.base = joined > 0 ? new Independent(expanded, joined) : expanded
    this.transforms = [...list]
  }

  override get hasRsample(): boolean {
    return this.base.hasRsample
  }

  override get support(): Constraint {
    const last = this.transforms.at(-1)
    return last === undefined ? this.base.support : widened(last.codomain, this.eventShape.length)
  }

  override expand(batchShape: readonly number[]): TransformedDistribution {
    return new TransformedDistribution(this.expandedBase(batchShape), this.transforms, this.options)
  }

  /** The base of an {@link expand}. */
  protected expandedBase(batchShape: readonly number[]): Distribution {
    const shape = [...batchShape, ...this.eventShape]
    const inner = this.transforms.length === 0 ? shape : new ComposeTransform(this.transforms).inverseShape(shape)
    return this.base.expand(inner.slice(0, inner.length - this.base.eventShape.length))
  }

  override sample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.forward(this.base.sample(sampleShape, options)).detach()
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    return this.forward(this.base.rsample(sampleShape, options))
  }

  private forward(x: Tensor): Tensor {
    return this.transforms.reduce((value, transform) => transform.forward(value), x)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    let [y, eventDim] = [value, this.eventShape.length]
    let total: Tensor | null = null
    for (const transform of this.transforms.toReversed()) {
      const x = transform.inverse(y)
      eventDim += transform.domain.eventDim - transform.codomain.eventDim
      const term = sumOfLast(transform.logAbsDetJacobian(x, y), eventDim - transform.domain.eventDim)
      total = total === null ? term : total.add(term)
      y = x
    }
    const inner = sumOfLast(this.base.logProb(y), eventDim - this.base.eventShape.length)
    return total === null ? inner : inner.sub(total)
  }

  override cdf(value: Tensor): Tensor {
    this.checkSample('cdf', value)
    const inner = this.transforms.reduceRight((y, transform) => transform.inverse(y), value)
    return this.monotone(this.base.cdf(inner))
  }

  override icdf(probability: Tensor): Tensor {
    return this.forward(this.base.icdf(this.monotone(probability)))
  }

  /** Probabilities from the other end where the transforms reverse the order. */
  private monotone(probability: Tensor): Tensor {
    if (this.transforms.length === 0) return probability
    const { sign } = new ComposeTransform(this.transforms)
    return sign === 1 ? probability : probability.sub(0.5).mul(sign).add(0.5)
  }

  override toString(): string {
    return `${this.constructor.name}(${String(this.base)}, [${this.transforms.map(String).join(', ')}])`
  }
}

/**
 * Numbers whose logarithms are normal with the mean `loc` and the standard deviation `scale`. PyTorch's `LogNormal`.
 *
 * @throws ArgumentError unless `scale` is positive.
 * @example new LogNormal(0, 1).mean.item().toFixed(4) // '1.6487'
 */
export class LogNormal extends TransformedDistribution {
  readonly loc: Tensor
  readonly scale: Tensor

  constructor(loc: Parameter, scale: Parameter, options: DistributionOptions = {}) {
    checkOptions('LogNormal', options, { validateArgs: 'boolean' })
    broadcastAll('LogNormal', { loc, scale })
    const base = new Normal(loc, scale, options)
    super(base, new ExpTransform(), options)
    this.loc = base.loc
    this.scale = base.scale
  }

  override get argConstraints(): Readonly<Record<string, Constraint>> {
    return this.base.argConstraints
  }

  override get support(): Constraint {
    return positive
  }

  override get mean(): Tensor {
    return this.scale.square().div(2).add(this.loc).exp()
  }

  override get mode(): Tensor {
    return this.loc.sub(this.scale.square()).exp()
  }

  override get variance(): Tensor {
    const squared = this.scale.square()
    return squared.expm1().mul(this.loc.mul(2).add(squared).exp())
  }

  override expand(batchShape: readonly number[]): LogNormal {
    return new LogNormal(this.expanded(this.loc, batchShape), this.expanded(this.scale, batchShape), this.options)
  }

  override entropy(): Tensor {
    return this.base.entropy().add(this.loc)
  }
}
