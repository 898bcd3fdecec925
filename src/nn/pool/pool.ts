// Pooling over lines, images and volumes: the maximum or the mean over windows, of given sizes or of a given number.
import { Module } from '../../module/index.ts'
import { checkArgument, checkCount, ownCopy, py } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  avgPool1d,
  avgPool2d,
  avgPool3d,
  maxPool1d,
  maxPool2d,
  maxPool3d,
} from '../functional.ts'
import { OptionLayer } from '../optionLayer.ts'
import { perDimension, readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import type { FunctionFacts, SpatialFacts } from '../layerFacts.ts'

/** One size for all dimensions, or one for each. */
export type WindowSizes = number | readonly number[]

/** What a maximum pool returns: the maxima, and with `returnIndices` their positions too. */
export type Pooled<Indices extends boolean> = Indices extends true ? readonly [Tensor, Tensor] : Tensor

/** Options of the maximum pools. */
export interface MaxPoolOptions<Indices extends boolean = boolean> {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
  readonly dilation?: WindowSizes
  /** Round the output size up. */
  readonly ceilMode?: boolean
  /** Also give the positions of the greatest, for unpooling. */
  readonly returnIndices?: Indices
}

type MaxPoolArguments<I extends boolean> = Trailing<[stride: WindowSizes | null, padding: WindowSizes, dilation: WindowSizes], MaxPoolOptions<I>>
const MAX_POOL: Required<MaxPoolOptions> = { stride: null, padding: 0, dilation: 1, ceilMode: false, returnIndices: false }

/** What layers with windows share: the sizes of the windows and how they move. */
export abstract class WindowLayer extends OptionLayer {
  /** @internal */
  declare static readonly layer: SpatialFacts

  readonly kernelSize: WindowSizes
  declare readonly stride: WindowSizes
  declare readonly padding: WindowSizes

  constructor(kernelSize: WindowSizes, defaults: object, given: readonly unknown[]) {
    const { name: where, spatial } = new.target.layer
    super(defaults, given, ['padding', 'dilation'])
    perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    this.kernelSize = ownCopy(kernelSize)
    const { stride = null, padding = 0 }: { readonly stride?: WindowSizes | null; readonly padding?: WindowSizes } = this
    if (stride === null) Object.assign(this, { stride: this.kernelSize })
    else perDimension(where, 'stride', stride, spatial, 1)
    perDimension(where, 'padding', padding, spatial, 0)
  }

  override extraRepr(): string {
    return `kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, padding=${py(this.padding)}`
  }
}

abstract class MaxPoolLayer<I extends boolean> extends WindowLayer {
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof maxPool1d>
  /** @internal */
  declare readonly ['constructor']: typeof MaxPoolLayer

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['kernel_size', 'stride', 'padding', 'dilation', 'ceil_mode']
  declare readonly dilation: WindowSizes
  declare readonly ceilMode: boolean
  declare readonly returnIndices: boolean

  constructor(kernelSize: WindowSizes, ...options: MaxPoolArguments<I>)
  constructor(...args: Named<[['kernelSize', WindowSizes]], MaxPoolArguments<I>>)
  constructor(...args: readonly unknown[]) {
    const { name: where, spatial } = new.target.layer
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>(where, ['kernelSize'], args)
    super(kernelSize, MAX_POOL, options)
    perDimension(where, 'dilation', this.dilation, spatial, 1)
  }

  override forward(input: Tensor): Pooled<I>
  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    checkCount(this, arguments, 1)
    const { fn } = this.constructor.layer
    const { kernelSize, stride, padding, dilation, ceilMode, returnIndices } = this
    if (returnIndices) return fn(input, kernelSize, { stride, padding, dilation, ceilMode, returnIndices })
    return fn(input, kernelSize, { stride, padding, dilation, ceilMode, returnIndices: false })
  }

  override extraRepr(): string {
    return `${super.extraRepr()}, dilation=${py(this.dilation)}, ceil_mode=${py(this.ceilMode)}`
  }
}

/** Maximum over windows of [N, C, L]; with `returnIndices` also the positions. PyTorch's `nn.MaxPool1d`. */
export class MaxPool1d<Indices extends boolean = false> extends MaxPoolLayer<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof maxPool1d> = { name: 'nn.MaxPool1d', spatial: 1, fn: maxPool1d }
}

/** Maximum over windows of [N, C, H, W]; with `returnIndices` also the positions. PyTorch's `nn.MaxPool2d`. */
export class MaxPool2d<Indices extends boolean = false> extends MaxPoolLayer<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof maxPool1d> = { name: 'nn.MaxPool2d', spatial: 2, fn: maxPool2d }
}

