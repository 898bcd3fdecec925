// Padding as layers: what stands at the border.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import type { PadMode } from '../ops/index.ts'
import { checkCount, ownCopy, py, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { pad } from './functional.ts'
import { checkNumber, readRequired } from './options.ts'
import type { Named } from './options.ts'
import type { SpatialFacts } from './layerFacts.ts'

/** How much to add: everywhere, or [left, right, top, bottom, …], the last dimension first. A negative amount cuts off. */
export type PaddingSides = number | readonly number[]

interface PadFacts extends SpatialFacts {
  readonly mode: PadMode
}

/** What the padding layers share. */
abstract class PadLayer extends Module {
  /** @internal */
  declare static readonly layer: PadFacts

  readonly padding: readonly number[]
  readonly value: number
  protected readonly mode: PadMode

  constructor(padding: PaddingSides, value: number) {
    const { name: where, spatial, mode } = new.target.layer
    super()
    const sides: unknown = typeof padding === 'number' ? Array.from({ length: 2 * spatial }, () => padding) : padding
    if (!Array.isArray(sides) || sides.length !== 2 * spatial || !sides.every(Number.isInteger))
      throw new ArgumentError(`${where}: padding must be an integer or an array of ${2 * spatial}, got ${valueText(padding)}.`)
    checkNumber(where, 'value', value, 'a number', () => true)
    this.padding = ownCopy(sides)
    this.value = value
    this.mode = mode
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return pad(input, this.padding, { mode: this.mode, value: this.value })
  }

  override extraRepr(): string {
    return py(this.padding)
  }
}

/** A border that follows from the input, or is 0. */
abstract class BorderPad extends PadLayer {
  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>(new.target.layer.name, ['padding'], args, false)
    super(padding, 0)
  }
}

/** Pads the last dimension with the mirror image, without the edge. PyTorch's `nn.ReflectionPad1d`. */
export class ReflectionPad1d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ReflectionPad1d', spatial: 1, mode: 'reflect' }
}

/** Pads the last two dimensions with the mirror image, without the edge. PyTorch's `nn.ReflectionPad2d`. */
export class ReflectionPad2d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ReflectionPad2d', spatial: 2, mode: 'reflect' }
}

/** Pads the last three dimensions with the mirror image, without the edge. PyTorch's `nn.ReflectionPad3d`. */
export class ReflectionPad3d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ReflectionPad3d', spatial: 3, mode: 'reflect' }
}

/** Pads the last dimension with the edge. PyTorch's `nn.ReplicationPad1d`. */
export class ReplicationPad1d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ReplicationPad1d', spatial: 1, mode: 'replicate' }
}

/** Pads the last two dimensions with the edge. PyTorch's `nn.ReplicationPad2d`. */
export class ReplicationPad2d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ReplicationPad2d', spatial: 2, mode: 'replicate' }
}

/** Pads the last three dimensions with the edge. PyTorch's `nn.ReplicationPad3d`. */
export class ReplicationPad3d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ReplicationPad3d', spatial: 3, mode: 'replicate' }
}

/** Pads the last dimension with the other side. PyTorch's `nn.CircularPad1d`. */
export class CircularPad1d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.CircularPad1d', spatial: 1, mode: 'circular' }
}

/** Pads the last two dimensions with the other side. PyTorch's `nn.CircularPad2d`. */
export class CircularPad2d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.CircularPad2d', spatial: 2, mode: 'circular' }
}

/** Pads the last three dimensions with the other side. PyTorch's `nn.CircularPad3d`. */
export class CircularPad3d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.CircularPad3d', spatial: 3, mode: 'circular' }
}

/** Pads the last dimension with zeros. PyTorch's `nn.ZeroPad1d`. */
export class ZeroPad1d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ZeroPad1d', spatial: 1, mode: 'constant' }
}

/** Pads the last two dimensions with zeros. PyTorch's `nn.ZeroPad2d`. */
export class ZeroPad2d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ZeroPad2d', spatial: 2, mode: 'constant' }
}

/** Pads the last three dimensions with zeros. PyTorch's `nn.ZeroPad3d`. */
export class ZeroPad3d extends BorderPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ZeroPad3d', spatial: 3, mode: 'constant' }
}

abstract class ConstantPad extends PadLayer {
  constructor(padding: PaddingSides, value: number)
  constructor(...args: Named<[['padding', PaddingSides], ['value', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding, value] = readRequired<[padding: PaddingSides, value: number]>(new.target.layer.name, ['padding', 'value'], args, false)
    super(padding, value)
  }

  override extraRepr(): string {
    return `padding=${py(this.padding)}, value=${this.value}`
  }
}

/** Pads the last dimension with one value. PyTorch's `nn.ConstantPad1d`. */
export class ConstantPad1d extends ConstantPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ConstantPad1d', spatial: 1, mode: 'constant' }
}

/** Pads the last two dimensions with one value. PyTorch's `nn.ConstantPad2d`. */
export class ConstantPad2d extends ConstantPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ConstantPad2d', spatial: 2, mode: 'constant' }
}

/** Pads the last three dimensions with one value. PyTorch's `nn.ConstantPad3d`. */
export class ConstantPad3d extends ConstantPad {
  /** @internal */
  static override readonly layer: PadFacts = { name: 'nn.ConstantPad3d', spatial: 3, mode: 'constant' }
}
