// Convolutions.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { empty } from '../ops/index.ts'
import type { Pair } from '../ops/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { valueText } from '../protocol/index.ts'
import { conv1d, conv2d, pad } from './functional.ts'
import { checkChannels, resetByFanIn } from './convParts.ts'
import { markLeaf } from './leaf.ts'
import { perDimension, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import { py } from './repr.ts'

/** Options of {@link Conv1d} and {@link Conv2d}; numbers hold for every spatial dimension. */
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

type ConvArguments = Trailing<
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

/** What Conv1d and Conv2d share. */
abstract class ConvLayer extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['stride', 'padding', 'dilation', 'groups', 'in_channels', 'out_channels', 'kernel_size']
  readonly inChannels: number
  readonly outChannels: number
  readonly kernelSize: readonly number[]
  readonly stride: readonly number[]
  readonly padding: readonly number[] | 'same' | 'valid'
  readonly dilation: readonly number[]
  readonly groups: number
  readonly paddingMode: PaddingMode
  /** [outChannels, inChannels / groups, ...kernelSize] */
  weight: Parameter
  /** [outChannels] */
  bias: Parameter | null

  constructor(where: string, spatial: number, inChannels: number, outChannels: number, kernelSize: Pair, given: readonly unknown[]) {
    super()
    const { stride, padding, dilation, groups, bias, paddingMode, dtype } = readOptions(where, defaults(), given)
    checkChannels(where, inChannels, outChannels, groups)
    this.inChannels = inChannels
    this.outChannels = outChannels
    this.kernelSize = perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    this.stride = perDimension(where, 'stride', stride, spatial, 1)
    this.padding = padding === 'same' || padding === 'valid' ? padding : perDimension(where, 'padding', padding, spatial, 0)
    this.dilation = perDimension(where, 'dilation', dilation, spatial, 1)
    this.groups = groups
    if (!PADDING_MODES.includes(paddingMode))
      throw new ArgumentError(`${where}: paddingMode must be one of ${PADDING_MODES.join(', ')}, got ${valueText(paddingMode)}.`)
    this.paddingMode = paddingMode
    if (padding === 'same' && this.stride.some((s) => s !== 1))
      throw new ArgumentError(`${where}: padding 'same' needs stride 1, got stride ${py(this.stride)}.`)
    this.weight = new Parameter(empty([outChannels, inChannels / groups, ...this.kernelSize], { dtype }))
    this.bias = bias ? new Parameter(empty([outChannels], { dtype })) : null
    this.resetParameters()
  }

  /** New random values, uniform within 1 / sqrt(fan in). */
  resetParameters(): void {
    resetByFanIn(this.weight, this.bias)
  }

  /** The input with its border, unless that holds zeros, which the convolution itself adds. */
  protected padded(input: Tensor): readonly [input: Tensor, padding: readonly number[] | 'same' | 'valid'] {
    const { paddingMode, padding, kernelSize, dilation } = this
    if (paddingMode === 'zeros' || padding === 'valid') return [input, padding]
    // As much before as after; of an odd total, more after.
    const amounts = kernelSize.flatMap((k, d) => {
      const total = (dilation[d] ?? 1) * (k - 1)
      const before = padding === 'same' ? Math.floor(total / 2) : (padding[d] ?? 0)
      return [[before, padding === 'same' ? total - before : before]]
    })
    return [pad(input, amounts.toReversed().flat(), { mode: paddingMode }), kernelSize.map(() => 0)]
  }

  override extraRepr(): string {
    const { padding, dilation, groups } = this
    const parts = [`${this.inChannels}`, `${this.outChannels}`, `kernel_size=${py(this.kernelSize)}`, `stride=${py(this.stride)}`]
    if (typeof padding === 'string') parts.push(`padding=${padding}`)
    else if (padding.some((p) => p !== 0)) parts.push(`padding=${py(padding)}`)
    if (dilation.some((d) => d !== 1)) parts.push(`dilation=${py(dilation)}`)
    if (groups !== 1) parts.push(`groups=${groups}`)
    if (this.bias === null) parts.push('bias=False')
    if (this.paddingMode !== 'zeros') parts.push(`padding_mode=${this.paddingMode}`)
    return parts.join(', ')
  }
}

/** Convolution over [N, inChannels, length]. PyTorch's `nn.Conv1d`. */
export class Conv1d extends ConvLayer {
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvArguments) {
    super('nn.Conv1d', 1, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    const [x, padding] = this.padded(input)
    return conv1d(x, this.weight, this.bias, this.stride, padding, this.dilation, this.groups)
  }
}

/** Convolution over [N, inChannels, height, width]. PyTorch's `nn.Conv2d`. */
export class Conv2d extends ConvLayer {
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvArguments) {
    super('nn.Conv2d', 2, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    const [x, padding] = this.padded(input)
    return conv2d(x, this.weight, this.bias, this.stride, padding, this.dilation, this.groups)
  }
}

markLeaf(Conv1d, Conv2d)
