// Pools that are not a maximum or a mean over windows in order: powers, unpooling, and windows at random places.
import { Module } from '../module/index.ts'
import { ArgumentError } from '../errors/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { fractionalMaxPool2d, fractionalMaxPool3d, lpPool1d, lpPool2d, lpPool3d, maxUnpool1d, maxUnpool2d, maxUnpool3d } from './functional.ts'
import { markLeaf } from './leaf.ts'
import { perDimension, readOptions, readOutputSize } from './options.ts'
import type { OutputSize, Trailing } from './options.ts'
import { WindowLayer } from './pool.ts'
import type { Pooled, WindowSizes } from './pool.ts'
import { py } from './repr.ts'

/** Options of the power-average pools. */
export interface LPPoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly ceilMode?: boolean
}

type LPPoolArguments = Trailing<[stride: WindowSizes | null, ceilMode: boolean], LPPoolOptions>

abstract class LPPoolLayer extends WindowLayer {
  readonly normType: number
  declare readonly ceilMode: boolean

  constructor(where: string, spatial: number, normType: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super(where, spatial, kernelSize, { stride: null, ceilMode: false }, given)
    this.normType = normType
  }

  protected pool(input: Tensor, fn: typeof lpPool1d): Tensor {
    return fn(input, this.normType, this.kernelSize, this.stride, this.ceilMode)
  }

  override extraRepr(): string {
    return `norm_type=${this.normType}, kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, ceil_mode=${py(this.ceilMode)}`
  }
}

/** The p-norm of windows of [N, C, L], p being `normType`. PyTorch's `nn.LPPool1d`. */
export class LPPool1d extends LPPoolLayer {
  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments) {
    super('nn.LPPool1d', 1, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return this.pool(input, lpPool1d)
  }
}

/** The p-norm of windows of [N, C, H, W], p being `normType`. PyTorch's `nn.LPPool2d`. */
export class LPPool2d extends LPPoolLayer {
  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments) {
    super('nn.LPPool2d', 2, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return this.pool(input, lpPool2d)
  }
}

/** The p-norm of windows of [N, C, D, H, W], p being `normType`. PyTorch's `nn.LPPool3d`. */
export class LPPool3d extends LPPoolLayer {
  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments) {
    super('nn.LPPool3d', 3, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return this.pool(input, lpPool3d)
  }
}

/** Options of the unpooling layers. */
export interface MaxUnpoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
}

type UnpoolArguments = Trailing<[stride: WindowSizes | null, padding: WindowSizes], MaxUnpoolOptions>

abstract class MaxUnpoolLayer extends WindowLayer {
  constructor(where: string, spatial: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super(where, spatial, kernelSize, { stride: null, padding: 0 }, given)
  }

  protected unpool(fn: typeof maxUnpool1d, input: Tensor, indices: Tensor, given: OutputSize): Tensor {
    const outputSize = readOutputSize(`nn.${this.getName()}`, given)
    return fn(input, indices, this.kernelSize, { stride: this.stride, padding: this.padding, outputSize })
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool1d`. */
export class MaxUnpool1d extends MaxUnpoolLayer {
  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments) {
    super('nn.MaxUnpool1d', 1, kernelSize, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    return this.unpool(maxUnpool1d, input, indices, outputSize)
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool2d`. */
export class MaxUnpool2d extends MaxUnpoolLayer {
  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments) {
    super('nn.MaxUnpool2d', 2, kernelSize, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    return this.unpool(maxUnpool2d, input, indices, outputSize)
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool3d`. */
export class MaxUnpool3d extends MaxUnpoolLayer {
  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments) {
    super('nn.MaxUnpool3d', 3, kernelSize, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    return this.unpool(maxUnpool3d, input, indices, outputSize)
  }
}

/** Options of the fractional pools: give `outputSize` or `outputRatio`. */
export interface FractionalPoolLayerOptions<Indices extends boolean = boolean> {
  readonly outputSize?: WindowSizes | null
  /** The sizes of the result as fractions of those of the input. */
  readonly outputRatio?: WindowSizes | null
  /** Also give the positions of the greatest, for unpooling. */
  readonly returnIndices?: Indices
  /** Where the windows start, in place of random numbers: uniform ones in [0, 1), [N, C, 2] or [N, C, 3]. */
  readonly _randomSamples?: Tensor | null
}

type FractionalArguments<I extends boolean> = Trailing<
  [outputSize: WindowSizes | null, outputRatio: WindowSizes | null],
  FractionalPoolLayerOptions<I>
>

abstract class FractionalMaxPoolLayer<I extends boolean> extends Module {
  readonly kernelSize: WindowSizes
  readonly outputSize: WindowSizes | null
  readonly outputRatio: WindowSizes | null
  readonly returnIndices: boolean
  declare _randomSamples: Tensor | null

  constructor(where: string, spatial: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super()
    const defaults: Required<FractionalPoolLayerOptions> = { outputSize: null, outputRatio: null, returnIndices: false, _randomSamples: null }
    const { outputSize, outputRatio, returnIndices, _randomSamples } = readOptions(where, defaults, given)
    perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    if ((outputSize === null) === (outputRatio === null)) throw new ArgumentError(`${where}: give outputSize or outputRatio, one of them.`)
    if (outputSize !== null) perDimension(where, 'outputSize', outputSize, spatial, 1)
    this.kernelSize = kernelSize
    this.outputSize = outputSize
    this.outputRatio = outputRatio
    this.returnIndices = returnIndices
    this.registerBuffer('_randomSamples', _randomSamples)
  }

  protected pool(input: Tensor, fn: typeof fractionalMaxPool2d): Pooled<I>
  protected pool(input: Tensor, fn: typeof fractionalMaxPool2d): Tensor | readonly [Tensor, Tensor] {
    const { kernelSize, outputSize, outputRatio, returnIndices, _randomSamples } = this
    const options = { outputSize, outputRatio, _randomSamples }
    return returnIndices ? fn(input, kernelSize, { ...options, returnIndices }) : fn(input, kernelSize, options)
  }
}

/**
 * The maximum over windows of [N, C, H, W] whose places are random, which makes any output size possible. PyTorch's `nn.FractionalMaxPool2d`.
 *
 * @example new nn.FractionalMaxPool2d(2, { outputRatio: 0.5 })
 */
export class FractionalMaxPool2d<Indices extends boolean = false> extends FractionalMaxPoolLayer<Indices> {
  constructor(kernelSize: WindowSizes, ...options: FractionalArguments<Indices>) {
    super('nn.FractionalMaxPool2d', 2, kernelSize, options)
  }

  override forward(input: Tensor): Pooled<Indices> {
    return this.pool(input, fractionalMaxPool2d)
  }
}

/**
 * The maximum over windows of [N, C, D, H, W] whose places are random, which makes any output size possible. PyTorch's `nn.FractionalMaxPool3d`.
 *
 * @example new nn.FractionalMaxPool3d(2, { outputRatio: 0.5 })
 */
export class FractionalMaxPool3d<Indices extends boolean = false> extends FractionalMaxPoolLayer<Indices> {
  constructor(kernelSize: WindowSizes, ...options: FractionalArguments<Indices>) {
    super('nn.FractionalMaxPool3d', 3, kernelSize, options)
  }

  override forward(input: Tensor): Pooled<Indices> {
    return this.pool(input, fractionalMaxPool3d)
  }
}

markLeaf(LPPool1d, LPPool2d, LPPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, FractionalMaxPool2d, FractionalMaxPool3d)
