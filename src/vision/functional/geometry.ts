// Where pixels are: resizing, crops, padding, flips. Images are [..., channels, height, width]; all dimensions before these are batches.
import { ArgumentError } from '../../errors/index.ts'
import { arange, cat } from '../../ops/index.ts'
import { interpolate } from '../../ops/nn/sample/interpolate.ts'
import { pad as padded } from '../../ops/nn/pad.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { checkInterpolation, checkWhole, dimensionsOf, readSize } from '../image.ts'
import type { ImageSize, Interpolation } from '../image.ts'

/** Options of {@link resizedCrop}. */
export interface InterpolationOptions {
  /** Default 'bilinear'. */
  readonly interpolation?: Interpolation
  /** Whether 'bilinear' and 'bicubic' smooth an image that becomes smaller. Default true, as in torchvision. */
  readonly antialias?: boolean
}

/** Options of {@link resize}. */
export interface ResizeOptions extends InterpolationOptions {
  /** The most that the longer side may have, if `size` is that of the shorter one. */
  readonly maxSize?: number | null
}

/** What is around an image. */
export type PaddingMode = 'constant' | 'edge' | 'reflect' | 'symmetric'

/** Options of {@link pad}. */
export interface PadImageOptions {
  /** The value of 'constant'; default 0. */
  readonly fill?: number
  /** 'constant' (default), the nearest pixel of the edge, or the image mirrored without ('reflect') or with ('symmetric') its edge. */
  readonly paddingMode?: PaddingMode
}

/** Left, top, right and bottom; or left and right, top and bottom; or one number for all. */
export type Padding = number | readonly number[]

/** Runs a function of floats [N, C, H, W] on an image of any dtype and batches. Integers are rounded, and kept in the range of bytes. */
export function asBatch(image: Tensor, fn: (batch: Tensor) => Tensor): Tensor {
  const isFloat = image.dtype === 'float32' || image.dtype === 'float64'
  const batch = image.reshape([-1, ...image.shape.slice(-3)])
  const result = fn(isFloat ? batch : batch.to('float32'))
  const shaped = result.reshape([...image.shape.slice(0, -3), ...result.shape.slice(1)])
  if (isFloat) return shaped
  if (image.isFloatingPoint()) return shaped.to(image.dtype)
  return (image.dtype === 'uint8' ? shaped.round().clamp(0, 255) : shaped.round()).to(image.dtype)
}

/** The sizes of the result of {@link resize}: one number is that of the shorter side, and the other side keeps the proportions. */
export function resizedSize(
  where: string,
  height: number,
  width: number,
  size: ImageSize,
  maxSize: number | null,
): readonly [height: number, width: number] {
  const [wanted, other] = readSize(where, size)
  if (typeof size !== 'number' && size.length === 2) {
    if (maxSize !== null) throw new ArgumentError(`${where}: option 'maxSize' goes with one size, that of the shorter side, got ${valueText(size)}.`)
    return [wanted, other]
  }
  const [short, long] = height <= width ? [height, width] : [width, height]
  let [newShort, newLong] = [wanted, Math.floor((wanted * long) / short)]
  if (maxSize !== null) {
    if (maxSize <= wanted)
      throw new ArgumentError(`${where}: option 'maxSize' must be more than the size of the shorter side, ${wanted}, got ${maxSize}.`)
    if (newLong > maxSize) [newShort, newLong] = [Math.floor((maxSize * newShort) / newLong), maxSize]
  }
  return height <= width ? [newShort, newLong] : [newLong, newShort]
}

/**
 * An image in another size: `[height, width]`, or the size of its shorter side. Smaller images are smoothed, unless `antialias` is false. torchvision's `resize`.
 *
 * Shape: [..., C, H, W] to [..., C, h, w]. Any dtype; results of integers are rounded.
 *
 * @throws ArgumentError for sizes that are not positive, an unknown `interpolation`, and `maxSize` beside two sizes.
 * @throws ShapeError for less than three dimensions.
 * @example functional.resize(torch.rand([3, 40, 80]), 20).shape // [3, 20, 40]
 */
