// Pooling over images: maximum (with positions), mean, and adaptive mean.
import { channelsLastHint, valueText } from '../../../protocol/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { isWatched } from '../../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { formatShape, numbersOf, numelOf, sizeEq, Tensor, areNumbers, sizeLess, sizeNumber, sizeNumbers } from '../../../tensor/index.ts'
import type { TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { launch } from '../../eager/launch.ts'
import { rangeOf, zeros } from '../../create/creation.ts'
import { checkIndexType } from '../../view/indices.ts'
import { cat, stack } from '../../join/join.ts'
import { floorDivide } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { mean } from '../../reduction/mean.ts'
import { checkOperand, pairOf, sizeAt } from '../../shared/shapes.ts'
import { gather, indexSelect } from '../../view/indexing.ts'
import { contiguous, reshape } from '../../view/reshape.ts'
import { narrow } from '../../view/slicing.ts'
import { expand } from '../../view/windows.ts'
import { avgPoolBackwardKernel, avgPoolKernel, geometryKey, maxPoolBackwardKernel, maxPoolKernel } from './poolKernels.ts'
import type { PoolGeometry } from './poolKernels.ts'
import { NO_GRADIENTS, fixedDivisor, isKernelSize, isPair, windowCount, windowPair } from '../windows.ts'
import type { Pair } from '../windows.ts'

const MAX = 'torch.nn.functional.max_pool2d'
const AVG = 'torch.nn.functional.avg_pool2d'
const LARGEST_WINDOW = 2 ** 16

/** The arguments of a pool that say where its windows lie, before they have been read. */
type PoolCall = readonly [input: Tensor, kernelSize: unknown, stride: unknown, padding: unknown, dilation: unknown, ceilMode: boolean]

/** Where the windows lie in planes of the last two of `sizes`, which are those of the input. */
function geometryOf(op: string, call: PoolCall, sizes: readonly number[]): PoolGeometry
function geometryOf(op: string, call: PoolCall, sizes: readonly Size[]): PoolGeometry<Size>
function geometryOf(op: string, [input, kernelSize, stride, padding, dilation, ceilMode]: PoolCall, sizes: readonly Size[]): PoolGeometry<Size> {
  if (input.ndim !== 4 && input.ndim !== 3) {
    throw new ShapeError(
      `${op}: input must have 4 dimensions [batch, channels, height, width] (or 3 without batch), got shape ${formatShape(input.symSizes)}.`,
    )
  }
  const [kernelH, kernelW] = windowPair(op, 'kernel_size', kernelSize, 1)
  const [strideH, strideW] = isKernelSize(stride) ? [kernelH, kernelW] : windowPair(op, 'stride', stride, 1)
  const [padH, padW] = windowPair(op, 'padding', padding, 0)
  const [dilationH, dilationW] = windowPair(op, 'dilation', dilation, 1)
  if (padH > kernelH / 2 || padW > kernelW / 2) {
    throw new ArgumentError(
      `${op}: padding must be at most half the kernel size, got padding [${padH}, ${padW}] and kernel [${kernelH}, ${kernelW}].`,
    )
  }
  // The kernels have code for each position of the window.
  if (kernelH * kernelW > LARGEST_WINDOW)
    throw new ArgumentError(`${op}: windows have at most ${LARGEST_WINDOW} elements, got kernel_size [${kernelH}, ${kernelW}].`)
  const [height, width] = pairOf(sizes.slice(-2))
  const outHeight = windowCount(height, kernelH, strideH, padH, dilationH, ceilMode)
  const outWidth = windowCount(width, kernelW, strideW, padW, dilationW, ceilMode)
  if (sizeLess(outHeight, 1) || sizeLess(outWidth, 1)) {
    throw new ShapeError(
      `${op}: the window [${kernelH}, ${kernelW}] does not fit into input of shape ${formatShape(input.symSizes)} with padding [${padH}, ${padW}].` +
        // An image with fewer columns than an image has colours is not an image.
        (typeof width === 'number' && areNumbers(sizes) && width <= 4 && sizeLess(width, height)
          ? channelsLastHint('input', sizes, width, input.ndim - 3)
          : ''),
    )
  }
  return { height, width, outHeight, outWidth, kernelH, kernelW, strideH, strideW, padH, padW, dilationH, dilationW }
}

const planeOf = (t: Tensor): readonly [number, number] => pairOf(t.sizes.slice(-2))
const planesOf = (t: Tensor): number => numelOf(t.sizes.slice(0, -2))
/** The shape of the result for an input of these sizes. */
function outShape(sizes: readonly number[], g: PoolGeometry): readonly number[]
function outShape(sizes: readonly Size[], g: PoolGeometry<Size>): readonly Size[]
function outShape(sizes: readonly Size[], g: PoolGeometry<Size>): readonly Size[] {
  return [...sizes.slice(0, -2), g.outHeight, g.outWidth]
}

function maxSpec(...call: PoolCall): readonly [TensorSpec<Size>, TensorSpec<Size>] {
  const [input] = call
  const shape = outShape(input.symSizes, geometryOf(MAX, call, input.symSizes))
  return [
    { shape, dtype: input.dtype },
    { shape, dtype: 'int64' },
  ]
}

function backwardSpec(grad: Tensor, indices: Tensor, height: Size, width: Size): TensorSpec<Size> {
  if (grad.ndim < 2)
    throw new ShapeError(`${MAX}: argument 'grad' must have at least 2 dimensions [.., OH, OW], got shape ${formatShape(grad.symSizes)}.`)
  checkIndexType(MAX, 'indices', indices)
  checkOperand(MAX, 'indices', indices, grad.symSizes, indices.dtype)
  return { shape: [...grad.symSizes.slice(0, -2), height, width], dtype: grad.dtype }
}

/**
 * The gradient of max pooling: each gradient goes to the position of its maximum. Internal; PyTorch's `aten.max_pool2d_with_indices_backward`.
 *
 * Shapes: `grad` and `indices` [.., OH, OW] give [.., height, width]. Indices outside of the plane are ignored.
 *
 * @throws ShapeError if the shapes differ, ArgumentError if a size is not an integer.
 * @example torch.ops.tensorfx.maxPool2dBackward(torch.tensor([[[5]]]), torch.tensor([[[3]]]).long(), 2, 2).toArray() // [[[0, 0], [0, 5]]]
 */
export const maxPool2dBackward: Op['maxPool2dBackward'] = defineOp({
  schema: 'max_pool2d_backward(Tensor grad, Tensor indices, SymInt height, SymInt width) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { folded: ['grad', 'indices'], rank: 4 },
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: backwardSpec,
  halvesInFloat32: true,
  kernel: (grad, indices, height, width) => {
    const out = Tensor.empty(numbersOf(backwardSpec(grad, indices, height, width)).shape, grad.dtype)
    if (sizeEq(out.symNumel, 0)) return out
    const planes = planesOf(grad)
    const outPlane = planes === 0 ? 0 : grad.numel / planes
    launch(
      maxPoolBackwardKernel(grad.dtype),
      [out, contiguous(grad), contiguous(to(indices, 'int32'))],
      [out.numel, planes, height * width, outPlane],
    )
    return out
  },
  derivative: ([g], { args: [grad, indices] }) => {
    const lead = grad.symSizes.slice(0, -2)
    const flat = reshape(g, [...lead, numelOf(planeOf(g))])
    return [reshape(gather(flat, -1, reshape(indices, [...lead, numelOf(planeOf(grad))])), grad.symSizes), null, null, null]
  },
})

/**
 * The maximum over windows and its flat position in each plane: [values, indices]; `maxPool2d` is the public form. Internal; PyTorch's
 * `aten.max_pool2d_with_indices`.
 *
 * Shapes: [.., H, W] gives twice [.., OH, OW]. The indices are int64.
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example torch.ops.tensorfx.maxPool2dWithIndices(torch.tensor([[[1, 7], [3, 2]]]), 2, null, 0, 1, false).map((t) => t.toArray()) // [[[[7]]], [[[1]]]]
 */
export const maxPool2dWithIndices: OpFunction<
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, dilation: Pair, ceilMode: boolean) => readonly [Tensor, Tensor]
> = defineOp({
  schema: 'max_pool2d_with_indices(Tensor self, any kernel_size, any? stride, any padding, any dilation, bool ceil_mode) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  vmap: { folded: ['self'], rank: 4 },
  onnx: 'maxPool',
  autocast: 'as is',
  meta: maxSpec,
  kernel: (input, ...window): readonly [Tensor, Tensor] => {
    const g = geometryOf(MAX, [input, ...window], input.sizes)
    const shape = outShape(input.sizes, g)
    const out = Tensor.empty(shape, input.dtype)
    const indices = Tensor.empty(shape, 'int64')
    launch(maxPoolKernel(input.dtype, true, ...geometryKey(g)), [out, indices, contiguous(input)], [planesOf(input)])
    return [out, indices]
  },
  derivative: ([g], { args: [input], outputs: [, indices] }) => [
    g === null ? null : lateOperator<Op['maxPool2dBackward']>('torch.ops.tensorfx.max_pool2d_backward')(g, indices, ...planeOf(input)),
    null,
    null,
    null,
    null,
    null,
  ],
})

