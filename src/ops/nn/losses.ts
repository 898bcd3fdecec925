// Losses composed of other operators.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { broadcastShapes, formatShape, sameShape } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { abs, add, div, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { relu } from '../pointwise/activation.ts'
import { to } from '../pointwise/cast.ts'
import { lt, ne } from '../pointwise/comparison.ts'
import { clamp, where } from '../pointwise/select.ts'
import { exp, log, log1p, square } from '../pointwise/unary.ts'
import { mean } from '../reduction/mean.ts'
import { logSoftmax } from '../reduction/softmax.ts'
import { sum } from '../reduction/sum.ts'
import { reshape } from '../view/index.ts'
import { checkReduction, nllLoss, nllLossForward } from './nllLoss.ts'
import type { Reduction } from './nllLoss.ts'

/** Options that most losses share. */
export interface LossOptions {
  readonly reduction?: Reduction
}

const F = 'torch.nn.functional'

function reduce(op: string, losses: Tensor, reduction: string): Tensor {
  checkReduction(op, reduction)
  return reduction === 'none' ? losses : reduction === 'sum' ? sum(losses) : mean(losses)
}

const pairMeta =
  (op: string) =>
  (input: Tensor, target: Tensor, ...rest: unknown[]): TensorSpec => ({
    shape: rest.includes('none') ? broadcastShapes(op, input.shape, target.shape) : [],
    dtype: input.dtype,
  })

type PairLoss = (input: Tensor, target: Tensor, options?: LossOptions) => Tensor

/** The squared difference. PyTorch's `F.mse_loss`. */
export const mseLoss: OpFunction<PairLoss> = defineOp({
  schema: "mse_loss(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
  namespace: F,
  recordAs: 'keywords',
  meta: pairMeta(`${F}.mse_loss`),
  decompose: (input: Tensor, target: Tensor, reduction: string): Tensor => {
    broadcastShapes(`${F}.mse_loss`, input.shape, target.shape)
    return reduce(`${F}.mse_loss`, square(sub(input, target)), reduction)
  },
})

/** The absolute difference. PyTorch's `F.l1_loss`. */
export const l1Loss: OpFunction<PairLoss> = defineOp({
  schema: "l1_loss(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
  namespace: F,
  recordAs: 'keywords',
  meta: pairMeta(`${F}.l1_loss`),
  decompose: (input: Tensor, target: Tensor, reduction: string): Tensor => reduce(`${F}.l1_loss`, abs(sub(input, target)), reduction),
})

/** Quadratic below `beta`, linear above: 0.5 d^2 / beta or d - 0.5 beta. PyTorch's `F.smooth_l1_loss`. */
export const smoothL1Loss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly beta?: number }) => Tensor> = defineOp({
  schema: "smooth_l1_loss(Tensor input, Tensor target, *, str reduction='mean', float beta=1.0) -> Tensor",
  namespace: F,
  recordAs: 'keywords',
  meta: pairMeta(`${F}.smooth_l1_loss`),
  decompose: (input: Tensor, target: Tensor, reduction: string, beta: number): Tensor => {
    if (!(beta >= 0)) throw new ArgumentError(`${F}.smooth_l1_loss: beta must be >= 0, got ${beta}.`)
    const d = abs(sub(input, target))
    return reduce(`${F}.smooth_l1_loss`, beta === 0 ? d : where(lt(d, beta), mul(square(d), 0.5 / beta), sub(d, 0.5 * beta)), reduction)
  },
})

/** Quadratic below `delta`, linear above: 0.5 d^2 or delta (d - 0.5 delta). PyTorch's `F.huber_loss`. */
export const huberLoss: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly delta?: number }) => Tensor> = defineOp({
  schema: "huber_loss(Tensor input, Tensor target, *, str reduction='mean', float delta=1.0) -> Tensor",
  namespace: F,
  recordAs: 'keywords',
  meta: pairMeta(`${F}.huber_loss`),
  decompose: (input: Tensor, target: Tensor, reduction: string, delta: number): Tensor => {
    if (!(delta > 0)) throw new ArgumentError(`${F}.huber_loss: delta must be > 0, got ${delta}.`)
    const d = abs(sub(input, target))
    return reduce(`${F}.huber_loss`, where(lt(d, delta), mul(square(d), 0.5), mul(sub(d, 0.5 * delta), delta)), reduction)
  },
})

