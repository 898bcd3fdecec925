// Losses of margins, rankings and distances, as layers.
import { checkCount } from '../../protocol/index.ts'
import type { MarginOptions, MultiMarginOptions, TripletDistanceOptions, TripletOptions } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { PairwiseDistance } from '../distance.ts'
import {
  cosineEmbeddingLoss,
  hingeEmbeddingLoss,
  marginRankingLoss,
  multiMarginLoss,
  multilabelMarginLoss,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
} from '../functional.ts'
import { LossLayer, MEAN, PlainLoss } from '../optionLayer.ts'
import type { Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** The input where the target is 1, and max(0, margin - input) where it is -1; the margin is 1. PyTorch's `nn.HingeEmbeddingLoss`. */
export class HingeEmbeddingLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.HingeEmbeddingLoss' }

  declare readonly margin: number

  constructor(...options: Trailing<[margin: number], MarginOptions>) {
    super({ margin: 1, ...MEAN }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return hingeEmbeddingLoss(input, target, { margin: this.margin, reduction: this.reduction })
  }
}

/** max(0, margin - target * (input1 - input2)); the margin is 0. PyTorch's `nn.MarginRankingLoss`. */
export class MarginRankingLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.MarginRankingLoss' }

  declare readonly margin: number

  constructor(...options: Trailing<[margin: number], MarginOptions>) {
    super({ margin: 0, ...MEAN }, options)
  }

  override forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 3)
    return marginRankingLoss(input1, input2, target, { margin: this.margin, reduction: this.reduction })
  }
}

/** 1 - cos of two vectors where the target is 1, and max(0, cos - margin) where it is -1; the margin is 0. PyTorch's `nn.CosineEmbeddingLoss`. */
export class CosineEmbeddingLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.CosineEmbeddingLoss' }

  declare readonly margin: number

  constructor(...options: Trailing<[margin: number], MarginOptions>) {
    super({ margin: 0, ...MEAN }, options)
  }

  override forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 3)
    return cosineEmbeddingLoss(input1, input2, target, { margin: this.margin, reduction: this.reduction })
  }
}

/** How much the other classes of [N, C] come within the margin (1) of the target's, to the power p (1 or 2). PyTorch's `nn.MultiMarginLoss`. */
export class MultiMarginLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.MultiMarginLoss' }

  declare readonly p: number
  declare readonly margin: number
  declare weight: Tensor | null

  constructor(...options: Trailing<[p: number, margin: number, weight: Tensor | null], MultiMarginOptions>) {
    super({ p: 1, margin: 1, weight: null, ...MEAN }, options)
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const { p, margin, weight, reduction } = this
    return multiMarginLoss(input, target, { p, margin, weight, reduction })
  }
}

/** How much the other classes of [N, C] come within 1 of the targets', of which a row lists several and then -1. PyTorch's `nn.MultiLabelMarginLoss`. */
export class MultiLabelMarginLoss extends PlainLoss {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.MultiLabelMarginLoss' }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return multilabelMarginLoss(input, target, { reduction: this.reduction })
  }
}

/** max(0, |anchor - positive| - |anchor - negative| + margin), with the p-norm of rows; the margin is 1. PyTorch's `nn.TripletMarginLoss`. */
export class TripletMarginLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.TripletMarginLoss' }

  declare readonly margin: number
  declare readonly p: number
  declare readonly eps: number
  declare readonly swap: boolean

  constructor(...options: Trailing<[margin: number, p: number, eps: number, swap: boolean], TripletOptions>) {
    super({ margin: 1, p: 2, eps: 1e-6, swap: false, ...MEAN }, options)
  }

  override forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    checkCount(this, arguments, 3)
    const { margin, p, eps, swap, reduction } = this
    return tripletMarginLoss(anchor, positive, negative, { margin, p, eps, swap, reduction })
  }
}

/**
 * {@link TripletMarginLoss} with a distance of your own, a function or a module; without one, {@link PairwiseDistance}. PyTorch's `nn.TripletMarginWithDistanceLoss`.
 *
 * @example new nn.TripletMarginWithDistanceLoss({ distanceFunction: (a, b) => a.sub(b).abs().amax(1) })
 */
export class TripletMarginWithDistanceLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.TripletMarginWithDistanceLoss' }

  declare distanceFunction: ((a: Tensor, b: Tensor) => Tensor) | null
  declare readonly margin: number
  declare readonly swap: boolean

  constructor(options: TripletDistanceOptions = {}) {
    checkCount('nn.TripletMarginWithDistanceLoss', arguments, 1)
    super({ distanceFunction: null, margin: 1, swap: false, ...MEAN }, [options])
    this.distanceFunction ??= new PairwiseDistance()
  }

  override forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    checkCount(this, arguments, 3)
    const { distanceFunction, margin, swap, reduction } = this
    return tripletMarginWithDistanceLoss(anchor, positive, negative, { distanceFunction, margin, swap, reduction })
  }
}
