// Transforms that happen or not: flips and gray images.
import { readOptions } from '../../nn/options.ts'
import type { Trailing } from '../../nn/options.ts'
import type { Tensor } from '../../tensor/index.ts'
import { rgbToGrayscale } from '../functional/color.ts'
import { horizontalFlip, verticalFlip } from '../functional/geometry.ts'
import { checkColors } from '../image.ts'
import { MaybeTransform } from './transform.ts'
import type { ProbabilityOptions } from './transform.ts'

/** Exchanges left and right with probability `p` (0.5). torchvision's `RandomHorizontalFlip`. */
export class RandomHorizontalFlip extends MaybeTransform {
  constructor(...options: Trailing<[p: number], ProbabilityOptions>) {
    super(readOptions('RandomHorizontalFlip', { p: 0.5 }, options).p)
  }

  protected override change(image: Tensor): Tensor {
    return horizontalFlip(image)
  }
}

/** Turns images upside down with probability `p` (0.5). torchvision's `RandomVerticalFlip`. */
export class RandomVerticalFlip extends MaybeTransform {
  constructor(...options: Trailing<[p: number], ProbabilityOptions>) {
    super(readOptions('RandomVerticalFlip', { p: 0.5 }, options).p)
  }

  protected override change(image: Tensor): Tensor {
    return verticalFlip(image)
  }
}

/** Takes the colors away with probability `p` (0.1); the number of channels stays. torchvision's `RandomGrayscale`. */
export class RandomGrayscale extends MaybeTransform {
  constructor(...options: Trailing<[p: number], ProbabilityOptions>) {
    super(readOptions('RandomGrayscale', { p: 0.1 }, options).p)
  }

  protected override change(image: Tensor): Tensor {
    return rgbToGrayscale(image, checkColors('RandomGrayscale', image))
  }
}
