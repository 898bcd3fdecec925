// A call of an operator, for lowering, rewrites and templates: its arguments by their names in the schema, checked when they are read.
import type { Arg, OpDef } from '../dispatch/index.ts'
import { InternalError } from '../errors/index.ts'
import { Tensor } from '../tensor/index.ts'

/** Represents a number placeholder while a graph is lowered: operators receive it instead of the number. */
export class ScalarSymbol {
  readonly placeholder: number
  /** A number of the same kind, which decides dtypes as the real ones will. */
  readonly representative: number

  constructor(placeholder: number, isWhole: boolean) {
    this.placeholder = placeholder
    this.representative = isWhole ? 1 : 1.5
  }
}

export const isScalarSymbol = (value: unknown): value is ScalarSymbol => value instanceof ScalarSymbol

const isNumber = (value: unknown): value is number => typeof value === 'number'
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isTensor = (value: unknown): value is Tensor => value instanceof Tensor
const isNumberList = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every(isNumber)

/** A call of an operator, with its arguments by name. */
export class OpCall {
  readonly op: OpDef
  /** One per argument of the schema, in its order; numbers may be ScalarSymbols. */
  readonly args: readonly Arg[]

  constructor(op: OpDef, args: readonly Arg[]) {
    this.op = op
    this.args = args
  }

  /** Whether some argument is a number that is known only when the program runs. */
  get hasSymbols(): boolean {
    return this.args.some(isScalarSymbol)
  }

  /** The tensors among the arguments. */
  get tensors(): readonly Tensor[] {
    return this.args.filter(isTensor)
  }

  /** An argument. Throws InternalError when the operator has no argument of that name. */
  value(name: string): Arg {
    const at = this.op.schema.args.findIndex((arg) => arg.name === name)
    const value = this.args[at]
    if (value === undefined) throw new InternalError(`inductor: ${this.op.qualname} has no argument ${name}`)
    return value
  }

  tensor(name: string): Tensor {
    return this.#checked(name, isTensor, 'a tensor')
  }

  optionalTensor(name: string): Tensor | null {
    return this.value(name) === null ? null : this.tensor(name)
  }

  number(name: string): number {
    return this.#checked(name, isNumber, 'a number')
  }

  flag(name: string): boolean {
    return this.#checked(name, isBoolean, 'a boolean')
  }

  numbers(name: string): readonly number[] {
    return this.#checked(name, isNumberList, 'a list of numbers')
  }

  /** The two numbers of an argument that may also be a single number for both. Throws InternalError for no number. */
  pair(name: string): readonly [number, number] {
    const value = this.value(name)
    if (isNumber(value)) return [value, value]
    const [first, second = first] = this.numbers(name)
    if (first === undefined || second === undefined) throw this.#wrong(name, 'one or two numbers')
    return [first, second]
  }

  #checked<T>(name: string, isWanted: (value: unknown) => value is T, wanted: string): T {
    const value: unknown = this.value(name)
    if (!isWanted(value)) throw this.#wrong(name, wanted)
    return value
  }

  #wrong(name: string, wanted: string): InternalError {
    return new InternalError(`inductor: the argument ${name} of ${this.op.qualname} is not ${wanted}`)
  }
}

/** The four sizes or strides of a batch of images. Throws InternalError if there are not four. */
export function four(list: readonly number[]): readonly [number, number, number, number] {
  const [a, b, c, d] = list
  if (a === undefined || b === undefined || c === undefined || d === undefined || list.length !== 4)
    throw new InternalError(`inductor: expected four numbers, got [${list.join(', ')}]`)
  return [a, b, c, d]
}
