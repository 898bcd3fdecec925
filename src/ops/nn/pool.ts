// Pooling over images: maximum (with positions), mean, and adaptive mean.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { cat } from '../join.ts'
import { mean } from '../reduction/mean.ts'
import { contiguous, gather, narrow, reshape } from '../view/index.ts'
import { pair, windowCount } from './convShapes.ts'
import type { Pair } from './convShapes.ts'
import { launch } from '../eager/launch.ts'
import { avgPoolBackwardKernel, avgPoolKernel, geometryKey, maxPoolBackwardKernel, maxPoolKernel } from './poolKernels.ts'
import type { PoolGeometry } from './poolKernels.ts'

const MAX = 'torch.nn.functional.max_pool2d'
const AVG = 'torch.nn.functional.avg_pool2d'

function geometry(op: string, input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, dilation: Pair, ceilMode: boolean): PoolGeometry {
  if (input.ndim !== 4 && input.ndim !== 3) {
    throw new ShapeError(
      `${op}: input must have 4 dimensions [batch, channels, height, width] (or 3 without batch), got shape ${formatShape(input.shape)}.`,
    )
  }
  const [kernelH, kernelW] = pair(op, 'kernel_size', kernelSize, 1)
  const [strideH, strideW] = stride === null || (Array.isArray(stride) && stride.length === 0) ? [kernelH, kernelW] : pair(op, 'stride', stride, 1)
  const [padH, padW] = pair(op, 'padding', padding, 0)
  const [dilationH, dilationW] = pair(op, 'dilation', dilation, 1)
  if (padH > kernelH / 2 || padW > kernelW / 2) {
    throw new ArgumentError(
      `${op}: padding must be at most half the kernel size, got padding [${padH}, ${padW}] and kernel [${kernelH}, ${kernelW}].`,
    )
  }
  const [height, width] = input.shape.slice(-2) as [number, number]
  const outHeight = windowCount(height, kernelH, strideH, padH, dilationH, ceilMode)
  const outWidth = windowCount(width, kernelW, strideW, padW, dilationW, ceilMode)
  if (outHeight < 1 || outWidth < 1) {
    throw new ShapeError(
      `${op}: the window [${kernelH}, ${kernelW}] does not fit into input of shape ${formatShape(input.shape)} with padding [${padH}, ${padW}].`,
    )
  }
  return { height, width, outHeight, outWidth, kernelH, kernelW, strideH, strideW, padH, padW, dilationH, dilationW }
}

const planesOf = (input: Tensor): number => input.shape.slice(0, -2).reduce((a, b) => a * b, 1)
const outShape = (input: Tensor, g: PoolGeometry): readonly number[] => [...input.shape.slice(0, -2), g.outHeight, g.outWidth]

type MaxArgs = [input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, dilation: Pair, ceilMode: boolean]

function maxMeta(...args: MaxArgs): readonly TensorSpec[] {
  const shape = outShape(args[0], geometry(MAX, ...args))
  return [
    { shape, dtype: args[0].dtype },
    { shape, dtype: 'int32' },
  ]
}

/** Gradient of max pooling: each output's gradient goes to the position of its maximum. Internal. */
export const maxPool2dBackward: OpFunction<(grad: Tensor, indices: Tensor, height: number, width: number) => Tensor> = defineOp({
  schema: 'max_pool2d_backward(Tensor grad, Tensor indices, int height, int width) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  meta: (grad: Tensor, _indices: Tensor, height: number, width: number): TensorSpec => ({
    shape: [...grad.shape.slice(0, -2), height, width],
    dtype: grad.dtype,
  }),
  kernel: (grad: Tensor, indices: Tensor, height: number, width: number): Tensor => {
    const out = Tensor.empty([...grad.shape.slice(0, -2), height, width], grad.dtype)
    const planes = planesOf(grad)
    const outPlane = planes === 0 ? 0 : grad.numel / planes
    launch(maxPoolBackwardKernel(grad.dtype), [out, contiguous(grad), contiguous(indices)], [out.numel, planes, height * width, outPlane])
    return out
  },
  derivative: ([g], { args }) => {
    const [grad, indices] = args as [Tensor, Tensor]
    const lead = grad.shape.slice(0, -2)
    const plane = (g as Tensor).shape.slice(-2).reduce((a, b) => a * b, 1)
    const outPlane = grad.shape.slice(-2).reduce((a, b) => a * b, 1)
    return [reshape(gather(reshape(g as Tensor, [...lead, plane]), -1, reshape(indices, [...lead, outPlane])), grad.shape), null, null, null]
  },
})

