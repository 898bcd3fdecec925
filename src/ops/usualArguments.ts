// The fast path through argument checks. A call whose arguments obviously fit the schema (tensors, numbers, lists of integers, known options) takes one look
// at each of them. Every other call goes through `normalize`, which knows all spellings and all errors.
import type { Arg, OpDef } from '../dispatch/index.ts'
import { isPlainObject } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { takesNumber } from './normalize.ts'

// The values that fit a schema argument as they are, as bits.
const TENSOR = 1
const NUMBER = 2
const INTEGER = 4
const BOOLEAN = 8
const INTEGERS = 16
const NULL = 32

function kindsOf(op: OpDef): Uint8Array {
  return Uint8Array.from(op.schema.args, ({ type, default: value }, i) => {
    const optional = type.optional || value === null ? NULL : 0
    if (type.list) return type.base === 'int' ? optional | INTEGERS : 0
    if (type.base === 'Tensor') return optional | (takesNumber(op, i) ? TENSOR | NUMBER : TENSOR)
    if (type.base === 'Scalar' || type.base === 'float') return optional | NUMBER
    if (type.base === 'int') return optional | INTEGER
    return type.base === 'bool' ? optional | BOOLEAN : 0
  })
}

function fits(kind: number, arg: unknown): arg is Arg {
  if (arg instanceof Tensor) return (kind & TENSOR) !== 0
  if (typeof arg === 'number') return (kind & NUMBER) !== 0 || ((kind & INTEGER) !== 0 && Number.isSafeInteger(arg))
  if (arg === null) return (kind & NULL) !== 0
  if (typeof arg === 'boolean') return (kind & BOOLEAN) !== 0
  return (kind & INTEGERS) !== 0 && Array.isArray(arg) && areIntegers(arg)
}

function areIntegers(list: readonly unknown[]): boolean {
  for (let i = 0; i < list.length; i++) if (!Number.isSafeInteger(list[i])) return false
  return true
}

/** A list belongs to the caller, who may change it before the backward pass. */
const owned = (arg: Arg): Arg => (Array.isArray(arg) ? arg.slice() : arg)

/** Whether all arguments fit; lists among them are replaced by copies. */
function allFit(kinds: Uint8Array, args: unknown[]): args is Arg[] {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (!fits(kinds[i] ?? 0, arg)) return false
    if (Array.isArray(arg)) args[i] = arg.slice()
  }
  return true
}

const isComplete = (values: readonly (Arg | undefined)[]): values is Arg[] => !values.includes(undefined)

/** What makes one value per schema argument of the arguments of a call, or null of a call that `normalize` must look at. */
export interface UsualArguments {
  /** The list of arguments may be changed. */
  readonly of: (args: unknown[]) => Arg[] | null
  /** The arguments of `x.add(y)`: without a list between the call and the values. */
  readonly ofTwo: (self: Tensor, other: unknown) => Arg[] | null
}

export function usualArguments(op: OpDef): UsualArguments {
  const { args: declared } = op.schema
  const count = declared.length
  const kinds = kindsOf(op)
  const defaults = declared.map((arg) => arg.default)
  const filled = defaults.map((value): Arg => value ?? null)
  const least = declared.findLastIndex((arg) => !arg.hasDefault) + 1
  const positions = new Map(declared.map((arg, i) => [arg.name, i]))
  const withOptions = (args: readonly unknown[], options: Readonly<Record<string, unknown>>): Arg[] | null => {
    const given = args.length - 1
    const values: (Arg | undefined)[] = defaults.slice()
    for (let i = 0; i < given; i++) {
      const arg = args[i]
      if (!fits(kinds[i] ?? 0, arg)) return null
      values[i] = owned(arg)
    }
    for (const name in options) {
      const at = positions.get(name)
      const arg = options[name]
      if (at === undefined || at < given || !fits(kinds[at] ?? 0, arg)) return null
      values[at] = owned(arg)
    }
    return isComplete(values) ? values : null
  }
  const [first = 0, second = 0] = kinds
  const takesTwo = least <= 2 && count >= 2 && (first & TENSOR) !== 0
  return {
    of: (args) => {
      const given = args.length
      const last = args[given - 1]
      if (!(last instanceof Tensor) && given <= count + 1 && isPlainObject(last)) return withOptions(args, last)
      if (given < least || given > count || !allFit(kinds, args)) return null
      if (given === count) return args
      // A copy has the right size at once, where a list that grows takes room for many more.
      const values = filled.slice()
      for (let i = 0; i < given; i++) values[i] = args[i] ?? null
      return values
    },
    ofTwo: (self, other) => {
      if (!takesTwo || !fits(second, other)) return null
      const values = filled.slice()
      values[0] = self
      values[1] = owned(other)
      return values
    },
  }
}
