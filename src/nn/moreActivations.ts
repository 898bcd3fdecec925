// More activations as layers: a function of torch.nn.functional each, and its options.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { full } from '../ops/index.ts'
import { formatShape, getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { readDim } from './activation.ts'
import {
  celu,
  glu,
  hardshrink,
  hardsigmoid,
  hardswish,
  hardtanh,
  logsigmoid,
  mish,
  prelu,
  rrelu,
  selu,
  softmax,
  softmin,
  softplus,
  softshrink,
  softsign,
  tanhshrink,
  threshold,
} from './functional.ts'
import { constant_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { OptionLayer } from './optionLayer.ts'
import { checkInteger, checkNumber, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import { pyFloat } from './repr.ts'

/** max(0, x) + min(0, alpha * (e^(x / alpha) - 1)). PyTorch's `nn.CELU`. */
export class CELU extends OptionLayer {
  declare readonly alpha: number

  constructor(...options: Trailing<[alpha: number], { readonly alpha?: number }>) {
    super('nn.CELU', { alpha: 1 }, options)
  }

  override forward(input: Tensor): Tensor {
    return celu(input, this.alpha)
  }

  override extraRepr(): string {
    return `alpha=${pyFloat(this.alpha)}`
  }
}

/** The ELU that keeps mean 0 and variance 1. PyTorch's `nn.SELU`. */
export class SELU extends Module {
  override forward(input: Tensor): Tensor {
    return selu(input)
  }
}

/** The first half of the channels times the sigmoid of the second, along `dim` (-1). PyTorch's `nn.GLU`. */
export class GLU extends OptionLayer {
  declare readonly dim: number

  constructor(...options: Trailing<[dim: number], { readonly dim?: number }>) {
    super('nn.GLU', { dim: -1 }, options)
  }

  override forward(input: Tensor): Tensor {
    return glu(input, this.dim)
  }

  override extraRepr(): string {
    return `dim=${this.dim}`
  }
}

/** 0 where |x| is at most `lambd` (0.5). PyTorch's `nn.Hardshrink`. */
export class Hardshrink extends OptionLayer {
  declare readonly lambd: number

  constructor(...options: Trailing<[lambd: number], { readonly lambd?: number }>) {
    super('nn.Hardshrink', { lambd: 0.5 }, options)
  }

  override forward(input: Tensor): Tensor {
    return hardshrink(input, this.lambd)
  }

  override extraRepr(): string {
    return pyFloat(this.lambd)
  }
}

/** x brought nearer to 0 by `lambd` (0.5). PyTorch's `nn.Softshrink`. */
export class Softshrink extends OptionLayer {
  declare readonly lambd: number

  constructor(...options: Trailing<[lambd: number], { readonly lambd?: number }>) {
    super('nn.Softshrink', { lambd: 0.5 }, options)
  }

  override forward(input: Tensor): Tensor {
    return softshrink(input, this.lambd)
  }

  override extraRepr(): string {
    return pyFloat(this.lambd)
  }
}

/** x, but at least `minVal` (-1) and at most `maxVal` (1). PyTorch's `nn.Hardtanh`. */
export class Hardtanh extends OptionLayer {
  declare readonly minVal: number
  declare readonly maxVal: number

  constructor(...options: Trailing<[minVal: number, maxVal: number], { readonly minVal?: number; readonly maxVal?: number }>) {
    super('nn.Hardtanh', { minVal: -1, maxVal: 1 }, options)
    checkNumber('nn.Hardtanh', 'minVal', this.minVal, 'a number', () => true)
    checkNumber('nn.Hardtanh', 'maxVal', this.maxVal, 'a number', () => true)
    if (!(this.minVal < this.maxVal)) throw new ArgumentError(`nn.Hardtanh: minVal must be below maxVal, got ${this.minVal} and ${this.maxVal}.`)
  }

  override forward(input: Tensor): Tensor {
    return hardtanh(input, this.minVal, this.maxVal)
  }

  override extraRepr(): string {
    return `min_val=${pyFloat(this.minVal)}, max_val=${pyFloat(this.maxVal)}`
  }
}

/** x, but at least 0 and at most 6. PyTorch's `nn.ReLU6`. */
export class ReLU6 extends Hardtanh {
  constructor() {
    super(0, 6)
  }

  override extraRepr(): string {
    return ''
  }
}

/** x above the threshold, elsewhere `value`. PyTorch's `nn.Threshold`. */
export class Threshold extends Module {
  readonly threshold: number
  readonly value: number

  constructor(limit: number, value: number) {
    super()
    checkNumber('nn.Threshold', 'threshold', limit, 'a number', () => true)
    checkNumber('nn.Threshold', 'value', value, 'a number', () => true)
    this.threshold = limit
    this.value = value
  }

  override forward(input: Tensor): Tensor {
    return threshold(input, this.threshold, this.value)
  }

  override extraRepr(): string {
    return `threshold=${this.threshold}, value=${this.value}`
  }
}

/** x * tanh(softplus(x)). PyTorch's `nn.Mish`. */
export class Mish extends Module {
  override forward(input: Tensor): Tensor {
    return mish(input)
  }
}

/** x * relu6(x + 3) / 6. PyTorch's `nn.Hardswish`. */
export class Hardswish extends Module {
  override forward(input: Tensor): Tensor {
    return hardswish(input)
  }
}

/** relu6(x + 3) / 6. PyTorch's `nn.Hardsigmoid`. */
export class Hardsigmoid extends Module {
  override forward(input: Tensor): Tensor {
    return hardsigmoid(input)
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

/** exp(-x) normalized to sum 1 along `dim`. PyTorch's `nn.Softmin`. */
export class Softmin extends Module {
  readonly dim: number

  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super()
    this.dim = readDim('nn.Softmin', options)
  }

  override forward(input: Tensor): Tensor {
    return softmin(input, this.dim)
  }

  override extraRepr(): string {
    return `dim=${this.dim}`
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

/** x where positive, else x times a slope, drawn between `lower` (1/8) and `upper` (1/3) in training and in the middle of them otherwise. PyTorch's `nn.RReLU`. */
export class RReLU extends OptionLayer {
  declare readonly lower: number
  declare readonly upper: number

  constructor(...options: Trailing<[lower: number, upper: number], { readonly lower?: number; readonly upper?: number }>) {
    super('nn.RReLU', { lower: 1 / 8, upper: 1 / 3 }, options)
  }

  override forward(input: Tensor): Tensor {
    return rrelu(input, { lower: this.lower, upper: this.upper, training: this.training })
  }

  override extraRepr(): string {
    return `lower=${pyFloat(this.lower)}, upper=${pyFloat(this.upper)}`
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

markLeaf(CELU, SELU, GLU, Hardshrink, Softshrink, Hardtanh, ReLU6, Threshold, Mish, Hardswish, Hardsigmoid, LogSigmoid)
markLeaf(Softsign, Tanhshrink, Softplus, Softmin, Softmax2d, RReLU, PReLU)
