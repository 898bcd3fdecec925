// Transposed convolutions, as convolutions: the input is spread with zeros by the stride, and the kernel is turned.
import type { Size } from '../../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { channelsLastHint } from '../../../protocol/index.ts'
import { formatShape, sizeAdd, sizeEq, sizeFloorDiv, sizeMod, sizeMul, sizeSub, sizeNumber, areNumbers } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { constantPadNd } from '../../join/join.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { flip } from '../../view/repeat.ts'
import { permute, transpose } from '../../view/permute.ts'
import { reshape, squeeze, unsqueeze } from '../../view/reshape.ts'
import { narrow } from '../../view/slicing.ts'
import { conv1d, conv2d } from './conv.ts'
import { conv3d } from './conv3d.ts'
import type { Pair } from '../windows.ts'
import { sizesOf } from '../pool/windowTables.ts'

/** Options of the transposed convolutions; numbers hold for every spatial dimension. */
export interface ConvTransposeOptions {
  readonly stride?: Pair
  /** How much is cut off at both sides. */
  readonly padding?: Pair
  /** How much is added at the far side, of the sizes that the stride makes possible. */
  readonly outputPadding?: Pair
  readonly groups?: number
  readonly dilation?: Pair
}

/** Zeros between the elements of a dimension: `step` - 1 of them after each but the last. */
function spreadOut(x: Tensor, dim: number, step: number): Tensor {
  if (step === 1) return x
  const size = sizeAt(x.symSizes, dim)
  const apart = constantPadNd(unsqueeze(x, -1), [0, step - 1])
  // The zeros stand behind each element, so they become its neighbours in `dim` when the last dimension moves there.
  const order = dim === x.ndim - 1 ? apart : transposeTo(apart, dim + 1)
  return narrow(reshape(order, x.symSizes.with(dim, sizeMul(size, step))), dim, 0, sizeAdd(sizeMul(sizeSub(size, 1), step), 1))
}

/** Moves the last dimension to `at`. */
function transposeTo(x: Tensor, at: number): Tensor {
  let out = x
  for (let d = x.ndim - 1; d > at; d--) out = transpose(out, d, d - 1)
  return out
}

interface Window {
  readonly stride: readonly number[]
  readonly padding: readonly number[]
  readonly outputPadding: readonly number[]
  readonly dilation: readonly number[]
}

/** The transposed convolution over the last dimensions of [N, C, ..]. */
function transposed(op: string, input: Tensor, weight: Tensor, bias: Tensor | null, window: Window, groups: number): Tensor {
  const spatial = window.stride.length
  if (
    input.ndim !== spatial + 2 ||
    weight.ndim !== spatial + 2 ||
    !sizeEq(sizeAt(input.symSizes, 1), sizeAt(weight.symSizes, 0)) ||
    !sizeEq(sizeMod(sizeAt(weight.symSizes, 0), groups), 0)
  )
    throw new ShapeError(
      `${op}: expected an input [N, C, ..] and a weight [C, outputs / groups, ..] with ${spatial} more dimensions and C divisible by groups ${groups}, got shapes ${formatShape(input.symSizes)} and ${formatShape(weight.symSizes)}.${areNumbers(input.symSizes) ? channelsLastHint('input', input.symSizes, sizeNumber(sizeAt(weight.symSizes, 0))) : ''}`,
    )
  let x = input
  const amounts: Size[] = []
  for (let k = 0; k < spatial; k++) {
    const [stride = 1, padding = 0, more = 0, dilation = 1] = [window.stride[k], window.padding[k], window.outputPadding[k], window.dilation[k]]
    if (more >= Math.max(stride, dilation))
      throw new ArgumentError(
        `${op}: output_padding must be smaller than stride or dilation, got ${more} with stride ${stride} and dilation ${dilation}.`,
      )
    x = spreadOut(x, k + 2, stride)
    const reach = sizeSub(sizeMul(dilation, sizeSub(sizeAt(weight.symSizes, k + 2), 1)), padding)
    amounts.unshift(reach, sizeAdd(reach, more))
  }
  // [C, O / g, ..] to [O, C / g, ..], group by group.
  const [inputs, outputs, kernel] = [sizeFloorDiv(sizeAt(weight.symSizes, 0), groups), sizeAt(weight.symSizes, 1), weight.symSizes.slice(2)]
  const grouped = transpose(reshape(weight, [groups, inputs, outputs, ...kernel]), 1, 2)
  const turned = flip(
    reshape(grouped, [sizeMul(groups, outputs), inputs, ...kernel]),
    kernel.map((_, k) => k + 2),
  )
  const padded = constantPadNd(x, amounts)
  const conv = spatial === 1 ? conv1d : spatial === 2 ? conv2d : conv3d
  return conv(padded, turned, bias, { dilation: window.dilation, groups })
}

interface GivenWindow {
  readonly stride: unknown
  readonly padding: unknown
  readonly outputPadding: unknown
  readonly dilation: unknown
}

