// Python's `operator` module, as far as graphs use it: functions of values that may be tensors, numbers or containers. Given a tensor they call its method;
// graphs name them `operator.add`, `operator.getitem`, …
import {
  checkArgument,
  checkString,
  findOverride,
  isFunction,
  isObject,
  isTensorLike,
  kindOf,
  nameTarget,
  OVERRIDE,
  valueText,
  withName,
} from '../../protocol/index.ts'
import type { Effects } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { getAttribute, ownAttribute, setAttribute } from '../../module/index.ts'
import { Slice } from './pythonValues.ts'

type Operation = (...args: readonly unknown[]) => unknown

/** Registers an operator under its name. Calls with a traced value are recorded instead, unless `isPlain` tells that they need not be. */
function named(name: string, fn: Operation, isPlain: (...args: readonly unknown[]) => boolean = () => false, effects: Effects = 'pure'): Operation {
  const withOverride: Operation = (...args) => {
    const override = isPlain(...args) ? null : findOverride(args)
    return override === null ? fn(...args) : override[OVERRIDE]('function', withOverride, args, {})
  }
  return nameTarget(withName(withOverride, name), { name: `operator.${name}`, effects })
}

function call(target: unknown, method: string, ...args: readonly unknown[]): unknown {
  const fn = getAttribute(target, method)
  if (!isFunction(fn)) throw new ArgumentError(`operator: a value of type ${kindOf(target)} has no method '${method}'.`)
  return Reflect.apply(fn, target, args)
}

/** What JavaScript's own operators take. */
type Scalar = number | boolean | string

function scalar(name: string, value: unknown): Scalar {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string') return value
  throw new ArgumentError(`operator.${name}: expected tensors or numbers, got ${value === null ? 'null' : typeof value}.`)
}

/** A binary operation: the method of tensors, and what it does to scalars. */
interface Binary {
  readonly method: string
  readonly onScalars: (a: Scalar, b: Scalar) => unknown
}

type Operands = (a: unknown, b: unknown) => unknown

/** Makes the operator of a name. */
type Maker = (name: string) => Operation

/** `a.method(b)` if `a` has the method, `reversed` for a number and a tensor (a method is called with the operands exchanged), and otherwise the operation on scalars. */
const binary =
  ({ method, onScalars }: Binary, reversed: string | Operands = (a, b) => call(numberLike(a, b), method, b)): Maker =>
  (name) =>
    named(name, (a, b) => {
      if (isObject(a) && method in a) return call(a, method, b)
      if (isObject(b)) return typeof reversed === 'string' ? call(b, reversed, a) : reversed(a, b)
      return onScalars(scalar(name, a), scalar(name, b))
    })

/** The number `a` as a tensor like `b`. */
const numberLike: Operands = (a, b) => call(call(call(b, 'isnan'), 'mul', 0), 'add', a)

const unary =
  (method: string, onNumber: (a: number) => unknown): Maker =>
  (name) =>
    named(name, (a) => (typeof a === 'number' || typeof a === 'boolean' ? onNumber(Number(a)) : call(a, method)))

const comparison = (method: string, onScalars: Binary['onScalars'], exchanged = method): Maker => binary({ method, onScalars }, exchanged)

const onNumbers = (method: string, compute: (a: number, b: number) => number): Binary => ({
  method,
  onScalars: (a, b) => compute(Number(a), Number(b)),
})

/** A bitwise operation on integers; two booleans give a boolean. */
const bits = (method: string, compute: (a: number, b: number) => number): Binary => ({
  method,
  onScalars: (a, b) => {
    const result = compute(Number(a), Number(b))
    return typeof a === 'boolean' && typeof b === 'boolean' ? result !== 0 : result
  },
})

const add: Binary = { method: 'add', onScalars: (a, b) => (typeof a === 'string' && typeof b === 'string' ? a + b : Number(a) + Number(b)) }
const subtract = onNumbers('sub', (a, b) => a - b)
const multiply = onNumbers('mul', (a, b) => a * b)
const divide = onNumbers('div', (a, b) => a / b)
const floorDivide = onNumbers('floorDivide', (a, b) => Math.floor(a / b))
/** Python's `%`, whose result has the sign of the divisor. */
const modulo = onNumbers('remainder', (a, b) => a - b * Math.floor(a / b))
const power = onNumbers('pow', (a, b) => a ** b)
const and = bits('bitwiseAnd', (a, b) => a & b)
const or = bits('bitwiseOr', (a, b) => a | b)
const xor = bits('bitwiseXor', (a, b) => a ^ b)
const shiftLeft = onNumbers('bitwiseLeftShift', (a, b) => a << b)
const shiftRight = onNumbers('bitwiseRightShift', (a, b) => a >> b)

