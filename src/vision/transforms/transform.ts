// What transforms have in common. A transform is a module; one that is random draws numbers as tensors and applies them, so that a compiled one draws anew in each call.
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { rand, where } from '../../ops/index.ts'
import { checkCount, checkMethod, isCallable, valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { checkProbability, dimensionsOf } from '../image.ts'

/** What {@link Compose} runs: a transform, another module or a function. */
export type ImageFunction = (image: Tensor) => Tensor

/** Runs transforms one after the other. torchvision's `Compose`. */
export class Compose extends Module {
  readonly transforms: readonly ImageFunction[]

  constructor(transforms: readonly ImageFunction[]) {
    super()
    checkCount('Compose', arguments, 1)
    if (!Array.isArray(transforms) || transforms.length === 0 || transforms.some((transform) => !isCallable(transform)))
      throw new ArgumentError(`Compose: argument 'transforms' must be an array of transforms or functions of images, got ${valueText(transforms)}.`)
    this.transforms = [...transforms]
  }

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.transforms.reduce((x, transform) => transform(x), image)
  }

  override extraRepr(): string {
    return this.transforms.map((transform) => (transform instanceof Module ? String(transform) : transform.name)).join(', ')
  }
}

/**
 * A transform with random numbers. A call draws them ({@link makeParams}) and applies them ({@link transform}); programs that need the same change for several images, such as an image and its
 * mask, call both themselves. All images of a batch are changed alike.
 */
export abstract class RandomTransform<P> extends Module {
  /** Draws the numbers for an image, from the generator that `torch.manualSeed` seeds. torchvision's `make_params`. */
  abstract makeParams(image: Tensor): P

  /** The image changed by these numbers. torchvision's `transform`. */
  abstract transform(image: Tensor, params: P): Tensor

  override forward(image: Tensor): Tensor {
    checkCount(this, arguments, 1)
    dimensionsOf(this.constructor.name, image)
    return this.transform(image, this.makeParams(image))
  }
}

/** Options of transforms that happen or not. */
export interface ProbabilityOptions {
  /** How probable it is that the image changes; default 0.5. */
  readonly p?: number
}

/** A transform that keeps the shape, and happens with probability `p`. Its number is whether it does: a bool without dimensions. */
export abstract class MaybeTransform extends RandomTransform<Tensor> {
  readonly p: number

  constructor(p: number) {
    super()
    checkProbability(new.target.name, p)
    this.p = p
  }

  /** What happens. */
  protected abstract change(image: Tensor): Tensor

  override makeParams(image: Tensor): Tensor {
    checkMethod(this, 'makeParams', arguments, 1)
    dimensionsOf(this.constructor.name, image)
    return happens(this.p)
  }

  override transform(image: Tensor, params: Tensor): Tensor {
    checkMethod(this, 'transform', arguments, 2)
    return where(params, this.change(image), image)
  }

  override extraRepr(): string {
    return `p=${this.p}`
  }
}

/** A bool without dimensions that is true with this probability. */
export const happens = (p: number): Tensor => rand([], { dtype: 'float32' }).lt(p)

/** Uniform numbers between two. */
export const between = (low: number, high: number, shape: readonly number[] = []): Tensor =>
  rand(shape, { dtype: 'float64' })
    .mul(high - low)
    .add(low)

/** Whole numbers from 0 up to, and without, `count`, as int64; `count` may be a tensor of whole numbers. */
export const below = (count: number | Tensor, shape: readonly number[] = []): Tensor =>
  rand(shape, { dtype: 'float64' }).mul(count).floor().to('int64')
