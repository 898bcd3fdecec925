// Losses from likelihoods: Kullback-Leibler divergence, and those of Poisson and normal distributions.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { formatShape, sameShape, sizeEq, scalarOf } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { add, div, mul, sub } from '../../pointwise/arithmetic.ts'
import { le } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { xlogy } from '../../pointwise/special.ts'
import { exp, log, square } from '../../pointwise/unary.ts'
import { sum } from '../../reduction/sum.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { detach } from '../../view/windows.ts'
import { unsqueeze } from '../../view/reshape.ts'
import { reduce } from './losses.ts'
import type { LossOptions } from './losses.ts'
import type { Reduction } from './nllLoss.ts'

const F = 'torch.nn.functional'

export interface KlDivOptions {
  /** Default 'mean', over all elements; 'batchmean' divides the sum by the size of dimension 0. */
  readonly reduction?: Reduction | 'batchmean'
  /** Whether the target holds logarithms. */
  readonly logTarget?: boolean
}

/**
 * The Kullback-Leibler divergence: target * (log(target) - input), where `input` holds logarithms. PyTorch's `F.kl_div`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.klDiv(torch.tensor([0, 0]), torch.tensor([1, 0.5]), { reduction: 'sum' }).item() // -0.346574
 */
export const klDiv: OpFunction<(input: Tensor, target: Tensor, options?: KlDivOptions) => Tensor> = defineOp({
  schema: "kl_div(Tensor input, Tensor target, *, str reduction='mean', bool log_target=False) -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, target, reduction, logTarget) => {
    const each = logTarget ? mul(exp(target), sub(target, input)) : sub(xlogy(target, target), mul(target, input))
    return reduction === 'batchmean'
      ? div(sum(each), input.ndim === 0 ? 1 : scalarOf(sizeAt(input.symSizes, 0)))
      : reduce(`${F}.kl_div`, each, reduction)
  },
})

export interface PoissonOptions extends LossOptions {
  /** Whether `input` holds logarithms of rates (the default). */
  readonly logInput?: boolean
  /** Whether Stirling's term is added. */
  readonly full?: boolean
  readonly eps?: number
}

/**
 * The negative log-likelihood of counts in a Poisson distribution: e^input - target * input. PyTorch's `F.poisson_nll_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.poissonNllLoss(torch.tensor([0, 1]), torch.tensor([1, 2]), { reduction: 'none' }).toArray() // [1, 0.718282]
 */
export const poissonNllLoss: OpFunction<(input: Tensor, target: Tensor, options?: PoissonOptions) => Tensor> = defineOp({
  schema: "poisson_nll_loss(Tensor input, Tensor target, *, bool log_input=True, bool full=False, float eps=1e-08, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, target, logInput, full, eps, reduction) => {
    const loss = logInput ? sub(exp(input), mul(target, input)) : sub(input, mul(target, log(add(input, eps))))
    if (!full) return reduce(`${F}.poisson_nll_loss`, loss, reduction)
    const safe = where(le(target, 1), 1, target)
    const stirling = add(sub(mul(target, log(safe)), target), mul(log(mul(safe, 2 * Math.PI)), 0.5))
    return reduce(`${F}.poisson_nll_loss`, add(loss, where(le(target, 1), 0, stirling)), reduction)
  },
})

export interface GaussianOptions extends LossOptions {
  /** Whether log(2 pi) / 2 is added. */
  readonly full?: boolean
  /** Variances below it count as it. */
  readonly eps?: number
}

/**
 * The negative log-likelihood of `target` in normal distributions with means `input` and variances `var`. PyTorch's `F.gaussian_nll_loss`.
 *
 * Shapes: `input` and `target` broadcast; `var` has the shape of `input`, or lacks its last dimension, or has it with size 1.
 *
 * @throws ShapeError if the shape of `var` does not fit.
 * @throws ArgumentError for an unknown `reduction`, or if `eps` is not positive.
 * @example F.gaussianNllLoss(torch.tensor([1]), torch.tensor([3]), torch.tensor([4])).item() // 1.193147
 */
export const gaussianNllLoss: OpFunction<(input: Tensor, target: Tensor, variance: Tensor, options?: GaussianOptions) => Tensor> = defineOp({
  schema: "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, *, bool full=False, float eps=1e-06, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  decompose: (input, target, given, full, eps, reduction) => {
    const op = `${F}.gaussian_nll_loss`
    if (!(eps > 0)) throw new ArgumentError(`${op}: eps must be positive, got ${eps}.`)
    const shorter = given.ndim > 0 && sameShape([...given.symSizes, 1].slice(0, -1), input.symSizes.slice(0, -1))
    const spread = shorter && !sameShape(given.symSizes, input.symSizes) ? unsqueeze(given, -1) : given
    if (spread.ndim !== 0 && !spread.symSizes.every((size, d) => sizeEq(size, input.symSizes[d]) || sizeEq(size, 1)))
      throw new ShapeError(`${op}: var of shape ${formatShape(given.symSizes)} does not fit input of shape ${formatShape(input.symSizes)}.`)
    // Limited variances keep their gradient, as in PyTorch.
    const variance = add(spread, detach(sub(clamp(spread, eps), spread)))
    const loss = mul(add(log(variance), div(square(sub(input, target)), variance)), 0.5)
    return reduce(op, full ? add(loss, 0.5 * Math.log(2 * Math.PI)) : loss, reduction)
  },
})
