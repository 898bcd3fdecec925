// Normalized calls of functions that have a schema: every argument by name, or the required ones by position and the others by name.
import { checkCount, checkOptions, targetInfo } from '../../protocol/index.ts'
import type { FunctionSchema, TargetFunction } from '../../protocol/index.ts'

/** The schemas of an operator (here always one); null for anything without a schema. PyTorch's get_signature_for_torch_op. */
export function getSignatureForTorchOp(op: TargetFunction | string): readonly FunctionSchema[] | null {
  checkCount('getSignatureForTorchOp', arguments, 1)
  const schema = targetInfo(op)?.schema
  return schema === undefined ? null : [schema]
}

/** The normalized arguments of a call; PyTorch's ArgsKwargsPair. */
export interface NormalizedCall {
  readonly args: readonly unknown[]
  readonly kwargs: Readonly<Record<string, unknown>>
}

/** Options of {@link normalizeFunction}. */
export interface NormalizeOptions {
  /** Pass every argument by name. Default false: arguments without a default stay positional. */
  readonly onlyKwargs?: boolean
}

/**
 * Normalizes the arguments of a call by the function's schema, with defaults filled in. The first argument of an operator is named `input`, as in PyTorch's
 * functions. Returns null for methods and modules, for functions without a schema, and for arguments that do not match it.
 * PyTorch's torch.fx.operator_schemas.normalize_function.
 */
export function normalizeFunction(
  target: TargetFunction | string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: NormalizeOptions = {},
): NormalizedCall | null {
  checkCount('normalizeFunction', arguments, 4)
  checkOptions('normalizeFunction', options, { onlyKwargs: 'boolean' })
  const schema = targetInfo(target)?.schema
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
