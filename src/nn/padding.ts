// Padding as layers: what stands at the border.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import type { PadMode } from '../ops/index.ts'
import { checkCount, ownCopy, py, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { pad } from './functional.ts'
import { checkNumber, readRequired } from './options.ts'
import type { Named } from './options.ts'

/** How much to add: everywhere, or [left, right, top, bottom, …], the last dimension first. A negative amount cuts off. */
export type PaddingSides = number | readonly number[]

/** What the padding layers share. */
abstract class PadLayer extends Module {
  readonly padding: readonly number[]
  readonly value: number
  protected readonly mode: PadMode

  constructor(where: string, spatial: number, mode: PadMode, padding: PaddingSides, value: number) {
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

/** Pads the last dimension with the mirror image, without the edge. PyTorch's `nn.ReflectionPad1d`. */
export class ReflectionPad1d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ReflectionPad1d', ['padding'], args, false)
    super('nn.ReflectionPad1d', 1, 'reflect', padding, 0)
  }
}

/** Pads the last two dimensions with the mirror image, without the edge. PyTorch's `nn.ReflectionPad2d`. */
export class ReflectionPad2d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ReflectionPad2d', ['padding'], args, false)
    super('nn.ReflectionPad2d', 2, 'reflect', padding, 0)
  }
}

/** Pads the last three dimensions with the mirror image, without the edge. PyTorch's `nn.ReflectionPad3d`. */
export class ReflectionPad3d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ReflectionPad3d', ['padding'], args, false)
    super('nn.ReflectionPad3d', 3, 'reflect', padding, 0)
  }
}

/** Pads the last dimension with the edge. PyTorch's `nn.ReplicationPad1d`. */
export class ReplicationPad1d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ReplicationPad1d', ['padding'], args, false)
    super('nn.ReplicationPad1d', 1, 'replicate', padding, 0)
  }
}

/** Pads the last two dimensions with the edge. PyTorch's `nn.ReplicationPad2d`. */
export class ReplicationPad2d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ReplicationPad2d', ['padding'], args, false)
    super('nn.ReplicationPad2d', 2, 'replicate', padding, 0)
  }
}

/** Pads the last three dimensions with the edge. PyTorch's `nn.ReplicationPad3d`. */
export class ReplicationPad3d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ReplicationPad3d', ['padding'], args, false)
    super('nn.ReplicationPad3d', 3, 'replicate', padding, 0)
  }
}

/** Pads the last dimension with the other side. PyTorch's `nn.CircularPad1d`. */
export class CircularPad1d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.CircularPad1d', ['padding'], args, false)
    super('nn.CircularPad1d', 1, 'circular', padding, 0)
  }
}

/** Pads the last two dimensions with the other side. PyTorch's `nn.CircularPad2d`. */
export class CircularPad2d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.CircularPad2d', ['padding'], args, false)
    super('nn.CircularPad2d', 2, 'circular', padding, 0)
  }
}

/** Pads the last three dimensions with the other side. PyTorch's `nn.CircularPad3d`. */
export class CircularPad3d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.CircularPad3d', ['padding'], args, false)
    super('nn.CircularPad3d', 3, 'circular', padding, 0)
  }
}

/** Pads the last dimension with zeros. PyTorch's `nn.ZeroPad1d`. */
export class ZeroPad1d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ZeroPad1d', ['padding'], args, false)
    super('nn.ZeroPad1d', 1, 'constant', padding, 0)
  }
}

/** Pads the last two dimensions with zeros. PyTorch's `nn.ZeroPad2d`. */
export class ZeroPad2d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ZeroPad2d', ['padding'], args, false)
    super('nn.ZeroPad2d', 2, 'constant', padding, 0)
  }
}

/** Pads the last three dimensions with zeros. PyTorch's `nn.ZeroPad3d`. */
export class ZeroPad3d extends PadLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides)
  constructor(...args: Named<[['padding', PaddingSides]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding] = readRequired<[padding: PaddingSides]>('nn.ZeroPad3d', ['padding'], args, false)
    super('nn.ZeroPad3d', 3, 'constant', padding, 0)
  }
}

abstract class ConstantPad extends PadLayer {
  override extraRepr(): string {
    return `padding=${py(this.padding)}, value=${this.value}`
  }
}

/** Pads the last dimension with one value. PyTorch's `nn.ConstantPad1d`. */
export class ConstantPad1d extends ConstantPad {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides, value: number)
  constructor(...args: Named<[['padding', PaddingSides], ['value', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding, value] = readRequired<[padding: PaddingSides, value: number]>('nn.ConstantPad1d', ['padding', 'value'], args, false)
    super('nn.ConstantPad1d', 1, 'constant', padding, value)
  }
}

/** Pads the last two dimensions with one value. PyTorch's `nn.ConstantPad2d`. */
export class ConstantPad2d extends ConstantPad {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides, value: number)
  constructor(...args: Named<[['padding', PaddingSides], ['value', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding, value] = readRequired<[padding: PaddingSides, value: number]>('nn.ConstantPad2d', ['padding', 'value'], args, false)
    super('nn.ConstantPad2d', 2, 'constant', padding, value)
  }
}

/** Pads the last three dimensions with one value. PyTorch's `nn.ConstantPad3d`. */
export class ConstantPad3d extends ConstantPad {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(padding: PaddingSides, value: number)
  constructor(...args: Named<[['padding', PaddingSides], ['value', number]], []>)
  constructor(...args: readonly unknown[]) {
    const [padding, value] = readRequired<[padding: PaddingSides, value: number]>('nn.ConstantPad3d', ['padding', 'value'], args, false)
    super('nn.ConstantPad3d', 3, 'constant', padding, value)
  }
}
