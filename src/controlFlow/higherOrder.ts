// What the operators of control flow share. They take functions (or the GraphModules that these became in a graph) and flat lists of values.
import { FakeTensorMode, dispatchState } from '../dispatch/index.ts'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { findOverride, isTensorLike, nameTarget, OVERRIDE, withName } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

/** A function on flat lists of values, or the child GraphModule that it became. */
export type Body = Module | ((...inputs: readonly unknown[]) => readonly unknown[])

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** Runs a body. Throws ArgumentError if it does not return a list. */
export function runBody(body: Body, inputs: readonly unknown[]): readonly unknown[] {
  const result: unknown = body instanceof Module ? (body.call as TargetFunction)(...inputs) : body(...inputs)
  if (isList(result)) return result
  throw new ArgumentError(`the body of a control flow operator must return a list of values, got ${typeof result}.`)
}

/** Names an operator `torch.ops.higher_order.…`, as graphs do, and lets traced values record its calls. */
export function higherOrder<A extends readonly unknown[]>(name: string, run: (...args: A) => readonly unknown[]): (...args: A) => readonly unknown[] {
  const op = (...args: A): readonly unknown[] => {
    const override = findOverride(args)
    // A traced call returns a Proxy, which stands for the list.
    return override === null ? run(...args) : (override[OVERRIDE]('function', op, args, {}) as readonly unknown[])
  }
  withName(op, name)
  return nameTarget(op, { name: `torch.ops.higher_order.${name}` })
}

/**
 * Whether a condition is a tensor without data. A run that wants only shapes then takes every path. One that records operators would keep one path for good,
 * so it throws UnsupportedError.
 */
export function isUnknown(op: string, condition: unknown): boolean {
  if (!(condition instanceof Tensor) || !condition.isFake) return false
  const recording = dispatchState.modes.find((mode) => !(mode instanceof FakeTensorMode))
  if (recording !== undefined)
    throw new UnsupportedError(
      `${op}: the condition depends on values, which are not known while operators are recorded (${recording.name}). Trace the program with fx.symbolicTrace, which records control flow, or use compile().`,
    )
  return true
}

/** Throws ArgumentError unless both lists have the same shapes and dtypes; values that are not tensors must be equal. */
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
