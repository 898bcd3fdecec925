// Pooling over lines and volumes, and the pools that are not a maximum or a mean over windows.
import { Module } from '../module/index.ts'
import { checkArgument } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import {
  adaptiveAvgPool1d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  avgPool1d,
  avgPool3d,
  lpPool1d,
  lpPool2d,
  lpPool3d,
  maxPool1d,
  maxPool3d,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
} from './functional.ts'
import { markLeaf } from './leaf.ts'
import { OptionLayer } from './optionLayer.ts'
import { perDimension } from './options.ts'
import type { Trailing } from './options.ts'
import { py } from './repr.ts'

/** One size for all dimensions, or one for each. */
export type WindowSizes = number | readonly number[]

/** Options of {@link MaxPool1d} and {@link MaxPool3d}. */
export interface MaxPoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
  readonly dilation?: WindowSizes
  /** Round the output size up. */
  readonly ceilMode?: boolean
  /** Also give the positions of the greatest, for unpooling. */
  readonly returnIndices?: boolean
}

type MaxPoolArguments = Trailing<[stride: WindowSizes | null, padding: WindowSizes, dilation: WindowSizes], MaxPoolOptions>
const MAX_POOL: Required<MaxPoolOptions> = { stride: null, padding: 0, dilation: 1, ceilMode: false, returnIndices: false }

/** What layers with windows share: the sizes of the windows and how they move. */
abstract class WindowLayer extends OptionLayer {
  readonly kernelSize: WindowSizes
  declare readonly stride: WindowSizes
  declare readonly padding: WindowSizes

  constructor(where: string, spatial: number, kernelSize: WindowSizes, defaults: object, given: readonly unknown[]) {
    super(where, defaults, given)
    perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    this.kernelSize = kernelSize
    const { stride = null, padding = 0 }: { readonly stride?: WindowSizes | null; readonly padding?: WindowSizes } = this
    if (stride === null) Object.assign(this, { stride: kernelSize })
    else perDimension(where, 'stride', stride, spatial, 1)
    perDimension(where, 'padding', padding, spatial, 0)
  }

  override extraRepr(): string {
    return `kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, padding=${py(this.padding)}`
  }
}

abstract class MaxPoolLayer extends WindowLayer {
  declare readonly dilation: WindowSizes
  declare readonly ceilMode: boolean
  declare readonly returnIndices: boolean

  constructor(where: string, spatial: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super(where, spatial, kernelSize, MAX_POOL, given)
    perDimension(where, 'dilation', this.dilation, spatial, 1)
  }

  protected pool(input: Tensor, fn: typeof maxPool1d): Tensor | readonly [Tensor, Tensor] {
    const { kernelSize, stride, padding, dilation, ceilMode, returnIndices } = this
    const options = { stride, padding, dilation, ceilMode }
    return returnIndices ? fn(input, kernelSize, { ...options, returnIndices }) : fn(input, kernelSize, options)
  }

  override extraRepr(): string {
    return `${super.extraRepr()}, dilation=${py(this.dilation)}, ceil_mode=${py(this.ceilMode)}`
  }
}

/** Maximum over windows of [N, C, L]; with `returnIndices` also the positions. PyTorch's `nn.MaxPool1d`. */
export class MaxPool1d extends MaxPoolLayer {
  constructor(kernelSize: WindowSizes, ...options: MaxPoolArguments) {
    super('nn.MaxPool1d', 1, kernelSize, options)
  }

  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    return this.pool(input, maxPool1d)
  }
}

/** Maximum over windows of [N, C, D, H, W]; with `returnIndices` also the positions. PyTorch's `nn.MaxPool3d`. */
export class MaxPool3d extends MaxPoolLayer {
  constructor(kernelSize: WindowSizes, ...options: MaxPoolArguments) {
    super('nn.MaxPool3d', 3, kernelSize, options)
  }

  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    return this.pool(input, maxPool3d)
  }
}

/** Options of {@link AvgPool1d}. */
export interface AvgPoolLayerOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
  /** Round the output size up. */
  readonly ceilMode?: boolean
  /** Count the padding's zeros in the mean. */
  readonly countIncludePad?: boolean
}

/** Options of {@link AvgPool3d}. */
export interface AvgPool3dOptions extends AvgPoolLayerOptions {
  /** Divide by this instead of the window's size. */
  readonly divisorOverride?: number | null
}

