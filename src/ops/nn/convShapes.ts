// The geometry of a two-dimensional convolution, with its checks.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** A number for both dimensions, or one each [height, width]. */
export type Pair = number | readonly number[]

/** Sizes of one convolution; channels are per group. */
export interface ConvGeometry {
  readonly batch: number
  readonly groups: number
  /** Input and output channels of one group. */
  readonly channels: number
  readonly features: number
  readonly height: number
  readonly width: number
  readonly kernelHeight: number
  readonly kernelWidth: number
  readonly outHeight: number
  readonly outWidth: number
  readonly strideH: number
  readonly strideW: number
  readonly padH: number
  readonly padW: number
  readonly dilationH: number
  readonly dilationW: number
}

/** [height, width] from a number or a list; checks that they are integers of at least `least`. */
export function pair(op: string, name: string, value: Pair, least: number): readonly [number, number] {
  const list = typeof value === 'number' ? [value, value] : value.length === 1 ? [value[0] as number, value[0] as number] : value
  if (list.length !== 2 || list.some((v) => !Number.isInteger(v) || v < least)) {
    throw new ArgumentError(`${op}: ${name} must be an integer >= ${least}, or two of them [height, width], got ${JSON.stringify(value)}.`)
  }
  return list as unknown as readonly [number, number]
}

/** Number of positions of a window along a dimension. */
export function windowCount(size: number, kernel: number, stride: number, pad: number, dilation: number, ceilMode = false): number {
  const span = size + 2 * pad - dilation * (kernel - 1) - 1
  const count = (ceilMode ? Math.ceil(span / stride) : Math.floor(span / stride)) + 1
  // A window that would begin in the padding past the end is dropped.
  return ceilMode && (count - 1) * stride >= size + pad ? count - 1 : count
}

/** Checks the arguments of a convolution and computes its sizes. */
export function convGeometry(
  op: string,
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  stride: Pair,
  padding: Pair,
  dilation: Pair,
  groups: number,
): ConvGeometry {
  if (input.ndim !== 4)
    throw new ShapeError(`${op}: input must have 4 dimensions [batch, channels, height, width], got shape ${formatShape(input.shape)}.`)
  if (weight.ndim !== 4) {
    throw new ShapeError(
      `${op}: weight must have 4 dimensions [outChannels, inChannels / groups, kernelHeight, kernelWidth], got shape ${formatShape(weight.shape)}.`,
    )
  }
  if (input.dtype !== weight.dtype) {
    throw new DTypeError(
      `${op}: input has dtype ${input.dtype} and weight has dtype ${weight.dtype}; they must be equal. Convert one of them, e.g. input.to('${weight.dtype}').`,
    )
  }
  const [batch, inChannels, height, width] = input.shape as [number, number, number, number]
  const [outChannels, channels, kernelHeight, kernelWidth] = weight.shape as [number, number, number, number]
  if (!Number.isInteger(groups) || groups < 1 || outChannels % groups !== 0) {
    throw new ArgumentError(`${op}: groups must be a positive integer that divides the ${outChannels} output channels of weight, got ${groups}.`)
  }
  if (inChannels !== channels * groups) {
    throw new ShapeError(
      `${op}: input has ${inChannels} channels (shape ${formatShape(input.shape)}) but weight expects ${channels * groups} ` +
        `(shape ${formatShape(weight.shape)}, groups ${groups}); dimension 1 of input must equal dimension 1 of weight times groups.`,
    )
  }
  if (bias !== null && (bias.ndim !== 1 || bias.shape[0] !== outChannels)) {
    throw new ShapeError(
      `${op}: bias has shape ${formatShape(bias.shape)} but weight (shape ${formatShape(weight.shape)}) has ${outChannels} output channels; expected [${outChannels}].`,
    )
  }
  const [strideH, strideW] = pair(op, 'stride', stride, 1)
  const [padH, padW] = pair(op, 'padding', padding, 0)
  const [dilationH, dilationW] = pair(op, 'dilation', dilation, 1)
  const outHeight = windowCount(height, kernelHeight, strideH, padH, dilationH)
  const outWidth = windowCount(width, kernelWidth, strideW, padW, dilationW)
  if (outHeight < 1 || outWidth < 1) {
    throw new ShapeError(
      `${op}: the kernel does not fit: input of shape ${formatShape(input.shape)} with padding [${padH}, ${padW}] is smaller than ` +
        `the kernel [${kernelHeight}, ${kernelWidth}] (weight shape ${formatShape(weight.shape)}, dilation [${dilationH}, ${dilationW}]).`,
    )
  }
  return {
    batch,
    groups,
    channels,
    features: outChannels / groups,
    height,
    width,
    kernelHeight,
    kernelWidth,
    outHeight,
    outWidth,
    strideH,
    strideW,
    padH,
    padW,
    dilationH,
    dilationW,
  }
}
