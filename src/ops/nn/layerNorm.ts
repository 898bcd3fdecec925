// Layer normalization (a primitive with kernels and a decomposition) and what is composed of it: group and instance normalization.
import { dispatchState } from '../../dispatch/index.ts'
import { ArgumentError, InternalError, ShapeError } from '../../errors/index.ts'
import { formatShape, sameShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { add, mul, sub } from '../pointwise/arithmetic.ts'
import { rsqrt } from '../pointwise/unary.ts'
import { mean } from '../reduction/mean.ts'
import { sum } from '../reduction/sum.ts'
import { contiguous, reshape } from '../view/index.ts'
import { batchNorm } from './batchNorm.ts'
import { launch } from '../eager/launch.ts'
import { layerNormBackwardKernel, layerNormKernel } from './normKernels.ts'

const NAME = 'torch.nn.functional.layer_norm'

type NativeArgs = [input: Tensor, normalizedShape: readonly number[], weight: Tensor | null, bias: Tensor | null, eps: number]

function check(...[input, normalizedShape, weight, bias]: NativeArgs): void {
  const tail = input.shape.slice(input.ndim - normalizedShape.length)
  if (normalizedShape.length === 0 || !sameShape(tail, normalizedShape)) {
    throw new ShapeError(`${NAME}: input of shape ${formatShape(input.shape)} must end in normalized_shape ${formatShape(normalizedShape)}.`)
  }
  for (const [name, tensor] of [
    ['weight', weight],
    ['bias', bias],
  ] as const) {
    if (tensor !== null && !sameShape(tensor.shape, normalizedShape)) {
      throw new ShapeError(
        `${NAME}: ${name} has shape ${formatShape(tensor.shape)} but normalized_shape is ${formatShape(normalizedShape)}; they must be equal.`,
      )
    }
  }
}

const lastDims = (shape: readonly number[]): number[] => shape.map((_, i) => i - shape.length)
const statShape = (input: Tensor, normalizedShape: readonly number[]): readonly number[] =>
  input.shape.map((size, i) => (i < input.ndim - normalizedShape.length ? size : 1))
const widthOf = (normalizedShape: readonly number[]): number => normalizedShape.reduce((a, b) => a * b, 1)

function backwardFormula(
  grad: Tensor,
  input: Tensor,
  normalizedShape: readonly number[],
  mu: Tensor,
  rstd: Tensor,
  weight: Tensor | null,
): readonly [Tensor, Tensor, Tensor] {
  const dims = lastDims(normalizedShape)
  const lead = input.shape.map((_, i) => i).slice(0, input.ndim - normalizedShape.length)
  const normal = mul(sub(input, mu), rstd)
  const weighted = weight === null ? grad : mul(grad, weight)
  const gi = mul(rstd, sub(sub(weighted, mean(weighted, dims, true)), mul(normal, mean(mul(weighted, normal), dims, true))))
  const total = (t: Tensor): Tensor => (lead.length === 0 ? t : sum(t, lead))
  return [gi, total(mul(grad, normal)), total(grad)]
}

/** Gradients of layer normalization: [input, weight, bias]. Internal. */
export const nativeLayerNormBackward: OpFunction<
  (
    grad: Tensor,
    input: Tensor,
    normalizedShape: readonly number[],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | null,
  ) => readonly [Tensor, Tensor, Tensor]
> = defineOp({
  schema:
    'native_layer_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (_grad: Tensor, input: Tensor, normalizedShape: readonly number[]): readonly TensorSpec[] => {
    const vector = { shape: normalizedShape, dtype: input.dtype }
    return [{ shape: input.shape, dtype: input.dtype }, vector, vector]
  },
  kernel: (grad: Tensor, input: Tensor, normalizedShape: readonly number[], mu: Tensor, rstd: Tensor, weight: Tensor | null): readonly Tensor[] => {
    const { dtype } = input
    const outs = [Tensor.empty(input.shape, dtype), Tensor.empty(normalizedShape, dtype), Tensor.empty(normalizedShape, dtype)]
    const width = widthOf(normalizedShape)
    const tensors = [...outs, contiguous(grad), contiguous(input), contiguous(mu), contiguous(rstd), ...(weight === null ? [] : [contiguous(weight)])]
    launch(layerNormBackwardKernel(dtype, weight !== null), tensors, [width === 0 ? 0 : input.numel / width, width, width])
    return outs
  },
  decompose: backwardFormula,
  // The derivative of nativeLayerNorm uses the formula itself where it must be differentiable.
  derivative: () => {
    throw new InternalError('native_layer_norm_backward is never recorded')
  },
})