/**
 * The in-place form, `a += b`. Calls the in-place method of a tensor, or copies the result into it if it has none. A number cannot change, so only the returned
 * value counts.
 */
const inPlace =
  ({ method, onScalars }: Binary): Maker =>
  (name) => {
    const write: Operands = (a, b) => {
      if (!isObject(a)) return onScalars(scalar(name, a), scalar(name, b))
      return `${method}_` in a ? call(a, `${method}_`, b) : call(a, 'copy_', call(a, method, b))
    }
    return named(name, write, undefined, 'mutates')
  }

type Plain = number | boolean

/** What the method of an operand gives: `A` itself if its type does not say. */
type MethodResult<A, K extends string> = A extends { readonly [Method in K]: (...args: never[]) => infer R } ? R : A

/** What an operator gives: what the method of the first object among its operands gives, or for two numbers `Scalar`. Values of unknown types give unknown ones. */
type Result<A, B, K extends string, Scalar> = A extends Plain
  ? B extends Plain
    ? Scalar
    : B extends object
      ? MethodResult<B, K>
      : unknown
  : A extends object
    ? MethodResult<A, K>
    : unknown

type Arithmetic<K extends string> = <A, B>(a: A, b: B) => Result<A, B, K, number>
type Bitwise<K extends string> = <A, B>(a: A, b: B) => Result<A, B, K, Plain>
type Comparison<K extends string> = <A, B>(a: A, b: B) => Result<A, B, K, boolean>
/** The first operand, changed; a number cannot change, and the operator gives another one. */
type InPlace = <A>(a: A, b: unknown) => A extends Plain ? number : A
type Unary<K extends string> = <A>(a: A) => A extends Plain ? number : A extends object ? MethodResult<A, K> : unknown

type Operators = {
  readonly [K in 'add' | 'sub' | 'mul' | 'pow' | 'matmul']: Arithmetic<K>
} & {
  readonly [K in 'gt' | 'lt' | 'ge' | 'le' | 'eq' | 'ne']: Comparison<K>
} & {
  readonly [K in 'iadd' | 'isub' | 'imul' | 'itruediv' | 'ifloordiv' | 'imod' | 'ipow' | 'iand' | 'ior' | 'ixor' | 'ilshift' | 'irshift']: InPlace
} & {
  readonly truediv: Arithmetic<'div'>
  readonly floordiv: Arithmetic<'floorDivide'>
  readonly mod: Arithmetic<'remainder'>
  readonly and_: Bitwise<'bitwiseAnd'>
  readonly or_: Bitwise<'bitwiseOr'>
  readonly xor: Bitwise<'bitwiseXor'>
  readonly lshift: Arithmetic<'bitwiseLeftShift'>
  readonly rshift: Arithmetic<'bitwiseRightShift'>
  readonly neg: Unary<'neg'>
  readonly abs: Unary<'abs'>
  readonly invert: Unary<'bitwiseNot'>
  readonly pos: <A>(a: A) => A
  readonly getitem: (value: unknown, index: unknown) => unknown
  readonly setitem: (value: unknown, index: unknown, item: unknown) => void
}

/** Operators by name. */
function makeAll(makers: Readonly<Record<keyof Operators, Maker>>): Operators
function makeAll(makers: Readonly<Record<string, Maker>>): Readonly<Record<string, Operation>> {
  return Object.fromEntries(Object.entries(makers).map(([name, make]) => [name, make(name)]))
}

/**
 * Python's `operator` module for tensors and numbers: `operator.add(1, x)` is `1 + x`. These are the functions that PyTorch records for operators. The types of the operands say what
 * each gives: of two numbers a number, a boolean or either, and with a tensor what its method gives.
 */
