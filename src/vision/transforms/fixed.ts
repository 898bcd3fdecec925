// Transforms without random numbers: the functions of ../functional with their options, as modules.
import type { DType } from '../../kernels/index.ts'
import { isDType } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import { readOptions } from '../../nn/options.ts'
import type { Trailing } from '../../nn/options.ts'
import { checkArgument, checkCount } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { centerCrop, pad, resize, resizedSize } from '../functional/geometry.ts'
import type { PadImageOptions, Padding, PaddingMode, ResizeOptions } from '../functional/geometry.ts'
import { checkStatistics, normalize, toDtype } from '../functional/values.ts'
import type { ToDtypeOptions } from '../functional/values.ts'
import { rgbToGrayscale } from '../functional/color.ts'
import { checkInterpolation, readSize } from '../image.ts'
import type { ImageSize, Interpolation } from '../image.ts'

/**
 * Resizes images to `[height, width]`, or so that the shorter side has `size` pixels. torchvision's `Resize`.
 *
 * Shape: [..., C, H, W] to [..., C, h, w].
 *
 * @throws ArgumentError for sizes that are not positive, an unknown `interpolation`, and `maxSize` beside two sizes.
 * @example new Resize(20)(torch.rand([3, 40, 80])).shape // [3, 20, 40]
 */
export class Resize extends Module {
  readonly size: ImageSize
  readonly interpolation: Interpolation
  readonly maxSize: number | null
  readonly antialias: boolean

  constructor(size: ImageSize, ...options: Trailing<[interpolation: Interpolation, maxSize: number | null, antialias: boolean], ResizeOptions>) {
    super()
    const defaults: Required<ResizeOptions> = { interpolation: 'bilinear', maxSize: null, antialias: true }
    const { interpolation, maxSize, antialias } = readOptions('Resize', defaults, options)
    checkInterpolation('Resize', interpolation)
    resizedSize('Resize', 1, 1, size, maxSize)
    this.size = typeof size === 'number' ? size : [...size]
    this.interpolation = interpolation
    this.maxSize = maxSize
    this.antialias = antialias
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return resize(image, this.size, { interpolation: this.interpolation, maxSize: this.maxSize, antialias: this.antialias })
  }

  override extraRepr(): string {
    const { size, interpolation, antialias } = this
    return `size=${sizeText(size)}, interpolation=${interpolation}, antialias=${antialias}`
  }
}

/** `224`, or `[224, 320]`. */
export const sizeText = (size: ImageSize): string => (typeof size === 'number' ? String(size) : `[${size.join(', ')}]`)

/**
 * The middle of images, with zeros around it where they are smaller. torchvision's `CenterCrop`.
 *
 * Shape: [..., H, W] to [..., h, w].
 *
 * @throws ArgumentError for sizes that are not positive whole numbers.
 */
export class CenterCrop extends Module {
  readonly size: readonly [height: number, width: number]

  constructor(size: ImageSize) {
    super()
    checkCount('CenterCrop', arguments, 1)
    this.size = readSize('CenterCrop', size)
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return centerCrop(image, this.size)
  }

  override extraRepr(): string {
    return `size=${sizeText(this.size)}`
  }
}

/**
 * Pixels around images. torchvision's `Pad`.
 *
 * Shape: [..., H, W] to [..., H + top + bottom, W + left + right].
 */
export class Pad extends Module {
  readonly padding: Padding
  readonly fill: number
  readonly paddingMode: PaddingMode

  constructor(padding: Padding, ...options: Trailing<[fill: number, paddingMode: PaddingMode], PadImageOptions>) {
    super()
    const defaults: Required<PadImageOptions> = { fill: 0, paddingMode: 'constant' }
    const { fill, paddingMode } = readOptions('Pad', defaults, options)
    this.padding = typeof padding === 'number' ? padding : [...padding]
    this.fill = fill
    this.paddingMode = paddingMode
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return pad(image, this.padding, { fill: this.fill, paddingMode: this.paddingMode })
  }

  override extraRepr(): string {
    return `padding=${sizeText(this.padding)}, fill=${this.fill}, paddingMode=${this.paddingMode}`
  }
}

/**
 * `(image - mean) / std` for each channel. torchvision's `Normalize`.
 *
 * Shape: [..., C, H, W], unchanged.
 *
 * @throws ArgumentError if a number of `std` is 0.
 * @example new Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])(torch.rand([3, 8, 8])).shape // [3, 8, 8]
 */
export class Normalize extends Module {
  readonly mean: readonly number[]
  readonly std: readonly number[]

  constructor(mean: readonly number[], std: readonly number[]) {
    super()
    checkCount('Normalize', arguments, 2)
    checkStatistics('Normalize', mean, std)
    this.mean = [...mean]
    this.std = [...std]
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return normalize(image, this.mean, this.std)
  }

  override extraRepr(): string {
    return `mean=${sizeText(this.mean)}, std=${sizeText(this.std)}`
  }
}

/**
 * Images in another dtype; with `scale`, in its range too. torchvision's `ToDtype`.
 *
 * @example new ToDtype('float32', { scale: true })(torch.tensor([[[255]]], { dtype: 'uint8' })).toArray() // [[[1]]]
 */
export class ToDtype extends Module {
  readonly dtype: DType
  readonly scale: boolean

  constructor(dtype: DType, ...options: Trailing<[scale: boolean], ToDtypeOptions>) {
    super()
    checkArgument(isDType(dtype), 'ToDtype', 'dtype', 'a dtype', dtype)
    this.dtype = dtype
    this.scale = readOptions('ToDtype', { scale: false }, options).scale
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return toDtype(image, this.dtype, { scale: this.scale })
  }

  override extraRepr(): string {
    return `${this.dtype}, scale=${this.scale}`
  }
}

/** Options of {@link Grayscale}. */
export interface GrayscaleOptions {
  /** 1 (default), or 3 channels that are alike. */
  readonly numOutputChannels?: 1 | 3
}

/** Images without colors. torchvision's `Grayscale`. */
export class Grayscale extends Module {
  readonly numOutputChannels: 1 | 3

  constructor(...options: Trailing<[numOutputChannels: 1 | 3], GrayscaleOptions>) {
    super()
    const defaults: Required<GrayscaleOptions> = { numOutputChannels: 1 }
    const { numOutputChannels } = readOptions('Grayscale', defaults, options)
    checkArgument(numOutputChannels === 1 || numOutputChannels === 3, 'Grayscale', 'numOutputChannels', '1 or 3', numOutputChannels)
    this.numOutputChannels = numOutputChannels
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return rgbToGrayscale(image, this.numOutputChannels)
  }

  override extraRepr(): string {
    return `numOutputChannels=${this.numOutputChannels}`
  }
}
