// Layers that rearrange or resize images: Upsample, PixelShuffle, PixelUnshuffle.
import { Module } from '../module/index.ts'
import type { InterpolateMode, InterpolateOptions } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkCount, py, pyFloat } from '../protocol/index.ts'
import { interpolate, pixelShuffle, pixelUnshuffle } from './functional.ts'
import { checkInteger, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import type { LayerFacts } from './layerFacts.ts'

/** Options of {@link Upsample}: those of `F.interpolate`. */
export interface UpsampleOptions extends Omit<InterpolateOptions, 'antialias'> {}

type Positions = [size: number | readonly number[] | null, scaleFactor: number | readonly number[] | null, mode: InterpolateMode]

/** Resizes the dimensions after the first two. PyTorch's `nn.Upsample`. */
export class Upsample extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Upsample' }

  readonly size: number | readonly number[] | null
  readonly scaleFactor: number | readonly number[] | null
  readonly mode: InterpolateMode
  readonly alignCorners: boolean | null
  readonly recomputeScaleFactor: boolean | null

  constructor(...options: Trailing<Positions, UpsampleOptions>) {
    super()
    const defaults: Required<UpsampleOptions> = {
      size: null,
      scaleFactor: null,
      mode: 'nearest',
      alignCorners: null,
      recomputeScaleFactor: null,
    }
    const { size, scaleFactor, mode, alignCorners, recomputeScaleFactor } = readOptions('nn.Upsample', defaults, options)
    this.size = size
    this.scaleFactor = scaleFactor
    this.mode = mode
    this.alignCorners = alignCorners
    this.recomputeScaleFactor = recomputeScaleFactor
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { size, scaleFactor, mode, alignCorners, recomputeScaleFactor } = this
    return interpolate(input, { size, scaleFactor, mode, alignCorners, recomputeScaleFactor })
  }

  override extraRepr(): string {
    const { scaleFactor } = this
    const factor = typeof scaleFactor === 'number' ? pyFloat(scaleFactor) : `(${scaleFactor?.map(pyFloat).join(', ') ?? ''})`
    return `${scaleFactor === null ? `size=${py(this.size)}` : `scale_factor=${factor}`}, mode=${py(this.mode)}`
  }
}

/** Groups of r^2 channels become squares of r times r pixels. PyTorch's `nn.PixelShuffle`. */
export class PixelShuffle extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.PixelShuffle' }

  readonly upscaleFactor: number

  constructor(upscaleFactor: number)
  constructor(...args: Named<[['upscaleFactor', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [upscaleFactor] = readRequired<[upscaleFactor: number]>('nn.PixelShuffle', ['upscaleFactor'], args, false)
    super()
    checkInteger('nn.PixelShuffle', 'upscaleFactor', upscaleFactor)
    this.upscaleFactor = upscaleFactor
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return pixelShuffle(input, this.upscaleFactor)
  }

  override extraRepr(): string {
    return `upscale_factor=${this.upscaleFactor}`
  }
}

/** Squares of r times r pixels become r^2 channels. PyTorch's `nn.PixelUnshuffle`. */
export class PixelUnshuffle extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.PixelUnshuffle' }

  readonly downscaleFactor: number

  constructor(downscaleFactor: number)
  constructor(...args: Named<[['downscaleFactor', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [downscaleFactor] = readRequired<[downscaleFactor: number]>('nn.PixelUnshuffle', ['downscaleFactor'], args, false)
    super()
    checkInteger('nn.PixelUnshuffle', 'downscaleFactor', downscaleFactor)
    this.downscaleFactor = downscaleFactor
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return pixelUnshuffle(input, this.downscaleFactor)
  }

  override extraRepr(): string {
    return `downscale_factor=${this.downscaleFactor}`
  }
}
