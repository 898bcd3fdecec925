// The geometry of a two-dimensional convolution, and its checks.
import { ArgumentError, DTypeError, ShapeError } from '../../../errors/index.ts'
import { channelsLastHint, weightLayoutHint } from '../../../protocol/index.ts'
import { formatShape } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { checkOperand, quadrupleOf, sizeAt } from '../../shared/shapes.ts'
import { windowCount, windowPair } from '../windows.ts'
import type { WindowMoves } from '../windows.ts'

/** The sizes of one convolution. Channels are per group. */
export interface ConvGeometry extends WindowMoves {
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
}

/** What one direction of a convolution reads and writes. All tensors but `input` are contiguous. */
export type ConvOperands =
  | { readonly direction: 'forward'; readonly out: Tensor; readonly input: Tensor; readonly weight: Tensor; readonly bias: Tensor | null }
  | { readonly direction: 'input'; readonly out: Tensor; readonly gradOut: Tensor; readonly weight: Tensor }
  | { readonly direction: 'weight'; readonly out: Tensor; readonly gradOut: Tensor; readonly input: Tensor }

/** Throws ShapeError unless the channels of images [N, C, ..] are those that weights [O, C / groups, ..] expect. */
export function checkConvChannels(op: string, input: readonly number[], weight: readonly number[], groups: number): void {
  const [has, expects] = [sizeAt(input, 1), sizeAt(weight, 1) * groups]
  if (has === expects) return
  // Weights [.., C / groups, O] or [O, .., C / groups] would fit.
  const others = [
    [sizeAt(weight, -1), has / groups, ...weight.slice(0, -2)],
    [sizeAt(weight, 0), has / groups, ...weight.slice(1, -1)],
  ]
  const hint =
    channelsLastHint('input', input, expects) || others.map((wanted) => weightLayoutHint('weight', weight, wanted)).find((text) => text !== '')
  throw new ShapeError(
    `${op}: input has ${has} channels (shape ${formatShape(input)}) but weight expects ${expects} (shape ${formatShape(weight)}, groups ${groups}); ` +
      `dimension 1 of input must equal dimension 1 of weight times groups.${hint ?? ''}`,
  )
}

/** The arguments of a convolution, of which those that say where its windows lie have not been read yet. */
export type ConvCall = readonly [
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  stride: unknown,
  padding: unknown,
  dilation: unknown,
  groups: number,
]

/** Throws ShapeError, DTypeError or ArgumentError unless the tensors of a convolution fit each other. */
function checkConv(op: string, input: Tensor, weight: Tensor, bias: Tensor | null, groups: number): void {
  if (input.ndim !== 4)
    throw new ShapeError(`${op}: input must have 4 dimensions [batch, channels, height, width], got shape ${formatShape(input.sizes)}.`)
  if (weight.ndim !== 4) {
    throw new ShapeError(
      `${op}: weight must have 4 dimensions [outChannels, inChannels / groups, kernelHeight, kernelWidth], got shape ${formatShape(weight.sizes)}.`,
    )
  }
  if (input.dtype !== weight.dtype) {
    throw new DTypeError(
      `${op}: input has dtype ${input.dtype} and weight has dtype ${weight.dtype}; they must be equal. Convert one of them, e.g. input.to('${weight.dtype}').`,
    )
  }
  const outChannels = sizeAt(weight.sizes, 0)
  if (!Number.isInteger(groups) || groups < 1 || outChannels % groups !== 0) {
    throw new ArgumentError(`${op}: groups must be a positive integer that divides the ${outChannels} output channels of weight, got ${groups}.`)
  }
  checkConvChannels(op, input.sizes, weight.sizes, groups)
  if (bias !== null && (bias.ndim !== 1 || bias.sizes[0] !== outChannels)) {
    throw new ShapeError(
      `${op}: bias has shape ${formatShape(bias.sizes)} but weight (shape ${formatShape(weight.sizes)}) has ${outChannels} output channels; expected [${outChannels}].`,
    )
  }
  checkOperand(op, 'bias', bias, [outChannels], input.dtype)
}

/** The sizes of a convolution. Throws ShapeError, DTypeError or ArgumentError if the arguments do not fit. */
export function convGeometry(op: string, [input, weight, bias, stride, padding, dilation, groups]: ConvCall): ConvGeometry {
  checkConv(op, input, weight, bias, groups)
  const [batch, inChannels, height, width] = quadrupleOf(input.sizes)
  const [outChannels, channels, kernelHeight, kernelWidth] = quadrupleOf(weight.sizes)
  const [strideH, strideW] = windowPair(op, 'stride', stride, 1)
  const [padH, padW] = windowPair(op, 'padding', padding, 0)
  const [dilationH, dilationW] = windowPair(op, 'dilation', dilation, 1)
  const outHeight = windowCount(height, kernelHeight, strideH, padH, dilationH)
  const outWidth = windowCount(width, kernelWidth, strideW, padW, dilationW)
  if (outHeight < 1 || outWidth < 1) {
    throw new ShapeError(
      `${op}: the kernel does not fit: input of shape ${formatShape(input.sizes)} with padding [${padH}, ${padW}] is smaller than ` +
        `the kernel [${kernelHeight}, ${kernelWidth}] (weight shape ${formatShape(weight.sizes)}, dilation [${dilationH}, ${dilationW}]).` +
        weightLayoutHint('weight', weight.sizes, [kernelWidth, inChannels / groups, outChannels, channels]),
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