export function resize(image: Tensor, size: ImageSize, options: ResizeOptions = {}): Tensor {
  const name = 'functional.resize'
  checkCount(name, arguments, 3)
  const [, height, width] = dimensionsOf(name, image)
  checkOptions(name, options, { interpolation: true, antialias: 'boolean', maxSize: true })
  const { interpolation = 'bilinear', antialias = true, maxSize = null } = options
  checkInterpolation(name, interpolation)
  const wanted = resizedSize(name, height, width, size, maxSize)
  if (wanted[0] === height && wanted[1] === width) return image
  const isLinear = interpolation === 'bilinear' || interpolation === 'bicubic'
  return asBatch(image, (batch) =>
    interpolate(batch, { size: wanted, mode: interpolation, antialias: antialias && isLinear, ...(isLinear ? { alignCorners: false } : {}) }),
  )
}

/**
 * A rectangle of an image; what is outside of it is 0. The corner `top, left` may also be tensors without dimensions, which must lie inside of the image. torchvision's `crop`.
 *
 * Shape: [..., H, W] to [..., height, width].
 *
 * @throws ArgumentError for numbers that are not whole.
 * @example functional.crop(torch.arange(9).view(1, 3, 3), 1, 1, 2, 2).toArray() // [[[4, 5], [7, 8]]]
 */
export function crop(image: Tensor, top: number | Tensor, left: number | Tensor, height: number, width: number): Tensor {
  const name = 'functional.crop'
  checkCount(name, arguments, 5)
  const [, ownHeight, ownWidth] = dimensionsOf(name, image)
  readSize(name, [height, width])
  if (top instanceof Tensor || left instanceof Tensor) {
    const part = (x: Tensor, dim: number, start: number | Tensor, length: number): Tensor =>
      typeof start === 'number' ? x.narrow(dim, start, length) : x.indexSelect(dim, arange(length).add(start).to('int64'))
    return part(part(image, -2, top, height), -1, left, width)
  }
  checkWhole(name, 'top', top)
  checkWhole(name, 'left', left)
  const [bottom, right] = [top + height, left + width]
  const inside = (start: number, end: number, size: number): readonly [start: number, length: number] => {
    const from = Math.min(Math.max(start, 0), size)
    return [from, Math.max(Math.min(end, size) - from, 0)]
  }
  const [rows, columns] = [inside(top, bottom, ownHeight), inside(left, right, ownWidth)]
  const part = image.narrow(-2, ...rows).narrow(-1, ...columns)
  if (rows[1] === height && columns[1] === width) return part
  const before = [Math.min(Math.max(-left, 0), width), Math.min(Math.max(-top, 0), height)] as const
  return padded(part, [before[0], width - columns[1] - before[0], before[1], height - rows[1] - before[1]])
}

/** Rounds as Python does: halves to the even number. */
const roundHalf = (value: number): number => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value))

/**
 * The middle of an image, with zeros around it where the image is smaller. torchvision's `center_crop`.
 *
 * Shape: [..., H, W] to [..., h, w].
 *
 * @throws ArgumentError for sizes that are not positive whole numbers.
 * @example functional.centerCrop(torch.arange(9).view(1, 3, 3), 1).toArray() // [[[4]]]
 */
export function centerCrop(image: Tensor, size: ImageSize): Tensor {
  const name = 'functional.centerCrop'
  checkCount(name, arguments, 2)
  const [, height, width] = dimensionsOf(name, image)
  const [wantedHeight, wantedWidth] = readSize(name, size)
  // An image that is too small gets the larger half of what is missing after it.
  const start = (own: number, wanted: number): number => (wanted > own ? -Math.floor((wanted - own) / 2) : roundHalf((own - wanted) / 2))
  return crop(image, start(height, wantedHeight), start(width, wantedWidth), wantedHeight, wantedWidth)
}

/**
 * {@link crop}, and {@link resize} of what it gives. torchvision's `resized_crop`.
 *
 * Shape: [..., C, H, W] to [..., C, h, w].
 */
