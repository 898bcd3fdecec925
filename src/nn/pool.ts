// Pooling layers over [N, C, H, W] or [C, H, W].
import { checkArgument } from '../protocol/index.ts'
import { Module } from '../module/index.ts'
import type { Pair } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { adaptiveAvgPool2d, avgPool2d, maxPool2d } from './functional.ts'
import { markLeaf } from './leaf.ts'
import { perDimension, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { py } from './repr.ts'

/** Options of {@link MaxPool2d}. */
export interface MaxPool2dOptions {
  /** The kernel size by default. */
  readonly stride?: Pair | null
  readonly padding?: Pair
  readonly dilation?: Pair
  /** Round the output size up. */
  readonly ceilMode?: boolean
}

/** Maximum over windows. `F.maxPool2d` with `returnIndices` also gives the positions. PyTorch's `nn.MaxPool2d`. */
export class MaxPool2d extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['kernel_size', 'stride', 'padding', 'dilation', 'ceil_mode']
  readonly kernelSize: Pair
  readonly stride: Pair
  readonly padding: Pair
  readonly dilation: Pair
  readonly ceilMode: boolean

  constructor(kernelSize: Pair, ...options: Trailing<[stride: Pair | null, padding: Pair, dilation: Pair], MaxPool2dOptions>) {
    super()
    const defaults: Required<MaxPool2dOptions> = { stride: null, padding: 0, dilation: 1, ceilMode: false }
    const { stride, padding, dilation, ceilMode } = readOptions('nn.MaxPool2d', defaults, options)
    checkWindow('nn.MaxPool2d', kernelSize, stride, padding)
    perDimension('nn.MaxPool2d', 'dilation', dilation, 2, 1)
    this.kernelSize = kernelSize
    this.stride = stride ?? kernelSize
    this.padding = padding
    this.dilation = dilation
    this.ceilMode = ceilMode
  }

  override forward(input: Tensor): Tensor {
    const { stride, padding, dilation, ceilMode } = this
    return maxPool2d(input, this.kernelSize, { stride, padding, dilation, ceilMode, returnIndices: false })
  }

  override extraRepr(): string {
    const { kernelSize, stride, padding, dilation, ceilMode } = this
    return `kernel_size=${py(kernelSize)}, stride=${py(stride)}, padding=${py(padding)}, dilation=${py(dilation)}, ceil_mode=${py(ceilMode)}`
  }
}

/** Options of {@link AvgPool2d}. */
export interface AvgPool2dOptions {
  /** The kernel size by default. */
  readonly stride?: Pair | null
  readonly padding?: Pair
  /** Round the output size up. */
  readonly ceilMode?: boolean
  /** Count the padding's zeros in the mean. */
  readonly countIncludePad?: boolean
  /** Divide by this instead of the window's size. */
  readonly divisorOverride?: number | null
}

/** Mean over windows. PyTorch's `nn.AvgPool2d`. */
export class AvgPool2d extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['kernel_size', 'stride', 'padding', 'ceil_mode', 'count_include_pad', 'divisor_override']
  readonly kernelSize: Pair
  readonly stride: Pair
  readonly padding: Pair
  readonly ceilMode: boolean
  readonly countIncludePad: boolean
  readonly divisorOverride: number | null

  constructor(kernelSize: Pair, ...options: Trailing<[stride: Pair | null, padding: Pair], AvgPool2dOptions>) {
    super()
    const defaults: Required<AvgPool2dOptions> = { stride: null, padding: 0, ceilMode: false, countIncludePad: true, divisorOverride: null }
    const { stride, padding, ceilMode, countIncludePad, divisorOverride } = readOptions('nn.AvgPool2d', defaults, options)
    checkWindow('nn.AvgPool2d', kernelSize, stride, padding)
    this.kernelSize = kernelSize
    this.stride = stride ?? kernelSize
    this.padding = padding
    this.ceilMode = ceilMode
    this.countIncludePad = countIncludePad
    this.divisorOverride = divisorOverride
  }

  override forward(input: Tensor): Tensor {
    return avgPool2d(input, this.kernelSize, this.stride, this.padding, this.ceilMode, this.countIncludePad, this.divisorOverride)
  }

  override extraRepr(): string {
    return `kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, padding=${py(this.padding)}`
  }
}

/** Mean over windows chosen so that the output has `outputSize` (null: the input's size). PyTorch's `nn.AdaptiveAvgPool2d`. */
export class AdaptiveAvgPool2d extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['output_size']
  readonly outputSize: number | readonly (number | null)[]

  constructor(outputSize: number | readonly (number | null)[]) {
    super()
    if (typeof outputSize !== 'number')
      checkArgument(Array.isArray(outputSize), 'nn.AdaptiveAvgPool2d', 'outputSize', 'a number or an array of two', outputSize)
    const sizes = typeof outputSize === 'number' ? outputSize : outputSize.map((size) => size ?? 1)
    perDimension('nn.AdaptiveAvgPool2d', 'outputSize', sizes, 2, 1)
    this.outputSize = outputSize
  }

  override forward(input: Tensor): Tensor {
    return adaptiveAvgPool2d(input, this.outputSize)
  }

  override extraRepr(): string {
    return `output_size=${py(this.outputSize)}`
  }
}

function checkWindow(where: string, kernelSize: Pair, stride: Pair | null, padding: Pair): void {
  perDimension(where, 'kernelSize', kernelSize, 2, 1)
  if (stride !== null) perDimension(where, 'stride', stride, 2, 1)
  perDimension(where, 'padding', padding, 2, 0)
}

markLeaf(MaxPool2d, AvgPool2d, AdaptiveAvgPool2d)
