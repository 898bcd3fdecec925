// Classes as the types of arguments: which class a value has, which class is a case of another, and types for any number of arguments. PyTorch's
// torch.fx.experimental.unification.multipledispatch.variadic.
import { isFunction, isObject } from '../../../../protocol/index.ts'

/** A class, such as `Number`, `Tensor` or `Object`, of which every class is a case. */
export interface TypeClass {
  readonly name: string
  readonly prototype: unknown
}

/** The class of null and undefined. */
export class NoneType {
  /** There is no object of this class. */
  private constructor() {}
}

/** Any number of arguments, each of one of these classes. */
export class VariadicType {
  readonly types: readonly TypeClass[]

  constructor(types: readonly TypeClass[]) {
    this.types = types
  }

  get name(): string {
    return `Variadic[${this.types.length === 1 ? this.types[0]?.name : `(${this.types.map((type) => type.name).join(', ')})`}]`
  }
}

/** The type of an argument in a signature. */
export type ArgumentType = TypeClass | VariadicType

/** Any number of arguments of these classes, as the last element of a signature. PyTorch's Variadic. */
export const Variadic = (...types: readonly TypeClass[]): VariadicType => new VariadicType(types)

/** Whether a type stands for any number of arguments. PyTorch's isvariadic. */
export const isvariadic = (type: unknown): type is VariadicType => type instanceof VariadicType

/** Whether a value is a class. */
export const isTypeClass = (value: unknown): value is TypeClass => isFunction(value) && 'prototype' in value

/** The class of a value: `Number` for a number, `Array` for an array, {@link NoneType} for null and undefined. */
export function typeOf(value: unknown): TypeClass {
  switch (typeof value) {
    case 'number':
      return Number
    case 'string':
      return String
    case 'boolean':
      return Boolean
    case 'bigint':
      return BigInt
    case 'symbol':
      return Symbol
    case 'undefined':
      return NoneType
    default: {
      if (value === null) return NoneType
      if (!isObject(value)) return Function
      const { constructor } = value
      return isTypeClass(constructor) ? constructor : Object
    }
  }
}

/** Whether a class is another one or extends it; `Object` takes every class, a variadic type what one of its types takes. Python's issubclass. */
export function isSubclass(type: ArgumentType, base: ArgumentType): boolean {
  if (isvariadic(type)) return isvariadic(base) && type.types.every((t) => isSubclass(t, base))
  if (isvariadic(base)) return base.types.some((b) => isSubclass(type, b))
  if (type === base || base === Object) return true
  for (let at = type.prototype; isObject(at); at = Object.getPrototypeOf(at)) if (at === base.prototype) return true
  return false
}
