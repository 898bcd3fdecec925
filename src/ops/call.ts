// A call of an operator, as a function or as a method: an argument that overrides takes it over; otherwise the arguments are normalized and dispatched.
import { dispatch } from '../dispatch/index.ts'
import type { OpDef } from '../dispatch/index.ts'
import { OVERRIDE, findOverride } from '../protocol/index.ts'
import type { OverrideKind } from '../protocol/index.ts'
import { asKeywords, normalize, splitOptions } from './normalize.ts'
import { usualArguments } from './usualArguments.ts'

/**
 * A function that calls `op` with the arguments as the user wrote them. `kind` is what an override hears: a function call or a method call.
 * With `keywords`, it hears arguments that have defaults by name, given or not.
 */
export function callAs(op: OpDef, kind: OverrideKind, keywords = false): (args: unknown[]) => unknown {
  const usual = usualArguments(op)
  return (args) => {
    const values = usual(args)
    if (values !== null) return dispatch(op, values)
    const override = findOverride(args)
    if (override !== null) {
      const [positional, options] = keywords ? asKeywords(op, ...splitOptions(args)) : splitOptions(args)
      return override[OVERRIDE](kind, op.fn, positional, options)
    }
    return dispatch(op, normalize(op, args))
  }
}