const AVG_POOL: Required<AvgPoolLayerOptions> = { stride: null, padding: 0, ceilMode: false, countIncludePad: true }

/** Mean over windows of [N, C, L]. PyTorch's `nn.AvgPool1d`. */
export class AvgPool1d extends WindowLayer {
  declare readonly ceilMode: boolean
  declare readonly countIncludePad: boolean

  constructor(kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, padding: WindowSizes], AvgPoolLayerOptions>) {
    super('nn.AvgPool1d', 1, kernelSize, AVG_POOL, options)
  }

  override forward(input: Tensor): Tensor {
    return avgPool1d(input, this.kernelSize, this.stride, this.padding, this.ceilMode, this.countIncludePad)
  }
}

/** Mean over windows of [N, C, D, H, W]. PyTorch's `nn.AvgPool3d`. */
export class AvgPool3d extends WindowLayer {
  declare readonly ceilMode: boolean
  declare readonly countIncludePad: boolean
  declare readonly divisorOverride: number | null

  constructor(kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, padding: WindowSizes], AvgPool3dOptions>) {
    super('nn.AvgPool3d', 3, kernelSize, { ...AVG_POOL, divisorOverride: null }, options)
  }

  override forward(input: Tensor): Tensor {
    const { stride, padding, ceilMode, countIncludePad, divisorOverride } = this
    return avgPool3d(input, this.kernelSize, { stride, padding, ceilMode, countIncludePad, divisorOverride })
  }
}

/** Options of the power-average pools. */
export interface LPPoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly ceilMode?: boolean
}

abstract class LPPoolLayer extends WindowLayer {
  readonly normType: number
  declare readonly ceilMode: boolean

  constructor(where: string, spatial: number, normType: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super(where, spatial, kernelSize, { stride: null, ceilMode: false }, given)
    this.normType = normType
  }

  override extraRepr(): string {
    return `norm_type=${this.normType}, kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, ceil_mode=${py(this.ceilMode)}`
  }
}

/** The p-norm of windows of [N, C, L], p being `normType`. PyTorch's `nn.LPPool1d`. */
export class LPPool1d extends LPPoolLayer {
  constructor(normType: number, kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, ceilMode: boolean], LPPoolOptions>) {
    super('nn.LPPool1d', 1, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return lpPool1d(input, this.normType, this.kernelSize, this.stride, this.ceilMode)
  }
}

/** The p-norm of windows of [N, C, H, W], p being `normType`. PyTorch's `nn.LPPool2d`. */
export class LPPool2d extends LPPoolLayer {
  constructor(normType: number, kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, ceilMode: boolean], LPPoolOptions>) {
    super('nn.LPPool2d', 2, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return lpPool2d(input, this.normType, this.kernelSize, this.stride, this.ceilMode)
  }
}

/** The p-norm of windows of [N, C, D, H, W], p being `normType`. PyTorch's `nn.LPPool3d`. */
export class LPPool3d extends LPPoolLayer {
  constructor(normType: number, kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, ceilMode: boolean], LPPoolOptions>) {
    super('nn.LPPool3d', 3, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return lpPool3d(input, this.normType, this.kernelSize, this.stride, this.ceilMode)
  }
}

/** The size of the result in each dimension; null keeps that of the input. */
export type AdaptiveSizes = number | readonly (number | null)[]

abstract class AdaptivePool extends Module {
  readonly outputSize: AdaptiveSizes

  constructor(where: string, spatial: number, outputSize: AdaptiveSizes) {
    super()
    if (typeof outputSize !== 'number') checkArgument(Array.isArray(outputSize), where, 'outputSize', 'a number or an array of sizes', outputSize)
    const sizes = typeof outputSize === 'number' ? outputSize : outputSize.map((size) => size ?? 1)
    perDimension(where, 'outputSize', sizes, spatial, 1)
    this.outputSize = outputSize
  }

  override extraRepr(): string {
    return `output_size=${py(this.outputSize)}`
  }
}

/** Mean over windows chosen so that the output has `outputSize`. PyTorch's `nn.AdaptiveAvgPool1d`. */
export class AdaptiveAvgPool1d extends AdaptivePool {
  declare readonly outputSize: number | readonly number[]

  constructor(outputSize: number | readonly number[]) {
    super('nn.AdaptiveAvgPool1d', 1, outputSize)
  }