function sameShapes(op: string, input: Tensor, target: Tensor): void {
  if (!sameShape(input.shape, target.shape)) {
    throw new ShapeError(`${op}: input has shape ${formatShape(input.shape)} and target has shape ${formatShape(target.shape)}; they must be equal.`)
  }
}

const oneMinus = (t: Tensor): Tensor => add(neg(t), 1)

/** Cross entropy of probabilities against targets in [0, 1]. PyTorch's `F.binary_cross_entropy`. */
export const binaryCrossEntropy: OpFunction<(input: Tensor, target: Tensor, options?: LossOptions & { readonly weight?: Tensor | null }) => Tensor> =
  defineOp({
    schema: "binary_cross_entropy(Tensor input, Tensor target, *, Tensor? weight=None, str reduction='mean') -> Tensor",
    namespace: F,
    recordAs: 'keywords',
    meta: pairMeta(`${F}.binary_cross_entropy`),
    decompose: (input: Tensor, target: Tensor, weight: Tensor | null, reduction: string): Tensor => {
      sameShapes(`${F}.binary_cross_entropy`, input, target)
      // PyTorch bounds the logarithms from below, so that 0 and 1 give finite losses.
      const yes = mul(target, clamp(log(input), -100))
      const no = mul(oneMinus(target), clamp(log(oneMinus(input)), -100))
      const losses = neg(add(yes, no))
      return reduce(`${F}.binary_cross_entropy`, weight === null ? losses : mul(losses, weight), reduction)
    },
  })

/** Cross entropy of logits against targets in [0, 1], without overflow. PyTorch's `F.binary_cross_entropy_with_logits`. */
export const binaryCrossEntropyWithLogits: OpFunction<
  (input: Tensor, target: Tensor, options?: LossOptions & { readonly weight?: Tensor | null; readonly posWeight?: Tensor | null }) => Tensor
> = defineOp({
  schema:
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, *, Tensor? weight=None, str reduction='mean', Tensor? pos_weight=None) -> Tensor",
  namespace: F,
  recordAs: 'keywords',
  meta: pairMeta(`${F}.binary_cross_entropy_with_logits`),
  decompose: (input: Tensor, target: Tensor, weight: Tensor | null, reduction: string, posWeight: Tensor | null): Tensor => {
    sameShapes(`${F}.binary_cross_entropy_with_logits`, input, target)
    // log(1 + exp(-x)), stable for both signs.
    const softplus = add(log1p(exp(neg(abs(input)))), relu(neg(input)))
    const scaled = posWeight === null ? softplus : mul(softplus, add(mul(sub(posWeight, 1), target), 1))
    const losses = add(mul(oneMinus(target), input), scaled)
    return reduce(`${F}.binary_cross_entropy_with_logits`, weight === null ? losses : mul(losses, weight), reduction)
  },
})

const CROSS = `${F}.cross_entropy`

/** Options of crossEntropy. */
export interface CrossEntropyOptions {
  /** A weight per class. */
  readonly weight?: Tensor | null
  /** Targets of this class do not count. */
  readonly ignoreIndex?: number
  readonly reduction?: Reduction
  /** In [0, 1]: how much of the target is spread over all classes. */
  readonly labelSmoothing?: number
}

const classDim = (input: Tensor): number => (input.ndim === 1 ? 0 : 1)

function probabilityLoss(logits: Tensor, target: Tensor, weight: Tensor | null, reduction: string, labelSmoothing: number): Tensor {
  const dim = classDim(logits)
  const classes = logits.shape[dim] as number
  const smooth = labelSmoothing === 0 ? target : add(mul(target, 1 - labelSmoothing), labelSmoothing / classes)
  const view =
    weight === null
      ? null
      : reshape(
          weight,
          logits.shape.map((size, i) => (i === dim ? size : 1)),
        )
  const products = mul(logSoftmax(logits, dim), view === null ? smooth : mul(smooth, view))
  const losses = neg(sum(products, [dim]))
  checkReduction(CROSS, reduction)
  // The mean is per sample, not per weight.
  return reduction === 'none' ? losses : reduction === 'sum' ? sum(losses) : mul(sum(losses), classes / logits.numel)
}

