// Cross entropy of logits, against classes or against class probabilities.
import type { Size } from '../../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { dtypeInfo } from '../../../kernels/index.ts'
import { swappedHint } from '../../../protocol/index.ts'
import { formatShape, sameShape, sizeNumber, scalarOf } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { add, div, mul, neg } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { ne } from '../../pointwise/comparison.ts'
import { logSoftmax } from '../../reduction/softmax.ts'
import { sum } from '../../reduction/sum.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { reshape } from '../../view/reshape.ts'
import { checkedReduction, nllLoss, nllLossForward } from './nllLoss.ts'
import type { Reduction } from './nllLoss.ts'

const NAME = 'torch.nn.functional.cross_entropy'

/** Options of crossEntropy. */
export interface CrossEntropyOptions {
  /** A weight per class. */
  readonly weight?: Tensor | null
  /** Targets of this class do not count. Default -100. */
  readonly ignoreIndex?: number
  readonly reduction?: Reduction
  /** In [0, 1]: how much of the target is spread over all classes. */
  readonly labelSmoothing?: number
}

const classDim = (input: Tensor): number => (input.ndim === 1 ? 0 : 1)

/** The shape of the logits without the classes. */
function sampleShape(input: Tensor): readonly Size[] {
  const dim = classDim(input)
  return input.symSizes.filter((_, i) => i !== dim)
}

/** What is wrong with a target of another shape; input and target have changed places if they would fit there. */
function unfitTarget(input: Tensor, target: Tensor): ShapeError {
  const perSample = sampleShape(input)
  const areSwapped = dtypeInfo[target.dtype].floating && target.ndim > 0 && sameShape(input.symSizes, sampleShape(target))
  return new ShapeError(
    `${NAME}: target has shape ${formatShape(target.symSizes)} (${target.dtype}) but input has shape ${formatShape(input.symSizes)}; ` +
      `expected integer classes of shape ${formatShape(perSample)} or probabilities of shape ${formatShape(input.symSizes)}.` +
      swappedHint(areSwapped, 'input', 'target', 'input, target'),
  )
}

/** A weight per class, shaped to broadcast over the logits. */
const classWeights = (weight: Tensor, logits: Tensor): Tensor =>
  reshape(
    weight,
    logits.symSizes.map((size, i) => (i === classDim(logits) ? size : 1)),
  )

/** A sum of losses per sample, of which there are `count` / `classes`. */
const perSample = (total: Tensor, classes: Size, count: Size): Tensor =>
  typeof classes === 'number' && typeof count === 'number' ? mul(total, classes / count) : div(mul(total, scalarOf(classes)), scalarOf(count))

function probabilityLoss(logits: Tensor, target: Tensor, weight: Tensor | null, reduction: Reduction, labelSmoothing: number): Tensor {
  const dim = classDim(logits)
  const classes = sizeAt(logits.symSizes, dim)
  const smooth = labelSmoothing === 0 ? target : add(mul(target, 1 - labelSmoothing), labelSmoothing / sizeNumber(classes))
  const products = mul(logSoftmax(logits, dim), weight === null ? smooth : mul(smooth, classWeights(weight, logits)))
  const losses = neg(sum(products, [dim]))
  // The mean is per sample, not per weight.
  return reduction === 'none' ? losses : reduction === 'sum' ? sum(losses) : perSample(sum(losses), classes, logits.symNumel)
}

function smoothedLoss(
  logits: Tensor,
  target: Tensor,
  weight: Tensor | null,
  ignoreIndex: number,
  reduction: Reduction,
  labelSmoothing: number,
): Tensor {
  const batched = logits.ndim === 1 ? reshape(logits, [1, -1]) : logits
  const targets = logits.ndim === 1 ? reshape(target, [1]) : target
  const logProbs = logSoftmax(batched, 1)
  const [losses, weights] = nllLossForward(logProbs, targets, weight, ignoreIndex)
  const weighted = weight === null ? logProbs : mul(logProbs, classWeights(weight, batched))
  const all = mul(neg(sum(weighted, [1])), to(ne(targets, ignoreIndex), logProbs.dtype))
  const mixed = add(mul(losses, 1 - labelSmoothing), mul(all, labelSmoothing / sizeNumber(sizeAt(batched.symSizes, 1))))
  if (reduction === 'none') return logits.ndim === 1 ? reshape(mixed, []) : mixed
  return reduction === 'sum' ? sum(mixed) : div(sum(mixed), sum(weights))
}

/**
 * The cross entropy of logits against classes, or against class probabilities. PyTorch's `F.cross_entropy`.
 *
 * Shapes: input [N, C, ..] (or [C]); target [N, ..] of an integer dtype for classes, or the shape of the input for probabilities. The result is a scalar, or [N, ..] for
 * reduction 'none'.
 *
 * @throws ShapeError if the target has another shape.
 * @throws ArgumentError if a class or `labelSmoothing` is out of range, or for an unknown `reduction`.
 * @example F.crossEntropy(torch.tensor([[0, 0], [0, 0]]), torch.tensor([1, 0]).long()).item() // 0.693147
 */
export const crossEntropy: OpFunction<(input: Tensor, target: Tensor, options?: CrossEntropyOptions) => Tensor> = defineOp({
  schema:
    "cross_entropy(Tensor input, Tensor target, *, Tensor? weight=None, int ignore_index=-100, str reduction='mean', float label_smoothing=0.0) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (input, target, _weight, _ignoreIndex, reduction) => {
    const perSample = sampleShape(input)
    if (!sameShape(target.symSizes, perSample) && !sameShape(target.symSizes, input.symSizes)) {
      throw unfitTarget(input, target)
    }
    return { shape: reduction === 'none' ? perSample : [], dtype: input.dtype }
  },
  decompose: (input, target, weight, ignoreIndex, given, labelSmoothing) => {
    if (!(labelSmoothing >= 0 && labelSmoothing <= 1))
      throw new ArgumentError(`${NAME}: label_smoothing must be between 0 and 1, got ${labelSmoothing}.`)
    const reduction = checkedReduction(NAME, given)
    const perSample = sampleShape(input)
    const probabilities = dtypeInfo[target.dtype].floating && sameShape(target.symSizes, input.symSizes)
    if (!probabilities && !sameShape(target.symSizes, perSample)) {
      throw unfitTarget(input, target)
    }
    if (probabilities) return probabilityLoss(input, target, weight, reduction, labelSmoothing)
    if (labelSmoothing > 0) return smoothedLoss(input, target, weight, ignoreIndex, reduction, labelSmoothing)
    return nllLoss(logSoftmax(input, classDim(input)), target, weight, { ignoreIndex, reduction })
  },
})
