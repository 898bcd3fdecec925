// Activations of single elements as layers: those that can work in place.
import { ArgumentError } from '../../errors/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { checkCount, pyFloat } from '../../protocol/index.ts'
import { celu, elu, hardsigmoid, hardswish, hardtanh, leakyRelu, mish, relu, rrelu, selu, silu, threshold } from '../functional.ts'
import { OptionLayer } from '../optionLayer.ts'
import { checkNumber, readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** The option of activations without others. */
export interface InplaceOptions {
  /** Overwrite the input. */
  readonly inplace?: boolean
}

type OnlyInplace = Trailing<[inplace: boolean], InplaceOptions>

/** An activation whose result may go into its input, as PyTorch's option `inplace` asks. */
abstract class Activation extends OptionLayer {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['inplace']
  declare readonly inplace: boolean

  /** The values of the activation. */
  protected abstract activate(input: Tensor): Tensor

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    // The derivative may need the values that are overwritten.
    return this.inplace ? input.copy_(this.activate(input.clone())) : this.activate(input)
  }

  /** The options that are printed before `inplace`. */
  protected shown(): readonly string[] {
    return []
  }

  override extraRepr(): string {
    return [...this.shown(), ...(this.inplace ? ['inplace=True'] : [])].join(', ')
  }
}

/** The facts of an activation that has a function without options. */
interface ActivationFacts extends LayerFacts {
  readonly fn: (input: Tensor) => Tensor
}

/** An activation without options but `inplace`. */
abstract class PlainActivation extends Activation {
  /** @internal */
  declare static readonly layer: ActivationFacts
  /** @internal */
  declare readonly ['constructor']: typeof PlainActivation

  constructor(...options: OnlyInplace) {
    super({ inplace: false }, options)
  }

  protected override activate(input: Tensor): Tensor {
    return this.constructor.layer.fn(input)
  }
}

/** max(x, 0). PyTorch's `nn.ReLU`. */
export class ReLU extends PlainActivation {
  /** @internal */
  static override readonly layer: ActivationFacts = { name: 'nn.ReLU', fn: relu }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return relu(input, { inplace: this.inplace })
  }
}

/** x * sigmoid(x). PyTorch's `nn.SiLU`. */
export class SiLU extends PlainActivation {
  /** @internal */
  static override readonly layer: ActivationFacts = { name: 'nn.SiLU', fn: silu }
}

/** x * tanh(softplus(x)). PyTorch's `nn.Mish`. */
export class Mish extends PlainActivation {
  /** @internal */
  static override readonly layer: ActivationFacts = { name: 'nn.Mish', fn: mish }
}

/** The ELU that keeps mean 0 and variance 1. PyTorch's `nn.SELU`. */
export class SELU extends PlainActivation {
  /** @internal */
  static override readonly layer: ActivationFacts = { name: 'nn.SELU', fn: selu }
}

/** x * relu6(x + 3) / 6. PyTorch's `nn.Hardswish`. */
export class Hardswish extends PlainActivation {
  /** @internal */
  static override readonly layer: ActivationFacts = { name: 'nn.Hardswish', fn: hardswish }

  override extraRepr(): string {
    return ''
  }
}

/** relu6(x + 3) / 6. PyTorch's `nn.Hardsigmoid`. */
export class Hardsigmoid extends PlainActivation {
  /** @internal */
  static override readonly layer: ActivationFacts = { name: 'nn.Hardsigmoid', fn: hardsigmoid }

  override extraRepr(): string {
    return ''
  }
}

/** x where positive, else negativeSlope * x. PyTorch's `nn.LeakyReLU`. */
export class LeakyReLU extends Activation {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LeakyReLU' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static override readonly constants: readonly string[] = ['negative_slope']
  declare readonly negativeSlope: number

  constructor(...options: Trailing<[negativeSlope: number, inplace: boolean], InplaceOptions & { readonly negativeSlope?: number }>) {
    super({ negativeSlope: 0.01, inplace: false }, options)
  }

  protected override activate(input: Tensor): Tensor {
    return leakyRelu(input, this.negativeSlope)
  }

  protected override shown(): readonly string[] {
    return [`negative_slope=${pyFloat(this.negativeSlope)}`]
  }
}

/** x where positive, else alpha * (e^x - 1). PyTorch's `nn.ELU`. */
export class ELU extends Activation {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.ELU' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static override readonly constants: readonly string[] = ['alpha']
  declare readonly alpha: number

