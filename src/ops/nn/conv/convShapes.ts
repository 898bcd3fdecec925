// The geometry of a two-dimensional convolution, and its checks.
import { ArgumentError, DTypeError, ShapeError } from '../../../errors/index.ts'
import { channelsLastHint, weightLayoutHint } from '../../../protocol/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { areNumbers, formatShape, sizeEq, sizeFloorDiv, sizeLess, sizeMod, sizeMul } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { checkOperand, numbersFor, quadrupleOf, sizeAt } from '../../shared/shapes.ts'
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
export function checkConvChannels(op: string, input: readonly Size[], weight: readonly Size[], groups: number): void {
  const [has, expects] = [sizeAt(input, 1), sizeMul(sizeAt(weight, 1), groups)]
  if (sizeEq(has, expects)) return
  const hint = areNumbers(input) && areNumbers(weight) ? layoutHint(input, weight, groups) : ''
  throw new ShapeError(
    `${op}: input has ${has.toString()} channels (shape ${formatShape(input)}) but weight expects ${expects.toString()} (shape ${formatShape(weight)}, groups ${groups}); ` +
      `dimension 1 of input must equal dimension 1 of weight times groups.${hint}`,
  )
}

/** How images or weights whose channels do not fit may have been meant. */
function layoutHint(input: readonly number[], weight: readonly number[], groups: number): string {
  const channels = sizeAt(input, 1) / groups
  // Weights [.., C / groups, O] or [O, .., C / groups] would fit.
  const others = [
    [sizeAt(weight, -1), channels, ...weight.slice(0, -2)],
    [sizeAt(weight, 0), channels, ...weight.slice(1, -1)],
  ]
  const ofInput = channelsLastHint('input', input, sizeAt(weight, 1) * groups)
  return ofInput || (others.map((wanted) => weightLayoutHint('weight', weight, wanted)).find((text) => text !== '') ?? '')
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
    throw new ShapeError(`${op}: input must have 4 dimensions [batch, channels, height, width], got shape ${formatShape(input.symSizes)}.`)
  if (weight.ndim !== 4) {
    throw new ShapeError(
      `${op}: weight must have 4 dimensions [outChannels, inChannels / groups, kernelHeight, kernelWidth], got shape ${formatShape(weight.symSizes)}.`,
    )
  }
  if (input.dtype !== weight.dtype) {
    throw new DTypeError(
      `${op}: input has dtype ${input.dtype} and weight has dtype ${weight.dtype}; they must be equal. Convert one of them, e.g. input.to('${weight.dtype}').`,
    )
  }
  const outChannels = sizeAt(weight.symSizes, 0)
  if (!Number.isInteger(groups) || groups < 1 || (groups > 1 && !sizeEq(sizeMod(outChannels, groups), 0))) {
    throw new ArgumentError(
      `${op}: groups must be a positive integer that divides the ${outChannels.toString()} output channels of weight, got ${groups}.`,
    )
  }
  checkConvChannels(op, input.symSizes, weight.symSizes, groups)
  if (bias !== null && (bias.ndim !== 1 || !sizeEq(bias.symSizes[0], outChannels))) {
    throw new ShapeError(
      `${op}: bias has shape ${formatShape(bias.symSizes)} but weight (shape ${formatShape(weight.symSizes)}) has ${outChannels.toString()} output channels; expected [${outChannels.toString()}].`,
    )
  }
  checkOperand(op, 'bias', bias, [outChannels], input.dtype)
}

const movesOf = (op: string, [, , , stride, padding, dilation]: ConvCall): WindowMoves => {
  const [strideH, strideW] = windowPair(op, 'stride', stride, 1)
  const [padH, padW] = windowPair(op, 'padding', padding, 0)
  const [dilationH, dilationW] = windowPair(op, 'dilation', dilation, 1)
  return { strideH, strideW, padH, padW, dilationH, dilationW }
}

/** The shape of a convolution's result. Throws ShapeError, DTypeError or ArgumentError if the arguments do not fit. */
export function convShape(op: string, call: ConvCall): readonly [batch: Size, channels: Size, height: Size, width: Size] {
  const [input, weight, bias, , , , groups] = call
  checkConv(op, input, weight, bias, groups)
  const [batch, inChannels, height, width] = quadrupleOf(input.symSizes)
  const [outChannels, channels, kernelHeight, kernelWidth] = quadrupleOf(weight.symSizes)
  const { strideH, strideW, padH, padW, dilationH, dilationW } = movesOf(op, call)
  const outHeight = windowCount(height, kernelHeight, strideH, padH, dilationH)
  const outWidth = windowCount(width, kernelWidth, strideW, padW, dilationW)
  if (sizeLess(outHeight, 1) || sizeLess(outWidth, 1)) {
    const wanted = [kernelWidth, sizeFloorDiv(inChannels, groups), outChannels, channels]
    throw new ShapeError(
      `${op}: the kernel does not fit: input of shape ${formatShape(input.symSizes)} with padding [${padH}, ${padW}] is smaller than ` +
        `the kernel ${formatShape([kernelHeight, kernelWidth])} (weight shape ${formatShape(weight.symSizes)}, dilation [${dilationH}, ${dilationW}]).` +
        (areNumbers(wanted) && areNumbers(weight.symSizes) ? weightLayoutHint('weight', weight.symSizes, wanted) : ''),
    )
  }
  return [batch, outChannels, outHeight, outWidth]
}

/** The sizes of a convolution. Throws like {@link convShape}. */
export function convGeometry(op: string, call: ConvCall): ConvGeometry {
  const [input, weight, , , , , groups] = call
  const [batch, outChannels, outHeight, outWidth] = quadrupleOf(numbersFor(op, convShape(op, call)))
  const [, , height, width] = quadrupleOf(input.sizes)
  const [, channels, kernelHeight, kernelWidth] = quadrupleOf(weight.sizes)
  return {
    ...movesOf(op, call),
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
  }
}
