// Activations as layers that always make a new tensor.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { full, sigmoid, tanh } from '../ops/index.ts'
import { formatShape, getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { gelu, glu, hardshrink, logSoftmax, logsigmoid, prelu, softmax, softmin, softplus, softshrink, softsign, tanhshrink } from './functional.ts'
import { constant_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { OptionLayer } from './optionLayer.ts'
import { checkInteger, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import { py, pyFloat } from './repr.ts'

/** 1 / (1 + e^-x). PyTorch's `nn.Sigmoid`. */
export class Sigmoid extends Module {
  override forward(input: Tensor): Tensor {
    return sigmoid(input)
  }
}

/** Hyperbolic tangent. PyTorch's `nn.Tanh`. */
export class Tanh extends Module {
  override forward(input: Tensor): Tensor {
    return tanh(input)
  }
}

/** log(sigmoid(x)). PyTorch's `nn.LogSigmoid`. */
export class LogSigmoid extends Module {
  override forward(input: Tensor): Tensor {
    return logsigmoid(input)
  }
}

/** x / (1 + |x|). PyTorch's `nn.Softsign`. */
export class Softsign extends Module {
  override forward(input: Tensor): Tensor {
    return softsign(input)
  }
}

/** x - tanh(x). PyTorch's `nn.Tanhshrink`. */
export class Tanhshrink extends Module {
  override forward(input: Tensor): Tensor {
    return tanhshrink(input)
  }
}

/** x times the normal distribution's cumulative probability. PyTorch's `nn.GELU`. */
export class GELU extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['approximate']
  readonly approximate: 'none' | 'tanh'

  constructor(...options: Trailing<['none' | 'tanh'], { readonly approximate?: 'none' | 'tanh' }>) {
    super()
    const { approximate } = readOptions<{ approximate: 'none' | 'tanh' }>('nn.GELU', { approximate: 'none' }, options)
    if (approximate !== 'none' && approximate !== 'tanh')
      throw new ArgumentError(`nn.GELU: approximate must be 'none' or 'tanh', got '${String(approximate)}'.`)
    this.approximate = approximate
  }

  override forward(input: Tensor): Tensor {
    return gelu(input, { approximate: this.approximate })
  }

  override extraRepr(): string {
    return `approximate=${py(this.approximate)}`
  }
}

/** What a shrinking activation shares: its limit. */
abstract class Shrink extends OptionLayer {
  declare readonly lambd: number

  constructor(where: string, given: readonly unknown[]) {
    super(where, { lambd: 0.5 }, given)
  }

  override extraRepr(): string {
    return pyFloat(this.lambd)
  }
}

/** 0 where |x| is at most `lambd` (0.5). PyTorch's `nn.Hardshrink`. */
export class Hardshrink extends Shrink {
  constructor(...options: Trailing<[lambd: number], { readonly lambd?: number }>) {
    super('nn.Hardshrink', options)
  }

  override forward(input: Tensor): Tensor {
    return hardshrink(input, this.lambd)
  }
}

/** x brought nearer to 0 by `lambd` (0.5). PyTorch's `nn.Softshrink`. */
export class Softshrink extends Shrink {
  constructor(...options: Trailing<[lambd: number], { readonly lambd?: number }>) {
    super('nn.Softshrink', options)
  }

  override forward(input: Tensor): Tensor {
    return softshrink(input, this.lambd)
  }
}

/** log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold. PyTorch's `nn.Softplus`. */
export class Softplus extends OptionLayer {
  declare readonly beta: number
  declare readonly threshold: number

  constructor(...options: Trailing<[beta: number, threshold: number], { readonly beta?: number; readonly threshold?: number }>) {
    super('nn.Softplus', { beta: 1, threshold: 20 }, options)
  }

  override forward(input: Tensor): Tensor {
    return softplus(input, { beta: this.beta, threshold: this.threshold })
  }

  override extraRepr(): string {
    return `beta=${pyFloat(this.beta)}, threshold=${pyFloat(this.threshold)}`
  }
}

/** What activations along a dimension share. */
abstract class AlongDimension extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['dim']
  readonly dim: number

  constructor(where: string, given: readonly unknown[], usual: number | null = null) {
    super()
    const { dim } = readOptions<{ dim: number | null }>(where, { dim: usual }, given)
    if (dim === null || !Number.isInteger(dim))
      throw new ArgumentError(`${where}: dim must be an integer, got ${String(dim)}. Give the dimension: new ${where}(-1).`)
    this.dim = dim
  }

  override extraRepr(): string {
    return `dim=${this.dim}`
  }
}

/** exp(x) normalized to sum 1 along `dim`. PyTorch's `nn.Softmax`. */
export class Softmax extends AlongDimension {
  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super('nn.Softmax', options)
  }

  override forward(input: Tensor): Tensor {
    return softmax(input, { dim: this.dim })
  }
}

