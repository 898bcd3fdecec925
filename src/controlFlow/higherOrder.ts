// What the operators of control flow share: they take functions (or the GraphModules that these became in a graph) and flat lists of values.
import { FakeTensorMode, dispatchState } from '../dispatch/index.ts'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { OVERRIDE, findOverride, isTensorLike, nameTarget } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** A function on flat lists of values, or the child GraphModule that it became. */
export type Body = Module | ((...inputs: readonly unknown[]) => readonly unknown[])

/** Runs a body. */
export const runBody = (body: Body, inputs: readonly unknown[]): readonly unknown[] =>
  (body instanceof Module ? (body.call as TargetFunction)(...inputs) : body(...inputs)) as readonly unknown[]

/** Names an operator `torch.ops.higher_order.…`, under which graphs know it, and lets traced values record its calls. */
export function higherOrder<F extends TargetFunction>(name: string, run: F): F {
  const op = (...args: readonly unknown[]): unknown => {
    const override = findOverride(args)
    return override === null ? run(...args) : override[OVERRIDE]('function', op, args, {})
  }
  Object.defineProperty(op, 'name', { value: name })
  return nameTarget(op as unknown as F, { name: `torch.ops.higher_order.${name}` })
}

/**
 * Whether a condition is a tensor without data. A run that only wants shapes then goes every way; one that is being recorded would keep one way for good:
 * UnsupportedError.
 */
export function isUnknown(op: string, condition: unknown): boolean {
  if (!isTensorLike(condition) || !(condition as Tensor).isFake) return false
  const recording = dispatchState.modes.find((mode) => !(mode instanceof FakeTensorMode))
  if (recording !== undefined)
    throw new UnsupportedError(
      `${op}: the condition depends on values, which are not known while operators are recorded (${recording.name}). Trace the program with fx.symbolicTrace, which records control flow, or use compile().`,
    )
  return true
}

/** Throws ArgumentError unless both lists have the same shapes and dtypes; what is no tensor must be equal. */
export function checkSame(op: string, first: readonly unknown[], firstName: string, second: readonly unknown[], secondName: string): void {
  if (first.length !== second.length)
    throw new ArgumentError(`${op}: ${firstName} and ${secondName} must have the same number of values, got ${first.length} and ${second.length}.`)
  const specOf = (value: unknown): string => (isTensorLike(value) ? `${value.dtype}[${value.shape.join(', ')}]` : `${typeof value} ${String(value)}`)
  const differs = first.findIndex((value, i) => specOf(value) !== specOf(second[i]))
  if (differs >= 0)
    throw new ArgumentError(
      `${op}: ${firstName} and ${secondName} must have the same shapes and dtypes, but value ${differs} is ${specOf(first[differs])} in the first and ${specOf(second[differs])} in the second.`,
    )
}
