// Losses from likelihoods, as layers: Kullback-Leibler divergence, counts, normal distributions, and sequences of labels.
import { checkCount } from '../../protocol/index.ts'
import type { CtcOptions, GaussianOptions, KlDivOptions, PoissonOptions, Reduction } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { ctcLoss, gaussianNllLoss, klDiv, poissonNllLoss } from '../functional.ts'
import { LossLayer, MEAN, OptionLayer } from '../optionLayer.ts'
import type { Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

/**
 * The Kullback-Leibler divergence of log-probabilities from a target: the mean over all elements, or with reduction 'batchmean' the sum divided by the size of dimension 0.
 * PyTorch's `nn.KLDivLoss`.
 *
 * @example new nn.KLDivLoss({ reduction: 'batchmean' })(F.logSoftmax(x, 1), probabilities)
 */
export class KLDivLoss extends OptionLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.KLDivLoss' }

  declare readonly reduction: Reduction | 'batchmean'
  declare readonly logTarget: boolean

  constructor(options: KlDivOptions = {}) {
    checkCount('nn.KLDivLoss', arguments, 1)
    super({ ...MEAN, logTarget: false }, [options])
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return klDiv(input, target, { reduction: this.reduction, logTarget: this.logTarget })
  }
}

/** The negative log-likelihood of counts in a Poisson distribution whose rate, or its logarithm, is the input. PyTorch's `nn.PoissonNLLLoss`. */
export class PoissonNLLLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.PoissonNLLLoss' }

  declare readonly logInput: boolean
  declare readonly full: boolean
  declare readonly eps: number

  constructor(...options: Trailing<[logInput: boolean, full: boolean], PoissonOptions>) {
    super({ logInput: true, full: false, eps: 1e-8, ...MEAN }, options)
  }

  override forward(logInput: Tensor, target: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const { full, eps, reduction } = this
    return poissonNllLoss(logInput, target, { logInput: this.logInput, full, eps, reduction })
  }
}

/** The negative log-likelihood of targets in normal distributions of which the means and variances are given. PyTorch's `nn.GaussianNLLLoss`. */
export class GaussianNLLLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.GaussianNLLLoss' }

  declare readonly full: boolean
  declare readonly eps: number

  constructor(options: GaussianOptions = {}) {
    checkCount('nn.GaussianNLLLoss', arguments, 1)
    super({ full: false, eps: 1e-6, ...MEAN }, [options])
  }

  override forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    checkCount(this, arguments, 3)
    const { full, eps, reduction } = this
    return gaussianNllLoss(input, target, variance, { full, eps, reduction })
  }
}

/**
 * Connectionist temporal classification: the negative log-likelihood that log-probabilities [T, N, C] spell the targets, over all alignments. PyTorch's `nn.CTCLoss`.
 *
 * @example new nn.CTCLoss()(torch.zeros([2, 1, 2]), torch.tensor([[1]]).long(), [2], [1]).item() // -1.098612
 */
export class CTCLoss extends LossLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.CTCLoss' }

  declare readonly blank: number
  declare readonly zeroInfinity: boolean

  constructor(...options: Trailing<[blank: number, reduction: Reduction, zeroInfinity: boolean], CtcOptions>) {
    super({ blank: 0, ...MEAN, zeroInfinity: false }, options)
  }

  override forward(logProbs: Tensor, targets: Tensor, inputLengths: Tensor | readonly number[], targetLengths: Tensor | readonly number[]): Tensor {
    checkCount(this, arguments, 4)
    const { blank, reduction, zeroInfinity } = this
    return ctcLoss(logProbs, targets, inputLengths, targetLengths, { blank, reduction, zeroInfinity })
  }
}