/** Maximum over windows of [N, C, D, H, W]; with `returnIndices` also the positions. PyTorch's `nn.MaxPool3d`. */
export class MaxPool3d<Indices extends boolean = false> extends MaxPoolLayer<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof maxPool1d> = { name: 'nn.MaxPool3d', spatial: 3, fn: maxPool3d }
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

/** Options of {@link AvgPool2d} and {@link AvgPool3d}. */
export interface AvgPoolDivisorOptions extends AvgPoolLayerOptions {
  /** Divide by this instead of the window's size. */
  readonly divisorOverride?: number | null
}

type AvgPositions = [stride: WindowSizes | null, padding: WindowSizes]
const AVG_POOL: Required<AvgPoolLayerOptions> = { stride: null, padding: 0, ceilMode: false, countIncludePad: true }

/** Mean over windows of [N, C, L]. PyTorch's `nn.AvgPool1d`. */
export class AvgPool1d extends WindowLayer {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.AvgPool1d', spatial: 1 }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['kernel_size', 'stride', 'padding', 'ceil_mode', 'count_include_pad']
  declare readonly ceilMode: boolean
  declare readonly countIncludePad: boolean

  constructor(kernelSize: WindowSizes, ...options: Trailing<AvgPositions, AvgPoolLayerOptions>)
  constructor(...args: Named<[['kernelSize', WindowSizes]], Trailing<AvgPositions, AvgPoolLayerOptions>>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>(new.target.layer.name, ['kernelSize'], args)
    super(kernelSize, AVG_POOL, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return avgPool1d(input, this.kernelSize, this.stride, this.padding, this.ceilMode, this.countIncludePad)
  }
}

type AvgPoolFunction = (input: Tensor, kernelSize: WindowSizes, options: AvgPoolDivisorOptions) => Tensor

abstract class AvgPoolWithDivisor extends WindowLayer {
  /** @internal */
  declare static readonly layer: FunctionFacts<AvgPoolFunction>
  /** @internal */
  declare readonly ['constructor']: typeof AvgPoolWithDivisor

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['kernel_size', 'stride', 'padding', 'ceil_mode', 'count_include_pad', 'divisor_override']
  declare readonly ceilMode: boolean
  declare readonly countIncludePad: boolean
  declare readonly divisorOverride: number | null

  constructor(kernelSize: WindowSizes, ...options: Trailing<AvgPositions, AvgPoolDivisorOptions>)
  constructor(...args: Named<[['kernelSize', WindowSizes]], Trailing<AvgPositions, AvgPoolDivisorOptions>>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>(new.target.layer.name, ['kernelSize'], args)
    super(kernelSize, { ...AVG_POOL, divisorOverride: null }, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { stride, padding, ceilMode, countIncludePad, divisorOverride } = this
    return this.constructor.layer.fn(input, this.kernelSize, { stride, padding, ceilMode, countIncludePad, divisorOverride })
  }
}

/** Mean over windows of [N, C, H, W]. PyTorch's `nn.AvgPool2d`. */
export class AvgPool2d extends AvgPoolWithDivisor {
  /** @internal */
  static override readonly layer: FunctionFacts<AvgPoolFunction> = { name: 'nn.AvgPool2d', spatial: 2, fn: avgPool2d }
}

/** Mean over windows of [N, C, D, H, W]. PyTorch's `nn.AvgPool3d`. */
export class AvgPool3d extends AvgPoolWithDivisor {
  /** @internal */
  static override readonly layer: FunctionFacts<AvgPoolFunction> = { name: 'nn.AvgPool3d', spatial: 3, fn: avgPool3d }
}

/** The size of the result in each dimension; null keeps that of the input. */
export type AdaptiveSizes = number | readonly (number | null)[]

abstract class AdaptivePool extends Module {
  /** @internal */
  declare static readonly layer: SpatialFacts

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['output_size']
  readonly outputSize: AdaptiveSizes

  constructor(outputSize: AdaptiveSizes) {
    const { name: where, spatial } = new.target.layer
    super()
    if (typeof outputSize !== 'number') checkArgument(Array.isArray(outputSize), where, 'outputSize', 'a number or an array of sizes', outputSize)
    const sizes = typeof outputSize === 'number' ? outputSize : outputSize.map((size) => size ?? 1)
    perDimension(where, 'outputSize', sizes, spatial, 1)
    this.outputSize = ownCopy(outputSize)
  }

