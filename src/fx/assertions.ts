// Assertions that stand in graphs, and conditions that a tracer is asked about.
import { TensorfxError } from '../errors/index.ts'
import { OVERRIDE, findOverride, isTensorLike, nameTarget } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { isProxy, nodeOf, tracerOf } from './proxy.ts'
import { answered } from './unusedConditions.ts'

/** An assertion in a graph did not hold: the inputs are not of the kind that the graph was traced for. */
export class AssertionFailed extends TensorfxError {
  constructor(message: string) {
    super('TFX_ASSERTION', message)
  }
}

/** A boolean, or a tensor of one element. */
function truth(condition: unknown): boolean {
  return isTensorLike(condition) ? Boolean((condition as unknown as { item(): number | boolean }).item()) : Boolean(condition)
}

function assertion<F extends TargetFunction>(name: string, check: F): F {
  const fn = (...args: readonly unknown[]): unknown => {
    const override = findOverride(args)
    return override === null ? check(...args) : override[OVERRIDE]('function', fn, args, {})
  }
  Object.defineProperty(fn, 'name', { value: name.slice(name.lastIndexOf('.') + 1) })
  return nameTarget(fn, { name, effects: 'io' }) as unknown as F
}

/** Throws AssertionFailed when the condition (a boolean, or a tensor of one element) does not hold; recorded when it is traced. PyTorch's torch._assert. */
export const _assert: (condition: unknown, message?: string) => void = assertion('torch._assert', (condition: unknown, message = ''): void => {
  if (!truth(condition)) throw new AssertionFailed(message)
})

/** Throws AssertionFailed unless the value is null or undefined. */
export const _assertIsNone: (value: unknown, message: string) => void = assertion(
  'torch.fx._symbolic_trace._assert_is_none',
  (value: unknown, message: string): void => {
    if (value !== null && value !== undefined) throw new AssertionFailed(message)
  },
)

/**
 * The truth of a condition. JavaScript asks nobody about `if (x)`; `if (fx.bool(x))` asks the tracer of a traced value (TraceError, unless it
 * overrides `toBool`), and reads the one element of a tensor. PyTorch's `__bool__`.
 */
export function bool(condition: unknown): boolean {
  if (!isProxy(condition)) return truth(condition)
  const answer = tracerOf(condition).toBool(condition)
  answered(nodeOf(condition))
  return answer
}