/** The transposed convolution of [N, C, ..] or [C, ..], with the options as they were given. */
function transposedConv(spatial: number, input: Tensor, weight: Tensor, bias: Tensor | null, groups: number, given: GivenWindow): Tensor {
  const op = `torch.nn.functional.conv_transpose${spatial}d`
  const window: Window = {
    stride: sizesOf(op, 'stride', given.stride, spatial, 1),
    padding: sizesOf(op, 'padding', given.padding, spatial, 0),
    outputPadding: sizesOf(op, 'output_padding', given.outputPadding, spatial, 0),
    dilation: sizesOf(op, 'dilation', given.dilation, spatial, 1),
  }
  if (input.ndim === spatial + 1) return squeeze(transposed(op, unsqueeze(input, 0), weight, bias, window, groups), 0)
  return transposed(op, input, weight, bias, window, groups)
}

type ConvTranspose = {
  (input: Tensor, weight: Tensor, bias?: Tensor | null, options?: ConvTransposeOptions): Tensor
  (input: Tensor, weight: Tensor, bias: Tensor | null, stride: Pair, padding?: Pair, outputPadding?: Pair, groups?: number, dilation?: Pair): Tensor
}

/**
 * Transposed convolution over [N, C, length]: the gradient of conv1d for its input. PyTorch's `F.conv_transpose1d`.
 *
 * Shapes: input [N, C, L] or [C, L], weight [C, O / groups, k], bias [O]; the length is (L - 1) stride - 2 padding + dilation (k - 1) + outputPadding + 1.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if `outputPadding` is not smaller than stride or dilation.
 * @example F.convTranspose1d(torch.tensor([[[1, 2]]]), torch.tensor([[[1, 1]]]), null, { stride: 2 }).toArray() // [[[1, 1, 2, 2]]]
 */
export const convTranspose1d: OpFunction<ConvTranspose> = defineOp({
  schema:
    'conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any output_padding=0, int groups=1, any dilation=1) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  decompose: (input, weight, bias, stride, padding, outputPadding, groups, dilation) =>
    transposedConv(1, input, weight, bias, groups, { stride, padding, outputPadding, dilation }),
})

/**
 * Transposed convolution over [N, C, height, width]: the gradient of conv2d for its input. PyTorch's `F.conv_transpose2d`.
 *
 * Shapes: input [N, C, H, W] or [C, H, W], weight [C, O / groups, kh, kw], bias [O]; sizes as for {@link convTranspose1d}.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if `outputPadding` is not smaller than stride or dilation.
 * @example F.convTranspose2d(torch.tensor([[[[1, 2]]]]), torch.tensor([[[[1], [3]]]])).toArray() // [[[[1, 2], [3, 6]]]]
 */
export const convTranspose2d: OpFunction<ConvTranspose> = defineOp({
  schema:
    'conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any output_padding=0, int groups=1, any dilation=1) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  decompose: (input, weight, bias, stride, padding, outputPadding, groups, dilation) =>
    transposedConv(2, input, weight, bias, groups, { stride, padding, outputPadding, dilation }),
})

/**
 * Transposed convolution over [N, C, depth, height, width]: the gradient of conv3d for its input. PyTorch's `F.conv_transpose3d`.
 *
 * Shapes: input [N, C, D, H, W] or [C, D, H, W], weight [C, O / groups, kd, kh, kw], bias [O]; sizes as for {@link convTranspose1d}.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if `outputPadding` is not smaller than stride or dilation.
 * @example F.convTranspose3d(torch.tensor([[[[1, 2]]]]), torch.tensor([[[[[1], [3]]]]])).toArray() // [[[[1, 2], [3, 6]]]]
 */
export const convTranspose3d: OpFunction<ConvTranspose> = defineOp({
  schema:
    'conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any output_padding=0, int groups=1, any dilation=1) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  decompose: (input, weight, bias, stride, padding, outputPadding, groups, dilation) =>
    transposedConv(3, input, weight, bias, groups, { stride, padding, outputPadding, dilation }),
})

/**
 * One-dimensional convolution of sequences whose channels come last, with `pad` zeros at both ends. PyTorch's `torch.conv_tbc`.
 *
 * Shapes: input [T, N, C], weight [K, C, O] and bias [O] give [T + 2 pad - K + 1, N, O].
 *
 * @throws ShapeError if channels or sizes do not fit.
 * @throws DTypeError if the dtypes differ.
 * @example torch.convTbc(torch.tensor([[[1]], [[2]], [[3]]]), torch.tensor([[[1]], [[10]]]), torch.tensor([0])).toArray() // [[[21]], [[32]]]
 */
export const convTbc: Op['convTbc'] = defineOp({
  schema: 'conv_tbc(Tensor input, Tensor weight, Tensor bias, int pad=0) -> Tensor',
  autocast: 'half',
  decompose: (input, weight, bias, pad) => {
    if (input.ndim !== 3 || weight.ndim !== 3)
      throw new ShapeError(
        `torch.conv_tbc: expected input [time, batch, channels] and weight [kernel, channels, outChannels], got shapes ${formatShape(input.symSizes)} and ${formatShape(weight.symSizes)}.`,
      )
    return permute(conv1d(permute(input, [1, 2, 0]), permute(weight, [2, 1, 0]), bias, 1, pad), [2, 0, 1])
  },
})
