// Constraints that operators put on the types of their inputs and results; the transformation turns them into simpler ones. PyTorch's
// torch.fx.experimental.migrate_gradual_types.constraint.
import { tuple } from '../../graph/pythonValues.ts'
import { pyRepr } from '../../text/format.ts'
import type { TensorType } from '../gradualTypes/tensorType.ts'
import { Constraint, DVar, TVar, check, describe, isDim } from './constraint.ts'
import type { Size } from './constraint.ts'

const checkTVar = (where: string, value: unknown): void => check(value instanceof TVar, () => `${where}: Expected TVar, got ${describe(value)}`)
const checkInt = (where: string, value: unknown): void =>
  check(Number.isInteger(value), () => `${where}: Expected int, got ${Number.isFinite(value) ? 'float' : describe(value)}`)

/** `res` is the most precise type that both others allow. PyTorch's TGreatestUpperBound. */
export class TGreatestUpperBound extends Constraint {
  readonly res: TVar
  readonly rhs1: TVar
  readonly rhs2: TVar

  constructor(res: TVar, rhs1: TVar, rhs2: TVar) {
    super()
    this.res = res
    this.rhs1 = rhs1
    this.rhs2 = rhs2
  }

  override toString(): string {
    return `${String(this.res)} = ${String(this.rhs1)}⊔*${String(this.rhs2)}`
  }
}

/** `res` is the most precise size that both others allow. PyTorch's DGreatestUpperBound. @throws ArgumentError for anything but sizes. */
export class DGreatestUpperBound extends Constraint {
  readonly res: Size
  readonly rhs1: Size
  readonly rhs2: Size

  constructor(res: Size, rhs1: Size, rhs2: Size) {
    super()
    for (const [name, value] of [
      ['res', res],
      ['rhs1', rhs1],
      ['rhs2', rhs2],
    ] as const)
      check(isDim(value), () => `DGreatestUpperBound: Expected dimension for ${name}, got ${describe(value)}`)
    this.res = res
    this.rhs1 = rhs1
    this.rhs2 = rhs2
  }

  override toString(): string {
    return `${String(this.res)} = ${String(this.rhs1)}⊔${String(this.rhs2)}`
  }
}

/** A tensor can take a shape. PyTorch's CanReshape. */
export class CanReshape extends Constraint {
  readonly src: TVar
  readonly target: TensorType

  constructor(src: TVar, target: TensorType) {
    super()
    this.src = src
    this.target = target
  }

  override toString(): string {
    return `can-reshape(${String(this.src)}, ${String(this.target)})`
  }
}

/** An operation on a tensor of rank `tensorSize`. */
abstract class OfTensor extends Constraint {
  readonly tensorSize: number
  readonly inputVar: TVar

  constructor(tensorSize: number, inputVar: TVar) {
    super()
    this.tensorSize = tensorSize
    this.inputVar = inputVar
  }
}

/** What `x.index_select(index, …)` gives for a tensor of rank `tensorSize`: the size at `index` is replaced. PyTorch's IndexSelect. @throws ArgumentError for other operands. */
export class IndexSelect extends OfTensor {
  readonly dimReplace: Size
  readonly index: number
  readonly output: TVar

  constructor(tensorSize: number, inputVar: TVar, dimReplace: Size, index: number, output: TVar) {
    super(tensorSize, inputVar)
    checkTVar('IndexSelect', inputVar)
    checkTVar('IndexSelect', output)
    checkInt('IndexSelect', index)
    this.dimReplace = dimReplace
    this.index = index
    this.output = output
  }

  override toString(): string {
    return ` ${String(this.output)} = IndexSelect(${String(this.inputVar)}, tensor_size: ${this.tensorSize}, ${String(this.dimReplace)}, ${this.index})`
  }
}

/** What `x.transpose(index1, index2)` gives for a tensor of rank `tensorSize`. PyTorch's Transpose. @throws ArgumentError for other operands. */
export class Transpose extends OfTensor {
  readonly index1: number
  readonly index2: number
  readonly output: TVar

  constructor(tensorSize: number, inputVar: TVar, index1: number, index2: number, output: TVar) {
    super(tensorSize, inputVar)
    checkTVar('Transpose', inputVar)
    checkTVar('Transpose', output)
    checkInt('Transpose', index1)
    checkInt('Transpose', index2)
    this.index1 = index1
    this.index2 = index2
    this.output = output
  }

  override toString(): string {
    return ` ${String(this.output)} = Transpose(${String(this.inputVar)}, tensor_size: ${this.tensorSize}, ${this.index1}, ${this.index2})`
  }
}

/** A size of a tensor of rank `tensorSize`. PyTorch's GetItem. @throws ArgumentError for a result that is not a variable of a size. */
export class GetItem extends OfTensor {
  readonly index: number
  readonly res: DVar

  constructor(tensorSize: number, index: number, res: DVar, inputVar: TVar) {
    super(tensorSize, inputVar)
    check(res instanceof DVar, () => `GetItem: Expected DVar, got ${describe(res)}`)
    this.index = index
    this.res = res
  }

