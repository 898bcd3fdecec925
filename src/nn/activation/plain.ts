// Activations of single elements as layers: those that have no in-place form.
import { Module } from '../../module/index.ts'
import { sigmoid, tanh } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkCount, py, pyFloat } from '../../protocol/index.ts'
import { gelu, hardshrink, logsigmoid, softplus, softshrink, softsign, tanhshrink } from '../functional.ts'
import { OptionLayer } from '../optionLayer.ts'
import { readOptions } from '../options.ts'
import type { Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

interface PlainFacts extends LayerFacts {
  readonly fn: (input: Tensor) => Tensor
}

/** An activation without options. */
abstract class Plain extends Module {
  /** @internal */
  declare static readonly layer: PlainFacts
  /** @internal */
  declare readonly ['constructor']: typeof Plain

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.constructor.layer.fn(input)
  }
}

/** 1 / (1 + e^-x). PyTorch's `nn.Sigmoid`. */
export class Sigmoid extends Plain {
  /** @internal */
  static override readonly layer: PlainFacts = { name: 'nn.Sigmoid', fn: sigmoid }
}

/** Hyperbolic tangent. PyTorch's `nn.Tanh`. */
export class Tanh extends Plain {
  /** @internal */
  static override readonly layer: PlainFacts = { name: 'nn.Tanh', fn: tanh }
}

/** log(sigmoid(x)). PyTorch's `nn.LogSigmoid`. */
export class LogSigmoid extends Plain {
  /** @internal */
  static override readonly layer: PlainFacts = { name: 'nn.LogSigmoid', fn: logsigmoid }
}

/** x / (1 + |x|). PyTorch's `nn.Softsign`. */
export class Softsign extends Plain {
  /** @internal */
  static override readonly layer: PlainFacts = { name: 'nn.Softsign', fn: softsign }
}

/** x - tanh(x). PyTorch's `nn.Tanhshrink`. */
export class Tanhshrink extends Plain {
  /** @internal */
  static override readonly layer: PlainFacts = { name: 'nn.Tanhshrink', fn: tanhshrink }
}

/** x times the normal distribution's cumulative probability. PyTorch's `nn.GELU`. */
export class GELU extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.GELU' }

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
    checkCount(this, arguments, 1)
    return gelu(input, { approximate: this.approximate })
  }

  override extraRepr(): string {
    return `approximate=${py(this.approximate)}`
  }
}

/** What a shrinking activation shares: its limit. */
abstract class Shrink extends OptionLayer {
  declare readonly lambd: number

  constructor(...options: Trailing<[lambd: number], { readonly lambd?: number }>) {
    super({ lambd: 0.5 }, options)
  }

  override extraRepr(): string {
    return pyFloat(this.lambd)
  }
}

/** 0 where |x| is at most `lambd` (0.5). PyTorch's `nn.Hardshrink`. */
export class Hardshrink extends Shrink {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Hardshrink' }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return hardshrink(input, this.lambd)
  }
}

/** x brought nearer to 0 by `lambd` (0.5). PyTorch's `nn.Softshrink`. */
export class Softshrink extends Shrink {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Softshrink' }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return softshrink(input, this.lambd)
  }
}

/** log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold. PyTorch's `nn.Softplus`. */
export class Softplus extends OptionLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Softplus' }

  declare readonly beta: number
  declare readonly threshold: number

  constructor(...options: Trailing<[beta: number, threshold: number], { readonly beta?: number; readonly threshold?: number }>) {
    super({ beta: 1, threshold: 20 }, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return softplus(input, { beta: this.beta, threshold: this.threshold })
  }

  override extraRepr(): string {
    return `beta=${pyFloat(this.beta)}, threshold=${pyFloat(this.threshold)}`
  }
}
