// Losses of margins, rankings and distances.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { isCallable, valueText } from '../../../protocol/index.ts'
import { Tensor, formatShape, getDefaultDtype, scalarOf } from '../../../tensor/index.ts'
import { rangeOf } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { add, div, minimum, mul, neg, pow, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { eq, ne } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { logsigmoid, softplus } from '../../pointwise/softplus.ts'
import { sqrt } from '../../pointwise/unary.ts'
import { rsub } from '../../pointwise/variations.ts'
import { cumsum } from '../../reduction/cumsum.ts'
import { mean } from '../../reduction/mean.ts'
import { sum } from '../../reduction/sum.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { gather } from '../../view/indexing.ts'
import { reshape, unsqueeze } from '../../view/reshape.ts'
import { pairwiseDistance } from '../distances.ts'
import { reduce } from './losses.ts'
import type { LossOptions } from './losses.ts'

const F = 'torch.nn.functional'
const positivePart = (t: Tensor): Tensor => clamp(t, 0)

/** Integers as floats, which a margin makes of them: it is a float even where it is a whole number. */
const floated = (t: Tensor): Tensor => (t.isFloatingPoint() ? t : to(t, getDefaultDtype()))

export interface MarginOptions extends LossOptions {
  readonly margin?: number
}

/**
 * log(1 + e^(-target * input)), for targets 1 and -1. PyTorch's `F.soft_margin_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.softMarginLoss(torch.tensor([0, 2]), torch.tensor([1, 1]), { reduction: 'none' }).toArray() // [0.693147, 0.126928]
 */
export const softMarginLoss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions) => Tensor> = defineOp({
  schema: "soft_margin_loss(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, target, reduction) => reduce(`${F}.soft_margin_loss`, softplus(neg(mul(target, input))), reduction),
})

/**
 * `input` where the target is 1, max(0, margin - input) where it is -1, and their sum for any other target. PyTorch's `F.hinge_embedding_loss`.
 *
 * Shapes: `input` and `target` broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.hingeEmbeddingLoss(torch.tensor([2, 0.25]), torch.tensor([1, -1]), { reduction: 'none' }).toArray() // [2, 0.75]
 */
export const hingeEmbeddingLoss: OpFunction<(input: Tensor, target: Tensor, options?: MarginOptions) => Tensor> = defineOp({
  schema: "hinge_embedding_loss(Tensor input, Tensor target, *, float margin=1.0, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, target, margin, reduction) => {
    const apart = where(ne(target, 1), positivePart(rsub(floated(input), margin)), 0)
    return reduce(`${F}.hinge_embedding_loss`, add(where(ne(target, -1), input, 0), apart), reduction)
  },
})

/**
 * max(0, margin - target * (input1 - input2)). PyTorch's `F.margin_ranking_loss`.
 *
 * Shapes: the arguments broadcast; the result is a scalar, or has the broadcast shape for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.marginRankingLoss(torch.tensor([1]), torch.tensor([3]), torch.tensor([1])).item() // 2
 */
export const marginRankingLoss: OpFunction<(input1: Tensor, input2: Tensor, target: Tensor, options?: MarginOptions) => Tensor> = defineOp({
  schema: "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, *, float margin=0.0, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input1, input2, target, margin, reduction) =>
    reduce(`${F}.margin_ranking_loss`, positivePart(add(floated(mul(neg(target), sub(input1, input2))), margin)), reduction),
})

/**
 * 1 - cos where the target is 1, and max(0, cos - margin) where it is -1, with the cosine of the angle between rows. PyTorch's `F.cosine_embedding_loss`.
 *
 * Shapes: `input1` and `input2` [N, D] and `target` [N]; or [D] and []. The result is a scalar, or has the shape of `target` for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.cosineEmbeddingLoss(torch.tensor([[3, 4]]), torch.tensor([[4, 3]]), torch.tensor([1])).item() // 0.04
 */
export const cosineEmbeddingLoss: OpFunction<(input1: Tensor, input2: Tensor, target: Tensor, options?: MarginOptions) => Tensor> = defineOp({
  schema: "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, *, float margin=0.0, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input1, input2, target, margin, reduction) => {
    // As PyTorch computes it, which is not the cosine similarity: 1e-12 is added to the squares of the lengths.
    const square = (x: Tensor): Tensor => add(floated(sum(mul(x, x), [-1])), 1e-12)
    const cosine = div(sum(mul(input1, input2), [-1]), sqrt(mul(square(input1), square(input2))))
    const apart = where(eq(target, -1), positivePart(sub(cosine, margin)), 0)
    return reduce(`${F}.cosine_embedding_loss`, add(where(eq(target, 1), rsub(cosine, 1), 0), apart), reduction)
  },
})

