// Convolutions.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Pair } from '../../ops/index.ts'
import { checkCount, py, valueText } from '../../protocol/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { CONV_POSITIONS, ConvNd } from './convParts.ts'
import type { ConvPositions } from './convParts.ts'
import { conv1d, conv2d, conv3d, pad } from '../functional.ts'
import { readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import type { FunctionFacts } from '../layerFacts.ts'

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
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof conv1d>
  /** @internal */
  declare readonly ['constructor']: typeof ConvLayer

  readonly paddingMode: PaddingMode

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvArguments)
  constructor(...args: Named<[['inChannels', number], ['outChannels', number], ['kernelSize', Pair]], ConvArguments>)
  constructor(...args: readonly unknown[]) {
    const where = new.target.layer.name
    const [inChannels, outChannels, kernelSize, ...given] = readRequired<ConvPositions>(where, CONV_POSITIONS, args)
    const options = readOptions(where, defaults(), given)
    const { padding, paddingMode } = options
    if (typeof padding === 'string' && padding !== 'same' && padding !== 'valid')
      throw new ArgumentError(`${where}: padding must be sizes, 'same' or 'valid', got ${valueText(padding)}.`)
    if (!PADDING_MODES.includes(paddingMode))
      throw new ArgumentError(`${where}: paddingMode must be one of ${PADDING_MODES.join(', ')}, got ${valueText(paddingMode)}.`)
    super(false, inChannels, outChannels, kernelSize, options)
    this.paddingMode = paddingMode
    if (padding === 'same' && this.stride.some((s) => s !== 1))
      throw new ArgumentError(`${where}: padding 'same' needs stride 1, got stride ${py(this.stride)}.`)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { fn } = this.constructor.layer
    const { weight, bias, stride, paddingMode, padding, kernelSize, dilation, groups } = this
    // The function adds a border of zeros itself; any other stands around the input before.
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
  static override readonly layer: FunctionFacts<typeof conv1d> = { name: 'nn.Conv1d', spatial: 1, fn: conv1d }
}

/** Convolution over [N, inChannels, height, width]. PyTorch's `nn.Conv2d`. */
export class Conv2d extends ConvLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv1d> = { name: 'nn.Conv2d', spatial: 2, fn: conv2d }
}

/**
 * Convolution over [N, inChannels, depth, height, width]. PyTorch's `nn.Conv3d`.
 *
 * @example new nn.Conv3d(1, 4, 3, { padding: 1 })(torch.ones([2, 1, 5, 8, 8])).shape // [2, 4, 5, 8, 8]
 */
export class Conv3d extends ConvLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof conv1d> = { name: 'nn.Conv3d', spatial: 3, fn: conv3d }
}
