// Losses composed of other operators.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { broadcastShapes, formatShape, sameShape } from '../../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { abs, add, div, mul, neg, sub } from '../../pointwise/arithmetic.ts'
import { lt } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { logsigmoid } from '../../pointwise/softplus.ts'
import { log, square } from '../../pointwise/unary.ts'
import { mean } from '../../reduction/mean.ts'
import { sum } from '../../reduction/sum.ts'
import { expand } from '../../view/windows.ts'
import { checkedReduction } from './nllLoss.ts'
import type { Reduction } from './nllLoss.ts'

/** Options that most losses share. */
export interface LossOptions {
  /** Default 'mean'. */
  readonly reduction?: Reduction
}

const F = 'torch.nn.functional'

/** The losses of elements as `reduction` says. Throws ArgumentError for an unknown one. */
export function reduce(op: string, losses: Tensor, given: string): Tensor {
  const reduction = checkedReduction(op, given)
  return reduction === 'none' ? losses : reduction === 'sum' ? sum(losses) : mean(losses)
}

/** The result of a loss of pairs of elements. Throws ShapeError if the shapes do not broadcast. */
function pairSpec(op: string, input: Tensor, target: Tensor, reduction: string): TensorSpec {
  const shape = broadcastShapes(op, input.sizes, target.sizes)
  return { shape: reduction === 'none' ? shape : [], dtype: input.dtype }
}

/**
 * The squared difference, times `weight`; the mean is that with weights. PyTorch's `F.mse_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.mseLoss(torch.tensor([1, 5]), torch.tensor([2, 2])).item() // 5
 */
export const mseLoss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly weight?: Tensor | null }) => Tensor> = defineOp({
  schema: "mse_loss(Tensor input, Tensor target, *, str reduction='mean', Tensor? weight=None) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (input, target, reduction) => pairSpec(`${F}.mse_loss`, input, target, reduction),
  decompose: (input, target, reduction, weight) => {
    broadcastShapes(`${F}.mse_loss`, input.symSizes, target.symSizes)
    const squares = square(sub(input, target))
    if (weight === null || reduction !== 'mean') return reduce(`${F}.mse_loss`, weight === null ? squares : mul(squares, weight), reduction)
    // PyTorch divides by the sum of the weights.
    return div(sum(mul(squares, weight)), sum(expand(weight, squares.symSizes)))
  },
})

/**
 * The absolute difference. PyTorch's `F.l1_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.l1Loss(torch.tensor([1, 5]), torch.tensor([2, 2]), { reduction: 'sum' }).item() // 4
 */
export const l1Loss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions) => Tensor> = defineOp({
  schema: "l1_loss(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (input, target, reduction) => pairSpec(`${F}.l1_loss`, input, target, reduction),
  decompose: (input, target, reduction) => reduce(`${F}.l1_loss`, abs(sub(input, target)), reduction),
})

/**
 * Quadratic for differences d below `beta`, linear above: 0.5 d^2 / beta or d - 0.5 beta. PyTorch's `F.smooth_l1_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError if `beta` is negative, or for an unknown `reduction`.
 * @example F.smoothL1Loss(torch.tensor([0.5, 3]), torch.tensor([0, 0]), { reduction: 'none' }).toArray() // [0.125, 2.5]
 */
export const smoothL1Loss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly beta?: number }) => Tensor> = defineOp({
  schema: "smooth_l1_loss(Tensor input, Tensor target, *, str reduction='mean', float beta=1.0) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (input, target, reduction) => pairSpec(`${F}.smooth_l1_loss`, input, target, reduction),
  decompose: (input, target, reduction, beta) => {
    if (!(beta >= 0)) throw new ArgumentError(`${F}.smooth_l1_loss: beta must be >= 0, got ${beta}.`)
    const d = abs(sub(input, target))
    return reduce(`${F}.smooth_l1_loss`, beta === 0 ? d : where(lt(d, beta), mul(square(d), 0.5 / beta), sub(d, 0.5 * beta)), reduction)
  },
})

