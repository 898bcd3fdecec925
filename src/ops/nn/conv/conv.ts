// Convolutions: the primitive `convolution` and its backward, and the public conv1d and conv2d on top. Kernels are in convGemm.ts (float32) and convLoops.ts
// (other dtypes).
import type { Size } from '../../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { formatShape, Tensor } from '../../../tensor/index.ts'
import type { TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { constantPadNd } from '../../join/join.ts'
import { add } from '../../pointwise/arithmetic.ts'
import { sum } from '../../reduction/sum.ts'
import { checkOperand, sizeAt } from '../../shared/shapes.ts'
import { contiguous, squeeze, unsqueeze } from '../../view/reshape.ts'
import { runConvGemm } from './convGemm.ts'
import { runScheduled } from './convScheduled.ts'
import { runScheduledWeight } from './convWeightScheduled.ts'
import { runConvLoops } from './convLoops.ts'
import { checkConvChannels, convGeometry, convShape } from './convShapes.ts'
import type { ConvCall, ConvGeometry, ConvOperands } from './convShapes.ts'
import { NO_GRADIENTS, windowCount, windowPair, windowSize } from '../windows.ts'
import type { Pair } from '../windows.ts'

const CONV2D = 'torch.nn.functional.conv2d'

/** Options of convolutions. */
export interface ConvOptions {
  readonly stride?: Pair
  /** Zeros around the input; 'same' keeps the size (stride 1), 'valid' is 0. */
  readonly padding?: Pair | 'same' | 'valid'
  readonly dilation?: Pair
  readonly groups?: number
}

/** Runs one direction: by a schedule where `runsScheduled` takes it, else as a product of gathered windows; other dtypes than float32 as plain loops. */
function run<O extends ConvOperands>(geometry: ConvGeometry, operands: O, runsScheduled: (geometry: ConvGeometry, operands: O) => boolean): void {
  if (operands.out.dtype !== 'float32') runConvLoops(geometry, operands)
  else if (operands.out.numel > 0 && !runsScheduled(geometry, operands)) runConvGemm(geometry, operands)
}

const outShapeOf = (g: ConvGeometry): readonly number[] => [g.batch, g.groups * g.features, g.outHeight, g.outWidth]

function convSpec(...call: ConvCall): TensorSpec<Size> {
  return { shape: convShape(CONV2D, call), dtype: call[0].dtype }
}

/**
 * The gradients of a convolution: [input, weight], each only if asked for (else an empty tensor); the gradient of the bias is a sum. Internal; PyTorch's
 * `aten.convolution_backward`.
 *
 * Shapes: those of `input` and `weight`, or [0].
 *
 * @throws ShapeError if the sizes do not fit.
 * @example torch.ops.tensorfx.convolutionBackward(torch.ones([1, 1, 1, 1]), torch.ones([1, 1, 2, 2]), torch.ones([1, 1, 2, 2]), [1, 1], [0, 0], [1, 1], 1, true, false)[0].toArray() // [[[[1, 1], [1, 1]]]]
 */
export const convolutionBackward: Op['convolutionBackward'] = defineOp({
  schema:
    'convolution_backward(Tensor grad, Tensor input, Tensor weight, int[2] stride, int[2] padding, int[2] dilation, int groups, bool need_input, bool need_weight) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  tags: ['template'],
  vmap: 'convolutionBackward',
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: (grad, input, weight, stride, padding, dilation, groups, needInput, needWeight) => {
    const out = convSpec(input, weight, null, stride, padding, dilation, groups)
    checkOperand(CONV2D, 'grad', grad, out.shape, out.dtype)
    return [
      { shape: needInput ? input.symSizes : [0], dtype: input.dtype },
      { shape: needWeight ? weight.symSizes : [0], dtype: weight.dtype },
    ]
  },
  halvesInFloat32: true,
  kernel: (grad, input, weight, stride, padding, dilation, groups, needInput, needWeight): readonly [Tensor, Tensor] => {
    const geometry = convGeometry(CONV2D, [input, weight, null, stride, padding, dilation, groups])
    checkOperand(CONV2D, 'grad', grad, outShapeOf(geometry), input.dtype)
    const gradOut = contiguous(grad)
    const gi = Tensor.empty(needInput ? input.sizes : [0], input.dtype)
    const gw = Tensor.empty(needWeight ? weight.sizes : [0], weight.dtype)
    if (needInput) run(geometry, { direction: 'input', out: gi, gradOut, weight: contiguous(weight) }, runScheduled)
    if (needWeight) run(geometry, { direction: 'weight', out: gw, gradOut, input }, runScheduledWeight)
    return [gi, gw]
  },
  // Both gradients are bilinear, in (grad, weight) and in (grad, input), so their derivatives are convolutions again.
  derivative: ([ggi, ggw], { args: [grad, input, weight, stride, padding, dilation, groups], needs }) => {
    const window = [stride, padding, dilation, groups] as const
    const ofInput = ggi !== null && ggi.numel > 0 ? ggi : null
    const ofWeight = ggw !== null && ggw.numel > 0 ? ggw : null
    const byWeight = ofInput === null ? null : convolution(ofInput, weight, null, ...window)
    const byInput = ofWeight === null ? null : convolution(input, ofWeight, null, ...window)
    return [
      byWeight !== null && byInput !== null ? add(byWeight, byInput) : (byWeight ?? byInput),
      ofWeight !== null && needs[1] ? convolutionBackward(grad, input, ofWeight, ...window, true, false)[0] : null,
      ofInput !== null && needs[2] ? convolutionBackward(grad, ofInput, weight, ...window, false, true)[1] : null,
      ...NO_GRADIENTS,
    ]
  },
})

/**
 * The two-dimensional convolution (in fact cross-correlation); `conv2d` is the public form. Internal; PyTorch's `aten.convolution`.
 *
 * Shapes: input [N, C, H, W], weight [O, C / groups, KH, KW] and bias [O] give [N, O, OH, OW].
 *
 * @throws ShapeError if channels or sizes do not fit, DTypeError if the dtypes differ.
 * @throws ArgumentError if a window size or `groups` is out of range.
 * @example torch.ops.tensorfx.convolution(torch.ones([1, 1, 2, 2]), torch.ones([1, 1, 2, 2]), null, [1, 1], [0, 0], [1, 1], 1).toArray() // [[[[4]]]]
 */
export const convolution: Op['convolution'] = defineOp({
  schema: 'convolution(Tensor input, Tensor weight, Tensor? bias, int[2] stride, int[2] padding, int[2] dilation, int groups) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['template'],
  vmap: 'convolution',
  onnx: 'convolution',
  autocast: 'as is',
  meta: convSpec,
  halvesInFloat32: true,
  kernel: (input, weight, bias, stride, padding, dilation, groups) => {
    const geometry = convGeometry(CONV2D, [input, weight, bias, stride, padding, dilation, groups])
    const out = Tensor.empty([geometry.batch, groups * geometry.features, geometry.outHeight, geometry.outWidth], input.dtype)
    run(geometry, { direction: 'forward', out, input, weight: contiguous(weight), bias: bias === null ? null : contiguous(bias) }, runScheduled)
    return out
  },
  derivative: ([g], { args: [input, weight, , stride, padding, dilation, groups], needs: [needInput, needWeight, needBias] }) => {
    const [gi, gw] =
      needInput || needWeight
        ? lateOperator<Op['convolutionBackward']>('torch.ops.tensorfx.convolution_backward')(
            g,
            input,
            weight,
            stride,
            padding,
            dilation,
            groups,
            needInput,
            needWeight,
          )
        : [null, null]
    return [needInput ? gi : null, needWeight ? gw : null, needBias ? sum(g, [0, 2, 3]) : null, null, null, null, null]
  },
})

/** The padding that keeps the size, and the input with the odd zero added at its end if the total is odd, as in PyTorch. */
function samePadding(
  input: Tensor,
  kernel: readonly [number, number],
  stride: readonly [number, number],
  dilation: readonly [number, number],
): readonly [Tensor, readonly [number, number]] {
  if (stride[0] !== 1 || stride[1] !== 1)
    throw new ArgumentError(`${CONV2D}: padding 'same' needs stride 1, got [${stride.join(', ')}]. Give the padding as a number.`)
  const [height, width] = [dilation[0] * (kernel[0] - 1), dilation[1] * (kernel[1] - 1)]
  const isEven = height % 2 === 0 && width % 2 === 0
  return [isEven ? input : constantPadNd(input, [0, width & 1, 0, height & 1], 0), [height >> 1, width >> 1]]
}

function checkPadding(padding: unknown): void {
  if (typeof padding === 'string' && padding !== 'valid' && padding !== 'same')
    throw new ArgumentError(`${CONV2D}: padding must be a number, two numbers, 'same' or 'valid', got '${padding}'.`)
}

function conv2dDecompose(...[input, weight, bias, stride, padding, dilation, groups]: ConvCall): Tensor {
  if (input.ndim === 3) return squeeze(conv2dDecompose(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0)
  checkPadding(padding)
  const s = windowPair(CONV2D, 'stride', stride, 1)
  const d = windowPair(CONV2D, 'dilation', dilation, 1)
  if (padding === 'same' && weight.ndim === 4 && input.ndim === 4) {
    const [padded, half] = samePadding(input, [Number(sizeAt(weight.symSizes, 2)), Number(sizeAt(weight.symSizes, 3))], s, d)
    return convolution(padded, weight, bias, s, half, d, groups)
  }
  return convolution(input, weight, bias, s, typeof padding === 'string' ? [0, 0] : windowPair(CONV2D, 'padding', padding, 0), d, groups)
}

function conv2dSpec(...[input, weight, bias, stride, padding, dilation, groups]: ConvCall): TensorSpec<Size> {
  checkPadding(padding)
  if (padding === 'same')
    return { shape: [...input.symSizes.slice(0, -3), sizeAt(weight.symSizes, 0), ...input.symSizes.slice(-2)], dtype: input.dtype }
  const batched = input.ndim === 3 ? unsqueeze(input, 0) : input
  const spec = convSpec(batched, weight, bias, stride, padding === 'valid' ? 0 : padding, dilation, groups)
  return input.ndim === 3 ? { shape: spec.shape.slice(1), dtype: spec.dtype } : spec
}

/** The arguments of convolutions: by position, or in an options object. */
export type Conv = {
  (input: Tensor, weight: Tensor, bias?: Tensor | null, stride?: Pair, padding?: Pair | 'same' | 'valid', dilation?: Pair, groups?: number): Tensor
  (input: Tensor, weight: Tensor, bias: Tensor | null | undefined, options: ConvOptions): Tensor
  (input: Tensor, weight: Tensor, options: ConvOptions & { readonly bias?: Tensor | null }): Tensor
}

/**
 * Two-dimensional convolution. PyTorch's `F.conv2d`.
 *
 * Shapes: input [N, C, H, W] (or [C, H, W]), weight [O, C / groups, KH, KW] and bias [O] give [N, O, OH, OW] (or [O, OH, OW]).
 *
 * @throws ShapeError if channels or sizes do not fit, DTypeError if the dtypes differ.
 * @throws ArgumentError if a window size, `padding` or `groups` is out of range.
 * @example F.conv2d(torch.ones([1, 3, 3]), torch.ones([1, 1, 2, 2]), { padding: 'same' }).toArray() // [[[4, 4, 2], [4, 4, 2], [2, 2, 1]]]
 */
export const conv2d: OpFunction<Conv> = defineOp({
  schema: 'conv2d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any dilation=1, int groups=1) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  meta: conv2dSpec,
  decompose: conv2dDecompose,
})

const CONV1D = 'torch.nn.functional.conv1d'

/**
 * One-dimensional convolution; it runs as a two-dimensional one of height 1. PyTorch's `F.conv1d`.
 *
 * Shapes: input [N, C, L] (or [C, L]), weight [O, C / groups, K] and bias [O] give [N, O, OL] (or [O, OL]).
 *
 * @throws ShapeError if channels or sizes do not fit, DTypeError if the dtypes differ.
 * @throws ArgumentError if a window size, `padding` or `groups` is out of range.
 * @example F.conv1d(torch.tensor([[[1, 2, 3]]]), torch.tensor([[[1, 10]]])).toArray() // [[[21, 32]]]
 */
export const conv1d: OpFunction<Conv> = defineOp({
  schema: 'conv1d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any dilation=1, int groups=1) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  meta: (input, weight, _bias, stride, padding, dilation) => {
    const length = sizeAt(input.symSizes, -1)
    const pad = typeof padding === 'string' ? 0 : windowSize(CONV1D, 'padding', padding, 0)
    const count =
      padding === 'same'
        ? length
        : windowCount(length, sizeAt(weight.symSizes, 2), windowSize(CONV1D, 'stride', stride, 1), pad, windowSize(CONV1D, 'dilation', dilation, 1))
    return { shape: [...input.symSizes.slice(0, -2), sizeAt(weight.symSizes, 0), count], dtype: input.dtype }
  },
  decompose: (input, weight, bias, stride, padding, dilation, groups) => {
    if ((input.ndim !== 3 && input.ndim !== 2) || weight.ndim !== 3) {
      throw new ShapeError(
        `${CONV1D}: expected input [batch, channels, length] and weight [outChannels, inChannels / groups, kernel], got shapes ${formatShape(input.symSizes)} and ${formatShape(weight.symSizes)}.`,
      )
    }
    checkConvChannels(CONV1D, input.ndim === 2 ? [1, ...input.symSizes] : input.symSizes, weight.symSizes, groups)
    const strides = [1, windowSize(CONV1D, 'stride', stride, 1)]
    const dilations = [1, windowSize(CONV1D, 'dilation', dilation, 1)]
    const pads = padding === 'same' || padding === 'valid' ? padding : [0, windowSize(CONV1D, 'padding', padding, 0)]
    return squeeze(conv2d(unsqueeze(input, -2), unsqueeze(weight, -2), bias, strides, pads, dilations, groups), -2)
  },
})
