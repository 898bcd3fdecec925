// dispatch: adds an implementation to the dispatcher of its name. PyTorch's torch.fx.experimental.unification.multipledispatch.core.
import { ArgumentError } from '../../../../errors/index.ts'
import { isFunction, isPlainObject, valueText } from '../../../../protocol/index.ts'
import type { TargetFunction } from '../../../../protocol/index.ts'
import { Dispatcher } from './dispatcher.ts'
import type { GivenType } from './dispatcher.ts'

/** Dispatchers by the names of their functions. */
export type DispatchNamespace = Record<string, Dispatcher>

/** Options of {@link dispatch}. */
export interface DispatchOptions {
  /** Where the dispatchers are kept. Default: one place for the whole program. */
  readonly namespace?: DispatchNamespace
  /** The name of the dispatcher. Default: that of the function, which minifiers change. */
  readonly name?: string
}

const globalNamespace: DispatchNamespace = {}

const isOptions = (value: unknown): value is DispatchOptions => isPlainObject(value)

/**
 * A function that adds a named function, under its name, to a namespace, for arguments of these types, and returns the dispatcher of that name. The last argument may be
 * {@link DispatchOptions}. PyTorch's dispatch.
 *
 *     const f = dispatch(Number)(function f(x) { return x + 1 })
 *     dispatch(String)(function f(x) { return x.length })
 *     f.call('abc')  // 3
 *
 * @throws ArgumentError for a function without a name, if the options have none.
 */
export function dispatch(...given: readonly (GivenType | DispatchOptions)[]): (fn: TargetFunction, doc?: string) => Dispatcher {
  const last = given.at(-1)
  const { namespace = globalNamespace, name = null } = isOptions(last) ? last : {}
  const types = given.filter((type): type is GivenType => !isOptions(type))
  return (fn, doc) => {
    if (!isFunction(fn)) throw new ArgumentError(`dispatch: expected a function, got ${valueText(fn)}.`)
    const key = name ?? fn.name
    if (key === '') throw new ArgumentError("dispatch: the function has no name; give one: dispatch(Number, { name: 'f' })((x) => …).")
    const dispatcher = (namespace[key] ??= new Dispatcher(key))
    dispatcher.add(types, fn, doc ?? null)
    return dispatcher
  }
}