  override toString(): string {
    return ` ${String(this.res)} = GetItem(${String(this.inputVar)}, tensor_size: ${this.tensorSize}, ${this.index})`
  }
}

/** Indexing a tensor of rank `tensorSize` with several indices. PyTorch's GetItemTensor. @throws ArgumentError for a result that is not a variable of a tensor. */
export class GetItemTensor extends OfTensor {
  readonly indexTuple: readonly unknown[]
  readonly res: TVar

  constructor(tensorSize: number, indexTuple: readonly unknown[], res: TVar, inputVar: TVar) {
    super(tensorSize, inputVar)
    checkTVar('GetItemTensor', res)
    this.indexTuple = indexTuple
    this.res = res
  }

  override toString(): string {
    return ` ${String(this.res)} = GetItemT(${String(this.inputVar)}, tensor_size: ${this.tensorSize}, ${pyRepr(tuple(...this.indexTuple))})`
  }
}

/** A number for both dimensions of an image, or one for each. */
export type PerDimension = number | readonly number[]

const shown = (value: PerDimension): string => (typeof value === 'number' ? String(value) : pyRepr(tuple(...value)))

/** How a window moves, and the sizes of its input. */
type WindowParts = readonly [
  kernel: PerDimension,
  padding: PerDimension,
  stride: PerDimension,
  dilation: PerDimension,
  matchingConstraint: readonly Size[],
]

/** A window that moves over the last dimensions of a tensor. */
abstract class CalcWindow extends Constraint {
  readonly inputVar: TVar
  readonly kernel: PerDimension
  readonly padding: PerDimension
  readonly stride: PerDimension
  readonly dilation: PerDimension
  /** The sizes of the input. */
  readonly matchingConstraint: readonly Size[]

  constructor(inputVar: TVar, ...[kernel, padding, stride, dilation, matchingConstraint]: WindowParts) {
    super()
    this.inputVar = inputVar
    this.kernel = kernel
    this.padding = padding
    this.stride = stride
    this.dilation = dilation
    this.matchingConstraint = matchingConstraint
  }

  protected get optionsText(): string {
    return [this.kernel, this.padding, this.stride, this.dilation].map(shown).join(', ')
  }
}

/** The type of a convolution's result. PyTorch's CalcConv. */
export class CalcConv extends CalcWindow {
  readonly convResult: TVar
  readonly cOut: number

  constructor(convResult: TVar, inputVar: TVar, cOut: number, ...window: WindowParts) {
    super(inputVar, ...window)
    this.convResult = convResult
    this.cOut = cOut
  }

  override toString(): string {
    return `${String(this.convResult)} = calc-conv(${String(this.inputVar)}, ${this.cOut}, ${this.optionsText})`
  }
}

/** The type of a max pooling's result. PyTorch's CalcMaxPool. */
export class CalcMaxPool extends CalcWindow {
  readonly maxpoolResult: TVar

  constructor(maxpoolResult: TVar, inputVar: TVar, ...window: WindowParts) {
    super(inputVar, ...window)
    this.maxpoolResult = maxpoolResult
  }

  override toString(): string {
    return `${String(this.maxpoolResult)} = calc-maxpool(${String(this.inputVar)},  ${this.optionsText})`
  }
}

/** The types of two tensors after broadcasting. PyTorch's ApplyBroadcasting. */
export class ApplyBroadcasting extends Constraint {
  readonly res1: TVar
  readonly res2: TVar
  readonly input1: TVar
  readonly input2: TVar

  constructor(res1: TVar, res2: TVar, input1: TVar, input2: TVar) {
    super()
    this.res1 = res1
    this.res2 = res2
    this.input1 = input1
    this.input2 = input2
  }

  override toString(): string {
    return `${String(this.res1)}, ${String(this.res2)} = apply-broadcasting(${String(this.input1)}, ${String(this.input2)})`
  }
}

/** The type after the sizes from `start` up to `end` became one. PyTorch's CalcProduct. @throws ArgumentError for other operands. */
export class CalcProduct extends Constraint {
  readonly start: number
  readonly end: number
  readonly flattened: TVar
  readonly dimsToFlatten: readonly Size[]

  constructor(start: number, end: number, flattened: TVar, dimsToFlatten: readonly Size[]) {
    super()
    check(Array.isArray(dimsToFlatten), () => `CalcProduct: Expected list, got ${describe(dimsToFlatten)}`)
    checkTVar('CalcProduct', flattened)
    checkInt('CalcProduct', start)
    checkInt('CalcProduct', end)
    this.start = start
    this.end = end
    this.flattened = flattened
    this.dimsToFlatten = dimsToFlatten
  }

  override toString(): string {
    return `${String(this.flattened)} = CalcProduct(${this.start}, ${this.end}, [${this.dimsToFlatten.join(', ')}])`
  }
}