/** Maximum over windows, and its flat position in each plane. Internal: `maxPool2d` is the public form. */
export const maxPool2dWithIndices: OpFunction<(...args: MaxArgs) => readonly [Tensor, Tensor]> = defineOp({
  schema: 'max_pool2d_with_indices(Tensor self, any kernel_size, any? stride, any padding, any dilation, bool ceil_mode) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: maxMeta,
  kernel: (...args: MaxArgs): readonly Tensor[] => {
    const [input] = args
    const g = geometry(MAX, ...args)
    const shape = outShape(input, g)
    const out = Tensor.empty(shape, input.dtype)
    const indices = Tensor.empty(shape, 'int32')
    launch(maxPoolKernel(input.dtype, ...geometryKey(g)), [out, indices, contiguous(input)], [planesOf(input)])
    return [out, indices]
  },
  derivative: ([g], { args, outputs }) => {
    const [input] = args as [Tensor]
    const [height, width] = input.shape.slice(-2) as [number, number]
    return [g === null || g === undefined ? null : maxPool2dBackward(g, outputs[1] as Tensor, height, width), null, null, null, null, null]
  },
})

/** Options of maxPool2d. */
export interface MaxPoolOptions {
  readonly kernelSize?: Pair
  readonly stride?: Pair | null
  readonly padding?: Pair
  readonly dilation?: Pair
  readonly ceilMode?: boolean
  readonly returnIndices?: false
}

type MaxPool = {
  (
    input: Tensor,
    kernelSize: Pair,
    stride: Pair | null,
    padding: Pair,
    dilation: Pair,
    ceilMode: boolean,
    returnIndices: true,
  ): readonly [Tensor, Tensor]
  (
    input: Tensor,
    kernelSize: Pair,
    options: Omit<MaxPoolOptions, 'returnIndices' | 'kernelSize'> & { readonly returnIndices: true },
  ): readonly [Tensor, Tensor]
  (input: Tensor, kernelSize: Pair, stride?: Pair | null, padding?: Pair, dilation?: Pair, ceilMode?: boolean, returnIndices?: false): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, options: MaxPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, options: MaxPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, dilation: Pair, options: MaxPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, options?: MaxPoolOptions): Tensor
}

/**
 * Maximum over windows of [.., H, W]; `stride` is the kernel size by default. With `returnIndices` also the flat position of each maximum in its plane (int32).
 * PyTorch's `F.max_pool2d`.
 */
export const maxPool2d: OpFunction<MaxPool> = defineOp({
  schema:
    'max_pool2d(Tensor self, any kernel_size, any? stride=None, any padding=0, any dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (
    input: Tensor,
    kernelSize: Pair,
    stride: Pair | null,
    padding: Pair,
    dilation: Pair,
    ceilMode: boolean,
    returnIndices: boolean,
  ): TensorSpec | readonly TensorSpec[] => {
    const specs = maxMeta(input, kernelSize, stride, padding, dilation, ceilMode)
    return returnIndices ? specs : (specs[0] as TensorSpec)
  },
  decompose: (
    input: Tensor,
    kernelSize: Pair,
    stride: Pair | null,
    padding: Pair,
    dilation: Pair,
    ceilMode: boolean,
    returnIndices: boolean,
  ): Tensor | readonly Tensor[] => {
    const both = maxPool2dWithIndices(input, kernelSize, stride, padding, dilation, ceilMode)
    return returnIndices ? both : both[0]
  },
})

type AvgArgs = [
  input: Tensor,
  kernelSize: Pair,
  stride: Pair | null,
  padding: Pair,
  ceilMode: boolean,
  countIncludePad: boolean,
  divisorOverride: number | null,
]
const avgGeometry = (...[input, kernelSize, stride, padding, ceilMode]: AvgArgs): PoolGeometry =>
  geometry(AVG, input, kernelSize, stride, padding, 1, ceilMode)

function fixedDivisor(divisorOverride: number | null): number {
  if (divisorOverride === null) return 0
  if (!Number.isInteger(divisorOverride) || divisorOverride < 1)
    throw new ArgumentError(`${AVG}: divisor_override must be a positive integer, got ${divisorOverride}.`)
  return divisorOverride
}