/** max(0, d(anchor, positive) - d(anchor, negative) + margin); with `swap`, d(positive, negative) may stand for the latter, if it is less. */
function triplet(
  op: string,
  distance: (a: Tensor, b: Tensor) => Tensor,
  [anchor, positive, negative]: readonly [Tensor, Tensor, Tensor],
  margin: number,
  swap: boolean,
): Tensor {
  if (!(margin > 0)) throw new ArgumentError(`${op}: margin must be greater than 0, got ${margin}.`)
  const far = distance(anchor, negative)
  return positivePart(add(sub(distance(anchor, positive), swap ? minimum(far, distance(positive, negative)) : far), margin))
}

export interface TripletOptions extends MarginOptions {
  readonly p?: number
  readonly eps?: number
  /** Whether the distance of positive and negative counts where it is less than that of anchor and negative. */
  readonly swap?: boolean
}

/**
 * max(0, |anchor - positive| - |anchor - negative| + margin), with the p-norm along the last dimension. PyTorch's `F.triplet_margin_loss`.
 *
 * Shapes: three times [N, D]; the result is a scalar, or [N] for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.tripletMarginLoss(torch.tensor([[0]]), torch.tensor([[3]]), torch.tensor([[2]]), { eps: 0 }).item() // 2
 */
export const tripletMarginLoss: OpFunction<(anchor: Tensor, positive: Tensor, negative: Tensor, options?: TripletOptions) => Tensor> = defineOp({
  schema:
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, *, float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (anchor, positive, negative, margin, p, eps, swap, reduction) => {
    const distance = (a: Tensor, b: Tensor): Tensor => pairwiseDistance(a, b, p, eps)
    const op = `${F}.triplet_margin_loss`
    return reduce(op, triplet(op, distance, [anchor, positive, negative], margin, swap), reduction)
  },
})

export interface TripletDistanceOptions extends MarginOptions {
  /** A function of two tensors that gives their distances. Default: {@link pairwiseDistance}. */
  readonly distanceFunction?: ((a: Tensor, b: Tensor) => Tensor) | null
  readonly swap?: boolean
}

/**
 * {@link tripletMarginLoss} with a distance of your own. PyTorch's `F.triplet_margin_with_distance_loss`.
 *
 * Shapes: those that `distanceFunction` takes; the result is a scalar, or has the shape of the distances for reduction 'none'.
 *
 * @throws ArgumentError for an unknown `reduction`, or if `distanceFunction` is not a function that returns a Tensor.
 * @example F.tripletMarginWithDistanceLoss(torch.tensor([[0]]), torch.tensor([[3]]), torch.tensor([[2]])).item() // 2
 */
export const tripletMarginWithDistanceLoss: OpFunction<
  (anchor: Tensor, positive: Tensor, negative: Tensor, options?: TripletDistanceOptions) => Tensor
> = defineOp({
  schema:
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, any distance_function=None, float margin=1.0, bool swap=False, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  decompose: (anchor, positive, negative, given, margin, swap, reduction) => {
    const op = `${F}.triplet_margin_with_distance_loss`
    if (given !== null && !isCallable(given))
      throw new ArgumentError(`${op}: distance_function must be a function of two tensors, got ${valueText(given)}.`)
    const distance = (a: Tensor, b: Tensor): Tensor => {
      const result: unknown = given === null ? pairwiseDistance(a, b) : given(a, b)
      if (result instanceof Tensor) return result
      throw new ArgumentError(`${op}: distance_function must return a Tensor, got ${valueText(result)}.`)
    }
    return reduce(op, triplet(op, distance, [anchor, positive, negative], margin, swap), reduction)
  },
})

/** `input` as [N, C], whatever the target has: [N], or [] for a single sample. */
function samplesOf(op: string, input: Tensor): Tensor {
  if (input.ndim <= 2) return input.ndim === 2 ? input : reshape(input, [1, -1])
  throw new ShapeError(`${op}: expected an input [N, C] or [C], got shape ${formatShape(input.symSizes)}.`)
}

export interface MultiMarginOptions extends MarginOptions {
  /** 1 or 2: the power of the margins. */
  readonly p?: number
  /** A factor for each class. */
  readonly weight?: Tensor | null
}

