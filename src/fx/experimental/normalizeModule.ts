// Normalized calls of layers, and the check for functions that write into their arguments. PyTorch's torch.fx.operator_schemas, with graph/operatorSchemas.ts and
// text/typeExpression.ts.
import { ArgumentError } from '../../errors/index.ts'
import { Module, attributeAt, isLibraryLayer } from '../../module/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { NormalizeOptions, NormalizedCall } from '../graph/operatorSchemas.ts'
import { refuseMutation } from '../graph/purity.ts'
import { signatureOf } from '../trace/parameters.ts'
import type { Parameter } from '../trace/parameters.ts'

/**
 * The normalized arguments of a call of the layer at `target`: those that its `forward` names, with defaults filled in. Parameters without a default stay positional
 * unless `onlyKwargs` is set. Returns null for modules that are not layers of nn, and for arguments that `forward` does not take. PyTorch's normalize_module.
 *
 *     normalizeModule(model, 'fc', [x], {}, { onlyKwargs: true }) // { args: [], kwargs: { input: x } }
 *
 * @throws ArgumentError if there is no module at `target`.
 */
export function normalizeModule(
  root: Module,
  target: string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: NormalizeOptions = {},
): NormalizedCall | null {
  checkCount('normalizeModule', arguments, 5)
  checkOptions('normalizeModule', options, { onlyKwargs: 'boolean' })
  const module = attributeAt(root, target)
  if (!(module instanceof Module)) throw new ArgumentError(`normalizeModule: there is no module at '${target}'; pass a path of root.namedModules().`)
  if (!isLibraryLayer(module)) return null
  // eslint-disable-next-line typescript/unbound-method -- only its source is read
  return normalized(signatureOf(module.forward).parameters, args, kwargs, options.onlyKwargs === true)
}

/**
 * A call by the source of what it calls: parameters by position, and what a last parameter such as `{ scale = 1 } = {}` takes by name, with defaults filled in. Null if
 * the source does not tell: for `...rest`, for a parameter that is not given and whose default is no literal, and for arguments that the source does not name.
 */
export function normalizeBySource(
  fn: (...args: never[]) => unknown,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
): NormalizedCall | null {
  const { parameters } = signatureOf(fn)
  const last = parameters.at(-1)
  const options = last?.properties ?? null
  const positional = options === null ? parameters : parameters.slice(0, -1)
  const given = Object.keys(kwargs)
  // Keyword arguments are one trailing object, which is `options` only if all parameters before it are given.
  if (args.length > positional.length || (given.length > 0 && (options === null || args.length < positional.length))) return null
  if (given.some((name) => options?.some((property) => property.name === name) !== true)) return null
  const values = [...args]
  for (const { default: fallback, rest, properties } of positional.slice(args.length)) {
    // An object could be the options of a function that does not name them.
    if (rest || properties !== null || fallback === null || typeof fallback.value === 'object') return null
    values.push(fallback.value)
  }
  if (positional.some(({ rest }) => rest)) return null
  const named = (options ?? []).flatMap(({ name, default: fallback }) => {
    if (Object.hasOwn(kwargs, name)) return [[name, kwargs[name]] as const]
    return fallback === null ? [] : [[name, fallback.value] as const]
  })
  return { args: values, kwargs: Object.fromEntries(named) }
}

function normalized(
  parameters: readonly Parameter[],
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
  onlyKwargs: boolean,
): NormalizedCall | null {
  const positional: unknown[] = []
  const named: Record<string, unknown> = {}
  const left = { ...kwargs }
  for (const [i, { name, default: fallback, rest, properties }] of parameters.entries()) {
    if (rest) return null
    const accepted = properties ?? [{ name, default: fallback }]
    for (const parameter of accepted) {
      const isPositional = properties === null && i < args.length
      if (isPositional && Object.hasOwn(left, parameter.name)) return null
      const isNamed = Object.hasOwn(left, parameter.name)
      if (!isPositional && !isNamed && parameter.default === null) return null
      const value = isPositional ? args[i] : isNamed ? left[parameter.name] : parameter.default?.value
      Reflect.deleteProperty(left, parameter.name)
      if (onlyKwargs || parameter.default !== null) named[parameter.name] = value
      else positional.push(value)
    }
  }
  const taken = parameters.filter(({ properties }) => properties === null).length
  return args.length > taken || Object.keys(left).length > 0 ? null : { args: positional, kwargs: named }
}

/**
 * Throws TraceError for a function that writes into its arguments: `torch.relu_`. Tracers check this for every call if `checkMutableOperations` is set. PyTorch's
 * check_for_mutable_operation.
 */
export const checkForMutableOperation = (target: TargetFunction): void => refuseMutation('call_function', target)
