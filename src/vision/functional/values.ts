// What changes the numbers of an image and not its form: dtypes, normalization, erasing.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { arange, full, logicalAnd, tensor, where as select } from '../../ops/index.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor, formatShape, iinfo } from '../../tensor/index.ts'
import { checkWhole, dimensionsOf } from '../image.ts'

/** Options of {@link toDtype}. */
export interface ToDtypeOptions {
  /** Whether the range of numbers changes too: bytes from 0 to 255 become floats from 0 to 1. Default false. */
  readonly scale?: boolean
}

/** The largest value of an image of a dtype. */
const largest = (where: string, dtype: DType): number => {
  if (dtype === 'bool') throw new DTypeError(`${where}: images of bool have no range to scale; compare the image with a threshold instead.`)
  return Number(iinfo(dtype).max)
}

const isFloat = (dtype: DType): boolean => dtypeInfo[dtype].kind === 'floating'

/**
 * An image in another dtype. With `scale`, its range becomes that of the dtype: 0 to 1 for floats, 0 to the largest integer for integers. torchvision's `to_dtype`.
 *
 * Shape: [...], unchanged.
 *
 * @throws DTypeError with `scale` for floats that become int32 or int64, whose values they do not have.
 * @example
 * functional.toDtype(torch.tensor([[[0, 255]]], { dtype: 'uint8' }), 'float32', { scale: true }).toArray() // [[[0, 1]]]
 */
export function toDtype(image: Tensor, dtype: DType, options: ToDtypeOptions = {}): Tensor {
  const name = 'functional.toDtype'
  checkCount(name, arguments, 3)
  dimensionsOf(name, image)
  checkOptions(name, options, { scale: 'boolean' })
  if (options.scale !== true || image.dtype === dtype) return image.to(dtype)
  if (image.isFloatingPoint()) {
    if (isFloat(dtype)) return image.to(dtype)
    if ((image.dtype !== 'float64' && dtype === 'int32') || dtype === 'int64')
      throw new DTypeError(`${name}: ${image.dtype} cannot be scaled to ${dtype} without loss; scale to uint8 or int16, and convert that.`)
    // Nearly the largest value and one more, so that floats are divided evenly among the integers.
    return image.mul(largest(name, dtype) + 1 - 1e-3).to(dtype)
  }
  const from = largest(name, image.dtype)
  if (isFloat(dtype)) return image.to(dtype).div(from)
  const to = largest(name, dtype)
  if (from > to) return image.div(Math.floor((from + 1) / (to + 1)), { roundingMode: 'floor' }).to(dtype)
  return image.to(dtype).mul(Math.floor((to + 1) / (from + 1)))
}

/**
 * `(image - mean) / std` for each channel. torchvision's `normalize`.
 *
 * Shape: [..., C, H, W], unchanged; `mean` and `std` have C numbers, or one.
 *
 * @throws DTypeError for an image of integers; ArgumentError if a number of `std` is 0; ShapeError for another count of numbers.
 * @example functional.normalize(torch.tensor([[[0.5, 1]]]), [0.5], [0.5]).toArray() // [[[0, 1]]]
 */
export function normalize(image: Tensor, mean: readonly number[], std: readonly number[]): Tensor {
  const name = 'functional.normalize'
  checkCount(name, arguments, 3)
  const [channels] = dimensionsOf(name, image)
  if (!image.isFloatingPoint())
    throw new DTypeError(`${name}: an image of floats is needed, got ${image.dtype}. Convert it: toDtype(image, 'float32', { scale: true }).`)
  checkStatistics(name, mean, std)
  for (const [list, text] of [
    [mean, 'mean'],
    [std, 'std'],
  ] as const)
    if (list.length !== 1 && list.length !== channels)
      throw new ShapeError(
        `${name}: ${text} must have 1 or ${channels} numbers, one for each channel of shape ${formatShape(image.shape)}, got ${list.length}.`,
      )
  const perChannel = (values: readonly number[]): Tensor => tensor([...values], { dtype: image.dtype }).view(-1, 1, 1)
  return image.sub(perChannel(mean)).div(perChannel(std))
}

/** Throws ArgumentError unless these are lists of numbers, and no number of `std` is 0. */
export function checkStatistics(name: string, mean: readonly number[], std: readonly number[]): void {
  for (const [list, text] of [
    [mean, 'mean'],
    [std, 'std'],
  ] as const)
    checkArgument(Array.isArray(list) && list.length > 0 && list.every((value) => typeof value === 'number'), name, text, 'an array of numbers', list)
  if (std.includes(0)) throw new ArgumentError(`${name}: argument 'std' must not have a 0, by which pixels are divided, got ${valueText(std)}.`)
}

/**
 * An image with the value `value` in a rectangle: a number, one for each channel, or a tensor that broadcasts to the image. torchvision's `erase`, whose corner is `i, j` and whose sizes are
 * `h, w`. Numbers of the rectangle may also be tensors without dimensions.
 *
 * Shape: [..., C, H, W], unchanged.
 *
 * @example functional.erase(torch.ones([1, 2, 2]), 0, 1, 1, 1, 0).toArray() // [[[1, 0], [1, 1]]]
 */
export function erase(
  image: Tensor,
  i: number | Tensor,
  j: number | Tensor,
  h: number | Tensor,
  w: number | Tensor,
  value: number | readonly number[] | Tensor,
): Tensor {
  const name = 'functional.erase'
  checkCount(name, arguments, 6)
  const [, height, width] = dimensionsOf(name, image)
  for (const [given, text] of [
    [i, 'i'],
    [j, 'j'],
    [h, 'h'],
    [w, 'w'],
  ] as const)
    if (!(given instanceof Tensor)) checkWhole(name, text, given)
  const within = (count: number, start: number | Tensor, length: number | Tensor): Tensor => {
    const at = arange(count).sub(start)
    return logicalAnd(at.ge(0), at.lt(length))
  }
  const inside = logicalAnd(within(height, i, h).unsqueeze(-1), within(width, j, w))
  return select(inside, valueOf(name, value, image), image)
}

function valueOf(name: string, value: number | readonly number[] | Tensor, image: Tensor): Tensor {
  if (value instanceof Tensor) return value.to(image.dtype)
  if (typeof value === 'number') return full([], value, { dtype: image.dtype })
  checkArgument(
    Array.isArray(value) && value.every((item) => typeof item === 'number'),
    name,
    'value',
    'a number, an array of numbers or a Tensor',
    value,
  )
  if (value.length !== 1 && value.length !== image.shape.at(-3))
    throw new ShapeError(
      `${name}: value must be 1 or ${image.shape.at(-3)} numbers, one for each channel of shape ${formatShape(image.shape)}, got ${value.length}.`,
    )
  return tensor([...value], { dtype: image.dtype }).view(-1, 1, 1)
}
