// Three-dimensional convolutions, as two-dimensional ones: the slices that a kernel reaches along the depth become channels, so that each position along the depth is an image of
// its own.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { formatShape, sizeMul, sizeNumber, sizeNumbers } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { constantIndices } from '../../view/indices.ts'
import { constantPadNd } from '../../join/join.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { checkConvChannels } from './convShapes.ts'
import { indexSelect } from '../../view/indexing.ts'
import { permute } from '../../view/permute.ts'
import { reshape, squeeze, unsqueeze } from '../../view/reshape.ts'
import type { Conv } from './conv.ts'
import { conv2d } from './conv.ts'
import { windowCount } from '../windows.ts'
import { range, sizesOf } from '../pool/windowTables.ts'

const NAME = 'torch.nn.functional.conv3d'

/** The zeros before each dimension, and how many more there are behind it. */
function paddingOf(
  padding: unknown,
  kernel: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): readonly (readonly [number, number])[] {
  if (padding === 'valid') return kernel.map(() => [0, 0])
  if (padding === 'same') {
    if (stride.some((s) => s !== 1))
      throw new ArgumentError(`${NAME}: padding 'same' needs stride 1, got ${valueText(stride)}. Give the padding as a number.`)
    return kernel.map((size, d) => {
      const all = (dilation[d] ?? 1) * (size - 1)
      return [all >> 1, all & 1]
    })
  }
  if (typeof padding === 'string') throw new ArgumentError(`${NAME}: padding must be a number, three numbers, 'same' or 'valid', got '${padding}'.`)
  return sizesOf(NAME, 'padding', padding, 3, 0).map((size) => [size, 0])
}

/** The convolution of [N, C, D, H, W]. */
function volumes(input: Tensor, weight: Tensor, bias: Tensor | null, stride: unknown, padding: unknown, dilation: unknown, groups: number): Tensor {
  if (input.ndim !== 5 || weight.ndim !== 5)
    throw new ShapeError(
      `${NAME}: expected input [batch, channels, depth, height, width] and weight [outChannels, inChannels / groups, depth, height, width], got shapes ${formatShape(input.symSizes)} and ${formatShape(weight.symSizes)}.`,
    )
  checkConvChannels(NAME, input.symSizes, weight.symSizes, groups)
  // Which slices along the depth a window reads is a table, and the kernel's sizes are those of its windows.
  const kernel = sizeNumbers(weight.symSizes.slice(2))
  const [strides, dilations] = [sizesOf(NAME, 'stride', stride, 3, 1), sizesOf(NAME, 'dilation', dilation, 3, 1)]
  const [[before = 0, behind = 0] = [], [top = 0, below = 0] = [], [left = 0, right = 0] = []] = paddingOf(padding, kernel, strides, dilations)
  const [[kd = 1], [sd = 1, sh = 1, sw = 1], [dd = 1, dh = 1, dw = 1]] = [kernel, strides, dilations]
  const amounts = [0, right, 0, below, before, before + behind]
  const x = amounts.some((n) => n > 0) ? constantPadNd(input, amounts) : input
  const [batch = 0, channels = 0, given = 0, height = 0, width = 0] = x.symSizes
  const depth = sizeNumber(given)
  const count = windowCount(depth, kd, sd, 0, dd)
  if (kd < 1 || count < 1)
    throw new ShapeError(
      `${NAME}: the kernel does not fit: input of shape ${formatShape(input.symSizes)} is too small for weight of shape ${formatShape(weight.symSizes)}; with padding and dilation it has ${depth} slices along the depth.`,
    )
  const places = range(count).flatMap((i) => range(kd).map((j) => i * sd + j * dd))
  const slices = reshape(indexSelect(x, 2, constantIndices(places)), [batch, channels, count, kd, height, width])
  const images = reshape(permute(slices, [0, 2, 1, 3, 4, 5]), [sizeMul(batch, count), sizeMul(channels, kd), height, width])
  const filters = reshape(weight, [sizeAt(weight.symSizes, 0), sizeMul(sizeAt(weight.symSizes, 1), kd), ...kernel.slice(1)])
  const out = conv2d(images, filters, bias, { stride: [sh, sw], padding: [top, left], dilation: [dh, dw], groups })
  return permute(reshape(out, [batch, count, ...out.symSizes.slice(1)]), [0, 2, 1, 3, 4])
}

/**
 * Three-dimensional convolution. PyTorch's `F.conv3d`.
 *
 * Shapes: input [N, C, D, H, W] (or [C, D, H, W]), weight [O, C / groups, KD, KH, KW] and bias [O] give [N, O, OD, OH, OW] (or [O, OD, OH, OW]).
 *
 * @throws ShapeError if channels or sizes do not fit, DTypeError if the dtypes differ.
 * @throws ArgumentError if a window size, `padding` or `groups` is out of range.
 * @example F.conv3d(torch.ones([1, 2, 3, 3]), torch.ones([1, 1, 2, 2, 2])).toArray() // [[[[8, 8], [8, 8]]]]
 */
export const conv3d: OpFunction<Conv> = defineOp({
  schema: 'conv3d(Tensor input, Tensor weight, Tensor? bias=None, any stride=1, any padding=0, any dilation=1, int groups=1) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  decompose: (input, weight, bias, stride, padding, dilation, groups) =>
    input.ndim === 4
      ? squeeze(volumes(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0)
      : volumes(input, weight, bias, stride, padding, dilation, groups),
})