export function resizedCrop(
  image: Tensor,
  top: number,
  left: number,
  height: number,
  width: number,
  size: ImageSize,
  options: InterpolationOptions = {},
): Tensor {
  checkCount('functional.resizedCrop', arguments, 7)
  return resize(crop(image, top, left, height, width), size, options)
}

/** Left, right, top and bottom. */
export function readPadding(where: string, padding: Padding): readonly [left: number, right: number, top: number, bottom: number] {
  const list = typeof padding === 'number' ? [padding] : padding
  checkArgument(
    Array.isArray(list) && [1, 2, 4].includes(list.length) && list.every((item) => Number.isInteger(item)),
    where,
    'padding',
    'a whole number, or an array of 1, 2 or 4 of them (left, top, right, bottom)',
    padding,
  )
  const [left = 0, top = left, right = left, bottom = top] = list
  return [left, right, top, bottom]
}

/**
 * An image with pixels around it: `padding` is a number, `[left and right, top and bottom]` or `[left, top, right, bottom]`. torchvision's `pad`.
 *
 * Shape: [..., H, W] to [..., H + top + bottom, W + left + right].
 *
 * @throws ArgumentError for another number of amounts, an unknown `paddingMode`, and mirrored images that are smaller than the amounts.
 * @example functional.pad(torch.ones([1, 1, 2]), [1, 0]).toArray() // [[[0, 1, 1, 0]]]
 */
export function pad(image: Tensor, padding: Padding, options: PadImageOptions = {}): Tensor {
  const name = 'functional.pad'
  checkCount(name, arguments, 3)
  dimensionsOf(name, image)
  checkOptions(name, options, { fill: 'number', paddingMode: true })
  const { fill = 0, paddingMode = 'constant' } = options
  const amounts = readPadding(name, padding)
  switch (paddingMode) {
    case 'constant':
      return padded(image, amounts, { value: fill })
    case 'edge':
      return asBatch(image, (batch) => padded(batch, amounts, { mode: 'replicate' }))
    case 'reflect':
      return asBatch(image, (batch) => padded(batch, amounts, { mode: 'reflect' }))
    case 'symmetric':
      return mirrored(name, mirrored(name, image, -1, amounts[0], amounts[1]), -2, amounts[2], amounts[3])
    default:
      throw new ArgumentError(`${name}: option 'paddingMode' must be one of constant, edge, reflect, symmetric, got ${valueText(paddingMode)}.`)
  }
}

/** A dimension with mirrored parts before and after it, the edges among them; negative amounts cut. */
function mirrored(where: string, image: Tensor, dim: number, before: number, after: number): Tensor {
  const [cutBefore, cutAfter] = [Math.max(-before, 0), Math.max(-after, 0)]
  const size = image.size(dim) - cutBefore - cutAfter
  if (Math.max(before, after) > size)
    throw new ArgumentError(`${where}: a side of ${size} pixels cannot be mirrored ${Math.max(before, after)} pixels far.`)
  const kept = image.narrow(dim, cutBefore, size)
  const parts = [kept]
  if (before > 0) parts.unshift(kept.narrow(dim, 0, before).flip(dim))
  if (after > 0) parts.push(kept.narrow(dim, size - after, after).flip(dim))
  return parts.length === 1 ? kept : cat(parts, dim)
}

/**
 * An image with left and right exchanged. torchvision's `horizontal_flip`.
 *
 * @example functional.horizontalFlip(torch.tensor([[[1, 2]]])).toArray() // [[[2, 1]]]
 */
export function horizontalFlip(image: Tensor): Tensor {
  checkCount('functional.horizontalFlip', arguments, 1)
  dimensionsOf('functional.horizontalFlip', image)
  return image.flip(-1)
}

/**
 * An image upside down. torchvision's `vertical_flip`.
 *
 * @example functional.verticalFlip(torch.tensor([[[1], [2]]])).toArray() // [[[2], [1]]]
 */
export function verticalFlip(image: Tensor): Tensor {
  checkCount('functional.verticalFlip', arguments, 1)
  dimensionsOf('functional.verticalFlip', image)
  return image.flip(-2)
}
