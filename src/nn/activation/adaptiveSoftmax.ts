// AdaptiveLogSoftmaxWithLoss: a softmax over many classes, of which the rare ones are in clusters of their own.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import {
  add,
  argmax,
  cat,
  gather,
  ge,
  indexAdd,
  indexCopy,
  indexSelect,
  logicalAnd,
  lt,
  mean,
  narrow,
  neg,
  nonzero,
  reshape,
  sub,
  where,
  zeros,
} from '../../ops/index.ts'
import { checkCount, valueText } from '../../protocol/index.ts'
import { formatShape, getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { ModuleList, Sequential } from '../containers.ts'
import { logSoftmax } from '../functional.ts'
import { Linear } from '../linear.ts'
import { checkInteger, checkNumber, readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

const NAME = 'nn.AdaptiveLogSoftmaxWithLoss'

/** Options of {@link AdaptiveLogSoftmaxWithLoss}. */
export interface AdaptiveLogSoftmaxOptions {
  /** By how much the width shrinks from one cluster to the next; default 4. */
  readonly divValue?: number
  /** Whether the head has a bias; default false. */
  readonly headBias?: boolean
  readonly dtype?: DType
}

/**
 * The logarithm of a softmax over many classes, sorted by falling frequency. The head has the classes below the first of the `cutoffs` and one more for each cluster of rarer
 * ones, [cutoffs[i], cutoffs[i + 1]), whose own logits are computed only for the targets in it, at a width of `inFeatures / divValue^(i + 1)`.
 * PyTorch's `nn.AdaptiveLogSoftmaxWithLoss`.
 *
 * The call takes input [N, inFeatures] and target [N], or [inFeatures] and [], and returns the log-probability of each target, and the loss, minus their mean.
 *
 * @example
 * const softmax = new nn.AdaptiveLogSoftmaxWithLoss(16, 1000, [10, 100])
 * const [output, loss] = softmax(torch.randn([4, 16]), torch.tensor([0, 12, 512, 3]).long())
 */
export class AdaptiveLogSoftmaxWithLoss extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.AdaptiveLogSoftmaxWithLoss' }

  readonly inFeatures: number
  readonly nClasses: number
  /** Where the clusters begin, and the number of classes at the end. */
  readonly cutoffs: readonly number[]
  readonly divValue: number
  readonly headBias: boolean
  /** To the logits of the frequent classes and of the clusters. */
  head: Linear
  /** For each cluster, two layers without bias to the logits of its classes. */
  tail: ModuleList<Sequential>

  constructor(
    inFeatures: number,
    nClasses: number,
    cutoffs: readonly number[],
    ...options: Trailing<[divValue: number, headBias: boolean], AdaptiveLogSoftmaxOptions>
  )
  constructor(
    ...args: Named<
      [['inFeatures', number], ['nClasses', number], ['cutoffs', readonly number[]]],
      Trailing<[divValue: number, headBias: boolean], AdaptiveLogSoftmaxOptions>
    >
  )
  constructor(...args: readonly unknown[]) {
    const [inFeatures, nClasses, cutoffs, ...options] = readRequired<[inFeatures: number, nClasses: number, cutoffs: readonly number[]]>(
      'nn.AdaptiveLogSoftmaxWithLoss',
      ['inFeatures', 'nClasses', 'cutoffs'],
      args,
    )
    super()
    const defaults: Required<AdaptiveLogSoftmaxOptions> = { divValue: 4, headBias: false, dtype: getDefaultDtype() }
    const { divValue, headBias, dtype } = readOptions(NAME, defaults, options)
    checkInteger(NAME, 'inFeatures', inFeatures)
    checkInteger(NAME, 'nClasses', nClasses)
    const given: unknown = cutoffs
    if (!Array.isArray(given) || given.length === 0 || given.some((c, i) => !Number.isInteger(c) || c <= (given[i - 1] ?? 0) || c >= nClasses))
      throw new ArgumentError(
        `${NAME}: cutoffs must be increasing integers between 1 and nClasses - 1 = ${nClasses - 1}, at least one of them, got ${valueText(given)}.`,
      )
    checkNumber(NAME, 'divValue', divValue, 'a positive number', (v) => v > 0)
    this.inFeatures = inFeatures
    this.nClasses = nClasses
    this.cutoffs = [...cutoffs, nClasses]
    this.divValue = divValue
    this.headBias = headBias
    this.head = new Linear(inFeatures, this.shortlistSize + cutoffs.length, { bias: headBias, dtype })
    this.tail = new ModuleList(
      cutoffs.map((low, i) => {
        const width = Math.floor(inFeatures / divValue ** (i + 1))
        const layer = (from: number, to: number): Linear => new Linear(from, to, { bias: false, dtype })
        return new Sequential(layer(inFeatures, width), layer(width, (this.cutoffs[i + 1] ?? 0) - low))
      }),
    )
  }

  /** The number of classes in the head that stand for themselves. */
  get shortlistSize(): number {
    return this.cutoffs[0] ?? 0
  }

  /** New random values. */
  resetParameters(): void {
    for (const layer of [this.head, ...[...this.tail].flatMap((cluster) => [...cluster])]) if (layer instanceof Linear) layer.resetParameters()
  }

  override forward(input: Tensor, target: Tensor): readonly [output: Tensor, loss: Tensor] {
    checkCount(this, arguments, 2)
    if (target.ndim > 1 || input.ndim !== target.ndim + 1 || (target.ndim === 1 && input.shape[0] !== target.shape[0]))
      throw new ShapeError(
        `${NAME}: expected input [N, ${this.inFeatures}] and target [N], or [${this.inFeatures}] and [], got shapes ${formatShape(input.shape)} and ${formatShape(target.shape)}.`,
      )
    const [rows, classes] = [reshape(input, [-1, this.inFeatures]), reshape(target, [-1])]
    let inHead = classes
    let output = zeros([classes.numel], { dtype: input.dtype })
    let left = classes.numel
    for (const [i, cluster] of [null, ...this.tail].entries()) {
      const low = i === 0 ? 0 : (this.cutoffs[i - 1] ?? 0)
      const members = logicalAnd(ge(classes, low), lt(classes, this.cutoffs[i] ?? 0))
      const places = reshape(nonzero(members), [-1])
      left -= places.numel
      if (cluster === null || places.numel === 0) continue
      inHead = where(members, this.shortlistSize + i - 1, inHead)
      const logits = logSoftmax(cluster(indexSelect(rows, 0, places)), { dim: 1 })
      const own = sub(indexSelect(classes, 0, places), low)
      output = indexAdd(output, 0, places, reshape(gather(logits, 1, reshape(own, [-1, 1])), [-1]))
    }
    if (left > 0) throw new ArgumentError(`${NAME}: targets must be between 0 and ${this.nClasses - 1}, but ${left} of ${classes.numel} are not.`)
    const head = logSoftmax(this.head(rows), { dim: 1 })
    const all = add(output, reshape(gather(head, 1, reshape(inHead, [-1, 1])), [-1]))
    return [reshape(all, target.shape), neg(mean(all))]
  }

  /** The log-probabilities of all classes: [N, inFeatures] to [N, nClasses]. PyTorch's `log_prob`. */
  logProb(input: Tensor): Tensor {
    return this.allOf(input, this.head(input))
  }

  private allOf(input: Tensor, logits: Tensor): Tensor {
    const head = logSoftmax(logits, { dim: 1 })
    const size = this.shortlistSize
    const clusters = [...this.tail].map((cluster, i) => add(logSoftmax(cluster(input), { dim: 1 }), narrow(head, 1, size + i, 1)))
    return cat([narrow(head, 1, 0, size), ...clusters], 1)
  }

  /** The most likely class of each row: [N, inFeatures] to [N]. The rare ones are only computed where a cluster is more likely than each frequent class. */
  predict(input: Tensor): Tensor {
    const logits = this.head(input)
    const best = argmax(logits, 1)
    const places = reshape(nonzero(ge(best, this.shortlistSize)), [-1])
    if (places.numel === 0) return best
    const all = this.allOf(indexSelect(input, 0, places), indexSelect(logits, 0, places))
    return indexCopy(best, 0, places, argmax(all, 1))
  }
}
