// What every function of images checks: that it got one, how large it is, and what a size, a factor or an interval may be.
import { ArgumentError, DTypeError, ShapeError } from '../errors/index.ts'
import { checkArgument, valueText } from '../protocol/index.ts'
import { checkTensor, formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** Height and width: two numbers, or one for both. */
export type ImageSize = number | readonly number[]

/** How pixels between pixels follow from their neighbours. torchvision's InterpolationMode. */
export type Interpolation = 'nearest' | 'nearest-exact' | 'bilinear' | 'bicubic'

const INTERPOLATIONS: readonly string[] = ['nearest', 'nearest-exact', 'bilinear', 'bicubic'] satisfies readonly Interpolation[]

/** The channels, height and width of an image. Throws ArgumentError for anything but a tensor, ShapeError for less than three dimensions. */
export function dimensionsOf(where: string, image: Tensor): readonly [channels: number, height: number, width: number] {
  checkTensor(where, 'image', image)
  if (image.ndim < 3)
    throw new ShapeError(
      `${where}: an image is [..., channels, height, width], got shape ${formatShape(image.shape)}. Add a dimension: image.unsqueeze(0).`,
    )
  const [channels = 0, height = 0, width = 0] = image.shape.slice(-3)
  return [channels, height, width]
}

/** Throws ShapeError unless an image has one channel (gray) or three (red, green, blue). Returns which. */
export function checkColors(where: string, image: Tensor): 1 | 3 {
  const [channels] = dimensionsOf(where, image)
  if (channels === 1 || channels === 3) return channels
  throw new ShapeError(
    `${where}: an image has 1 channel (gray) or 3 (red, green, blue), got ${channels} in shape ${formatShape(image.shape)}.${channels === 4 ? ' Leave out the opacity: image.narrow(-3, 0, 3).' : ''}`,
  )
}

/** Throws DTypeError unless an image has floats or bytes, whose whole range is known. */
export function checkPixels(where: string, image: Tensor): void {
  if (image.isFloatingPoint() || image.dtype === 'uint8') return
  throw new DTypeError(
    `${where}: an image holds bytes (uint8) or floats between 0 and 1, got ${image.dtype}. Convert it: toDtype(image, 'float32', { scale: true }).`,
  )
}

/** `[height, width]`. Throws ArgumentError unless it is a whole positive number, or one or two of them. */
export function readSize(where: string, size: ImageSize): readonly [height: number, width: number] {
  const [height, width = height] = typeof size === 'number' ? [size] : checkSizes(where, size)
  if (height !== undefined && width !== undefined && isCount(height) && isCount(width)) return [height, width]
  throw new ArgumentError(`${where}: argument 'size' must be whole positive numbers, a number or [height, width], got ${valueText(size)}.`)
}

function checkSizes(where: string, size: readonly number[]): readonly number[] {
  checkArgument(Array.isArray(size) && (size.length === 1 || size.length === 2), where, 'size', 'a number or [height, width]', size)
  return size
}

const isCount = (value: number): boolean => Number.isInteger(value) && value >= 1

/** Throws ArgumentError unless the value is the name of an interpolation. */
export const checkInterpolation = (where: string, value: unknown): void =>
  checkArgument(typeof value === 'string' && INTERPOLATIONS.includes(value), where, 'interpolation', `one of ${INTERPOLATIONS.join(', ')}`, value)

/** Throws ArgumentError unless the value is a whole number. */
export const checkWhole = (where: string, name: string, value: unknown): void =>
  checkArgument(Number.isInteger(value), where, name, 'a whole number', value)

/** Throws ArgumentError unless the value is a probability. */
export const checkProbability = (where: string, value: unknown): void =>
  checkArgument(typeof value === 'number' && value >= 0 && value <= 1, where, 'p', 'a probability between 0 and 1', value)

/** Throws ArgumentError unless the value is `[low, high]` with `least <= low <= high <= most`. */
export function checkInterval(where: string, name: string, value: unknown, least: number, most: number): void {
  const [low, high] = Array.isArray(value) && value.length === 2 ? value : [NaN, NaN]
  const fits = typeof low === 'number' && typeof high === 'number' && least <= low && low <= high && high <= most
  const within = most === Infinity ? (least === 0 ? ' of positive numbers' : '') : ` between ${least} and ${most}`
  checkArgument(fits, where, name, `an interval [low, high]${within}`, value)
}
