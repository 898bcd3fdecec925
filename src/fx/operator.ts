// Python's `operator` module, as far as graphs use it: functions on values that may be tensors, numbers or containers.
// On a tensor-like they call its method; PyTorch's graphs name them `operator.add`, `operator.getitem`, …
import { findOverride, nameTarget, OVERRIDE } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { Slice } from './slice.ts'

type Binary = (a: never, b: never) => unknown

function named<F extends TargetFunction>(name: string, fn: F, isPlain: (...args: readonly unknown[]) => boolean = () => false): F {
  const withOverride = ((...args: unknown[]): unknown => {
    const override = isPlain(...args) ? null : findOverride(args)
    return override === null ? fn(...args) : override[OVERRIDE]('function', withOverride as TargetFunction, args, {})
  }) as F
  Object.defineProperty(withOverride, 'name', { value: name })
  return nameTarget(withOverride, { name: `operator.${name}` })
}

/** `a.method(b)` where `a` has it, the number operation otherwise; with a number on the left of a tensor, `reversed`. */
function arithmetic(
  name: string,
  method: string,
  onNumbers: (a: number, b: number) => unknown,
  reversed: (a: number, b: Record<string, Binary>) => unknown,
): (a: unknown, b: unknown) => unknown {
  return named(name, (a: unknown, b: unknown): unknown => {
    if (typeof a === 'object' && a !== null && method in a) return (a as Record<string, (x: unknown) => unknown>)[method]?.(b)
    if (typeof b === 'object' && b !== null) return reversed(a as number, b as Record<string, Binary>)
    return onNumbers(a as number, b as number)
  })
}

const call = (target: Record<string, Binary>, method: string, ...args: readonly unknown[]): unknown =>
  (target[method] as unknown as (...a: readonly unknown[]) => unknown).apply(target, [...args])

export const operator: Readonly<
  Record<'add' | 'sub' | 'mul' | 'truediv' | 'matmul' | 'gt' | 'lt' | 'ge' | 'le' | 'eq' | 'ne', (a: unknown, b: unknown) => unknown>
> & {
  readonly neg: (a: unknown) => unknown
  readonly getitem: (value: unknown, index: unknown) => unknown
} = {
  add: arithmetic(
    'add',
    'add',
    (a, b) => a + b,
    (a, b) => call(b, 'add', a),
  ),
  sub: arithmetic(
    'sub',
    'sub',
    (a, b) => a - b,
    (a, b) => call(call(b, 'neg') as Record<string, Binary>, 'add', a),
  ),
  mul: arithmetic(
    'mul',
    'mul',
    (a, b) => a * b,
    (a, b) => call(b, 'mul', a),
  ),
  truediv: arithmetic(
    'truediv',
    'div',
    (a, b) => a / b,
    (a, b) => call(call(b, 'reciprocal') as Record<string, Binary>, 'mul', a),
  ),
  matmul: arithmetic(
    'matmul',
    'matmul',
    () => notNumbers('matmul'),
    () => notNumbers('matmul'),
  ),
  gt: arithmetic(
    'gt',
    'gt',
    (a, b) => a > b,
    (a, b) => call(b, 'lt', a),
  ),
  lt: arithmetic(
    'lt',
    'lt',
    (a, b) => a < b,
    (a, b) => call(b, 'gt', a),
  ),
  ge: arithmetic(
    'ge',
    'ge',
    (a, b) => a >= b,
    (a, b) => call(b, 'le', a),
  ),
  le: arithmetic(
    'le',
    'le',
    (a, b) => a <= b,
    (a, b) => call(b, 'ge', a),
  ),
  eq: arithmetic(
    'eq',
    'eq',
    (a, b) => a === b,
    (a, b) => call(b, 'eq', a),
  ),
  ne: arithmetic(
    'ne',
    'ne',
    (a, b) => a !== b,
    (a, b) => call(b, 'ne', a),
  ),
  neg: named('neg', (a: unknown): unknown => (typeof a === 'number' ? -a : call(a as Record<string, Binary>, 'neg'))),
  getitem: named('getitem', getItem, (value, index) => Array.isArray(value) && typeof index === 'number'),
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

function notNumbers(name: string): never {
  throw new ArgumentError(`operator.${name}: expected tensors, got numbers.`)
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
