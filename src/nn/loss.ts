// Losses as layers.
import { Module } from '../module/index.ts'
import type { Reduction } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { binaryCrossEntropyWithLogits, crossEntropy, l1Loss, mseLoss, nllLoss, smoothL1Loss } from './functional.ts'
import { markLeaf } from './leaf.ts'
import { readOptions } from './options.ts'
import type { Trailing } from './options.ts'

/** Options of losses that compare two tensors. */
export interface LossLayerOptions {
  /** 'mean' (default), 'sum', or 'none' for one value per element. */
  readonly reduction?: Reduction
}

const MEAN: Required<LossLayerOptions> = { reduction: 'mean' }

/** Mean of (input - target)^2. PyTorch's `nn.MSELoss`. */
export class MSELoss extends Module {
  readonly reduction: Reduction

  constructor(options: LossLayerOptions = {}) {
    super()
    this.reduction = readOptions('nn.MSELoss', MEAN, [options]).reduction
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return mseLoss(input, target, { reduction: this.reduction })
  }
}

/** Mean of |input - target|. PyTorch's `nn.L1Loss`. */
export class L1Loss extends Module {
  readonly reduction: Reduction

  constructor(options: LossLayerOptions = {}) {
    super()
    this.reduction = readOptions('nn.L1Loss', MEAN, [options]).reduction
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return l1Loss(input, target, { reduction: this.reduction })
  }
}

/** Squared error below `beta` (1), absolute error above. PyTorch's `nn.SmoothL1Loss`. */
export class SmoothL1Loss extends Module {
  readonly reduction: Reduction
  readonly beta: number

  constructor(options: LossLayerOptions & { readonly beta?: number } = {}) {
    super()
    const { reduction, beta } = readOptions('nn.SmoothL1Loss', { ...MEAN, beta: 1 }, [options])
    this.reduction = reduction
    this.beta = beta
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(input, target, { reduction: this.reduction, beta: this.beta })
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
export class CrossEntropyLoss extends Module {
  declare weight: Tensor | null
  readonly ignoreIndex: number
  readonly reduction: Reduction
  readonly labelSmoothing: number

  constructor(...options: Trailing<[weight: Tensor | null], CrossEntropyLossOptions>) {
    super()
    const defaults: Required<CrossEntropyLossOptions> = { weight: null, ignoreIndex: -100, ...MEAN, labelSmoothing: 0 }
    const { weight, ignoreIndex, reduction, labelSmoothing } = readOptions('nn.CrossEntropyLoss', defaults, options)
    this.registerBuffer('weight', weight)
    this.ignoreIndex = ignoreIndex
    this.reduction = reduction
    this.labelSmoothing = labelSmoothing
  }

  override forward(input: Tensor, target: Tensor): Tensor {
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
export class NLLLoss extends Module {
  declare weight: Tensor | null
  readonly ignoreIndex: number
  readonly reduction: Reduction

  constructor(...options: Trailing<[weight: Tensor | null], NLLLossOptions>) {
    super()
    const defaults: Required<NLLLossOptions> = { weight: null, ignoreIndex: -100, ...MEAN }
    const { weight, ignoreIndex, reduction } = readOptions('nn.NLLLoss', defaults, options)
    this.registerBuffer('weight', weight)
    this.ignoreIndex = ignoreIndex
    this.reduction = reduction
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { weight, ignoreIndex, reduction } = this
    return nllLoss(input, target, { weight, ignoreIndex, reduction })
  }
}

/** Options of {@link BCEWithLogitsLoss}. */
export interface BCEWithLogitsLossOptions extends LossLayerOptions {
  readonly weight?: Tensor | null
  /** A factor of the positive examples' loss. */
  readonly posWeight?: Tensor | null
}

/** Binary cross entropy of logits against probabilities of the same shape. PyTorch's `nn.BCEWithLogitsLoss`. */
export class BCEWithLogitsLoss extends Module {
  declare weight: Tensor | null
  declare posWeight: Tensor | null
  readonly reduction: Reduction

  constructor(...options: Trailing<[weight: Tensor | null], BCEWithLogitsLossOptions>) {
    super()
    const defaults: Required<BCEWithLogitsLossOptions> = { weight: null, ...MEAN, posWeight: null }
    const { weight, posWeight, reduction } = readOptions('nn.BCEWithLogitsLoss', defaults, options)
    this.registerBuffer('weight', weight)
    this.registerBuffer('posWeight', posWeight)
    this.reduction = reduction
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { weight, posWeight, reduction } = this
    return binaryCrossEntropyWithLogits(input, target, { weight, posWeight, reduction })
  }
}

markLeaf(MSELoss, L1Loss, SmoothL1Loss, CrossEntropyLoss, NLLLoss, BCEWithLogitsLoss)
