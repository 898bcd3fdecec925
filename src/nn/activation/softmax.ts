// Activations along a dimension: softmax and related functions, and the gated linear unit.
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { checkCount, valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { glu, logSoftmax, softmax, softmin } from '../functional.ts'
import { readOptions } from '../options.ts'
import type { Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** What activations along a dimension share. */
abstract class AlongDimension extends Module {
  /** @internal */
  declare static readonly layer: LayerFacts

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['dim']
  readonly dim: number

  constructor(given: readonly unknown[], usual: number | null = null) {
    const where = new.target.layer.name
    super()
    const { dim } = readOptions<{ dim: number | null }>(where, { dim: usual }, given)
    if (dim === null || !Number.isInteger(dim))
      throw new ArgumentError(`${where}: dim must be an integer, got ${valueText(dim)}. Give the dimension: new ${where}(-1).`)
    this.dim = dim
  }

  override extraRepr(): string {
    return `dim=${this.dim}`
  }
}

/** exp(x) normalized to sum 1 along `dim`. PyTorch's `nn.Softmax`. */
export class Softmax extends AlongDimension {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Softmax' }

  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super(options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return softmax(input, { dim: this.dim })
  }
}

/** log(softmax(x)) along `dim`. PyTorch's `nn.LogSoftmax`. */
export class LogSoftmax extends AlongDimension {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LogSoftmax' }

  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super(options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return logSoftmax(input, { dim: this.dim })
  }
}

/** exp(-x) normalized to sum 1 along `dim`. PyTorch's `nn.Softmin`. */
export class Softmin extends AlongDimension {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Softmin' }

  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super(options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return softmin(input, this.dim)
  }
}

/** The first half of the channels times the sigmoid of the second, along `dim` (-1). PyTorch's `nn.GLU`. */
export class GLU extends AlongDimension {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.GLU' }

  constructor(...options: Trailing<[dim: number], { readonly dim?: number }>) {
    super(options, -1)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return glu(input, this.dim)
  }
}

/** Softmax over the channels of [N, C, H, W] or [C, H, W]. PyTorch's `nn.Softmax2d`. */
export class Softmax2d extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Softmax2d' }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    if (input.ndim !== 3 && input.ndim !== 4)
      throw new ArgumentError(`nn.Softmax2d: the input must be [N, C, H, W] or [C, H, W], got shape ${formatShape(input.shape)}.`)
    return softmax(input, { dim: -3 })
  }
}
