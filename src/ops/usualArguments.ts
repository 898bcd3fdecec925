// The fast way through argument checks: a call whose arguments are plainly right (tensors, numbers, lists of integers, known options) needs no more
// than a look at each. Whatever is not plain goes the long way, through `normalize`, which knows every spelling and every error.
import type { Arg, OpDef } from '../dispatch/index.ts'
import { Tensor } from '../tensor/index.ts'

// What may fill a schema argument as it is, as bits.
const TENSOR = 1
const NUMBER = 2
const INTEGER = 4
const BOOLEAN = 8
const INTEGERS = 16
const NULL = 32

function kindsOf(op: OpDef): Uint8Array {
  const pointwise = op.tags.has('pointwise') || op.functional?.tags.has('pointwise') === true
  return Uint8Array.from(op.schema.args, ({ type, default: value }, i) => {
    const optional = type.optional || value === null ? NULL : 0
    if (type.list) return type.base === 'int' ? optional | INTEGERS : 0
    if (type.base === 'Tensor') return optional | (pointwise && i > 0 ? TENSOR | NUMBER : TENSOR)
    if (type.base === 'Scalar' || type.base === 'float') return optional | NUMBER
    if (type.base === 'int') return optional | INTEGER
    return type.base === 'bool' ? optional | BOOLEAN : 0
  })
}

function fits(kind: number, arg: unknown): boolean {
  if (arg instanceof Tensor) return (kind & TENSOR) !== 0
  if (typeof arg === 'number') return (kind & NUMBER) !== 0 || ((kind & INTEGER) !== 0 && Number.isInteger(arg))
  if (arg === null) return (kind & NULL) !== 0
  if (typeof arg === 'boolean') return (kind & BOOLEAN) !== 0
  return (kind & INTEGERS) !== 0 && Array.isArray(arg) && areIntegers(arg)
}

function areIntegers(list: readonly unknown[]): boolean {
  for (let i = 0; i < list.length; i++) if (!Number.isInteger(list[i])) return false
  return true
}

/** A function from the arguments of a call to one value per schema argument; null for a call that must be looked at closely. The result may be the list of arguments itself. */
export function usualArguments(op: OpDef): (args: unknown[]) => Arg[] | null {
  const { args: declared } = op.schema
  const count = declared.length
  const kinds = kindsOf(op)
  const defaults: unknown[] = declared.map((a) => a.default)
  const required = declared.findIndex((a) => a.hasDefault || a.kwargOnly)
  const least = required < 0 ? count : required
  const positions = new Map(declared.map((a, i) => [a.name, i]))
  const withOptions = (args: readonly unknown[], options: Readonly<Record<string, unknown>>): Arg[] | null => {
    const given = args.length - 1
    const values = defaults.slice() as Arg[]
    for (let i = 0; i < given; i++) {
      const arg = args[i]
      if (!fits(kinds[i] as number, arg)) return null
      values[i] = (Array.isArray(arg) ? arg.slice() : arg) as Arg
    }
    for (const key in options) {
      const at = positions.get(key)
      const arg = options[key]
      if (at === undefined || at < given || !fits(kinds[at] as number, arg)) return null
      values[at] = (Array.isArray(arg) ? arg.slice() : arg) as Arg
    }
    return values.includes(undefined as unknown as Arg) ? null : values
  }
  return (args) => {
    const given = args.length
    const last = args[given - 1]
    if (typeof last === 'object' && last !== null && given <= count + 1 && Object.getPrototypeOf(last) === Object.prototype)
      return withOptions(args, last as Readonly<Record<string, unknown>>)
    if (given < least || given > count) return null
    const values = given === count ? args : defaults.slice()
    for (let i = 0; i < given; i++) {
      const arg = args[i]
      if (!fits(kinds[i] as number, arg)) return null
      // A list is the caller's, who may change it before the backward pass.
      values[i] = Array.isArray(arg) ? arg.slice() : arg
    }
    for (let i = given; i < count; i++) if (values[i] === undefined) return null
    return values as Arg[]
  }
}
