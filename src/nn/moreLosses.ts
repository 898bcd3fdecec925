// More losses as layers: the Huber loss, and the cross entropy of probabilities.
import { Module } from '../module/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { binaryCrossEntropy, huberLoss } from './functional.ts'
import { markLeaf } from './leaf.ts'
import type { LossLayerOptions } from './loss.ts'
import { OptionLayer } from './optionLayer.ts'
import { readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import type { Reduction } from '../ops/index.ts'

/** Squared error below `delta` (1), absolute error times `delta` above. PyTorch's `nn.HuberLoss`. */
export class HuberLoss extends OptionLayer {
  declare readonly reduction: Reduction
  declare readonly delta: number

  constructor(options: LossLayerOptions & { readonly delta?: number } = {}) {
    super('nn.HuberLoss', { reduction: 'mean', delta: 1 }, [options])
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return huberLoss(input, target, { reduction: this.reduction, delta: this.delta })
  }
}

/** Binary cross entropy of probabilities. PyTorch's `nn.BCELoss`. */
export class BCELoss extends Module {
  declare weight: Tensor | null
  readonly reduction: Reduction

  constructor(...options: Trailing<[weight: Tensor | null], LossLayerOptions & { readonly weight?: Tensor | null }>) {
    super()
    const defaults: { weight: Tensor | null; reduction: Reduction } = { weight: null, reduction: 'mean' }
    const { weight, reduction } = readOptions('nn.BCELoss', defaults, options)
    this.registerBuffer('weight', weight)
    this.reduction = reduction
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropy(input, target, { weight: this.weight, reduction: this.reduction })
  }
}

markLeaf(HuberLoss, BCELoss)
