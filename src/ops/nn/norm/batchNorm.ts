// Batch normalization. In training it is a primitive with its own kernels and backward (compilers can decompose it), and ordinary in-place operators update
// the running statistics above the modes, so that captures see them. In evaluation it consists of pointwise operators.
import type { Size } from '../../../protocol/index.ts'
import { dispatchState } from '../../../dispatch/index.ts'
import { ArgumentError, InternalError, ShapeError } from '../../../errors/index.ts'
import { channelsLastHint } from '../../../protocol/index.ts'
import { formatShape, numelOf, Tensor, areNumbers, sizeEq, hasNoElements, sizeFloorDiv, sizeMax, sizeSub, scalarOf } from '../../../tensor/index.ts'
import type { TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { zeros } from '../../create/creation.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { launch } from '../../eager/launch.ts'
import { add, div, mul, sub } from '../../pointwise/arithmetic.ts'
import { rsqrt } from '../../pointwise/unary.ts'
import { mean } from '../../reduction/mean.ts'
import { sum } from '../../reduction/sum.ts'
import { checkOperand, sizeAt } from '../../shared/shapes.ts'
import { contiguous, reshape } from '../../view/reshape.ts'
import { select } from '../../view/slicing.ts'
import { to } from '../../pointwise/cast.ts'
import { batchNormBackwardKernel, batchNormKernel } from './normKernels.ts'
import { narrowTo, wideFor } from '../wide.ts'

const NAME = 'torch.nn.functional.batch_norm'

/** Vectors with one value per channel, by the name of the argument. */
type PerChannel = Readonly<Record<string, Tensor | null>>

/** The number of channels. Throws ShapeError unless every vector has that many elements. */
function channelsOf(input: Tensor, vectors: PerChannel): Size {
  if (input.ndim < 2)
    throw new ShapeError(`${NAME}: input must have at least 2 dimensions [batch, channels, ..], got shape ${formatShape(input.symSizes)}.`)
  const channels = sizeAt(input.symSizes, 1)
  for (const [name, tensor] of Object.entries(vectors)) {
    if (tensor !== null && (tensor.ndim !== 1 || !sizeEq(tensor.symSizes[0], channels))) {
      throw new ShapeError(
        `${NAME}: ${name} has shape ${formatShape(tensor.symSizes)} but input has ${channels.toString()} channels (shape ${formatShape(input.symSizes)}, dimension 1); expected [${channels.toString()}].${areNumbers(input.symSizes) && areNumbers(tensor.symSizes) ? channelsLastHint('input', input.sizes, tensor.numel) : ''}`,
      )
    }
    checkOperand(NAME, name, tensor, [channels], input.dtype)
  }
  return channels
}

function checkBackward(grad: Tensor, input: Tensor, weight: Tensor | null, batchMean: Tensor, invstd: Tensor): void {
  channelsOf(input, { weight, mean: batchMean, invstd })
  checkOperand(NAME, 'grad', grad, input.symSizes, input.dtype)
}

/** All dimensions but the channels. */
const otherDims = (input: Tensor): number[] => input.symSizes.map((_, i) => i).filter((i) => i !== 1)
/** A vector of channels, shaped to broadcast over the input. */
const spread = (vector: Tensor, input: Tensor): Tensor =>
  reshape(
    vector,
    input.symSizes.map((size, i) => (i === 1 ? size : 1)),
  )
/** The number of values per channel. */
const countOf = (input: Tensor): Size => sizeFloorDiv(input.symNumel, sizeMax(1, sizeAt(input.symSizes, 1)))

function sizes(input: Tensor): { readonly numbers: readonly number[]; readonly lanesOverChannels: boolean } {
  const [images, channels] = [sizeAt(input.sizes, 0), sizeAt(input.sizes, 1)]
  const plane = numelOf(input.sizes.slice(2))
  return { numbers: [images, channels, plane, channels * plane, images * plane], lanesOverChannels: plane === 1 }
}

/** The batch's mean, 1 / sqrt(variance + eps), variance, and the input minus the mean, with operators. */
function statistics(input: Tensor, eps: number) {
  const dims = otherDims(input)
  const mu = mean(input, dims)
  const centered = sub(input, spread(mu, input))
  const variance = mean(mul(centered, centered), dims)
  return { mu, invstd: rsqrt(add(variance, eps)), variance, centered }
}

function backwardFormula(grad: Tensor, input: Tensor, weight: Tensor | null, batchMean: Tensor, invstd: Tensor): readonly [Tensor, Tensor, Tensor] {
  const dims = otherDims(input)
  const count = countOf(input)
  const normal = mul(sub(input, spread(batchMean, input)), spread(invstd, input))
  const gb = sum(grad, dims)
  const gw = sum(mul(grad, normal), dims)
  const sums = add(spread(gb, input), mul(normal, spread(gw, input)))
  const centered = sub(grad, typeof count === 'number' ? mul(sums, 1 / count) : div(sums, scalarOf(count)))
  return [mul(centered, spread(weight === null ? invstd : mul(invstd, weight), input)), gw, gb]
}

/**
 * The gradients of batch normalization in training: [input, weight, bias]. Internal; PyTorch's `aten.native_batch_norm_backward`.
 *
 * Shapes: that of `input`, [C], [C].
 *
 * @throws ArgumentError if an argument is not a Tensor.
 * @example torch.ops.tensorfx.nativeBatchNormBackward(torch.ones([2, 1]), torch.tensor([[1], [3]]), null, torch.tensor([2]), torch.tensor([1]))[2].toArray() // [2]
 */
export const nativeBatchNormBackward: Op['nativeBatchNormBackward'] = defineOp({
  schema: 'native_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor invstd) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (grad, input, weight, batchMean, invstd) => {
    checkBackward(grad, input, weight, batchMean, invstd)
    const vector = { shape: [sizeAt(input.symSizes, 1)], dtype: input.dtype }
    return [{ shape: input.symSizes, dtype: input.dtype }, vector, vector]
  },
  halvesInFloat32: true,
  kernel: (grad, input, weight, batchMean, invstd): readonly [Tensor, Tensor, Tensor] => {
    checkBackward(grad, input, weight, batchMean, invstd)
    const { dtype } = input
    const vector = [sizeAt(input.sizes, 1)]
    const [gi, gw, gb] = [Tensor.empty(input.sizes, dtype), Tensor.empty(vector, dtype), Tensor.empty(vector, dtype)]
    const { numbers, lanesOverChannels } = sizes(input)
    const operands = [grad, input, batchMean, invstd, ...(weight === null ? [] : [weight])].map((t) => contiguous(t))
    launch(batchNormBackwardKernel(dtype, lanesOverChannels, weight !== null), [gi, gw, gb, ...operands], numbers)
    return [gi, gw, gb]
  },
  decompose: (grad, input, weight, batchMean, invstd) => {
    const wide = wideFor(input)
    return narrowTo(input, backwardFormula(wide(grad), wide(input), wide(weight), wide(batchMean), wide(invstd)))
  },
  // The derivative of nativeBatchNorm uses the formula itself if it has to be differentiated.
  derivative: () => {
    throw new InternalError('native_batch_norm_backward is never recorded')
  },
})