  override forward(input: Tensor): Tensor {
    return adaptiveAvgPool1d(input, this.outputSize)
  }
}

/** Mean over windows chosen so that the output has `outputSize`. PyTorch's `nn.AdaptiveAvgPool3d`. */
export class AdaptiveAvgPool3d extends AdaptivePool {
  constructor(outputSize: AdaptiveSizes) {
    super('nn.AdaptiveAvgPool3d', 3, outputSize)
  }

  override forward(input: Tensor): Tensor {
    return adaptiveAvgPool3d(input, this.outputSize)
  }
}

abstract class AdaptiveMaxPool extends AdaptivePool {
  readonly returnIndices: boolean

  constructor(where: string, spatial: number, outputSize: AdaptiveSizes, returnIndices: boolean) {
    super(where, spatial, outputSize)
    this.returnIndices = returnIndices
  }

  protected pool(input: Tensor, fn: typeof adaptiveMaxPool1d): Tensor | readonly [Tensor, Tensor] {
    return this.returnIndices ? fn(input, this.outputSize, true) : fn(input, this.outputSize)
  }
}

/** Maximum over windows chosen so that the output has `outputSize`; with `returnIndices` also the positions. PyTorch's `nn.AdaptiveMaxPool1d`. */
export class AdaptiveMaxPool1d extends AdaptiveMaxPool {
  constructor(outputSize: AdaptiveSizes, returnIndices = false) {
    super('nn.AdaptiveMaxPool1d', 1, outputSize, returnIndices)
  }

  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    return this.pool(input, adaptiveMaxPool1d)
  }
}

/** Maximum over windows chosen so that the output has `outputSize`; with `returnIndices` also the positions. PyTorch's `nn.AdaptiveMaxPool2d`. */
export class AdaptiveMaxPool2d extends AdaptiveMaxPool {
  constructor(outputSize: AdaptiveSizes, returnIndices = false) {
    super('nn.AdaptiveMaxPool2d', 2, outputSize, returnIndices)
  }

  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    return this.pool(input, adaptiveMaxPool2d)
  }
}

/** Maximum over windows chosen so that the output has `outputSize`; with `returnIndices` also the positions. PyTorch's `nn.AdaptiveMaxPool3d`. */
export class AdaptiveMaxPool3d extends AdaptiveMaxPool {
  constructor(outputSize: AdaptiveSizes, returnIndices = false) {
    super('nn.AdaptiveMaxPool3d', 3, outputSize, returnIndices)
  }

  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    return this.pool(input, adaptiveMaxPool3d)
  }
}

/** Options of the unpooling layers. */
export interface MaxUnpoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. PyTorch's `nn.MaxUnpool1d`. */
export class MaxUnpool1d extends WindowLayer {
  constructor(kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, padding: WindowSizes], MaxUnpoolOptions>) {
    super('nn.MaxUnpool1d', 1, kernelSize, { stride: null, padding: 0 }, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: readonly number[] | null = null): Tensor {
    return maxUnpool1d(input, indices, this.kernelSize, { stride: this.stride, padding: this.padding, outputSize })
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. PyTorch's `nn.MaxUnpool2d`. */
export class MaxUnpool2d extends WindowLayer {
  constructor(kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, padding: WindowSizes], MaxUnpoolOptions>) {
    super('nn.MaxUnpool2d', 2, kernelSize, { stride: null, padding: 0 }, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: readonly number[] | null = null): Tensor {
    return maxUnpool2d(input, indices, this.kernelSize, { stride: this.stride, padding: this.padding, outputSize })
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. PyTorch's `nn.MaxUnpool3d`. */
export class MaxUnpool3d extends WindowLayer {
  constructor(kernelSize: WindowSizes, ...options: Trailing<[stride: WindowSizes | null, padding: WindowSizes], MaxUnpoolOptions>) {
    super('nn.MaxUnpool3d', 3, kernelSize, { stride: null, padding: 0 }, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: readonly number[] | null = null): Tensor {
    return maxUnpool3d(input, indices, this.kernelSize, { stride: this.stride, padding: this.padding, outputSize })
  }
}

markLeaf(AdaptiveAvgPool1d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, AvgPool1d, AvgPool3d, LPPool1d, LPPool2d)
markLeaf(LPPool3d, MaxPool1d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d)
