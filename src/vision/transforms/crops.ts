// Random parts of images: of a fixed size, and of a random size that is then resized. Places and sizes are tensors, so a compiled transform has one graph for all of them.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { readOptions } from '../../nn/options.ts'
import type { Trailing } from '../../nn/options.ts'
import { arange, cat, tensor } from '../../ops/index.ts'
import { checkArgument, checkMethod, valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { crop, pad, readPadding } from '../functional/geometry.ts'
import type { Padding, PaddingMode } from '../functional/geometry.ts'
import { checkInterpolation, checkInterval, dimensionsOf, readSize } from '../image.ts'
import type { ImageSize, Interpolation } from '../image.ts'
import { resampledPart } from './resampledPart.ts'
import { sizeText } from './fixed.ts'
import { RandomTransform, below, between } from './transform.ts'

/** Options of {@link RandomCrop}. */
export interface RandomCropOptions {
  /** Pixels put around the image before. */
  readonly padding?: Padding | null
  /** Whether an image that is too small gets pixels around it; it is an error otherwise. */
  readonly padIfNeeded?: boolean
  /** The value of pixels around the image; default 0. */
  readonly fill?: number
  /** Default 'constant'. */
  readonly paddingMode?: PaddingMode
}

/** The corner of a crop, as int64 without dimensions. */
export interface CropParams {
  readonly top: Tensor
  readonly left: Tensor
}

/**
 * A random part of this size. torchvision's `RandomCrop`.
 *
 * Shape: [..., H, W] to [..., h, w].
 *
 * @throws ArgumentError for images that are smaller, unless `padIfNeeded`.
 * @example new RandomCrop(2, { padding: 1 })(torch.rand([3, 4, 4])).shape // [3, 2, 2]
 */
export class RandomCrop extends RandomTransform<CropParams> {
  readonly size: readonly [height: number, width: number]
  readonly padding: Padding | null
  readonly padIfNeeded: boolean
  readonly fill: number
  readonly paddingMode: PaddingMode

  constructor(
    size: ImageSize,
    ...options: Trailing<[padding: Padding | null, padIfNeeded: boolean, fill: number, paddingMode: PaddingMode], RandomCropOptions>
  ) {
    super()
    const defaults: Required<RandomCropOptions> = { padding: null, padIfNeeded: false, fill: 0, paddingMode: 'constant' }
    const { padding, padIfNeeded, fill, paddingMode } = readOptions('RandomCrop', defaults, options)
    if (padding !== null) readPadding('RandomCrop', padding)
    this.size = readSize('RandomCrop', size)
    this.padding = padding
    this.padIfNeeded = padIfNeeded
    this.fill = fill
    this.paddingMode = paddingMode
  }

  /** The pixels around an image: left, top, right, bottom. */
  #amounts(image: Tensor): readonly [left: number, top: number, right: number, bottom: number] {
    const [, height, width] = dimensionsOf('RandomCrop', image)
    const [left, right, top, bottom] = readPadding('RandomCrop', this.padding ?? 0)
    const missing = (own: number, wanted: number): number => (this.padIfNeeded ? Math.max(wanted - own, 0) : 0)
    const across = missing(width + left + right, this.size[1])
    const down = missing(height + top + bottom, this.size[0])
    return [left + across, top + down, right + across, bottom + down]
  }

  override makeParams(image: Tensor): CropParams {
    checkMethod(this, 'RandomCrop.makeParams', arguments, 1)
    const [, height, width] = dimensionsOf('RandomCrop', image)
    const [left, top, right, bottom] = this.#amounts(image)
    const [down, across] = [height + top + bottom - this.size[0], width + left + right - this.size[1]]
    if (down < 0 || across < 0)
      throw new ArgumentError(
        `RandomCrop: a part of ${this.size.join('x')} pixels is larger than the image, of shape ${formatShape(image.shape)}; pass { padIfNeeded: true }, or resize the image.`,
      )
    return { top: below(down + 1), left: below(across + 1) }
  }

  override transform(image: Tensor, { top, left }: CropParams): Tensor {
    checkMethod(this, 'RandomCrop.transform', arguments, 2)
    const amounts = this.#amounts(image)
    const around = amounts.every((amount) => amount === 0) ? image : pad(image, amounts, { fill: this.fill, paddingMode: this.paddingMode })
    return crop(around, top, left, ...this.size)
  }

  override extraRepr(): string {
    return `size=${sizeText(this.size)}, padding=${valueText(this.padding)}`
  }
}

/** Options of {@link RandomResizedCrop}. */
export interface RandomResizedCropOptions {
  /** The least and the most of the image's area; default [0.08, 1]. */
  readonly scale?: readonly number[]
  /** The least and the greatest width divided by height; default [3 / 4, 4 / 3]. */
  readonly ratio?: readonly number[]
  /** Default 'bilinear'. */
  readonly interpolation?: Interpolation
  /** Whether 'bilinear' and 'bicubic' smooth a part that becomes smaller. Default true. */
  readonly antialias?: boolean
}

/** A rectangle, as int64 without dimensions. */
export interface RectangleParams extends CropParams {
  readonly height: Tensor
  readonly width: Tensor
}

/** Tries of a rectangle that fits into the image. */
const TRIES = 10

