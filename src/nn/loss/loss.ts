// Losses of predictions against targets of the same shape, or against classes, as layers.
import { checkCount } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import {
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  crossEntropy,
  huberLoss,
  l1Loss,
  mseLoss,
  multilabelSoftMarginLoss,
  nllLoss,
  smoothL1Loss,
  softMarginLoss,
} from '../functional.ts'
import { LossLayer, MEAN, PlainLoss } from '../optionLayer.ts'
import type { LossLayerOptions } from '../optionLayer.ts'
import type { Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** Mean of (input - target)^2. PyTorch's `nn.MSELoss`. */
export class MSELoss extends PlainLoss {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.MSELoss' }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return mseLoss(input, target, { reduction: this.reduction })
  }
}

/** Mean of |input - target|. PyTorch's `nn.L1Loss`. */
export class L1Loss extends PlainLoss {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.L1Loss' }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return l1Loss(input, target, { reduction: this.reduction })
  }
}

/** Squared error below `beta` (1), absolute error above. PyTorch's `nn.SmoothL1Loss`. */
export class SmoothL1Loss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.SmoothL1Loss' }

  declare readonly beta: number

  constructor(options: LossLayerOptions & { readonly beta?: number } = {}) {
    checkCount('nn.SmoothL1Loss', arguments, 1)
    super({ ...MEAN, beta: 1 }, [options])
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return smoothL1Loss(input, target, { reduction: this.reduction, beta: this.beta })
  }
}

/** Squared error below `delta` (1), absolute error times `delta` above. PyTorch's `nn.HuberLoss`. */
export class HuberLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.HuberLoss' }

  declare readonly delta: number

  constructor(options: LossLayerOptions & { readonly delta?: number } = {}) {
    checkCount('nn.HuberLoss', arguments, 1)
    super({ ...MEAN, delta: 1 }, [options])
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return huberLoss(input, target, { reduction: this.reduction, delta: this.delta })
  }
}

/** log(1 + e^(-target * input)), for targets 1 and -1. PyTorch's `nn.SoftMarginLoss`. */
export class SoftMarginLoss extends PlainLoss {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.SoftMarginLoss' }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return softMarginLoss(input, target, { reduction: this.reduction })
  }
}

/** Options of {@link CrossEntropyLoss}. */
export interface CrossEntropyLossOptions extends LossLayerOptions {
  /** A weight per class. */
  readonly weight?: Tensor | null
  /** Targets of this class do not count. */
  readonly ignoreIndex?: number
  /** In [0, 1]: how much of the target is spread over all classes. */
  readonly labelSmoothing?: number
}

/** Cross entropy of logits [N, C, ..] against classes (integers [N, ..]) or class probabilities. PyTorch's `nn.CrossEntropyLoss`. */
export class CrossEntropyLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.CrossEntropyLoss' }

  declare weight: Tensor | null
  declare readonly ignoreIndex: number
  declare readonly labelSmoothing: number

  constructor(...options: Trailing<[weight: Tensor | null], CrossEntropyLossOptions>) {
    super({ weight: null, ignoreIndex: -100, ...MEAN, labelSmoothing: 0 }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const { weight, ignoreIndex, reduction, labelSmoothing } = this
    return crossEntropy(input, target, { weight, ignoreIndex, reduction, labelSmoothing })
  }
}

/** Options of {@link NLLLoss}. */
export interface NLLLossOptions extends LossLayerOptions {
  readonly weight?: Tensor | null
  readonly ignoreIndex?: number
}

/** Negative log likelihood of log-probabilities [N, C, ..] against classes. PyTorch's `nn.NLLLoss`. */
export class NLLLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.NLLLoss' }

  declare weight: Tensor | null
  declare readonly ignoreIndex: number

  constructor(...options: Trailing<[weight: Tensor | null], NLLLossOptions>) {
    super({ weight: null, ignoreIndex: -100, ...MEAN }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const { weight, ignoreIndex, reduction } = this
    return nllLoss(input, target, { weight, ignoreIndex, reduction })
  }
}

/** Options of {@link BCELoss} and {@link MultiLabelSoftMarginLoss}. */
export interface WeightedLossOptions extends LossLayerOptions {
  /** Factors of the losses: for BCELoss of any shape that broadcasts, for MultiLabelSoftMarginLoss one for each class. */
  readonly weight?: Tensor | null
}

/** Binary cross entropy of probabilities. PyTorch's `nn.BCELoss`. */
export class BCELoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.BCELoss' }

  declare weight: Tensor | null

  constructor(...options: Trailing<[weight: Tensor | null], WeightedLossOptions>) {
    super({ weight: null, ...MEAN }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return binaryCrossEntropy(input, target, { weight: this.weight, reduction: this.reduction })
  }
}

/** The mean over the classes of the binary cross entropy of logits [.., C]. PyTorch's `nn.MultiLabelSoftMarginLoss`. */
export class MultiLabelSoftMarginLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.MultiLabelSoftMarginLoss' }

  declare weight: Tensor | null

  constructor(...options: Trailing<[weight: Tensor | null], WeightedLossOptions>) {
    super({ weight: null, ...MEAN }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return multilabelSoftMarginLoss(input, target, { weight: this.weight, reduction: this.reduction })
  }
}

/** Options of {@link BCEWithLogitsLoss}. */
export interface BCEWithLogitsLossOptions extends LossLayerOptions {
  readonly weight?: Tensor | null
  /** A factor of the positive examples' loss. */
  readonly posWeight?: Tensor | null
}

/** Binary cross entropy of logits against probabilities of the same shape. PyTorch's `nn.BCEWithLogitsLoss`. */
export class BCEWithLogitsLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.BCEWithLogitsLoss' }

  declare weight: Tensor | null
  declare posWeight: Tensor | null

  constructor(...options: Trailing<[weight: Tensor | null], BCEWithLogitsLossOptions>) {
    super({ weight: null, ...MEAN, posWeight: null }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const { weight, posWeight, reduction } = this
    return binaryCrossEntropyWithLogits(input, target, { weight, posWeight, reduction })
  }
}
