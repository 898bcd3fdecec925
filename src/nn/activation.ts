// Activations as layers.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { sigmoid, tanh } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { elu, gelu, leakyRelu, logSoftmax, relu, silu, softmax } from './functional.ts'
import { markLeaf } from './leaf.ts'
import { readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { py, pyFloat } from './repr.ts'

/** max(x, 0); `inplace` overwrites the input. PyTorch's `nn.ReLU`. */
export class ReLU extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['inplace']
  readonly inplace: boolean

  constructor(...options: Trailing<[inplace: boolean], { readonly inplace?: boolean }>) {
    super()
    this.inplace = readOptions('nn.ReLU', { inplace: false }, options).inplace
  }

  override forward(input: Tensor): Tensor {
    return relu(input, { inplace: this.inplace })
  }

  override extraRepr(): string {
    return this.inplace ? 'inplace=True' : ''
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

/** x * sigmoid(x). PyTorch's `nn.SiLU`. */
export class SiLU extends Module {
  override forward(input: Tensor): Tensor {
    return silu(input)
  }
}

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

/** x where positive, else negativeSlope * x. PyTorch's `nn.LeakyReLU`. */
export class LeakyReLU extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['negative_slope']
  readonly negativeSlope: number

  constructor(...options: Trailing<[negativeSlope: number], { readonly negativeSlope?: number }>) {
    super()
    this.negativeSlope = readOptions('nn.LeakyReLU', { negativeSlope: 0.01 }, options).negativeSlope
  }

  override forward(input: Tensor): Tensor {
    return leakyRelu(input, this.negativeSlope)
  }

  override extraRepr(): string {
    return `negative_slope=${pyFloat(this.negativeSlope)}`
  }
}

/** x where positive, else alpha * (e^x - 1). PyTorch's `nn.ELU`. */
export class ELU extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['alpha']
  readonly alpha: number

  constructor(...options: Trailing<[alpha: number], { readonly alpha?: number }>) {
    super()
    this.alpha = readOptions('nn.ELU', { alpha: 1 }, options).alpha
  }

  override forward(input: Tensor): Tensor {
    return elu(input, this.alpha)
  }

  override extraRepr(): string {
    return `alpha=${pyFloat(this.alpha)}`
  }
}

/** The option `dim` of a layer that needs one. */
export function readDim(where: string, options: readonly unknown[]): number {
  const { dim } = readOptions<{ dim: number | null }>(where, { dim: null }, options)
  if (dim === null || !Number.isInteger(dim))
    throw new ArgumentError(`${where}: dim must be an integer, got ${String(dim)}. Give the dimension: new ${where}(-1).`)
  return dim
}

/** exp(x) normalized to sum 1 along `dim`. PyTorch's `nn.Softmax`. */
export class Softmax extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['dim']
  readonly dim: number

  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super()
    this.dim = readDim('nn.Softmax', options)
  }

  override forward(input: Tensor): Tensor {
    return softmax(input, { dim: this.dim })
  }

  override extraRepr(): string {
    return `dim=${this.dim}`
  }
}

/** log(softmax(x)) along `dim`. PyTorch's `nn.LogSoftmax`. */
export class LogSoftmax extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['dim']
  readonly dim: number

  constructor(...options: [dim: number] | [{ readonly dim: number }]) {
    super()
    this.dim = readDim('nn.LogSoftmax', options)
  }

  override forward(input: Tensor): Tensor {
    return logSoftmax(input, { dim: this.dim })
  }

  override extraRepr(): string {
    return `dim=${this.dim}`
  }
}

markLeaf(ReLU, GELU, SiLU, Sigmoid, Tanh, LeakyReLU, ELU, Softmax, LogSoftmax)