/**
 * The mean over the other classes of max(0, margin - input[target] + input[class])^p. PyTorch's `F.multi_margin_loss`.
 *
 * Shapes: `input` [N, C] and `target` [N]; or [C] and []. The result is a scalar, or has the shape of `target` for reduction 'none'.
 *
 * @throws ShapeError unless `input` has 1 or 2 dimensions.
 * @throws ArgumentError for an unknown `reduction`, and unless `p` is 1 or 2.
 * @example F.multiMarginLoss(torch.tensor([[1, 3]]), torch.tensor([0]).long()).item() // 1.5
 */
export const multiMarginLoss: OpFunction<(input: Tensor, target: Tensor, options?: MultiMarginOptions) => Tensor> = defineOp({
  schema: "multi_margin_loss(Tensor input, Tensor target, *, int p=1, float margin=1.0, Tensor? weight=None, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, target, p, margin, weight, reduction) => {
    const op = `${F}.multi_margin_loss`
    if (p !== 1 && p !== 2) throw new ArgumentError(`${op}: p must be 1 or 2, got ${p}.`)
    const x = samplesOf(op, input)
    const classes = reshape(target, [-1, 1])
    const gaps = positivePart(add(sub(x, gather(x, 1, classes)), margin))
    const powers = p === 1 ? gaps : pow(gaps, 2)
    const weighted = weight === null ? powers : mul(powers, reshape(gather(weight, 0, reshape(classes, [-1])), [-1, 1]))
    const others = where(eq(rangeOf(0, 1, sizeAt(x.symSizes, 1), 'int64'), classes), 0, weighted)
    return reduce(op, reshape(div(sum(others, [1]), scalarOf(sizeAt(x.symSizes, 1))), target.symSizes), reduction)
  },
})

/**
 * The mean over the targets of a sample and the other classes of max(0, 1 - input[target] + input[class]); the first -1 ends the list of targets.
 * PyTorch's `F.multilabel_margin_loss`.
 *
 * Shapes: `input` and `target` [N, C] or [C]. The result is a scalar, or [N] or [] for reduction 'none'.
 *
 * @throws ShapeError unless `input` has 1 or 2 dimensions.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.multilabelMarginLoss(torch.tensor([[1, 3]]), torch.tensor([[0, -1]]).long()).item() // 1.5
 */
export const multilabelMarginLoss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions) => Tensor> = defineOp({
  schema: "multilabel_margin_loss(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, target, reduction) => {
    const op = `${F}.multilabel_margin_loss`
    const x = samplesOf(op, input)
    const labels = samplesOf(op, target)
    const classes = sizeAt(x.symSizes, 1)
    const valid = eq(cumsum(to(eq(labels, -1), 'int64'), 1), 0)
    const chosen = where(valid, labels, -1)
    // [N, C]: whether the class is one of the targets.
    const isTarget = ne(sum(to(eq(unsqueeze(chosen, 1), reshape(rangeOf(0, 1, classes, 'int64'), [1, -1, 1])), 'int64'), [2]), 0)
    const own = gather(x, 1, where(valid, labels, 0))
    const gaps = positivePart(add(sub(unsqueeze(x, 1), unsqueeze(own, 2)), 1))
    const counted = where(unsqueeze(isTarget, 1), 0, where(unsqueeze(valid, 2), gaps, 0))
    return reduce(op, reshape(div(sum(counted, [1, 2]), scalarOf(classes)), input.symSizes.slice(0, -1)), reduction)
  },
})

/**
 * The mean over classes of the binary cross-entropy of sigmoid(input). PyTorch's `F.multilabel_soft_margin_loss`.
 *
 * Shapes: `input` and `target` [.., C]; the result is a scalar, or lacks the last dimension for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an unknown `reduction`.
 * @example F.multilabelSoftMarginLoss(torch.tensor([[0, 0]]), torch.tensor([[1, 0]])).item() // 0.693147
 */
export const multilabelSoftMarginLoss: OpFunction<
  (input: Tensor, target: Tensor, options?: LossOptions & { readonly weight?: Tensor | null }) => Tensor
> = defineOp({
  schema: "multilabel_soft_margin_loss(Tensor input, Tensor target, *, Tensor? weight=None, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  decompose: (input, target, weight, reduction) => {
    const each = neg(add(mul(target, logsigmoid(input)), mul(rsub(target, 1), logsigmoid(neg(input)))))
    return reduce(`${F}.multilabel_soft_margin_loss`, mean(weight === null ? each : mul(each, weight), [-1]), reduction)
  },
})