/**
 * Batch normalization by the statistics of the batch: [result, mean, 1 / sqrt(variance + eps), variance], with the biased variance. Internal; PyTorch's
 * `aten.native_batch_norm`.
 *
 * Shapes: that of `input`, [C], [C], [C].
 *
 * @throws ShapeError for fewer than 2 dimensions, or if a vector does not have one value per channel.
 * @example torch.ops.tensorfx.nativeBatchNorm(torch.tensor([[1], [3]]), null, null, 0).map((t) => t.toArray()) // [[[-1], [1]], [2], [1], [1]]
 */
export const nativeBatchNorm: Op['nativeBatchNorm'] = defineOp({
  schema: 'native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (input, weight, bias) => {
    const vector: TensorSpec<Size> = { shape: [channelsOf(input, { weight, bias })], dtype: input.dtype }
    return [{ shape: input.symSizes, dtype: input.dtype }, vector, vector, vector]
  },
  halvesInFloat32: true,
  kernel: (input, weight, bias, eps): readonly [Tensor, Tensor, Tensor, Tensor] => {
    const { dtype } = input
    channelsOf(input, { weight, bias })
    const vector = (): Tensor => Tensor.empty([sizeAt(input.sizes, 1)], dtype)
    const [out, mu, invstd, variance] = [Tensor.empty(input.sizes, dtype), vector(), vector(), vector()]
    const { numbers, lanesOverChannels } = sizes(input)
    const operands = [input, weight, bias].filter((t) => t !== null).map((t) => contiguous(t))
    launch(batchNormKernel(dtype, lanesOverChannels, weight !== null, bias !== null), [out, mu, invstd, variance, ...operands], [...numbers, eps])
    return [out, mu, invstd, variance]
  },
  decompose: (input, weight, bias, eps) => {
    const wide = wideFor(input)
    const { mu, invstd, variance, centered } = statistics(wide(input), eps)
    const out = mul(centered, spread(weight === null ? invstd : mul(invstd, wide(weight)), input))
    const shifted = bias === null ? out : add(out, spread(wide(bias), input))
    return [...narrowTo(input, [shifted, mu, invstd]), to(variance, input.dtype)]
  },
  derivative: ([g], { args: [input, weight, bias, eps], outputs: [, mu, invstd] }) => {
    if (g === null) return [null, null, null, null]
    // If the gradient is differentiated again, the statistics must be functions of the input.
    const again = dispatchState.gradEnabled ? statistics(input, eps) : null
    const [gi, gw, gb] =
      again === null
        ? lateOperator<Op['nativeBatchNormBackward']>('torch.ops.tensorfx.native_batch_norm_backward')(g, input, weight, mu, invstd)
        : backwardFormula(g, input, weight, again.mu, again.invstd)
    return [gi, weight === null ? null : gw, bias === null ? null : gb, null]
  },
})