function smoothedLoss(logits: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number, reduction: string, labelSmoothing: number): Tensor {
  checkReduction(CROSS, reduction)
  const batched = logits.ndim === 1 ? reshape(logits, [1, -1]) : logits
  const classes = batched.shape[1] as number
  const targets = logits.ndim === 1 ? reshape(target, [1]) : target
  const logProbs = logSoftmax(batched, 1)
  const [losses, weights] = nllLossForward(logProbs, targets, weight, ignoreIndex)
  const view =
    weight === null
      ? logProbs
      : mul(
          logProbs,
          reshape(
            weight,
            batched.shape.map((size, i) => (i === 1 ? size : 1)),
          ),
        )
  const all = mul(neg(sum(view, [1])), to(ne(targets, ignoreIndex), logProbs.dtype))
  const mixed = add(mul(losses, 1 - labelSmoothing), mul(all, labelSmoothing / classes))
  if (reduction === 'none') return logits.ndim === 1 ? reshape(mixed, []) : mixed
  return reduction === 'sum' ? sum(mixed) : div(sum(mixed), sum(weights))
}

/**
 * Cross entropy of logits [N, C, ..] against classes (int32 [N, ..]) or class probabilities (floating, the shape of the logits). PyTorch's `F.cross_entropy`.
 * Throws ShapeError where target does not fit.
 */
export const crossEntropy: OpFunction<(input: Tensor, target: Tensor, options?: CrossEntropyOptions) => Tensor> = defineOp({
  schema:
    "cross_entropy(Tensor input, Tensor target, *, Tensor? weight=None, int ignore_index=-100, str reduction='mean', float label_smoothing=0.0) -> Tensor",
  namespace: F,
  recordAs: 'keywords',
  meta: (input: Tensor, target: Tensor, _weight: Tensor | null, _ignoreIndex: number, reduction: string): TensorSpec => {
    const dim = classDim(input)
    const perSample = input.shape.filter((_, i) => i !== dim)
    if (!sameShape(target.shape, perSample) && !sameShape(target.shape, input.shape)) {
      throw new ShapeError(
        `${CROSS}: target has shape ${formatShape(target.shape)} but input has shape ${formatShape(input.shape)}; ` +
          `expected classes of shape ${formatShape(perSample)} or probabilities of shape ${formatShape(input.shape)}.`,
      )
    }
    return { shape: reduction === 'none' ? perSample : [], dtype: input.dtype }
  },
  decompose: (input: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number, reduction: string, labelSmoothing: number): Tensor => {
    if (!(labelSmoothing >= 0 && labelSmoothing <= 1))
      throw new ArgumentError(`${CROSS}: label_smoothing must be between 0 and 1, got ${labelSmoothing}.`)
    const dim = classDim(input)
    const perSample = input.shape.filter((_, i) => i !== dim)
    const probabilities = target.dtype !== 'int32' && sameShape(target.shape, input.shape)
    if (!probabilities && !sameShape(target.shape, perSample)) {
      throw new ShapeError(
        `${CROSS}: target has shape ${formatShape(target.shape)} (${target.dtype}) but input has shape ${formatShape(input.shape)}; ` +
          `expected int32 classes of shape ${formatShape(perSample)} or probabilities of shape ${formatShape(input.shape)}.`,
      )
    }
    if (probabilities) return probabilityLoss(input, target, weight, reduction, labelSmoothing)
    if (labelSmoothing > 0) return smoothedLoss(input, target, weight, ignoreIndex, reduction, labelSmoothing)
    return nllLoss(logSoftmax(input, dim), target, weight, { ignoreIndex, reduction: reduction as Reduction })
  },
})
