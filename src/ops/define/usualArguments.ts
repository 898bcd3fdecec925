// The fast path through argument checks. A call whose arguments obviously fit the schema (tensors, numbers, lists of them, known options) takes one look
// at each of them. Every other call goes through `normalize`, which knows all spellings and all errors.
import { isArgList } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { isPlainObject } from '../../protocol/index.ts'
import { Tensor, namesDType } from '../../tensor/index.ts'
import { takesNumber } from './normalize.ts'

// The values that fit a schema argument as they are, as bits.
const TENSOR = 1
const NUMBER = 2
const INTEGER = 4
const BOOLEAN = 8
const INTEGERS = 16
const NULL = 32
const TEXT = 64
const DTYPE = 128
const NUMBERS = 256
const TENSORS = 512
const LIST = INTEGERS | NUMBERS | TENSORS
/** What the items of a list are, by the base of its type. */
const LISTS: Readonly<Record<string, number>> = { int: INTEGERS, float: NUMBERS, Tensor: TENSORS }
/** Fits as it is where the operator checks for itself. Anything else may hide a value that takes over the call. */
const PLAIN = TENSOR | NUMBER | BOOLEAN | INTEGERS | TEXT

function kindsOf(op: OpDef): Uint16Array {
  return Uint16Array.from(op.schema.args, ({ type, default: value }, i) => {
    const optional = type.optional || value === null ? NULL : 0
    // One number for a list, unless it may be the first of several: `reshape(2, 3)`.
    if (type.list) return optional | (LISTS[type.base] ?? 0) | (type.base === 'int' && op.schema.args[i + 1]?.kwargOnly === false ? INTEGER : 0)
    if (type.base === 'Tensor') return optional | (takesNumber(op, i) ? TENSOR | NUMBER : TENSOR)
    if (type.base === 'Scalar' || type.base === 'float') return optional | NUMBER
    if (type.base === 'int') return optional | INTEGER
    if (type.base === 'any') return optional | PLAIN
    if (type.base === 'str') return optional | TEXT
    if (type.base === 'ScalarType') return optional | DTYPE
    return type.base === 'bool' ? optional | BOOLEAN : 0
  })
}

function fits(kind: number, arg: unknown): arg is Arg {
  if (arg instanceof Tensor) return (kind & TENSOR) !== 0
  if (typeof arg === 'number') return (kind & NUMBER) !== 0 || ((kind & INTEGER) !== 0 && Number.isSafeInteger(arg))
  if (arg === null) return (kind & NULL) !== 0
  if (typeof arg === 'boolean') return (kind & BOOLEAN) !== 0
  if (typeof arg === 'string') return (kind & TEXT) !== 0 || ((kind & DTYPE) !== 0 && namesDType(arg))
  return (kind & LIST) !== 0 && Array.isArray(arg) && allAre(kind, arg)
}

function allAre(kind: number, list: readonly unknown[]): boolean {
  const numbers = (kind & NUMBERS) !== 0
  const tensors = (kind & TENSORS) !== 0
  for (let i = 0; i < list.length; i++) {
    const item = list[i]
    if (!(tensors ? item instanceof Tensor : numbers ? typeof item === 'number' : Number.isSafeInteger(item))) return false
  }
  return true
}

/**
 * The value of an argument that fits. A list belongs to the caller, who may change it before the backward pass. (It may be frozen, as the shape of a tensor is: `slice` would
 * take 20 times as long.)
 */
const owned = (kind: number, arg: Arg): Arg =>
  isArgList(arg) ? [...arg] : typeof arg === 'number' && (kind & (INTEGERS | NUMBER)) === INTEGERS ? [arg] : arg

/** Whether all arguments fit; lists among them are replaced by copies, numbers for lists by lists. */
function allFit(kinds: Uint16Array, args: unknown[]): args is Arg[] {
  for (let i = 0; i < args.length; i++) {
    const kind = kinds[i] ?? 0
    const arg = args[i]
    if (!fits(kind, arg)) return false
    if ((kind & LIST) !== 0) args[i] = owned(kind, arg)
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
  // By name, one number is a list of one.
  const named = kinds.map((kind) => ((kind & INTEGERS) === 0 ? kind : kind | INTEGER))
  const defaults = declared.map((arg) => arg.default)
  const filled = defaults.map((value): Arg => value ?? null)
  const least = declared.findLastIndex((arg) => !arg.hasDefault) + 1
  const positions = new Map(declared.map((arg, i) => [arg.name, i]))
  const withOptions = (args: readonly unknown[], options: Readonly<Record<string, unknown>>): Arg[] | null => {
    const given = args.length - 1
    const values: (Arg | undefined)[] = defaults.slice()
    for (let i = 0; i < given; i++) {
      const kind = kinds[i] ?? 0
      const arg = args[i]
      if (!fits(kind, arg)) return null
      values[i] = owned(kind, arg)
    }
    for (const name in options) {
      const at = positions.get(name)
      const arg = options[name]
      if (at === undefined || at < given) return null
      const kind = named[at] ?? 0
      if (!fits(kind, arg)) return null
      values[at] = owned(kind, arg)
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
      values[1] = owned(second, other)
      return values
    },
  }
}
