// Python's `operator` module, as far as graphs use it: functions on values that may be tensors, numbers or containers.
// On a tensor-like they call its method; PyTorch's graphs name them `operator.add`, `operator.getitem`, …
import { findOverride, isTensorLike, nameTarget, OVERRIDE } from '../protocol/index.ts'
import type { Effects, TargetFunction } from '../protocol/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { Slice } from './slice.ts'

function named<F extends TargetFunction>(
  name: string,
  fn: F,
  isPlain: (...args: readonly unknown[]) => boolean = () => false,
  effects: Effects = 'pure',
): F {
  const withOverride = ((...args: unknown[]): unknown => {
    const override = isPlain(...args) ? null : findOverride(args)
    return override === null ? fn(...args) : override[OVERRIDE]('function', withOverride as TargetFunction, args, {})
  }) as F
  Object.defineProperty(withOverride, 'name', { value: name })
  return nameTarget(withOverride, { name: `operator.${name}`, effects })
}

/** Something with methods: a tensor. */
type Methods = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>

const call = (target: unknown, method: string, ...args: readonly unknown[]): Methods => {
  const fn = (target as Methods)[method]
  if (typeof fn !== 'function') throw new ArgumentError(`operator: a value of type ${typeof target} has no method '${method}'.`)
  return fn.apply(target, [...args]) as Methods
}

/** `a.method(b)` where `a` has it, the operation on numbers otherwise; with a number on the left of a tensor, `reversed`. */
function binary(
  name: string,
  method: string,
  onNumbers: (a: number, b: number) => unknown,
  reversed: (a: unknown, b: unknown) => unknown = (a, b) => call(numberLike(a, b), method, b),
): (a: unknown, b: unknown) => unknown {
  return named(name, (a: unknown, b: unknown): unknown => {
    if (typeof a === 'object' && a !== null && method in a) return call(a, method, b)
    if (typeof b === 'object' && b !== null) return reversed(a, b)
    return onNumbers(a as number, b as number)
  })
}

/** The number `a` as a tensor like `b`. */
const numberLike = (a: unknown, b: unknown): unknown => call(call(call(b, 'isnan'), 'mul', 0), 'add', a)

/** The same with the operands exchanged. */
const exchanged =
  (method: string) =>
  (a: unknown, b: unknown): unknown =>
    call(b, method, a)

function unary(name: string, method: string, onNumber: (a: number) => unknown): (a: unknown) => unknown {
  return named(name, (a: unknown): unknown => (typeof a === 'number' || typeof a === 'boolean' ? onNumber(a as number) : call(a, method)))
}

/** Python's `%`: with the sign of the divisor. */
const modulo = (a: number, b: number): number => a - b * Math.floor(a / b)

/** Bits of integers; of two booleans, a boolean. */
const bits =
  (compute: (a: number, b: number) => number) =>
  (a: number, b: number): unknown =>
    typeof (a as unknown) === 'boolean' && typeof (b as unknown) === 'boolean' ? compute(a, b) !== 0 : compute(a, b)

/**
 * The form that writes into `a`, `a += b`: by the method of that name where a tensor has it, else by copying the result. A number cannot change: what is returned is
 * all that there is.
 */
function inPlace(name: string, method: string, onNumbers: (a: number, b: number) => unknown): (a: unknown, b: unknown) => unknown {
  const write = (a: unknown, b: unknown): unknown => {
    if (typeof a !== 'object' || a === null) return onNumbers(a as number, b as number)
    return `${method}_` in a ? call(a, `${method}_`, b) : call(a, 'copy_', call(a, method, b))
  }
  return named(name, write, undefined, 'mutates')
}

type Name =
  | ('add' | 'sub' | 'mul' | 'truediv' | 'floordiv' | 'mod' | 'pow' | 'matmul')
  | ('and_' | 'or_' | 'xor' | 'lshift' | 'rshift')
  | ('gt' | 'lt' | 'ge' | 'le' | 'eq' | 'ne')
  | ('iadd' | 'isub' | 'imul' | 'itruediv' | 'ifloordiv' | 'imod' | 'ipow')
  | ('iand' | 'ior' | 'ixor' | 'ilshift' | 'irshift')

/**
 * Python's `operator` module, on tensors and numbers: `operator.add(1, x)` is `1 + x`. What PyTorch records for operators, given traced values.
 */
export const operator: Readonly<
  Record<Name, (a: unknown, b: unknown) => unknown> & Record<'neg' | 'pos' | 'abs' | 'invert', (a: unknown) => unknown>