  constructor(...options: Trailing<[alpha: number, inplace: boolean], InplaceOptions & { readonly alpha?: number }>) {
    super({ alpha: 1, inplace: false }, options)
  }

  protected override activate(input: Tensor): Tensor {
    return elu(input, this.alpha)
  }

  protected override shown(): readonly string[] {
    return [`alpha=${pyFloat(this.alpha)}`]
  }
}

/** max(0, x) + min(0, alpha * (e^(x / alpha) - 1)). PyTorch's `nn.CELU`. */
export class CELU extends Activation {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.CELU' }

  declare readonly alpha: number

  constructor(...options: Trailing<[alpha: number, inplace: boolean], InplaceOptions & { readonly alpha?: number }>) {
    super({ alpha: 1, inplace: false }, options)
  }

  protected override activate(input: Tensor): Tensor {
    return celu(input, this.alpha)
  }

  protected override shown(): readonly string[] {
    return [`alpha=${pyFloat(this.alpha)}`]
  }
}

/** Options of {@link Hardtanh}. */
export interface HardtanhOptions extends InplaceOptions {
  readonly minVal?: number
  readonly maxVal?: number
}

/** x, but at least `minVal` (-1) and at most `maxVal` (1). PyTorch's `nn.Hardtanh`. */
export class Hardtanh extends Activation {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Hardtanh' }

  declare readonly minVal: number
  declare readonly maxVal: number

  constructor(...options: Trailing<[minVal: number, maxVal: number, inplace: boolean], HardtanhOptions>) {
    super({ minVal: -1, maxVal: 1, inplace: false }, options)
    checkNumber('nn.Hardtanh', 'minVal', this.minVal, 'a number', () => true)
    checkNumber('nn.Hardtanh', 'maxVal', this.maxVal, 'a number', () => true)
    if (!(this.minVal < this.maxVal)) throw new ArgumentError(`nn.Hardtanh: minVal must be below maxVal, got ${this.minVal} and ${this.maxVal}.`)
  }

  protected override activate(input: Tensor): Tensor {
    return hardtanh(input, this.minVal, this.maxVal)
  }

  protected override shown(): readonly string[] {
    return [`min_val=${pyFloat(this.minVal)}`, `max_val=${pyFloat(this.maxVal)}`]
  }
}

/** x, but at least 0 and at most 6. PyTorch's `nn.ReLU6`. */
export class ReLU6 extends Hardtanh {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.ReLU6' }

  constructor(...options: OnlyInplace) {
    super(0, 6, readOptions('nn.ReLU6', { inplace: false }, options))
  }

  protected override shown(): readonly string[] {
    return []
  }
}

/** x above the threshold, elsewhere `value`. PyTorch's `nn.Threshold`. */
export class Threshold extends Activation {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Threshold' }

  readonly threshold: number
  readonly value: number

  constructor(threshold: number, value: number, ...options: OnlyInplace)
  constructor(...args: Named<[['threshold', number], ['value', number]], OnlyInplace>)
  constructor(...args: readonly unknown[]) {
    const [limit, value, ...options] = readRequired<[threshold: number, value: number]>('nn.Threshold', ['threshold', 'value'], args)
    super({ inplace: false }, options)
    checkNumber('nn.Threshold', 'threshold', limit, 'a number', () => true)
    checkNumber('nn.Threshold', 'value', value, 'a number', () => true)
    this.threshold = limit
    this.value = value
  }

  protected override activate(input: Tensor): Tensor {
    return threshold(input, this.threshold, this.value)
  }

  protected override shown(): readonly string[] {
    return [`threshold=${this.threshold}`, `value=${this.value}`]
  }
}

/** Options of {@link RReLU}. */
export interface RReLUOptions extends InplaceOptions {
  readonly lower?: number
  readonly upper?: number
}

/** x where positive, else x times a slope, drawn between `lower` (1/8) and `upper` (1/3) in training and in the middle of them otherwise. PyTorch's `nn.RReLU`. */
export class RReLU extends Activation {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.RReLU' }

  declare readonly lower: number
  declare readonly upper: number

  constructor(...options: Trailing<[lower: number, upper: number, inplace: boolean], RReLUOptions>) {
    super({ lower: 1 / 8, upper: 1 / 3, inplace: false }, options)
  }

  protected override activate(input: Tensor): Tensor {
    return rrelu(input, { lower: this.lower, upper: this.upper, training: this.training })
  }

  protected override shown(): readonly string[] {
    return [`lower=${pyFloat(this.lower)}`, `upper=${pyFloat(this.upper)}`]
  }
}
