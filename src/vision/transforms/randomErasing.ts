// Random rectangles that lose their pixels.
import { readOptions } from '../../nn/options.ts'
import type { Trailing } from '../../nn/options.ts'
import { randn, where } from '../../ops/index.ts'
import { checkArgument, checkMethod } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { erase } from '../functional/values.ts'
import { checkInterval, checkProbability, dimensionsOf } from '../image.ts'
import { firstPlace, randomRectangles } from './crops.ts'
import type { RectangleParams } from './crops.ts'
import { sizeText } from './fixed.ts'
import { RandomTransform, below, happens } from './transform.ts'

/** What erased pixels become. */
export type ErasedValue = number | readonly number[] | 'random'

/** Options of {@link RandomErasing}. */
export interface RandomErasingOptions {
  /** How probable it is that something is erased; default 0.5. */
  readonly p?: number
  /** The least and the most of the image's area; default [0.02, 0.33]. */
  readonly scale?: readonly number[]
  /** The least and the greatest height divided by width; default [0.3, 3.3]. */
  readonly ratio?: readonly number[]
  /** A number, one for each channel, or 'random' for normally distributed numbers; default 0. */
  readonly value?: ErasedValue
}

/** The numbers of a {@link RandomErasing}: a rectangle, which is empty if nothing is erased, and what it gets. */
export interface RandomErasingParams extends RectangleParams {
  readonly value: number | readonly number[] | Tensor
}

/**
 * Erases a random rectangle with probability `p`. torchvision's `RandomErasing`.
 *
 * Shape: [..., C, H, W], unchanged.
 *
 * @throws ArgumentError for intervals that are not `[low, high]`, and a value that is neither numbers nor 'random'.
 * @example new RandomErasing({ p: 1, value: 1 })(torch.zeros([3, 8, 8])).sum().gt(0).item() // true
 */
export class RandomErasing extends RandomTransform<RandomErasingParams> {
  readonly p: number
  readonly scale: readonly number[]
  readonly ratio: readonly number[]
  readonly value: ErasedValue

  constructor(...options: Trailing<[p: number, scale: readonly number[], ratio: readonly number[], value: ErasedValue], RandomErasingOptions>) {
    super()
    // The value is of several kinds; the default of the others says which kind they are.
    const defaults: Omit<Required<RandomErasingOptions>, 'value'> & { readonly value: ErasedValue | null } = {
      p: 0.5,
      scale: [0.02, 0.33],
      ratio: [0.3, 3.3],
      value: null,
    }
    const { p, scale, ratio, value } = readOptions('RandomErasing', defaults, options)
    const erased = value ?? 0
    checkProbability('RandomErasing', p)
    checkInterval('RandomErasing', 'scale', scale, 0, 1)
    checkInterval('RandomErasing', 'ratio', ratio, 0, Infinity)
    checkArgument(ratio[0] !== 0, 'RandomErasing', 'ratio', 'an interval [low, high] of positive numbers', ratio)
    const isNumbers = typeof erased === 'number' || (Array.isArray(erased) && erased.every((item) => typeof item === 'number'))
    checkArgument(isNumbers || erased === 'random', 'RandomErasing', 'value', "a number, an array of numbers or 'random'", erased)
    this.p = p
    this.scale = scale
    this.ratio = ratio
    this.value = erased
  }

  override makeParams(image: Tensor): RandomErasingParams {
    checkMethod(this, 'RandomErasing.makeParams', arguments, 1)
    const [channels, height, width] = dimensionsOf('RandomErasing', image)
    // Here the ratio is that of height to width.
    const { across: down, down: across } = randomRectangles(height * width, this.scale, this.ratio)
    const fits = down.lt(height).logicalAnd(across.lt(width))
    const chosen = firstPlace(fits)
    const choose = (values: Tensor): Tensor => values.indexSelect(0, chosen).view([])
    const isErased = happens(this.p).logicalAnd(choose(fits))
    const [h, w] = [where(isErased, choose(down), 0), where(isErased, choose(across), 0)]
    return {
      top: below(h.neg().add(height + 1)),
      left: below(w.neg().add(width + 1)),
      height: h.to('int64'),
      width: w.to('int64'),
      value: this.value === 'random' ? randn([channels, height, width]) : this.value,
    }
  }

  override transform(image: Tensor, { top, left, height, width, value }: RandomErasingParams): Tensor {
    checkMethod(this, 'RandomErasing.transform', arguments, 2)
    return erase(image, top, left, height, width, value)
  }

  override extraRepr(): string {
    const value = this.value === 'random' ? this.value : sizeText(this.value)
    return `p=${this.p}, scale=${sizeText(this.scale)}, ratio=${sizeText(this.ratio)}, value=${value}`
  }
}