> & {
  readonly getitem: (value: unknown, index: unknown) => unknown
  readonly setitem: (value: unknown, index: unknown, item: unknown) => void
} = {
  add: binary('add', 'add', (a, b) => a + b, exchanged('add')),
  sub: binary(
    'sub',
    'sub',
    (a, b) => a - b,
    (a, b) => call(call(b, 'neg'), 'add', a),
  ),
  mul: binary('mul', 'mul', (a, b) => a * b, exchanged('mul')),
  truediv: binary(
    'truediv',
    'div',
    (a, b) => a / b,
    (a, b) => call(call(b, 'reciprocal'), 'mul', a),
  ),
  floordiv: binary('floordiv', 'floorDivide', (a, b) => Math.floor(a / b)),
  mod: binary('mod', 'remainder', modulo),
  pow: binary('pow', 'pow', (a, b) => a ** b),
  matmul: binary('matmul', 'matmul', notNumbers, notNumbers),
  and_: binary(
    'and_',
    'bitwiseAnd',
    bits((a, b) => a & b),
    exchanged('bitwiseAnd'),
  ),
  or_: binary(
    'or_',
    'bitwiseOr',
    bits((a, b) => a | b),
    exchanged('bitwiseOr'),
  ),
  xor: binary(
    'xor',
    'bitwiseXor',
    bits((a, b) => a ^ b),
    exchanged('bitwiseXor'),
  ),
  lshift: binary('lshift', 'bitwiseLeftShift', (a, b) => a << b),
  rshift: binary('rshift', 'bitwiseRightShift', (a, b) => a >> b),
  gt: binary('gt', 'gt', (a, b) => a > b, exchanged('lt')),
  lt: binary('lt', 'lt', (a, b) => a < b, exchanged('gt')),
  ge: binary('ge', 'ge', (a, b) => a >= b, exchanged('le')),
  le: binary('le', 'le', (a, b) => a <= b, exchanged('ge')),
  eq: binary('eq', 'eq', (a, b) => a === b, exchanged('eq')),
  ne: binary('ne', 'ne', (a, b) => a !== b, exchanged('ne')),
  iadd: inPlace('iadd', 'add', (a, b) => a + b),
  isub: inPlace('isub', 'sub', (a, b) => a - b),
  imul: inPlace('imul', 'mul', (a, b) => a * b),
  itruediv: inPlace('itruediv', 'div', (a, b) => a / b),
  ifloordiv: inPlace('ifloordiv', 'floorDivide', (a, b) => Math.floor(a / b)),
  imod: inPlace('imod', 'remainder', modulo),
  ipow: inPlace('ipow', 'pow', (a, b) => a ** b),
  iand: inPlace(
    'iand',
    'bitwiseAnd',
    bits((a, b) => a & b),
  ),
  ior: inPlace(
    'ior',
    'bitwiseOr',
    bits((a, b) => a | b),
  ),
  ixor: inPlace(
    'ixor',
    'bitwiseXor',
    bits((a, b) => a ^ b),
  ),
  ilshift: inPlace('ilshift', 'bitwiseLeftShift', (a, b) => a << b),
  irshift: inPlace('irshift', 'bitwiseRightShift', (a, b) => a >> b),
  neg: unary('neg', 'neg', (a) => -a),
  pos: named('pos', (a: unknown): unknown => a),
  abs: unary('abs', 'abs', Math.abs),
  invert: unary('invert', 'bitwiseNot', (a) => ~a),
  getitem: named('getitem', getItem, (value, index) => Array.isArray(value) && typeof index === 'number'),
  setitem: named('setitem', setItem, undefined, 'mutates'),
}

/** An element of an array that holds traced values is no operation on them. */
function getItem(value: unknown, index: unknown): unknown {
  if (Array.isArray(value))
    return index instanceof Slice
      ? value.slice((index.start as number | null) ?? 0, (index.stop as number | null) ?? undefined)
      : value.at(index as number)
  if (value instanceof Map) return value.get(index)
  if (typeof value === 'object' && value !== null && 'getitem' in value) return (value as { getitem(i: unknown): unknown }).getitem(index)
  if (typeof value === 'object' && value !== null && 'select' in value && typeof index === 'number')
    return (value as { select(dim: number, i: number): unknown }).select(0, index)
  return (value as Record<string, unknown>)[index as string]
}

/** Of a tensor, the part that the index names takes the values: `x[i] = item`. */
function setItem(value: unknown, index: unknown, item: unknown): void {
  if (value instanceof Map) value.set(index, item)
  else if (isTensorLike(value)) {
    const parts = Array.isArray(index) ? index : [index]
    if (parts.some((part) => Array.isArray(part) || isTensorLike(part)))
      throw new ArgumentError(
        'operator.setitem: a list of positions names no part of the tensor that can be written; write one position at a time, or use torch.where.',
      )
    call(getItem(value, index), typeof item === 'number' ? 'fill_' : 'copy_', item)
  } else if (Array.isArray(value)) {
    const at = index as number
    if (!Number.isInteger(at) || at < -value.length || at >= value.length)
      throw new ArgumentError(`operator.setitem: index ${String(index)} is out of range for ${value.length} elements.`)
    value[at < 0 ? at + value.length : at] = item
  } else if (typeof value === 'object' && value !== null) (value as Record<string, unknown>)[index as string] = item
  else throw new ArgumentError(`operator.setitem: a value of type ${typeof value} has no elements.`)
}

function notNumbers(): never {
  throw new ArgumentError('operator.matmul: expected two tensors, got a number.')
}

/** Python's builtin getattr, recorded when a traced value's attribute is read. */
export const getattr: (value: unknown, name: string) => unknown = nameTarget(
  Object.defineProperty(
    (value: unknown, name: string): unknown => {
      const override = findOverride([value])
      if (override !== null) return override[OVERRIDE]('function', getattr as TargetFunction, [value, name], {})
      return (value as Record<string, unknown>)[name]
    },
    'name',
    { value: 'getattr' },
  ) as (value: unknown, name: string) => unknown,
  { name: 'builtins.getattr' },
)