/** Rectangles of random areas and proportions: 1-dimensional tensors of {@link TRIES} of them. */
export function randomRectangles(
  area: number,
  [least = 0, most = 1]: readonly number[],
  [narrow = 1, wide = 1]: readonly number[],
): { readonly across: Tensor; readonly down: Tensor } {
  const areas = between(least, most, [TRIES]).mul(area)
  const ratios = between(Math.log(narrow), Math.log(wide), [TRIES]).exp()
  return { across: areas.mul(ratios).sqrt().round(), down: areas.div(ratios).sqrt().round() }
}

/** Of the places where `fits` holds, the first, as a tensor with one element; 0 if there is none. */
export const firstPlace = (fits: Tensor): Tensor =>
  fits
    .mul(arange(fits.size(0), 0, -1, { dtype: 'int64' }))
    .argmax()
    .view(1)

/**
 * A random part of a random size and proportion, resized to `size`. torchvision's `RandomResizedCrop`.
 *
 * Shape: [..., C, H, W] to [..., C, h, w].
 *
 * @throws ArgumentError for intervals that are not `[low, high]`; UnsupportedError for 'bicubic' without `antialias`.
 * @example new RandomResizedCrop(24)(torch.rand([3, 40, 80])).shape // [3, 24, 24]
 */
export class RandomResizedCrop extends RandomTransform<RectangleParams> {
  readonly size: readonly [height: number, width: number]
  readonly scale: readonly number[]
  readonly ratio: readonly number[]
  readonly interpolation: Interpolation
  readonly antialias: boolean

  constructor(
    size: ImageSize,
    ...options: Trailing<
      [scale: readonly number[], ratio: readonly number[], interpolation: Interpolation, antialias: boolean],
      RandomResizedCropOptions
    >
  ) {
    super()
    const defaults: Required<RandomResizedCropOptions> = { scale: [0.08, 1], ratio: [3 / 4, 4 / 3], interpolation: 'bilinear', antialias: true }
    const { scale, ratio, interpolation, antialias } = readOptions('RandomResizedCrop', defaults, options)
    checkInterpolation('RandomResizedCrop', interpolation)
    checkInterval('RandomResizedCrop', 'scale', scale, 0, Infinity)
    checkInterval('RandomResizedCrop', 'ratio', ratio, 0, Infinity)
    checkArgument(ratio[0] !== 0, 'RandomResizedCrop', 'ratio', 'an interval [low, high] of positive numbers', ratio)
    if (interpolation === 'bicubic' && !antialias)
      throw new UnsupportedError("RandomResizedCrop: 'bicubic' works with antialias only; leave out antialias: false, or use 'bilinear'.")
    this.size = readSize('RandomResizedCrop', size)
    this.scale = scale
    this.ratio = ratio
    this.interpolation = interpolation
    this.antialias = antialias
  }

  override makeParams(image: Tensor): RectangleParams {
    checkMethod(this, 'RandomResizedCrop.makeParams', arguments, 1)
    const [, height, width] = dimensionsOf('RandomResizedCrop', image)
    const tries = randomRectangles(height * width, this.scale, this.ratio)
    const [downInstead, acrossInstead] = this.#middle(height, width)
    const withLast = (drawn: Tensor, last: number): Tensor => cat([drawn, tensor([last], { dtype: 'float64' })])
    const [down, across] = [withLast(tries.down, downInstead), withLast(tries.across, acrossInstead)]
    const fits = down.gt(0).logicalAnd(down.le(height)).logicalAnd(across.gt(0)).logicalAnd(across.le(width))
    const chosen = firstPlace(fits)
    const choose = (values: Tensor): Tensor => values.indexSelect(0, chosen).view([]).to('int64')
    // The part that is taken if none fits is in the middle.
    const start = (own: number, length: Tensor, instead: number): Tensor =>
      choose(
        cat([
          below(
            length
              .narrow(0, 0, TRIES)
              .neg()
              .add(own + 1),
            [TRIES],
          ),
          tensor([Math.floor((own - instead) / 2)], { dtype: 'int64' }),
        ]),
      )
    return { top: start(height, down, downInstead), left: start(width, across, acrossInstead), height: choose(down), width: choose(across) }
  }

  /** The largest part of an image with one of the proportions. */
  #middle(height: number, width: number): readonly [height: number, width: number] {
    const [narrow = 1, wide = 1] = this.ratio
    if (width / height < narrow) return [Math.round(width / narrow), width]
    return width / height > wide ? [height, Math.round(height * wide)] : [height, width]
  }

  override transform(image: Tensor, { top, left, height, width }: RectangleParams): Tensor {
    checkMethod(this, 'RandomResizedCrop.transform', arguments, 2)
    dimensionsOf('RandomResizedCrop', image)
    const how = { interpolation: this.interpolation, antialias: this.antialias }
    return resampledPart(image, { start: top, length: height, size: this.size[0] }, { start: left, length: width, size: this.size[1] }, how)
  }

  override extraRepr(): string {
    return `size=${sizeText(this.size)}, scale=${sizeText(this.scale)}, ratio=${sizeText(this.ratio)}, interpolation=${this.interpolation}, antialias=${this.antialias}`
  }
}