/** log(softmax(x)) along `dim`. PyTorch's `nn.LogSoftmax`. */
export class LogSoftmax extends AlongDimension {
  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super('nn.LogSoftmax', options)
  }

  override forward(input: Tensor): Tensor {
    return logSoftmax(input, { dim: this.dim })
  }
}

/** exp(-x) normalized to sum 1 along `dim`. PyTorch's `nn.Softmin`. */
export class Softmin extends AlongDimension {
  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super('nn.Softmin', options)
  }

  override forward(input: Tensor): Tensor {
    return softmin(input, this.dim)
  }
}

/** The first half of the channels times the sigmoid of the second, along `dim` (-1). PyTorch's `nn.GLU`. */
export class GLU extends AlongDimension {
  constructor(...options: Trailing<[dim: number], { readonly dim?: number }>) {
    super('nn.GLU', options, -1)
  }

  override forward(input: Tensor): Tensor {
    return glu(input, this.dim)
  }
}

/** Softmax over the channels of [N, C, H, W] or [C, H, W]. PyTorch's `nn.Softmax2d`. */
export class Softmax2d extends Module {
  override forward(input: Tensor): Tensor {
    if (input.ndim !== 3 && input.ndim !== 4)
      throw new ArgumentError(`nn.Softmax2d: the input must be [N, C, H, W] or [C, H, W], got shape ${formatShape(input.shape)}.`)
    return softmax(input, { dim: -3 })
  }
}

/** Options of {@link PReLU}. */
export interface PReLUOptions {
  /** One slope for all channels (1, the default), or one for each. */
  readonly numParameters?: number
  /** The first slope; default 0.25. */
  readonly init?: number
  readonly dtype?: DType
}

/** x where positive, else x times a learned slope. PyTorch's `nn.PReLU`. */
export class PReLU extends Module {
  readonly numParameters: number
  readonly init: number
  /** [numParameters] */
  weight: Parameter

  constructor(...options: Trailing<[numParameters: number, init: number], PReLUOptions>) {
    super()
    const defaults: Required<PReLUOptions> = { numParameters: 1, init: 0.25, dtype: getDefaultDtype() }
    const { numParameters, init, dtype } = readOptions('nn.PReLU', defaults, options)
    checkInteger('nn.PReLU', 'numParameters', numParameters)
    this.numParameters = numParameters
    this.init = init
    this.weight = new Parameter(full([numParameters], init, { dtype }))
  }

  /** All slopes as at the start. */
  resetParameters(): void {
    constant_(this.weight, this.init)
  }

  override forward(input: Tensor): Tensor {
    return prelu(input, this.weight)
  }

  override extraRepr(): string {
    return `num_parameters=${this.numParameters}`
  }
}

markLeaf(Sigmoid, Tanh, LogSigmoid, Softsign, Tanhshrink, GELU, Hardshrink, Softshrink, Softplus, Softmax, LogSoftmax, Softmin, GLU, Softmax2d, PReLU)
