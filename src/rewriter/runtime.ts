// What rewritten code calls in place of JavaScript's conditions and comparisons. With plain values each does what JavaScript does.
import { TraceError, _assert, bool, isProxy, nodeOf, operator } from '../fx/index.ts'
import { isFunction } from '../protocol/index.ts'

/** Throws TraceError for a traced value, of which `what` cannot be known. */
function refuse(value: unknown, what: string, instead: string): void {
  if (isProxy(value)) throw new TraceError(`${what} of a traced value ('${nodeOf(value).name}') is not known while tracing`, instead)
}

const FIX_ARGUMENT = 'Make it an argument and fix it with concreteArgs, or decide before the call.'

/** Whether a comparison of two values must be recorded. Null and undefined equal no traced value. */
const isRecorded = (a: unknown, b: unknown): boolean =>
  (isProxy(a) || isProxy(b)) && a !== b && ![a, b].some((side) => side === null || side === undefined)

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
}