/**
 * Quadratic for differences d below `delta`, linear above: 0.5 d^2 or delta (d - 0.5 delta). PyTorch's `F.huber_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError unless `delta` is positive, or for an unknown `reduction`.
 * @example F.huberLoss(torch.tensor([0.5, 3]), torch.tensor([0, 0]), { reduction: 'none', delta: 2 }).toArray() // [0.125, 4]
 */
export const huberLoss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly delta?: number }) => Tensor> = defineOp({
  schema: "huber_loss(Tensor input, Tensor target, *, str reduction='mean', float delta=1.0) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (input, target, reduction) => pairSpec(`${F}.huber_loss`, input, target, reduction),
  decompose: (input, target, reduction, delta) => {
    if (!(delta > 0)) throw new ArgumentError(`${F}.huber_loss: delta must be > 0, got ${delta}.`)
    const d = abs(sub(input, target))
    return reduce(`${F}.huber_loss`, where(lt(d, delta), mul(square(d), 0.5), mul(sub(d, 0.5 * delta), delta)), reduction)
  },
})

function sameShapes(op: string, input: Tensor, target: Tensor): void {
  if (!sameShape(input.symSizes, target.symSizes)) {
    throw new ShapeError(
      `${op}: input has shape ${formatShape(input.symSizes)} and target has shape ${formatShape(target.symSizes)}; they must be equal.`,
    )
  }
}

const oneMinus = (t: Tensor): Tensor => add(neg(t), 1)

/**
 * The cross entropy of probabilities against targets in [0, 1]. PyTorch's `F.binary_cross_entropy`.
 *
 * Shapes: `input` and `target` have one shape, to which `weight` broadcasts; the result is a scalar, or has that shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes differ.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.binaryCrossEntropy(torch.tensor([0.5, 0.5]), torch.tensor([0, 1])).item() // 0.693147
 */
export const binaryCrossEntropy: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly weight?: Tensor | null }) => Tensor> =
  defineOp({
    schema: "binary_cross_entropy(Tensor input, Tensor target, *, Tensor? weight=None, str reduction='mean') -> Tensor",
    namespace: 'torch.nn.functional',
    recordAs: 'keywords',
    autocast: 'float32',
    meta: (input, target, _weight, reduction) => pairSpec(`${F}.binary_cross_entropy`, input, target, reduction),
    decompose: (input, target, weight, reduction) => {
      sameShapes(`${F}.binary_cross_entropy`, input, target)
      // PyTorch bounds the logarithms from below, so that 0 and 1 give finite losses.
      const yes = mul(target, clamp(log(input), -100))
      const no = mul(oneMinus(target), clamp(log(oneMinus(input)), -100))
      const losses = neg(add(yes, no))
      return reduce(`${F}.binary_cross_entropy`, weight === null ? losses : mul(losses, weight), reduction)
    },
  })

/**
 * The cross entropy of logits against targets in [0, 1], computed without overflow. PyTorch's `F.binary_cross_entropy_with_logits`.
 *
 * Shapes: `input` and `target` have one shape, to which `weight` and `posWeight` broadcast; the result is a scalar, or has that shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes differ.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.binaryCrossEntropyWithLogits(torch.tensor([0, 0]), torch.tensor([0, 1])).item() // 0.693147
 */
export const binaryCrossEntropyWithLogits: OpFunction<
  (input: Tensor, target: Tensor, options?: LossOptions & { readonly weight?: Tensor | null; readonly posWeight?: Tensor | null }) => Tensor
> = defineOp({
  schema:
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, *, Tensor? weight=None, str reduction='mean', Tensor? pos_weight=None) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (input, target, _weight, reduction) => pairSpec(`${F}.binary_cross_entropy_with_logits`, input, target, reduction),
  decompose: (input, target, weight, reduction, posWeight) => {
    sameShapes(`${F}.binary_cross_entropy_with_logits`, input, target)
    const logProbability = logsigmoid(input)
    const scaled = posWeight === null ? logProbability : mul(logProbability, add(mul(sub(posWeight, 1), target), 1))
    const losses = sub(mul(oneMinus(target), input), scaled)
    return reduce(`${F}.binary_cross_entropy_with_logits`, weight === null ? losses : mul(losses, weight), reduction)
  },
})