/** The maximum over windows of a real tensor, without positions. */
function maxOnly(
  input: Tensor,
  ...window: readonly [kernelSize: unknown, stride: unknown, padding: unknown, dilation: unknown, ceilMode: boolean]
): Tensor {
  const g = geometryOf(MAX, [input, ...window], input.sizes)
  const out = Tensor.empty(outShape(input.sizes, g), input.dtype)
  launch(maxPoolKernel(input.dtype, false, ...geometryKey(g)), [out, contiguous(input)], [planesOf(input)])
  return out
}

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

/** A window argument as the schema leaves it, unchecked. Throws ArgumentError unless it is a number or a list of numbers. */
function checkedPair(op: string, name: string, value: unknown): Pair {
  if (isPair(value)) return value
  throw new ArgumentError(`${op}: ${name} must be an integer, or two of them [height, width], got ${valueText(value)}.`)
}

const checkedStride = (op: string, stride: unknown): Pair | null => (stride === null ? null : checkedPair(op, 'stride', stride))

/** The first arguments of an average pool after its input. */
const checkedAvg = (kernelSize: unknown, stride: unknown, padding: unknown) =>
  [checkedPair(AVG, 'kernel_size', kernelSize), checkedStride(AVG, stride), checkedPair(AVG, 'padding', padding)] as const

