// Random brightness, contrast, saturation and hue, in a random order.
import { readOptions } from '../../nn/options.ts'
import type { Trailing } from '../../nn/options.ts'
import { rand, where } from '../../ops/index.ts'
import { checkArgument, checkMethod } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { adjustHue, baseOf, blend } from '../functional/color.ts'
import { checkColors, checkInterval, checkPixels } from '../image.ts'
import { RandomTransform, between } from './transform.ts'

/** How much a property may change: a number, or the interval of its factors. */
export type Jitter = number | readonly number[]

/** Options of {@link ColorJitter}; each is 0 by default, which changes nothing. */
export interface ColorJitterOptions {
  /** Factors from `1 - brightness` to `1 + brightness`, or in an interval. */
  readonly brightness?: Jitter
  readonly contrast?: Jitter
  readonly saturation?: Jitter
  /** From `-hue` to `hue`, which is at most 0.5; or an interval. */
  readonly hue?: Jitter
}

type Property = keyof ColorJitterOptions
type Interval = readonly [low: number, high: number]

/** The numbers of a {@link ColorJitter}, for those properties that it changes. */
export interface ColorJitterParams {
  /** The factors, without dimensions. */
  readonly factors: Readonly<Partial<Record<Property, Tensor>>>
  /** For each factor, a number without dimensions: the least is applied first. */
  readonly ranks: Readonly<Partial<Record<Property, Tensor>>>
}

const PROPERTIES = ['brightness', 'contrast', 'saturation', 'hue'] as const
const BLENDS = ['brightness', 'contrast', 'saturation'] as const

/** The interval of a property; null if its factor is always the one that changes nothing. */
function intervalOf(name: Property, given: Jitter): Interval | null {
  const [center, least, most] = name === 'hue' ? [0, -0.5, 0.5] : [1, 0, Infinity]
  if (typeof given === 'number') {
    checkArgument(
      given >= 0 && (name !== 'hue' || given <= 0.5),
      'ColorJitter',
      name,
      name === 'hue' ? 'between 0 and 0.5' : 'a number of at least 0',
      given,
    )
    return given === 0 ? null : [Math.max(center - given, least), center + given]
  }
  checkInterval('ColorJitter', name, given, least, most)
  const [low = center, high = center] = given
  return low === center && high === center ? null : [low, high]
}

/**
 * Changes brightness, contrast, saturation and hue by random factors, in a random order. torchvision's `ColorJitter`.
 *
 * Shape: [..., 1 or 3, H, W], unchanged. Floats are between 0 and 1, bytes are `uint8`.
 *
 * @throws ArgumentError for negative numbers, and a hue beyond 0.5.
 * @example new ColorJitter({ brightness: 0.2, hue: 0.1 })(torch.rand([3, 8, 8])).shape // [3, 8, 8]
 */
export class ColorJitter extends RandomTransform<ColorJitterParams> {
  readonly brightness: Interval | null
  readonly contrast: Interval | null
  readonly saturation: Interval | null
  readonly hue: Interval | null

  constructor(...options: Trailing<[brightness: Jitter, contrast: Jitter, saturation: Jitter, hue: Jitter], ColorJitterOptions>) {
    super()
    const defaults: Required<ColorJitterOptions> = { brightness: 0, contrast: 0, saturation: 0, hue: 0 }
    const { brightness, contrast, saturation, hue } = readOptions('ColorJitter', defaults, options)
    this.brightness = intervalOf('brightness', brightness)
    this.contrast = intervalOf('contrast', contrast)
    this.saturation = intervalOf('saturation', saturation)
    this.hue = intervalOf('hue', hue)
  }

  override makeParams(image: Tensor): ColorJitterParams {
    checkMethod(this, 'ColorJitter.makeParams', arguments, 1)
    checkColors('ColorJitter', image)
    const factors: Partial<Record<Property, Tensor>> = {}
    const ranks: Partial<Record<Property, Tensor>> = {}
    for (const name of PROPERTIES) {
      const interval = this[name]
      if (interval === null) continue
      factors[name] = between(...interval).to('float32')
      ranks[name] = rand([], { dtype: 'float64' })
    }
    return { factors, ranks }
  }

  override transform(image: Tensor, { factors, ranks }: ColorJitterParams): Tensor {
    checkMethod(this, 'ColorJitter.transform', arguments, 2)
    checkColors('ColorJitter', image)
    checkPixels('ColorJitter', image)
    const { hue } = factors
    const { hue: rank } = ranks
    if (hue === undefined || rank === undefined) return blended(image, { factors, ranks }, null)
    // Hue takes as long as all else, so it runs once: before it run the blends of smaller ranks, after it the others.
    const before = blended(image, { factors, ranks }, (other) => other.lt(rank))
    return blended(adjustHue(before, hue), { factors, ranks }, (other) => other.ge(rank))
  }

  override extraRepr(): string {
    return PROPERTIES.flatMap((name) => (this[name] === null ? [] : [`${name}=[${this[name].join(', ')}]`])).join(', ')
  }
}

/** Blends by their ranks, those for which `counts` holds; null for all. */
function blended(image: Tensor, { factors, ranks }: ColorJitterParams, counts: ((rank: Tensor) => Tensor) | null): Tensor {
  const steps = BLENDS.flatMap((name) => {
    const [factor, rank] = [factors[name], ranks[name]]
    if (factor === undefined || rank === undefined) return []
    // A factor of 1 leaves an image as it is.
    return [{ name, rank, factor: counts === null ? factor : where(counts(rank), factor, 1) }]
  })
  // How many ranks are less: the place of a step.
  const placed = steps.map((step) => ({
    ...step,
    place: steps.filter((other) => other !== step).reduce<Tensor | null>((sum, other) => plus(sum, other.rank.lt(step.rank).to('int64')), null),
  }))
  let result = image
  for (let place = 0; place < placed.length; place++) {
    let base: Tensor | null = null
    let factor: Tensor | null = null
    for (const step of placed) {
      const own = baseOf[step.name](result)
      const isNow = step.place?.eq(place)
      base = base === null || isNow === undefined ? own : where(isNow, own, base)
      factor = factor === null || isNow === undefined ? step.factor : where(isNow, step.factor, factor)
    }
    if (base !== null && factor !== null) result = blend(result, base, factor)
  }
  return result
}

const plus = (sum: Tensor | null, more: Tensor): Tensor => (sum === null ? more : sum.add(more))