/** Layer normalization: (result, mean, 1 / sqrt(variance + eps)), the statistics with size 1 in the normalized dimensions. Internal. */
export const nativeLayerNorm: OpFunction<(...args: NativeArgs) => readonly [Tensor, Tensor, Tensor]> = defineOp({
  schema: 'native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (...args: NativeArgs): readonly TensorSpec[] => {
    check(...args)
    const [input, normalizedShape] = args
    const stat = { shape: statShape(input, normalizedShape), dtype: input.dtype }
    return [{ shape: input.shape, dtype: input.dtype }, stat, stat]
  },
  kernel: (...args: NativeArgs): readonly Tensor[] => {
    check(...args)
    const [input, normalizedShape, weight, bias, eps] = args
    const { dtype } = input
    const stat = statShape(input, normalizedShape)
    const outs = [Tensor.empty(input.shape, dtype), Tensor.empty(stat, dtype), Tensor.empty(stat, dtype)]
    const width = widthOf(normalizedShape)
    const affine = [weight, bias].filter((t) => t !== null).map((t) => contiguous(t))
    launch(
      layerNormKernel(dtype, weight !== null, bias !== null),
      [...outs, contiguous(input), ...affine],
      [width === 0 ? 0 : input.numel / width, width, width, eps],
    )
    return outs
  },
  decompose: (...args: NativeArgs): readonly Tensor[] => {
    const [input, normalizedShape, weight, bias, eps] = args
    const dims = lastDims(normalizedShape)
    const mu = mean(input, dims, true)
    const centered = sub(input, mu)
    const rstd = rsqrt(add(mean(mul(centered, centered), dims, true), eps))
    let out = mul(centered, rstd)
    if (weight !== null) out = mul(out, weight)
    if (bias !== null) out = add(out, bias)
    return [out, mu, rstd]
  },
  derivative: ([g], { args, outputs }) => {
    if (g === null || g === undefined) return [null, null, null, null, null]
    const [input, normalizedShape, weight, bias, eps] = args as unknown as NativeArgs
    let [, mu, rstd] = outputs as [Tensor, Tensor, Tensor]
    if (dispatchState.gradEnabled) {
      // Differentiated again: the statistics must be functions of the input here.
      const dims = lastDims(normalizedShape)
      mu = mean(input, dims, true)
      const centered = sub(input, mu)
      rstd = rsqrt(add(mean(mul(centered, centered), dims, true), eps))
      const [gi, gw, gb] = backwardFormula(g, input, normalizedShape, mu, rstd, weight)
      return [gi, null, weight === null ? null : gw, bias === null ? null : gb, null]
    }
    const [gi, gw, gb] = nativeLayerNormBackward(g, input, normalizedShape, mu, rstd, weight)
    return [gi, null, weight === null ? null : gw, bias === null ? null : gb, null]
  },
})

/** Options of layerNorm. */
export interface LayerNormOptions {
  readonly weight?: Tensor | null
  readonly bias?: Tensor | null
  readonly eps?: number
}

type LayerNorm = {
  (input: Tensor, normalizedShape: readonly number[], weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor
  (input: Tensor, normalizedShape: readonly number[], weight: Tensor | null, bias: Tensor | null, options: LayerNormOptions): Tensor
  (input: Tensor, normalizedShape: readonly number[], options?: LayerNormOptions): Tensor
}

/** Normalizes over the last dimensions (`normalizedShape`) to mean 0 and variance 1, times weight plus bias. PyTorch's `F.layer_norm`. */
export const layerNorm: OpFunction<LayerNorm> = defineOp({
  schema: 'layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (...args: NativeArgs): TensorSpec => {
    check(...args)
    return { shape: args[0].shape, dtype: args[0].dtype }
  },
  decompose: (...args: NativeArgs): Tensor => nativeLayerNorm(...args)[0],
})

/** Options of groupNorm. */
export type GroupNormOptions = LayerNormOptions

/** Normalizes groups of channels of input [N, C, ..]. PyTorch's `F.group_norm`. */
export const groupNorm: OpFunction<{
  (input: Tensor, numGroups: number, weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor
  (input: Tensor, numGroups: number, options?: GroupNormOptions): Tensor
}> = defineOp({
  schema: 'group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input: Tensor): TensorSpec => ({ shape: input.shape, dtype: input.dtype }),
  decompose: (input: Tensor, numGroups: number, weight: Tensor | null, bias: Tensor | null, eps: number): Tensor => {
    const [images, channels] = input.shape as [number, number | undefined]
    if (channels === undefined || !Number.isInteger(numGroups) || numGroups < 1 || channels % numGroups !== 0) {
      throw new ArgumentError(
        `torch.nn.functional.group_norm: num_groups must divide the channels of input (shape ${formatShape(input.shape)}, dimension 1), got ${numGroups}.`,
      )
    }
    const width = input.numel / Math.max(1, images * numGroups)
    let out = reshape(nativeLayerNorm(reshape(input, [images, numGroups, width]), [width], null, null, eps)[0], input.shape)
    const spread = (t: Tensor): Tensor =>
      reshape(
        t,
        input.shape.map((size, i) => (i === 1 ? size : 1)),
      )
    if (weight !== null) out = mul(out, spread(weight))
    if (bias !== null) out = add(out, spread(bias))
    return out
  },
})

/** Normalizes each channel of each sample of input [N, C, ..] by its own statistics. PyTorch's `F.instance_norm`. */
export const instanceNorm: OpFunction<{
  (
    input: Tensor,
    runningMean?: Tensor | null,
    runningVar?: Tensor | null,
    weight?: Tensor | null,
    bias?: Tensor | null,
    useInputStats?: boolean,
    momentum?: number,
    eps?: number,
  ): Tensor
}> = defineOp({
  schema:
    'instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input: Tensor): TensorSpec => ({ shape: input.shape, dtype: input.dtype }),
  decompose: (
    input: Tensor,
    runningMean: Tensor | null,
    runningVar: Tensor | null,
    weight: Tensor | null,
    bias: Tensor | null,
    useInputStats: boolean,
    momentum: number,
    eps: number,
  ): Tensor => {
    if (!useInputStats) return batchNorm(input, runningMean, runningVar, weight, bias, false, momentum, eps)
    if (runningMean !== null || runningVar !== null) {
      throw new ArgumentError(
        'torch.nn.functional.instance_norm: running statistics are only read (use_input_stats=False), not updated; pass null for them.',
      )
    }
    return groupNorm(input, input.shape[1] as number, weight, bias, eps)
  },
})
