// Pixels between tensors and what draws them: ImageData, canvases, bitmaps, videos.
import { ArgumentError, ShapeError, UnsupportedError } from '../errors/index.ts'
import { cat, full, tensor } from '../ops/index.ts'
import { checkArgument, checkCount, isObject, valueText } from '../protocol/index.ts'
import { formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkPixels, dimensionsOf } from './image.ts'
import { toDtype } from './functional/values.ts'

/** How pixels become channels. torchvision's ImageReadMode. */
export type ImageMode = 'RGB' | 'RGB_ALPHA' | 'GRAY' | 'GRAY_ALPHA'

const MODES = ['RGB', 'RGB_ALPHA', 'GRAY', 'GRAY_ALPHA'] as const

/** Options of functions that make images. */
export interface ImageOptions {
  /** The channels: 'RGB' (default), 'RGB_ALPHA', 'GRAY' or 'GRAY_ALPHA'. */
  readonly mode?: ImageMode
}

export const checkMode = (where: string, mode: unknown): void =>
  checkArgument(
    MODES.some((known) => known === mode),
    where,
    'mode',
    `one of ${MODES.join(', ')}`,
    mode,
  )

/** Pixels row by row: red, green, blue and opacity of each, as ImageData has them. */
export interface Pixels {
  readonly width: number
  readonly height: number
  readonly data: Uint8Array | Uint8ClampedArray
}

/** The channels [C, H, W] of pixels, as bytes. */
export function channelsOf({ width, height, data }: Pixels, mode: ImageMode): Tensor {
  const all = tensor(data).view(height, width, 4).permute(2, 0, 1)
  if (mode === 'RGB_ALPHA') return all.contiguous()
  const colors = all.narrow(0, 0, 3)
  if (mode === 'RGB') return colors.contiguous()
  // The weights by which JPEG files have brightness.
  const weights = tensor([0.299, 0.587, 0.114], { dtype: 'float32' }).view(3, 1, 1)
  const gray = colors.mul(weights).sum(0, { keepdim: true }).round().to('uint8')
  return mode === 'GRAY' ? gray : cat([gray, all.narrow(0, 3, 1)])
}

/** What {@link toImage} reads: ImageData, or anything that a canvas draws. */
export type ImageInput = Pixels | ImageBitmap | HTMLImageElement | HTMLCanvasElement | HTMLVideoElement | OffscreenCanvas

const isPixels = (source: object): source is Pixels => 'data' in source && 'width' in source && 'height' in source

/**
 * The pixels of a canvas, a bitmap, an image or a video of a page, or of ImageData, as bytes. torchvision's `to_image`.
 *
 * Shape: [C, H, W], `uint8`.
 *
 * @throws ArgumentError for anything else. @throws UnsupportedError where there is no canvas, as in Node, unless the pixels are ImageData.
 * @example toImage({ width: 1, height: 1, data: new Uint8Array([255, 0, 0, 255]) }).toArray() // [[[255]], [[0]], [[0]]]
 */
export function toImage(source: ImageInput, options: ImageOptions = {}): Tensor {
  checkCount('toImage', arguments, 2)
  const { mode = 'RGB' } = options
  checkMode('toImage', mode)
  if (!isObject(source))
    throw new ArgumentError(`toImage: argument 'source' must be ImageData, a canvas, an image or a video, got ${valueText(source)}.`)
  const pixels = isPixels(source) ? source : drawn('toImage', source)
  checkArgument(pixels.data.length === 4 * pixels.width * pixels.height, 'toImage', 'source', 'four bytes for each pixel', pixels)
  return channelsOf(pixels, mode)
}

/** The pixels of what a canvas draws. */
export function drawn(where: string, source: Exclude<ImageInput, Pixels>): Pixels {
  if (typeof OffscreenCanvas === 'undefined')
    throw new UnsupportedError(
      `${where}: there is no OffscreenCanvas here to read pixels by; pass { width, height, data }, with four bytes for each pixel.`,
    )
  const width = 'videoWidth' in source ? source.videoWidth : 'naturalWidth' in source ? source.naturalWidth : source.width
  const height = 'videoHeight' in source ? source.videoHeight : 'naturalHeight' in source ? source.naturalHeight : source.height
  if (width === 0 || height === 0) throw new ArgumentError(`${where}: argument 'source' has no pixels yet; wait until it is loaded.`)
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })
  if (context === null) throw new UnsupportedError(`${where}: this browser gives no 2d context of an OffscreenCanvas.`)
  context.drawImage(source, 0, 0)
  return context.getImageData(0, 0, width, height)
}

/**
 * An image as pixels for `new ImageData(data, width, height)`: bytes, or floats from 0 to 1, of one channel (gray), three, or four with opacity.
 *
 * @throws ShapeError unless the shape is [1, 3 or 4, H, W].
 * @example toPixels(torch.ones([1, 1, 1])).data // Uint8ClampedArray [255, 255, 255, 255]
 */
export function toPixels(image: Tensor): { readonly width: number; readonly height: number; readonly data: Uint8ClampedArray<ArrayBuffer> } {
  checkCount('toPixels', arguments, 1)
  const [channels, height, width] = dimensionsOf('toPixels', image)
  checkPixels('toPixels', image)
  if (image.ndim !== 3 || (channels !== 1 && channels !== 3 && channels !== 4))
    throw new ShapeError(`toPixels: an image is [1, 3 or 4 channels, height, width], got shape ${formatShape(image.shape)}.`)
  const bytes = toDtype(image.isFloatingPoint() ? image.clamp(0, 1) : image, 'uint8', { scale: true })
  const colors = channels === 1 ? bytes.expand(3, height, width) : bytes
  const all = channels === 4 ? colors : cat([colors, full([1, height, width], 255, { dtype: 'uint8' })])
  const data = new Uint8ClampedArray(4 * width * height)
  data.set(all.permute(1, 2, 0).contiguous().toTypedArray())
  return { width, height, data }
}
