// Batch normalization. In training: a primitive with its own kernels and backward (decomposable for compilers), and running statistics updated by
// plain in-place operators above the modes, so that captures see ordinary mutations. In evaluation: pointwise operators.
import { dispatchState } from '../../dispatch/index.ts'
import { ArgumentError, InternalError, ShapeError } from '../../errors/index.ts'
import { formatShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { add, mul, sub } from '../pointwise/arithmetic.ts'
import { rsqrt } from '../pointwise/unary.ts'
import { mean } from '../reduction/mean.ts'
import { sum } from '../reduction/sum.ts'
import { contiguous, reshape } from '../view/index.ts'
import { launch } from '../eager/launch.ts'
import { batchNormBackwardKernel, batchNormKernel } from './normKernels.ts'

const NAME = 'torch.nn.functional.batch_norm'

function check(input: Tensor, named: readonly (readonly [string, Tensor | null])[]): number {
  if (input.ndim < 2)
    throw new ShapeError(`${NAME}: input must have at least 2 dimensions [batch, channels, ..], got shape ${formatShape(input.shape)}.`)
  const channels = input.shape[1] as number
  for (const [name, tensor] of named) {
    if (tensor !== null && (tensor.ndim !== 1 || tensor.shape[0] !== channels)) {
      throw new ShapeError(
        `${NAME}: ${name} has shape ${formatShape(tensor.shape)} but input has ${channels} channels (shape ${formatShape(input.shape)}, dimension 1); expected [${channels}].`,
      )
    }
  }
  return channels
}

/** All dimensions but the channels. */
const otherDims = (input: Tensor): number[] => input.shape.map((_, i) => i).filter((i) => i !== 1)
/** A vector of channels, shaped to broadcast over the input. */
const spread = (vector: Tensor, input: Tensor): Tensor =>
  reshape(
    vector,
    input.shape.map((size, i) => (i === 1 ? size : 1)),
  )
const perChannel = (input: Tensor): number => input.numel / Math.max(1, input.shape[1] as number)

function sizes(input: Tensor): { numbers: number[]; lanesOverChannels: boolean } {
  const [images, channels] = input.shape as [number, number]
  const plane = input.shape.slice(2).reduce((a, b) => a * b, 1)
  return { numbers: [images, channels, plane, channels * plane, images * plane], lanesOverChannels: plane === 1 }
}

function backwardFormula(grad: Tensor, input: Tensor, weight: Tensor | null, batchMean: Tensor, invstd: Tensor): readonly [Tensor, Tensor, Tensor] {
  const dims = otherDims(input)
  const count = perChannel(input)
  const normal = mul(sub(input, spread(batchMean, input)), spread(invstd, input))
  const gb = sum(grad, dims)
  const gw = sum(mul(grad, normal), dims)
  const centered = sub(grad, mul(add(spread(gb, input), mul(normal, spread(gw, input))), 1 / count))
  return [mul(centered, spread(weight === null ? invstd : mul(invstd, weight), input)), gw, gb]
}

/** Gradients of batch normalization in training: [input, weight, bias]. Internal. */
export const nativeBatchNormBackward: OpFunction<
  (grad: Tensor, input: Tensor, weight: Tensor | null, mean: Tensor, invstd: Tensor) => readonly [Tensor, Tensor, Tensor]
> = defineOp({
  schema: 'native_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor invstd) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (_grad: Tensor, input: Tensor): readonly TensorSpec[] => {
    const vector = { shape: [input.shape[1] as number], dtype: input.dtype }
    return [{ shape: input.shape, dtype: input.dtype }, vector, vector]
  },
  kernel: (grad: Tensor, input: Tensor, weight: Tensor | null, batchMean: Tensor, invstd: Tensor): readonly Tensor[] => {
    const { dtype } = input
    const vector = [input.shape[1] as number]
    const outs = [Tensor.empty(input.shape, dtype), Tensor.empty(vector, dtype), Tensor.empty(vector, dtype)]
    const { numbers, lanesOverChannels } = sizes(input)
    const kernel = batchNormBackwardKernel(dtype, lanesOverChannels, weight !== null)
    launch(
      kernel,
      [...outs, contiguous(grad), contiguous(input), contiguous(batchMean), contiguous(invstd), ...(weight === null ? [] : [contiguous(weight)])],
      numbers,
    )
    return outs
  },
  decompose: backwardFormula,
  // The derivative of nativeBatchNorm uses the formula itself where it must be differentiable.
  derivative: () => {
    throw new InternalError('native_batch_norm_backward is never recorded')
  },
})

type NativeArgs = [input: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number]

/**
 * Batch normalization by the statistics of the batch: (result, mean, 1 / sqrt(variance + eps), variance), the last three per channel. The variance is the biased one. Internal.
 */
