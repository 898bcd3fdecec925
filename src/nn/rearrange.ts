// Layers that only rearrange: Unflatten and ChannelShuffle; and the fixed forms of Upsample.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { checkArgument, checkCount, ownCopy, py, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { channelShuffle } from './functional.ts'
import { checkInteger, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import { Upsample } from './upsample.ts'
import type { LayerFacts } from './layerFacts.ts'

/** One dimension as several; one size may be -1. PyTorch's `nn.Unflatten`. */
export class Unflatten extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Unflatten' }

  readonly dim: number
  readonly unflattenedSize: readonly number[]

  constructor(dim: number, unflattenedSize: readonly number[])
  constructor(...args: Named<[['dim', number], ['unflattenedSize', readonly number[]]], []>)
  constructor(...args: readonly unknown[]) {
    const [dim, unflattenedSize] = readRequired<[dim: number, unflattenedSize: readonly number[]]>(
      'nn.Unflatten',
      ['dim', 'unflattenedSize'],
      args,
      false,
    )
    super()
    if (!Number.isInteger(dim)) throw new ArgumentError(`nn.Unflatten: dim must be an integer, got ${valueText(dim)}.`)
    checkArgument(Array.isArray(unflattenedSize), 'nn.Unflatten', 'unflattenedSize', 'an array of sizes', unflattenedSize)
    this.dim = dim
    this.unflattenedSize = ownCopy(unflattenedSize)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return input.unflatten(this.dim, this.unflattenedSize)
  }

  override extraRepr(): string {
    return `dim=${this.dim}, unflattened_size=${py(this.unflattenedSize)}`
  }
}

/** Takes channels from each group in turn. PyTorch's `nn.ChannelShuffle`. */
export class ChannelShuffle extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.ChannelShuffle' }

  readonly groups: number

  constructor(groups: number)
  constructor(...args: Named<[['groups', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [groups] = readRequired<[groups: number]>('nn.ChannelShuffle', ['groups'], args, false)
    super()
    checkInteger('nn.ChannelShuffle', 'groups', groups)
    this.groups = groups
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return channelShuffle(input, this.groups)
  }

  override extraRepr(): string {
    return `groups=${this.groups}`
  }
}

/** The size, or the factor. */
export interface UpsamplingOptions {
  readonly size?: number | readonly number[] | null
  readonly scaleFactor?: number | readonly number[] | null
}

type Sizes = number | readonly number[] | null
type UpsamplingArguments = Trailing<[size: Sizes, scaleFactor: Sizes], UpsamplingOptions>
const UPSAMPLING: Required<UpsamplingOptions> = { size: null, scaleFactor: null }

/** Repeats the pixels of [N, C, H, W]. PyTorch's `nn.UpsamplingNearest2d`. */
export class UpsamplingNearest2d extends Upsample {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.UpsamplingNearest2d' }

  constructor(...options: UpsamplingArguments) {
    super({ ...readOptions('nn.UpsamplingNearest2d', UPSAMPLING, options), mode: 'nearest' })
  }
}

/** Interpolates the pixels of [N, C, H, W] in both directions; corners stay corners. PyTorch's `nn.UpsamplingBilinear2d`. */
export class UpsamplingBilinear2d extends Upsample {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.UpsamplingBilinear2d' }

  constructor(...options: UpsamplingArguments) {
    super({ ...readOptions('nn.UpsamplingBilinear2d', UPSAMPLING, options), mode: 'bilinear', alignCorners: true })
  }
}
