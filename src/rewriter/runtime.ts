// What rewritten code calls in place of JavaScript's conditions and comparisons. With plain values each does what JavaScript does.
import { TraceError, _assert, bool, isProxy, nodeOf, operator } from '../fx/index.ts'
import { isFunction, isModule } from '../protocol/index.ts'
import { recordPresence } from './assertions.ts'

/** Throws TraceError for a traced value, of which `what` cannot be known. */
function refuse(value: unknown, what: string, instead: string): void {
  if (isProxy(value)) throw new TraceError(`${what} of a traced value ('${nodeOf(value).name}') is not known while tracing`, instead)
}

const FIX_ARGUMENT = 'Make it an argument and fix it with concreteArgs, or decide before the call.'

/** The value. If it is traced, the graph asserts that it is neither null nor undefined. */
function there<T>(value: T): T {
  if (isProxy(value)) recordPresence(value, false)
  return value
}

/** Whether a comparison of two values must be recorded. Null and undefined equal no traced value, which the graph asserts. */
function isRecorded(a: unknown, b: unknown): boolean {
  if (!(isProxy(a) || isProxy(b)) || a === b) return false
  const isNothing = [a, b].some((side) => side === null || side === undefined)
  if (isNothing) there(isProxy(a) ? a : b)
  return !isNothing
}

const KEY = 'whether a key or an element equals it'

/** Whether a value has keys or elements that a number or a string at run time could equal. Objects are compared by identity, as tensors are. */
function hasPlainKeys(value: unknown): boolean {
  const keys: Iterable<unknown> = value instanceof Map ? value.keys() : value instanceof Set || Array.isArray(value) ? value : []
  for (const key of keys) if (!isProxy(key) && key !== null && ['number', 'string', 'boolean', 'bigint'].includes(typeof key)) return true
  return ArrayBuffer.isView(value)
}

/** Whether a value is traced, or an array with a traced value. */
const hasTraced = (value: unknown): boolean => isProxy(value) || (Array.isArray(value) && value.some(isProxy))

/** The calls of rewritten code. */
export interface Runtime {
  /** The value that {@link Runtime.test} has tested last. */
  left: unknown
  /** `if (c)`: for a traced value, what its tracer answers. */
  bool(value: unknown): boolean
  /** The left side of `&&` and `||`. */
  test(value: unknown): boolean
  /** Groups what `a && b` became. */
  value<T>(value: T): T
  /** `a === b`. */
  same(a: unknown, b: unknown): unknown
  /** `a !== b`. */
  differ(a: unknown, b: unknown): unknown
  /** `a == b`. */
  equal(a: unknown, b: unknown): unknown
  /** `a != b`. */
  unequal(a: unknown, b: unknown): unknown
  /** `Object.is(a, b)`. */
  is(a: unknown, b: unknown): unknown
  /** `typeof x`. */
  typeOf(value: unknown): string
  /** `x instanceof C`. */
  instanceOf(value: unknown, type: unknown): boolean
  /** `Array.isArray(x)`. */
  isArray(value: unknown): boolean
  /** `switch (x)`. */
  plain<T>(value: T): T
  /** `console.assert(c, m)`. */
  assert(condition: unknown, ...message: readonly unknown[]): void
  /** `if (!c) throw new Error(m)`: whether to throw. */
  fails(condition: unknown, message: () => unknown): boolean
  /** `a` in `a == null`, `a ?? b` and `a?.b`. */
  there<T>(value: T): T
  /** What a pattern with defaults has bound. */
  given(...values: readonly unknown[]): void
  /** `a` in `a.then`, `a.constructor` and `a.prototype`. */
  own<T>(value: T): T
  /** `map.get(key)`, `set.has(key)`, `list.includes(key)`. */
  lookup(object: unknown, method: string, ...args: readonly unknown[]): unknown
  /** `value` in `object.name = value`. */
  stored<T>(object: unknown, value: T): T
}

/** Truth as JavaScript has it; of traced values, as their tracers say. */
const truthOf = (value: unknown): boolean => (isProxy(value) ? bool(value) : Boolean(value))

/** See {@link Runtime}. Rewritten modules import it as `__tensorfx`. */
export const runtime: Runtime = {
  left: undefined,
  bool: truthOf,
  test(value) {
    const answer = truthOf(value)
    runtime.left = value
    return answer
  },
  value: (value) => value,
  same: (a, b) => (isRecorded(a, b) ? operator.eq(a, b) : a === b),
  differ: (a, b) => (isRecorded(a, b) ? operator.ne(a, b) : a !== b),
  // oxlint-disable-next-line eqeqeq -- it stands for this operator
  equal: (a, b) => (isRecorded(a, b) ? operator.eq(a, b) : a == b),
  // oxlint-disable-next-line eqeqeq -- it stands for this operator
  unequal: (a, b) => (isRecorded(a, b) ? operator.ne(a, b) : a != b),
  is: (a, b) => (isRecorded(a, b) ? operator.eq(a, b) : Object.is(a, b)),
  typeOf(value) {
    refuse(value, 'the type', FIX_ARGUMENT)
    return typeof value
  },
  instanceOf(value, type) {
    refuse(value, 'the class', FIX_ARGUMENT)
    if (!isFunction(type)) throw new TypeError("Right-hand side of 'instanceof' is not callable")
    return value instanceof type
  },
  isArray(value) {
    refuse(value, 'whether it is an array', FIX_ARGUMENT)
    return Array.isArray(value)
  },
  plain(value) {
    refuse(value, 'which case of a switch holds', 'Write the cases as data (torch.where), or fix the value with concreteArgs.')
    return value
  },
  assert(condition, ...message) {
    if (isProxy(condition)) _assert(condition, message.map(String).join(' '))
    // oxlint-disable-next-line no-console -- it stands for this call
    else console.assert(Boolean(condition), ...message)
  },
  fails(condition, message) {
    if (!isProxy(condition)) return !condition
    _assert(condition, String(message()))
    return false
  },
  there,
  given(...values) {
    for (const value of values) if (isProxy(value)) recordPresence(value, true)
  },
  own(value) {
    refuse(value, "'then', 'constructor' or 'prototype'", "Read it with fx.getattr(x, 'then').")
    return value
  },
  lookup(object, method, ...args) {
    const [key] = args
    if (!isProxy(object) && hasPlainKeys(object)) refuse(key, KEY, FIX_ARGUMENT)
    if (object === null || object === undefined) throw new TypeError(`Cannot read properties of ${object} (reading '${method}')`)
    const fn: unknown = Reflect.get(Object(object), method, object)
    if (!isFunction(fn)) throw new TypeError(`${method} is not a function`)
    return Reflect.apply(fn, object, args)
  },
  stored(object, value) {
    if ((isModule(object) || isFunction(object) || object === globalThis) && !isProxy(object) && hasTraced(value))
      throw new TraceError(
        'a traced value is stored in a module, a class or a global, where it outlives the trace without a value',
        'Return it, or pass it on as an argument.',
      )
    return value
  },
}
