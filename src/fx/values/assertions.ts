// Assertions that are recorded in graphs, and conditions that a tracer decides.
import { TensorfxError } from '../../errors/index.ts'
import { findOverride, isFunction, isTensorLike, nameTarget, OVERRIDE, valueText, withName } from '../../protocol/index.ts'
import { isProxy, nodeOf, tracerOf } from './proxy.ts'
import { answered } from './unusedConditions.ts'

/**
 * An assertion in a graph failed: the graph was traced for other inputs.
 *
 * Fix: call the module with inputs like those it was traced for, or trace it again for the new ones.
 */
export class AssertionFailed extends TensorfxError {
  constructor(message: string) {
    super('TFX_ASSERTION', message)
  }
}

/** The truth of a boolean, or of a tensor with one element. */
function truth(condition: unknown): boolean {
  return Boolean(isTensorLike(condition) && 'item' in condition && isFunction(condition.item) ? condition.item() : condition)
}

type Assertion = (...args: readonly unknown[]) => void

function assertion(name: string, check: (value: unknown, message: string) => void): Assertion {
  const fn: Assertion = (...args) => {
    const override = findOverride(args)
    if (override !== null) return void override[OVERRIDE]('function', fn, args, {})
    const [value, message = ''] = args
    check(value, typeof message === 'string' ? message : valueText(message))
  }
  return nameTarget(withName(fn, name.slice(name.lastIndexOf('.') + 1)), { name, effects: 'io' })
}

/** Throws AssertionFailed unless the condition, a boolean or a tensor of one element, holds. Recorded if the condition is traced. PyTorch's torch._assert. */
export const _assert: (condition: unknown, message?: string) => void = assertion('torch._assert', (condition, message) => {
  if (!truth(condition)) throw new AssertionFailed(message)
})

/** Throws AssertionFailed unless the value is null or undefined. Recorded if the value is traced. */
export const _assertIsNone: (value: unknown, message: string) => void = assertion('torch.fx._symbolic_trace._assert_is_none', (value, message) => {
  if (value !== null && value !== undefined) throw new AssertionFailed(message)
})

/**
 * The truth of a condition. A tracer cannot intercept `if (x)`, but `if (fx.bool(x))` asks the tracer of a traced value, which throws TraceError unless it
 * overrides `toBool`. For a tensor it reads the single element. PyTorch's `__bool__`.
 */
export function bool(condition: unknown): boolean {
  if (!isProxy(condition)) return truth(condition)
  const answer = tracerOf(condition).toBool(condition)
  answered(nodeOf(condition))
  return answer
}
