// Distances and similarities of vectors, as layers.
import { checkCount } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { cosineSimilarity, pairwiseDistance } from './functional.ts'
import { OptionLayer } from './optionLayer.ts'
import type { Trailing } from './options.ts'
import type { LayerFacts } from './layerFacts.ts'

/** The cosine of the angle between vectors along `dim` (1); lengths below `eps` (1e-8) count as `eps`. PyTorch's `nn.CosineSimilarity`. */
export class CosineSimilarity extends OptionLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.CosineSimilarity' }

  declare readonly dim: number
  declare readonly eps: number

  constructor(...options: Trailing<[dim: number, eps: number], { readonly dim?: number; readonly eps?: number }>) {
    super({ dim: 1, eps: 1e-8 }, options)
  }

  override forward(x1: Tensor, x2: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return cosineSimilarity(x1, x2, this.dim, this.eps)
  }
}

/** Options of {@link PairwiseDistance}. */
export interface PairwiseDistanceOptions {
  /** Which norm; default 2. */
  readonly p?: number
  /** Added to the differences; default 1e-6. */
  readonly eps?: number
  /** Keep the last dimension, with size 1. */
  readonly keepdim?: boolean
}

/** The p-norm of the differences of vectors along the last dimension. PyTorch's `nn.PairwiseDistance`. */
export class PairwiseDistance extends OptionLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.PairwiseDistance' }

  declare readonly p: number
  declare readonly eps: number
  declare readonly keepdim: boolean

  constructor(...options: Trailing<[p: number, eps: number, keepdim: boolean], PairwiseDistanceOptions>) {
    super({ p: 2, eps: 1e-6, keepdim: false }, options)
  }

  override forward(x1: Tensor, x2: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return pairwiseDistance(x1, x2, this.p, this.eps, this.keepdim)
  }
}
