// Calls of functions with a schema in one form: every argument by name, or required arguments by position and the others by name.
import { targetInfo } from '../protocol/index.ts'
import type { FunctionSchema } from '../protocol/index.ts'
import type { Target } from './node.ts'

/** The signatures of an operator: the one that it is declared with; null for what has none. PyTorch's get_signature_for_torch_op. */
export function getSignatureForTorchOp(op: Target): readonly FunctionSchema[] | null {
  const schema = typeof op === 'function' ? targetInfo(op)?.schema : undefined
  return schema === undefined ? null : [schema]
}

/** A call's arguments in one form; PyTorch's ArgsKwargsPair. */
export interface NormalizedCall {
  readonly args: readonly unknown[]
  readonly kwargs: Readonly<Record<string, unknown>>
}

/** Options of {@link normalizeFunction}. */
export interface NormalizeOptions {
  /** Every argument by name. Default false: those without a default by position. */
  readonly onlyKwargs?: boolean
}

/**
 * The arguments of a call as the function's schema has them, defaults filled in. The first argument of an operator is called `input`, as PyTorch calls
 * it in functions. null for methods and modules, for functions without a schema, and for arguments that do not fit it.
 * PyTorch's torch.fx.operator_schemas.normalize_function.
 */
export function normalizeFunction(
  target: Target,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: NormalizeOptions = {},
): NormalizedCall | null {
  const schema = typeof target === 'function' ? targetInfo(target)?.schema : undefined
  if (schema === undefined || args.length > schema.args.length) return null
  const positional: unknown[] = []
  const named: Record<string, unknown> = {}
  let found = 0
  for (const [i, { name: own, hasDefault, kwargOnly, default: fallback }] of schema.args.entries()) {
    const name = own === 'self' ? 'input' : own
    const key = Object.hasOwn(kwargs, name) ? name : own
    const given = i < args.length || Object.hasOwn(kwargs, key)
    if (!given && !hasDefault) return null
    if (Object.hasOwn(kwargs, key)) {
      if (i < args.length) return null
      found++
    } else if (i < args.length && kwargOnly) return null
    const value = i < args.length ? args[i] : given ? kwargs[key] : fallback
    if (options.onlyKwargs === true || hasDefault) named[name] = value
    else positional.push(value)
  }
  return found === Object.keys(kwargs).length ? { args: positional, kwargs: named } : null
}
