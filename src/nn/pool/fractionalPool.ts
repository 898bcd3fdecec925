// Maximum pools over windows at random places.
import { checkCount, ownCopy } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { fractionalMaxPool2d, fractionalMaxPool3d } from '../functional.ts'
import { perDimension, readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import type { Pooled, WindowSizes } from './pool.ts'
import type { FunctionFacts } from '../layerFacts.ts'

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
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof fractionalMaxPool2d>
  /** @internal */
  declare readonly ['constructor']: typeof FractionalMaxPoolLayer

  readonly kernelSize: WindowSizes
  readonly outputSize: WindowSizes | null
  readonly outputRatio: WindowSizes | null
  readonly returnIndices: boolean
  declare _randomSamples: Tensor | null

  constructor(kernelSize: WindowSizes, ...options: FractionalArguments<I>)
  constructor(...args: Named<[['kernelSize', WindowSizes]], FractionalArguments<I>>)
  constructor(...args: readonly unknown[]) {
    const { name: where, spatial } = new.target.layer
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>(where, ['kernelSize'], args)
    super()
    const defaults: Required<FractionalPoolLayerOptions> = { outputSize: null, outputRatio: null, returnIndices: false, _randomSamples: null }
    const { outputSize, outputRatio, returnIndices, _randomSamples } = readOptions(where, defaults, options)
    perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    if ((outputSize === null) === (outputRatio === null)) throw new ArgumentError(`${where}: give outputSize or outputRatio, one of them.`)
    if (outputSize !== null) perDimension(where, 'outputSize', outputSize, spatial, 1)
    this.kernelSize = ownCopy(kernelSize)
    this.outputSize = outputSize
    this.outputRatio = outputRatio
    this.returnIndices = returnIndices
    this.registerBuffer('_randomSamples', _randomSamples)
  }

  override forward(input: Tensor): Pooled<I>
  override forward(input: Tensor): Tensor | readonly [Tensor, Tensor] {
    checkCount(this, arguments, 1)
    const { fn } = this.constructor.layer
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
  /** @internal */
  static override readonly layer: FunctionFacts<typeof fractionalMaxPool2d> = { name: 'nn.FractionalMaxPool2d', spatial: 2, fn: fractionalMaxPool2d }
}

/**
 * The maximum over windows of [N, C, D, H, W] whose places are random, which makes any output size possible. PyTorch's `nn.FractionalMaxPool3d`.
 *
 * @example new nn.FractionalMaxPool3d(2, { outputRatio: 0.5 })
 */
export class FractionalMaxPool3d<Indices extends boolean = false> extends FractionalMaxPoolLayer<Indices> {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof fractionalMaxPool2d> = { name: 'nn.FractionalMaxPool3d', spatial: 3, fn: fractionalMaxPool3d }
}
