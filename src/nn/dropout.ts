// Dropout as layers: of elements, and of whole channels.
import { Module } from '../module/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkCount, py, pyFloat } from '../protocol/index.ts'
import { alphaDropout, dropout, dropout1d, dropout2d, dropout3d, featureAlphaDropout } from './functional.ts'
import { checkNumber, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import type { LayerFacts } from './layerFacts.ts'

/** Options of the dropout layers. */
export interface DropoutLayerOptions {
  /** The probability of being dropped; default 0.5. */
  readonly p?: number
  /** Overwrite the input. */
  readonly inplace?: boolean
}

type DropoutArguments = Trailing<[p: number, inplace: boolean], DropoutLayerOptions>

interface DropoutFacts extends LayerFacts {
  readonly fn: typeof dropout
}

/** What the dropout layers share. */
abstract class DropoutLayer extends Module {
  /** @internal */
  declare static readonly layer: DropoutFacts
  /** @internal */
  declare readonly ['constructor']: typeof DropoutLayer

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['p', 'inplace']
  readonly p: number
  readonly inplace: boolean

  constructor(...options: DropoutArguments) {
    const where = new.target.layer.name
    super()
    const { p, inplace } = readOptions(where, { p: 0.5, inplace: false }, options)
    checkNumber(where, 'p', p, 'a probability between 0 and 1', (v) => v >= 0 && v <= 1)
    this.p = p
    this.inplace = inplace
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.constructor.layer.fn(input, { p: this.p, training: this.training, inplace: this.inplace })
  }

  override extraRepr(): string {
    return `p=${pyFloat(this.p)}, inplace=${py(this.inplace)}`
  }
}

/** In training, zeroes elements with probability `p` (0.5) and scales the others by 1 / (1 - p). PyTorch's `nn.Dropout`. */
export class Dropout extends DropoutLayer {
  /** @internal */
  static override readonly layer: DropoutFacts = { name: 'nn.Dropout', fn: dropout }
}

/** In training, zeroes whole channels of [N, C, L] or [C, L] with probability `p` (0.5) and scales the others by 1 / (1 - p). PyTorch's `nn.Dropout1d`. */
export class Dropout1d extends DropoutLayer {
  /** @internal */
  static override readonly layer: DropoutFacts = { name: 'nn.Dropout1d', fn: dropout1d }
}

/** In training, zeroes whole channels of [N, C, H, W] with probability `p` (0.5) and scales the others by 1 / (1 - p). PyTorch's `nn.Dropout2d`. */
export class Dropout2d extends DropoutLayer {
  /** @internal */
  static override readonly layer: DropoutFacts = { name: 'nn.Dropout2d', fn: dropout2d }
}

/** In training, zeroes whole channels of [N, C, D, H, W] or [C, D, H, W] with probability `p` (0.5) and scales the others by 1 / (1 - p). PyTorch's `nn.Dropout3d`. */
export class Dropout3d extends DropoutLayer {
  /** @internal */
  static override readonly layer: DropoutFacts = { name: 'nn.Dropout3d', fn: dropout3d }
}

/** Dropout that keeps the mean and the variance of what SELU gives: in training, dropped elements become its limit. PyTorch's `nn.AlphaDropout`. */
export class AlphaDropout extends DropoutLayer {
  /** @internal */
  static override readonly layer: DropoutFacts = { name: 'nn.AlphaDropout', fn: alphaDropout }
}

/** {@link AlphaDropout} of whole channels of [N, C, ..]. PyTorch's `nn.FeatureAlphaDropout`. */
export class FeatureAlphaDropout extends DropoutLayer {
  /** @internal */
  static override readonly layer: DropoutFacts = { name: 'nn.FeatureAlphaDropout', fn: featureAlphaDropout }
}