/** Gradient of mean pooling; the other arguments are those of the forward call. Internal. */
export const avgPool2dBackward: OpFunction<(grad: Tensor, ...args: AvgArgs) => Tensor> = defineOp({
  schema:
    'avg_pool2d_backward(Tensor grad, Tensor self, any kernel_size, any? stride, any padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  meta: (_g: Tensor, input: Tensor): TensorSpec => ({ shape: input.shape, dtype: input.dtype }),
  kernel: (grad: Tensor, ...args: AvgArgs): Tensor => {
    const [input, , , , , countIncludePad, divisorOverride] = args
    const out = Tensor.empty(input.shape, input.dtype)
    const kernel = avgPoolBackwardKernel(input.dtype, countIncludePad, fixedDivisor(divisorOverride), ...geometryKey(avgGeometry(...args)))
    launch(kernel, [out, contiguous(grad)], [out.numel, planesOf(input)])
    return out
  },
  derivative: ([g], { args }) => {
    const [, , ...rest] = args as unknown as [Tensor, ...AvgArgs]
    const [kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride] = rest
    return [avgPool2d(g as Tensor, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride), null, null, null, null, null, null, null]
  },
})

/** Options of avgPool2d. */
export interface AvgPoolOptions {
  readonly stride?: Pair | null
  readonly padding?: Pair
  readonly ceilMode?: boolean
  readonly countIncludePad?: boolean
  readonly divisorOverride?: number | null
}

type AvgPool = {
  (
    input: Tensor,
    kernelSize: Pair,
    stride?: Pair | null,
    padding?: Pair,
    ceilMode?: boolean,
    countIncludePad?: boolean,
    divisorOverride?: number | null,
  ): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, options: AvgPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, options: AvgPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, options: AvgPoolOptions): Tensor
}

/** Mean over windows of [.., H, W]; `stride` is the kernel size by default. PyTorch's `F.avg_pool2d`. */
export const avgPool2d: OpFunction<AvgPool> = defineOp({
  schema:
    'avg_pool2d(Tensor self, any kernel_size, any? stride=None, any padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (...args: AvgArgs): TensorSpec => ({ shape: outShape(args[0], avgGeometry(...args)), dtype: args[0].dtype }),
  kernel: (...args: AvgArgs): Tensor => {
    const [input, , , , , countIncludePad, divisorOverride] = args
    const g = avgGeometry(...args)
    const out = Tensor.empty(outShape(input, g), input.dtype)
    launch(avgPoolKernel(input.dtype, countIncludePad, fixedDivisor(divisorOverride), ...geometryKey(g)), [out, contiguous(input)], [planesOf(input)])
    return out
  },
  derivative: ([g], { args }) => [avgPool2dBackward(g as Tensor, ...(args as unknown as AvgArgs)), null, null, null, null, null, null],
})

function adaptiveSize(input: Tensor, outputSize: Pair | readonly (number | null)[]): readonly [number, number] {
  const list = typeof outputSize === 'number' ? [outputSize, outputSize] : outputSize
  const [height, width] = input.shape.slice(-2) as [number, number]
  const [h, w] = [list[0] ?? height, list.length === 1 ? (list[0] ?? width) : (list[1] ?? width)]
  if (input.ndim < 3 || !Number.isInteger(h) || !Number.isInteger(w) || h < 1 || w < 1) {
    throw new ArgumentError(
      `torch.nn.functional.adaptive_avg_pool2d: expected input [.., height, width] and a positive output size, got shape ${formatShape(input.shape)} and ${JSON.stringify(outputSize)}.`,
    )
  }
  return [h, w]
}

/** Mean over `count` nearly equal stretches of dimension `dim`. */
function stretches(input: Tensor, dim: number, count: number): Tensor {
  const size = input.shape.at(dim) as number
  const parts = Array.from({ length: count }, (_, i) => {
    const start = Math.floor((i * size) / count)
    return mean(narrow(input, dim, start, Math.ceil(((i + 1) * size) / count) - start), [dim], true)
  })
  return parts.length === 1 ? (parts[0] as Tensor) : cat(parts, dim)
}

/** Mean over windows chosen so that the output has `outputSize`. PyTorch's `F.adaptive_avg_pool2d`. */
export const adaptiveAvgPool2d: OpFunction<(input: Tensor, outputSize: Pair | readonly (number | null)[]) => Tensor> = defineOp({
  schema: 'adaptive_avg_pool2d(Tensor self, any output_size) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (input: Tensor, outputSize: Pair): TensorSpec => ({
    shape: [...input.shape.slice(0, -2), ...adaptiveSize(input, outputSize)],
    dtype: input.dtype,
  }),
  decompose: (input: Tensor, outputSize: Pair): Tensor => {
    const [h, w] = adaptiveSize(input, outputSize)
    const [height, width] = input.shape.slice(-2) as [number, number]
    if (h === 1 && w === 1) return mean(input, [-2, -1], true)
    if (h === height && w === width) return input
    if (height % h === 0 && width % w === 0) return avgPool2d(input, [height / h, width / w])
    // The window of (i, j) is a product of stretches, so the mean may be taken one dimension at a time.
    return stretches(stretches(input, -2, h), -1, w)
  },
})
