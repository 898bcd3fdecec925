// A call of an operator, as a function or as a method: an argument that overrides takes it over; otherwise the arguments are normalized and dispatched.
import { dispatch } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { OVERRIDE, findOverride } from '../../protocol/index.ts'
import type { OverrideKind } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { asKeywords, normalize, splitOptions } from './normalize.ts'
import { usualArguments } from './usualArguments.ts'

/** A way to call an operator. */
export interface Call {
  /** With the arguments as the user wrote them, in a list that may be changed. */
  readonly with: (args: unknown[]) => unknown
  /** `x.add(y)`, the most frequent call of all. */
  readonly withTwo: (self: Tensor, other: unknown) => unknown
}

/**
 * Calls of `op`. `kind` is what an override hears: a function call or a method call. With `keywords`, it hears arguments that have defaults by name, given or not.
 * `before` gets the arguments of each call that is not overridden, before the operator does.
 */
export function callAs(op: OpDef, kind: OverrideKind, keywords = false, before?: (...args: readonly Arg[]) => void): Call {
  const usual = usualArguments(op)
  const callWith = (args: unknown[]): unknown => {
    const values = usual.of(args)
    if (values !== null) {
      before?.(...values)
      return dispatch(op, values)
    }
    const override = findOverride(args)
    if (override !== null) {
      const [positional, options] = keywords ? asKeywords(op, ...splitOptions(args)) : splitOptions(args)
      return override[OVERRIDE](kind, op.fn, positional, options)
    }
    const normalized = normalize(op, args)
    before?.(...normalized)
    return dispatch(op, normalized)
  }
  return {
    with: callWith,
    withTwo: (self, other) => {
      const values = usual.ofTwo(self, other)
      return values === null ? callWith([self, other]) : dispatch(op, values)
    },
  }
}