/**
 * The maximum over windows; with `returnIndices` also the flat position of each maximum in its plane (int64). `stride` is the kernel size by default.
 * PyTorch's `F.max_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., OH, OW].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.maxPool2d(torch.tensor([[[1, 7], [3, 2]]]), 2).toArray() // [[[7]]]
 */
export const maxPool2d: OpFunction<MaxPool> = defineOp({
  schema:
    'max_pool2d(Tensor self, any kernel_size, any? stride=None, any padding=0, any dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (input, kernelSize, stride, padding, dilation, ceilMode, returnIndices) => {
    const [values, indices] = maxSpec(input, kernelSize, stride, padding, dilation, ceilMode)
    return returnIndices ? [values, indices] : values
  },
  decompose: (input, kernelSize, stride, padding, dilation, ceilMode, returnIndices) => {
    if (!returnIndices && !input.isFake && !isWatched([input])) return maxOnly(input, kernelSize, stride, padding, dilation, ceilMode)
    const both = maxPool2dWithIndices(
      input,
      checkedPair(MAX, 'kernel_size', kernelSize),
      checkedStride(MAX, stride),
      checkedPair(MAX, 'padding', padding),
      checkedPair(MAX, 'dilation', dilation),
      ceilMode,
    )
    return returnIndices ? both : both[0]
  },
})