export const operator: Operators = makeAll({
  add: binary(add, 'add'),
  sub: binary(subtract, (a, b) => call(call(b, 'neg'), 'add', a)),
  mul: binary(multiply, 'mul'),
  truediv: binary(divide, (a, b) => call(call(b, 'reciprocal'), 'mul', a)),
  floordiv: binary(floorDivide),
  mod: binary(modulo),
  pow: binary(power),
  matmul: binary({ method: 'matmul', onScalars: notNumbers }, notNumbers),
  and_: binary(and, and.method),
  or_: binary(or, or.method),
  xor: binary(xor, xor.method),
  lshift: binary(shiftLeft),
  rshift: binary(shiftRight),
  gt: comparison('gt', (a, b) => a > b, 'lt'),
  lt: comparison('lt', (a, b) => a < b, 'gt'),
  ge: comparison('ge', (a, b) => a >= b, 'le'),
  le: comparison('le', (a, b) => a <= b, 'ge'),
  eq: comparison('eq', (a, b) => a === b),
  ne: comparison('ne', (a, b) => a !== b),
  iadd: inPlace(add),
  isub: inPlace(subtract),
  imul: inPlace(multiply),
  itruediv: inPlace(divide),
  ifloordiv: inPlace(floorDivide),
  imod: inPlace(modulo),
  ipow: inPlace(power),
  iand: inPlace(and),
  ior: inPlace(or),
  ixor: inPlace(xor),
  ilshift: inPlace(shiftLeft),
  irshift: inPlace(shiftRight),
  neg: unary('neg', (a) => -a),
  pos: (name) => named(name, (a) => a),
  abs: unary('abs', Math.abs),
  invert: unary('bitwiseNot', (a) => ~a),
  // An element of an array is read at once, even if the array holds traced values.
  getitem: (name) => named(name, getItem, (value, index) => Array.isArray(value) && typeof index === 'number'),
  setitem: (name) => named(name, setItem, undefined, 'mutates'),
})

/** An element of a container or tensor. */
function getItem(value: unknown, index: unknown): unknown {
  if (Array.isArray(value)) {
    if (index instanceof Slice) return value.slice(index.start ?? 0, index.stop ?? undefined)
    return typeof index === 'number' ? value.at(index) : ownAttribute(value, keyOf('getitem', index))
  }
  if (value instanceof Map) return value.get(index)
  if (isObject(value) && 'getitem' in value) return call(value, 'getitem', index)
  if (isObject(value) && 'select' in value && typeof index === 'number') return call(value, 'select', 0, index)
  return property('operator.getitem', value, keyOf('getitem', index), ownAttribute)
}

/** The key of a property. */
function keyOf(name: string, index: unknown): string {
  checkArgument(typeof index === 'string' || typeof index === 'number', `operator.${name}`, 'index', 'a string or a number', index)
  return String(index)
}

/** `x[i] = item`: sets an element of a container, or copies into the indexed part of a tensor. */
function setItem(value: unknown, index: unknown, item: unknown): void {
  if (value instanceof Map) value.set(index, item)
  else if (isTensorLike(value)) {
    const parts = Array.isArray(index) ? index : [index]
    if (parts.some((part) => Array.isArray(part) || isTensorLike(part)))
      throw new ArgumentError(
        'operator.setitem: a list of positions does not select a part of the tensor that can be written to; write one position at a time, or use torch.where.',
      )
    call(getItem(value, index), typeof item === 'number' ? 'fill_' : 'copy_', item)
  } else if (Array.isArray(value)) {
    if (typeof index !== 'number' || !Number.isInteger(index) || index < -value.length || index >= value.length)
      throw new ArgumentError(`operator.setitem: index ${valueText(index)} is out of range for ${value.length} elements.`)
    // Kernels trust the shapes of tensors, which a graph from a file can read.
    if (value.every((size) => Number.isSafeInteger(size) && size >= 0))
      throw new ArgumentError('operator.setitem: a list of sizes cannot be changed, because it may be the shape of a tensor; make a new list.')
    value[index < 0 ? index + value.length : index] = item
  } else if (isObject(value)) setAttribute(value, keyOf('setitem', index), item)
  else throw new ArgumentError(`operator.setitem: a value of type ${typeof value} has no elements.`)
}

function notNumbers(): never {
  throw new ArgumentError('operator.matmul: expected two tensors, got a number.')
}

/** A property of any value but null and undefined. An element is an own property: its index may be computed by a graph from a file. */
function property(where: string, value: unknown, name: string, read: (value: object, name: string) => unknown): unknown {
  if (value === null || value === undefined) throw new ArgumentError(`${where}: ${String(value)} has no property '${name}'.`)
  return read(Object(value), name)
}

function readAttribute(value: unknown, name: string): unknown {
  checkString('getattr', 'name', name)
  const override = findOverride([value])
  return override === null ? property('getattr', value, name, Reflect.get) : override[OVERRIDE]('function', getattr, [value, name], {})
}

/** Python's builtin getattr. Reading an attribute of a traced value records a call of it. */
export const getattr: (value: unknown, name: string) => unknown = nameTarget(withName(readAttribute, 'getattr'), {
  name: 'builtins.getattr',
})