/** No values have no statistics; the weight and the bias get gradients of 0. */
function emptyOutput(input: Tensor, weight: Tensor | null, bias: Tensor | null): Tensor {
  const scaled = weight === null ? mul(input, 1) : mul(input, select(weight, 0, 0))
  return bias === null ? scaled : add(scaled, select(bias, 0, 0))
}

/** Adds `momentum` times the unbiased variance of `count` values. */
function addUnbiased(running: Tensor, variance: Tensor, count: Size, momentum: number): void {
  if (typeof count === 'number') running.add_(variance, { alpha: (momentum * count) / (count - 1) })
  else running.add_(div(mul(variance, scalarOf(count)), scalarOf(sizeSub(count, 1))), { alpha: momentum })
}

/** Batch normalization: [result, mean, 1 / sqrt(variance + eps)] of the batch. In evaluation the statistics are empty. */
export function normalized(
  input: Tensor,
  runningMean: Tensor | null,
  runningVar: Tensor | null,
  weight: Tensor | null,
  bias: Tensor | null,
  training: boolean,
  momentum: number,
  eps: number,
): readonly [Tensor, Tensor, Tensor] {
  const channels = channelsOf(input, { running_mean: runningMean, running_var: runningVar, weight, bias })
  if (!training) {
    const none = zeros([0], { dtype: input.dtype })
    return [evaluated(input, runningMean, runningVar, weight, bias, eps), none, none]
  }
  if (hasNoElements(input.symSizes)) {
    const nothing = zeros([channels], { dtype: input.dtype })
    return [emptyOutput(input, weight, bias), nothing, nothing]
  }
  const count = countOf(input)
  const [out, batchMean, invstd, variance] = nativeBatchNorm(input, weight, bias, eps)
  const outer = dispatchState.gradEnabled
  dispatchState.gradEnabled = false
  try {
    if (runningMean !== null) runningMean.lerp_(batchMean, momentum)
    // The running variance is the unbiased one.
    if (runningVar !== null) addUnbiased(runningVar.mul_(1 - momentum), variance, count, momentum)
  } finally {
    dispatchState.gradEnabled = outer
  }
  return [out, batchMean, invstd]
}

/** Normalizes by the running statistics, with one product and one sum. */
function evaluated(
  input: Tensor,
  runningMean: Tensor | null,
  runningVar: Tensor | null,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): Tensor {
  if (runningMean === null || runningVar === null)
    throw new ArgumentError(`${NAME}: arguments 'runningMean' and 'runningVar' are missing; they are needed unless training is true.`)
  const invstd = rsqrt(add(runningVar, eps))
  const scale = weight === null ? invstd : mul(invstd, weight)
  const shift = bias === null ? mul(mul(runningMean, scale), -1) : sub(bias, mul(runningMean, scale))
  return add(mul(input, spread(scale, input)), spread(shift, input))
}

/** Options of batchNorm. */
export interface BatchNormOptions {
  readonly weight?: Tensor | null
  readonly bias?: Tensor | null
  readonly training?: boolean
  readonly momentum?: number | null
  readonly eps?: number
}

type BatchNorm = {
  (
    input: Tensor,
    runningMean: Tensor | null,
    runningVar: Tensor | null,
    weight?: Tensor | null,
    bias?: Tensor | null,
    training?: boolean,
    momentum?: number,
    eps?: number,
  ): Tensor
  (
    input: Tensor,
    runningMean: Tensor | null,
    runningVar: Tensor | null,
    weight: Tensor | null,
    bias: Tensor | null,
    options: BatchNormOptions,
  ): Tensor
  (input: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, options?: BatchNormOptions): Tensor
}

/**
 * Normalizes each channel: with `training` by the statistics of the batch (and updates `runningMean` and `runningVar` in place), otherwise by the running
 * ones. PyTorch's `F.batch_norm`.
 *
 * Shapes: input [N, C, ..]; the other tensors are [C]. The result has the shape of `input`.
 *
 * @throws ShapeError for fewer than 2 dimensions, for vectors of another size than C, or, in training, for one value per channel.
 * @throws ArgumentError if `training` is false and there are no running statistics.
 * @example F.batchNorm(torch.tensor([[1], [3]]), null, null, { training: true, eps: 0 }).toArray() // [[-1], [1]]
 */
export const batchNorm: OpFunction<BatchNorm> = defineOp({
  schema:
    'batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input, runningMean, runningVar, weight, bias) => {
    channelsOf(input, { running_mean: runningMean, running_var: runningVar, weight, bias })
    return { shape: input.symSizes, dtype: input.dtype }
  },
  decompose: (input, runningMean, runningVar, weight, bias, training, momentum, eps) => {
    if (!training) {
      channelsOf(input, { running_mean: runningMean, running_var: runningVar, weight, bias })
      return evaluated(input, runningMean, runningVar, weight, bias, eps)
    }
    if (!hasNoElements(input.symSizes) && sizeEq(countOf(input), 1))
      throw new ShapeError(`${NAME}: expected more than 1 value per channel when training, got input of shape ${formatShape(input.symSizes)}.`)
    return normalized(input, runningMean, runningVar, weight, bias, true, momentum, eps)[0]
  },
})