function avgGeometry(input: Tensor, kernelSize: unknown, stride: unknown, padding: unknown, ceilMode: boolean): PoolGeometry {
  return geometryOf(AVG, [input, kernelSize, stride, padding, 1, ceilMode], input.sizes)
}

function avgShape(input: Tensor, kernelSize: unknown, stride: unknown, padding: unknown, ceilMode: boolean): readonly Size[] {
  return outShape(input.symSizes, geometryOf(AVG, [input, kernelSize, stride, padding, 1, ceilMode], input.symSizes))
}

/**
 * The gradient of mean pooling; the arguments after `grad` are those of the forward call. Internal; PyTorch's `aten.avg_pool2d_backward`.
 *
 * Shape: that of `input`.
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example torch.ops.tensorfx.avgPool2dBackward(torch.tensor([[[4]]]), torch.zeros([1, 2, 2]), 2, null, 0, false, true, null).toArray() // [[[1, 1], [1, 1]]]
 */
export const avgPool2dBackward: OpFunction<
  (
    grad: Tensor,
    input: Tensor,
    kernelSize: Pair,
    stride: Pair | null,
    padding: Pair,
    ceilMode: boolean,
    countIncludePad: boolean,
    divisorOverride: number | null,
  ) => Tensor
> = defineOp({
  schema:
    'avg_pool2d_backward(Tensor grad, Tensor self, any kernel_size, any? stride, any padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { folded: ['self', 'grad'], rank: 4 },
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: (grad, input, kernelSize, stride, padding, ceilMode) => {
    checkOperand(AVG, 'grad', grad, avgShape(input, kernelSize, stride, padding, ceilMode), input.dtype)
    return { shape: input.symSizes, dtype: input.dtype }
  },
  halvesInFloat32: true,
  kernel: (grad, input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride) => {
    const g = avgGeometry(input, kernelSize, stride, padding, ceilMode)
    checkOperand(AVG, 'grad', grad, outShape(input.sizes, g), input.dtype)
    const out = Tensor.empty(input.sizes, input.dtype)
    const kernel = avgPoolBackwardKernel(input.dtype, countIncludePad, fixedDivisor(AVG, divisorOverride) ?? 0, ...geometryKey(g))
    launch(kernel, [out, contiguous(grad)], [out.numel, planesOf(input)])
    return out
  },
  derivative: ([g], { args: [, , kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride] }) => [
    avgPool2d(g, ...checkedAvg(kernelSize, stride, padding), ceilMode, countIncludePad, divisorOverride),
    null,
    ...NO_GRADIENTS,
  ],
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

/**
 * The mean over windows; `stride` is the kernel size by default. PyTorch's `F.avg_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., OH, OW].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size or `divisorOverride` is out of range.
 * @example F.avgPool2d(torch.tensor([[[1, 7], [3, 1]]]), 2).toArray() // [[[3]]]
 */
export const avgPool2d: OpFunction<AvgPool> = defineOp({
  schema:
    'avg_pool2d(Tensor self, any kernel_size, any? stride=None, any padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor',
  namespace: 'torch.nn.functional',
  vmap: { folded: ['self'], rank: 4 },
  onnx: 'avgPool',
  autocast: 'as is',
  meta: (input, kernelSize, stride, padding, ceilMode) => ({
    shape: avgShape(input, kernelSize, stride, padding, ceilMode),
    dtype: input.dtype,
  }),
  halvesInFloat32: true,
  kernel: (input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride) => {
    const g = avgGeometry(input, kernelSize, stride, padding, ceilMode)
    const out = Tensor.empty(outShape(input.sizes, g), input.dtype)
    const kernel = avgPoolKernel(input.dtype, countIncludePad, fixedDivisor(AVG, divisorOverride) ?? 0, ...geometryKey(g))
    launch(kernel, [out, contiguous(input)], [planesOf(input)])
    return out
  },
  derivative: ([g], { args: [input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride] }) => [
    lateOperator<typeof avgPool2dBackward>('torch.ops.tensorfx.avg_pool2d_backward')(
      g,
      // Only the shape matters: a graph of the backward need not keep the input.
      expand(zeros([], { dtype: input.dtype }), input.symSizes),
      ...checkedAvg(kernelSize, stride, padding),
      ceilMode,
      countIncludePad,
      divisorOverride,
    ),
    ...NO_GRADIENTS,
  ],
})

/** [height, width] of the input, as the numbers on which the windows depend. */
const planeNumbers = (input: Tensor): readonly [number, number] => pairOf(sizeNumbers(input.symSizes.slice(-2)))

/** [height, width] of the output. null keeps a size of the input. */
function adaptiveSize(input: Tensor, outputSize: unknown): readonly [number, number] {
  const list: readonly unknown[] = Array.isArray(outputSize) ? outputSize : [outputSize]
  const positive = (size: unknown, own: number): number => (size === null ? own : typeof size === 'number' && Number.isInteger(size) ? size : 0)
  if (input.ndim >= 3 && list.length >= 1 && list.length <= 2) {
    const [height, width] = planeNumbers(input)
    const [h, w] = [positive(list[0], height), positive(list.at(-1), width)]
    if (h > 0 && w > 0) return [h, w]
  }
  throw new ArgumentError(
    `torch.nn.functional.adaptive_avg_pool2d: expected input [.., height, width] and a positive output size, got shape ${formatShape(input.symSizes)} and ${valueText(outputSize)}.`,
  )
}

/** The mean over `count` nearly equal stretches of dimension `dim`. */
function stretches(input: Tensor, dim: number, count: number): Tensor {
  const size = sizeNumber(sizeAt(input.symSizes, dim))
  // Stretches of one element or two, so that this costs as much as the result.
  if (count > size) {
    const from = (offset: number): Tensor => indexSelect(input, dim, floorDivide(rangeOf(offset, size, count, 'int64'), count))
    return mean(stack([from(0), from(size - 1)]), [0])
  }
  const parts = Array.from({ length: count }, (_, i) => {
    const start = Math.floor((i * size) / count)
    return mean(narrow(input, dim, start, Math.ceil(((i + 1) * size) / count) - start), [dim], true)
  })
  const [only] = parts
  return only !== undefined && count === 1 ? only : cat(parts, dim)
}

/**
 * The mean over windows chosen so that the output has `outputSize`; null keeps a size. PyTorch's `F.adaptive_avg_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., h, w].
 *
 * @throws ArgumentError for fewer than 3 dimensions, or if an output size is not positive.
 * @example F.adaptiveAvgPool2d(torch.tensor([[[1, 2, 3], [4, 5, 6]]]), [1, 3]).toArray() // [[[2.5, 3.5, 4.5]]]
 */
export const adaptiveAvgPool2d: OpFunction<(input: Tensor, outputSize: Pair | readonly (number | null)[]) => Tensor> = defineOp({
  schema: 'adaptive_avg_pool2d(Tensor self, any output_size) -> Tensor',
  autocast: 'untouched',
  namespace: 'torch.nn.functional',
  meta: (input, outputSize) => ({ shape: [...input.symSizes.slice(0, -2), ...adaptiveSize(input, outputSize)], dtype: input.dtype }),
  decompose: (input, outputSize) => {
    const [h, w] = adaptiveSize(input, outputSize)
    const [height, width] = planeNumbers(input)
    if (h === 1 && w === 1) return mean(input, [-2, -1], true)
    if (h === height && w === width) return input
    if (height % h === 0 && width % w === 0) return avgPool2d(input, [height / h, width / w])
    // The window of (i, j) is a product of stretches, so the mean may be taken one dimension at a time.
    return stretches(stretches(input, -2, h), -1, w)
  },
})