export const nativeBatchNorm: OpFunction<(...args: NativeArgs) => readonly [Tensor, Tensor, Tensor, Tensor]> = defineOp({
  schema: 'native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (input: Tensor, weight: Tensor | null, bias: Tensor | null): readonly TensorSpec[] => {
    const vector: TensorSpec = {
      shape: [
        check(input, [
          ['weight', weight],
          ['bias', bias],
        ]),
      ],
      dtype: input.dtype,
    }
    return [{ shape: input.shape, dtype: input.dtype }, vector, vector, vector]
  },
  kernel: (...[input, weight, bias, eps]: NativeArgs): readonly Tensor[] => {
    const channels = check(input, [
      ['weight', weight],
      ['bias', bias],
    ])
    const { dtype } = input
    const vector = (): Tensor => Tensor.empty([channels], dtype)
    const outs = [Tensor.empty(input.shape, dtype), vector(), vector(), vector()]
    const { numbers, lanesOverChannels } = sizes(input)
    const affine = [weight, bias].filter((t) => t !== null).map((t) => contiguous(t))
    launch(batchNormKernel(dtype, lanesOverChannels, weight !== null, bias !== null), [...outs, contiguous(input), ...affine], [...numbers, eps])
    return outs
  },
  decompose: (...[input, weight, bias, eps]: NativeArgs): readonly Tensor[] => {
    const dims = otherDims(input)
    const mu = mean(input, dims)
    const centered = sub(input, spread(mu, input))
    const variance = mean(mul(centered, centered), dims)
    const invstd = rsqrt(add(variance, eps))
    let out = mul(centered, spread(weight === null ? invstd : mul(invstd, weight), input))
    if (bias !== null) out = add(out, spread(bias, input))
    return [out, mu, invstd, variance]
  },
  derivative: ([g], { args, outputs }) => {
    if (g === null || g === undefined) return [null, null, null, null]
    const [input, weight, bias] = args as unknown as NativeArgs
    const [, mu, invstd] = outputs as [Tensor, Tensor, Tensor]
    if (dispatchState.gradEnabled) {
      // Differentiated again: the statistics must be functions of the input here.
      const dims = otherDims(input)
      const m = mean(input, dims)
      const centered = sub(input, spread(m, input))
      const again = rsqrt(add(mean(mul(centered, centered), dims), args[3] as number))
      const [gi, gw, gb] = backwardFormula(g, input, weight, m, again)
      return [gi, weight === null ? null : gw, bias === null ? null : gb, null]
    }
    const [gi, gw, gb] = nativeBatchNormBackward(g, input, weight, mu, invstd)
    return [gi, weight === null ? null : gw, bias === null ? null : gb, null]
  },
})

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
 * Normalizes each channel of input [N, C, ..]: with `training` by the batch's statistics (and updates runningMean and runningVar in place), else by the running ones.
 * PyTorch's `F.batch_norm`.
 */
export const batchNorm: OpFunction<BatchNorm> = defineOp({
  schema:
    'batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, weight: Tensor | null, bias: Tensor | null): TensorSpec => {
    check(input, [
      ['running_mean', runningMean],
      ['running_var', runningVar],
      ['weight', weight],
      ['bias', bias],
    ])
    return { shape: input.shape, dtype: input.dtype }
  },
  decompose: (
    input: Tensor,
    runningMean: Tensor | null,
    runningVar: Tensor | null,
    weight: Tensor | null,
    bias: Tensor | null,
    training: boolean,
    momentum: number,
    eps: number,
  ): Tensor => {
    check(input, [
      ['running_mean', runningMean],
      ['running_var', runningVar],
      ['weight', weight],
      ['bias', bias],
    ])
    if (!training) {
      if (runningMean === null || runningVar === null)
        throw new ArgumentError(`${NAME}: running_mean and running_var are needed when training is false.`)
      const invstd = rsqrt(add(runningVar, eps))
      const scale = weight === null ? invstd : mul(invstd, weight)
      const shift = bias === null ? mul(mul(runningMean, scale), -1) : sub(bias, mul(runningMean, scale))
      return add(mul(input, spread(scale, input)), spread(shift, input))
    }
    const count = perChannel(input)
    if (count <= 1)
      throw new ShapeError(`${NAME}: expected more than 1 value per channel when training, got input of shape ${formatShape(input.shape)}.`)
    const [out, batchMean, , variance] = nativeBatchNorm(input, weight, bias, eps)
    const outer = dispatchState.gradEnabled
    dispatchState.gradEnabled = false
    try {
      if (runningMean !== null) runningMean.lerp_(batchMean, momentum)
      // The running variance is the unbiased one.
      if (runningVar !== null) runningVar.mul_(1 - momentum).add_(variance, { alpha: (momentum * count) / (count - 1) })
    } finally {
      dispatchState.gradEnabled = outer
    }
    return out
  },
})
