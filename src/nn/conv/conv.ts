// Convolutions.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Pair } from '../../ops/index.ts'
import { checkCount, py, valueText } from '../../protocol/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { ConvNd } from './convParts.ts'
import { conv1d, conv2d, conv3d, pad } from '../functional.ts'
import { readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'

/** Options of {@link Conv1d}, {@link Conv2d} and {@link Conv3d}; numbers hold for every spatial dimension. */
export interface ConvLayerOptions {
  readonly stride?: Pair
  /** Zeros on both sides; 'valid' is 0, 'same' keeps the size (with stride 1). */
  readonly padding?: Pair | 'same' | 'valid'
  readonly dilation?: Pair
  /** Channels are split into that many groups, each convolved by itself. */
  readonly groups?: number
  readonly bias?: boolean
  /** What the padding holds: zeros (default), the mirror image, the edge, or the other side. */
  readonly paddingMode?: PaddingMode
  readonly dtype?: DType
}

/** What the padding of a convolution holds. */
export type PaddingMode = 'zeros' | 'reflect' | 'replicate' | 'circular'

const PADDING_MODES: readonly unknown[] = ['zeros', 'reflect', 'replicate', 'circular']

export type ConvArguments = Trailing<
  [stride: Pair, padding: Pair | 'same' | 'valid', dilation: Pair, groups: number, bias: boolean, paddingMode: PaddingMode],
  ConvLayerOptions
>

const defaults = (): Required<ConvLayerOptions> => ({
  stride: 1,
  padding: 0,
  dilation: 1,
  groups: 1,
  bias: true,
  paddingMode: 'zeros',
  dtype: getDefaultDtype(),
})

/** What the convolutions share. */
abstract class ConvLayer extends ConvNd {
  readonly paddingMode: PaddingMode

  constructor(where: string, spatial: number, inChannels: number, outChannels: number, kernelSize: Pair, given: readonly unknown[]) {
    const options = readOptions(where, defaults(), given)
    const { padding, paddingMode } = options
    if (typeof padding === 'string' && padding !== 'same' && padding !== 'valid')
      throw new ArgumentError(`${where}: padding must be sizes, 'same' or 'valid', got ${valueText(padding)}.`)
    if (!PADDING_MODES.includes(paddingMode))
      throw new ArgumentError(`${where}: paddingMode must be one of ${PADDING_MODES.join(', ')}, got ${valueText(paddingMode)}.`)
    super(where, [spatial, false], inChannels, outChannels, kernelSize, options)
    this.paddingMode = paddingMode
    if (padding === 'same' && this.stride.some((s) => s !== 1))
      throw new ArgumentError(`${where}: padding 'same' needs stride 1, got stride ${py(this.stride)}.`)
  }

  /** The convolution `fn` of the input. It adds a border of zeros itself; any other stands around the input before. */
  protected convolve(fn: typeof conv1d, input: Tensor): Tensor {
    const { weight, bias, stride, paddingMode, padding, kernelSize, dilation, groups } = this
    if (paddingMode === 'zeros' || padding === 'valid') return fn(input, weight, bias, stride, padding, dilation, groups)
    // As much before as after; of an odd total, more after.
    const amounts = kernelSize.flatMap((k, d) => {
      const total = (dilation[d] ?? 1) * (k - 1)
      const before = padding === 'same' ? Math.floor(total / 2) : (padding[d] ?? 0)
      return [[before, padding === 'same' ? total - before : before]]
    })
    return fn(pad(input, amounts.toReversed().flat(), { mode: paddingMode }), weight, bias, stride, 0, dilation, groups)
  }

  override extraRepr(): string {
    return this.paddingMode === 'zeros' ? super.extraRepr() : `${super.extraRepr()}, padding_mode=${this.paddingMode}`
  }
}

/** Convolution over [N, inChannels, length]. PyTorch's `nn.Conv1d`. */
export class Conv1d extends ConvLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvArguments)
  constructor(...args: Named<[['inChannels', number], ['outChannels', number], ['kernelSize', Pair]], ConvArguments>)
  constructor(...args: readonly unknown[]) {
    const [inChannels, outChannels, kernelSize, ...options] = readRequired<[inChannels: number, outChannels: number, kernelSize: Pair]>(
      'nn.Conv1d',
      ['inChannels', 'outChannels', 'kernelSize'],
      args,
    )
    super('nn.Conv1d', 1, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.convolve(conv1d, input)
  }
}

/** Convolution over [N, inChannels, height, width]. PyTorch's `nn.Conv2d`. */
export class Conv2d extends ConvLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvArguments)
  constructor(...args: Named<[['inChannels', number], ['outChannels', number], ['kernelSize', Pair]], ConvArguments>)
  constructor(...args: readonly unknown[]) {
    const [inChannels, outChannels, kernelSize, ...options] = readRequired<[inChannels: number, outChannels: number, kernelSize: Pair]>(
      'nn.Conv2d',
      ['inChannels', 'outChannels', 'kernelSize'],
      args,
    )
    super('nn.Conv2d', 2, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.convolve(conv2d, input)
  }
}

/**
 * Convolution over [N, inChannels, depth, height, width]. PyTorch's `nn.Conv3d`.
 *
 * @example new nn.Conv3d(1, 4, 3, { padding: 1 })(torch.ones([2, 1, 5, 8, 8])).shape // [2, 4, 5, 8, 8]
 */
export class Conv3d extends ConvLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvArguments)
  constructor(...args: Named<[['inChannels', number], ['outChannels', number], ['kernelSize', Pair]], ConvArguments>)
  constructor(...args: readonly unknown[]) {
    const [inChannels, outChannels, kernelSize, ...options] = readRequired<[inChannels: number, outChannels: number, kernelSize: Pair]>(
      'nn.Conv3d',
      ['inChannels', 'outChannels', 'kernelSize'],
      args,
    )
    super('nn.Conv3d', 3, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.convolve(conv3d, input)
  }
}