  override extraRepr(): string {
    return `output_size=${py(this.outputSize)}`
  }
}

abstract class AdaptiveAvgPool extends AdaptivePool {
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof adaptiveAvgPool2d>
  /** @internal */
  declare readonly ['constructor']: typeof AdaptiveAvgPool

  constructor(outputSize: AdaptiveSizes)
  constructor(...args: Named<[['outputSize', AdaptiveSizes]], []>)
  constructor(...args: readonly unknown[]) {
    const [outputSize] = readRequired<[outputSize: AdaptiveSizes]>(new.target.layer.name, ['outputSize'], args, false)
    super(outputSize)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.constructor.layer.fn(input, this.outputSize)
  }
}

/** Mean over windows chosen so that the output has `outputSize`. PyTorch's `nn.AdaptiveAvgPool1d`. */
export class AdaptiveAvgPool1d extends AdaptivePool {
  /** @internal */
  static override readonly layer: SpatialFacts = { name: 'nn.AdaptiveAvgPool1d', spatial: 1 }

  declare readonly outputSize: number | readonly number[]

  constructor(outputSize: number | readonly number[])
  constructor(...args: Named<[['outputSize', number | readonly number[]]], []>)
  constructor(...args: readonly unknown[]) {
    const [outputSize] = readRequired<[outputSize: number | readonly number[]]>(new.target.layer.name, ['outputSize'], args, false)
    super(outputSize)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return adaptiveAvgPool1d(input, this.outputSize)
  }
}

/** Mean over windows chosen so that the output has `outputSize` (null: the input's size). PyTorch's `nn.AdaptiveAvgPool2d`. */
export class AdaptiveAvgPool2d extends AdaptiveAvgPool {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof adaptiveAvgPool2d> = { name: 'nn.AdaptiveAvgPool2d', spatial: 2, fn: adaptiveAvgPool2d }
}

/** Mean over windows chosen so that the output has `outputSize` (null: the input's size). PyTorch's `nn.AdaptiveAvgPool3d`. */
export class AdaptiveAvgPool3d extends AdaptiveAvgPool {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof adaptiveAvgPool2d> = { name: 'nn.AdaptiveAvgPool3d', spatial: 3, fn: adaptiveAvgPool3d }
}

type AdaptiveMaxArguments<I extends boolean> = Trailing<[returnIndices: I], { readonly returnIndices?: I }>

abstract class AdaptiveMaxPool<I extends boolean> extends AdaptivePool {
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof adaptiveMaxPool1d>
  /** @internal */
  declare readonly ['constructor']: typeof AdaptiveMaxPool

  readonly returnIndices: boolean

  constructor(outputSize: AdaptiveSizes, ...options: AdaptiveMaxArguments<I>)
  constructor(...args: Named<[['outputSize', AdaptiveSizes]], AdaptiveMaxArguments<I>>)
  constructor(...args: readonly unknown[]) {
    const where = new.target.layer.name
    const [outputSize, ...options] = readRequired<[outputSize: AdaptiveSizes]>(where, ['outputSize'], args)
    super(outputSize)
    this.returnIndices = readOptions(where, { returnIndices: false }, options).returnIndices
  }

  override forward(input: Tensor): Pooled<I>
  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    checkCount(this, arguments, 1)
    const { fn } = this.constructor.layer
    return this.returnIndices ? fn(input, this.outputSize, true) : fn(input, this.outputSize)
  }
}

/** Maximum over windows chosen so that the output has `outputSize`; with `returnIndices` also the positions. PyTorch's `nn.AdaptiveMaxPool1d`. */
export class AdaptiveMaxPool1d<Indices extends boolean = false> extends AdaptiveMaxPool<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof adaptiveMaxPool1d> = { name: 'nn.AdaptiveMaxPool1d', spatial: 1, fn: adaptiveMaxPool1d }
}

/** Maximum over windows chosen so that the output has `outputSize`; with `returnIndices` also the positions. PyTorch's `nn.AdaptiveMaxPool2d`. */
export class AdaptiveMaxPool2d<Indices extends boolean = false> extends AdaptiveMaxPool<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof adaptiveMaxPool1d> = { name: 'nn.AdaptiveMaxPool2d', spatial: 2, fn: adaptiveMaxPool2d }
}

/** Maximum over windows chosen so that the output has `outputSize`; with `returnIndices` also the positions. PyTorch's `nn.AdaptiveMaxPool3d`. */
export class AdaptiveMaxPool3d<Indices extends boolean = false> extends AdaptiveMaxPool<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof adaptiveMaxPool1d> = { name: 'nn.AdaptiveMaxPool3d', spatial: 3, fn: adaptiveMaxPool3d }
}
