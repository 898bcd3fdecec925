// A last linear layer and the cross entropy of its logits as one loss.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { crossEntropy, reshape } from '../../ops/index.ts'
import { checkCount, valueText } from '../../protocol/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { Linear } from '../linear.ts'
import { LossLayer, MEAN } from '../optionLayer.ts'
import { checkInteger, readRequired } from '../options.ts'
import type { Named } from '../options.ts'
import type { CrossEntropyLossOptions } from './loss.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** Options of {@link LinearCrossEntropyLoss}. */
export interface LinearCrossEntropyLossOptions extends Omit<CrossEntropyLossOptions, 'ignoreIndex'> {
  /** How many predictions are made of each input, as the dimensions of the target after the first; default one. */
  readonly outFeatures?: readonly number[]
  readonly dtype?: DType
  /** Targets of this class do not count; default -100. */
  readonly ignoreIndex?: number | null
  /** PyTorch's hints on how to compute in chunks: without effect here, and null. */
  readonly options?: null
}

/**
 * The cross entropy of `linear(input)`: inputs [N, inFeatures] against classes (integers [N, ...outFeatures]) or probabilities [N, numClasses, ...outFeatures]. Its `linear` has no bias. PyTorch's
 * `nn.LinearCrossEntropyLoss`.
 */
export class LinearCrossEntropyLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LinearCrossEntropyLoss' }

  readonly inFeatures: number
  readonly numClasses: number
  declare readonly outFeatures: readonly number[]
  declare weight: Tensor | null
  declare readonly ignoreIndex: number | null
  declare readonly labelSmoothing: number
  /** [numClasses x outFeatures, inFeatures] */
  linear: Linear

  constructor(inFeatures: number, numClasses: number, options?: LinearCrossEntropyLossOptions)
  constructor(...args: Named<[['inFeatures', number], ['numClasses', number]], [options: LinearCrossEntropyLossOptions]>)
  constructor(...args: readonly unknown[]) {
    const [inFeatures, numClasses, options = {}] = readRequired<[inFeatures: number, numClasses: number], [options?: LinearCrossEntropyLossOptions]>(
      'nn.LinearCrossEntropyLoss',
      ['inFeatures', 'numClasses'],
      args,
    )
    const where = 'nn.LinearCrossEntropyLoss'
    const { dtype, options: hints, ...own } = options
    super({ outFeatures: [], weight: null, ignoreIndex: null, ...MEAN, labelSmoothing: 0 }, [own])
    checkInteger(where, 'inFeatures', inFeatures)
    checkInteger(where, 'numClasses', numClasses)
    if (hints !== undefined && hints !== null) throw new ArgumentError(`${where}: option 'options' must be null, got ${valueText(hints)}.`)
    if (!Array.isArray(this.outFeatures))
      throw new ArgumentError(`${where}: outFeatures must be an array of sizes, got ${valueText(this.outFeatures)}.`)
    for (const size of this.outFeatures) checkInteger(where, 'outFeatures', size)
    this.inFeatures = inFeatures
    this.numClasses = numClasses
    const predictions = this.outFeatures.reduce((product, size) => product * size, 1)
    this.linear = new Linear(inFeatures, numClasses * predictions, { bias: false, dtype: dtype ?? getDefaultDtype() })
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const { weight, reduction, labelSmoothing } = this
    const logits = reshape(this.linear(input), [...input.sizes.slice(0, -1), this.numClasses, ...this.outFeatures])
    return crossEntropy(logits, target, { weight, ignoreIndex: this.ignoreIndex ?? -100, reduction, labelSmoothing })
  }
}
