// wrap: makes a function a leaf of tracing. A call with a traced argument is recorded as one node, instead of tracing into the function.
import { ArgumentError } from '../../errors/index.ts'
import {
  checkCount,
  checkOptions,
  effectsOf,
  findOverride,
  isFunction,
  isModule,
  kindOf,
  nameTarget,
  OVERRIDE,
  withName,
} from '../../protocol/index.ts'
import type { Effects, TargetFunction } from '../../protocol/index.ts'
import { isProxy, nodeOf, splitKwargs } from './proxy.ts'

/** Settings of {@link wrap}. */
export interface WrapOptions {
  /** The qualified name of the function in graphs, code and JSON. Default: `user.` and the function's name. */
  readonly name?: string
  /** What a call does besides computing its result. Dead code elimination keeps calls that are not pure. Default: as declared for the function, else 'pure'. */
  readonly effects?: Effects
}

/** The results of wrapping a function, by qualified name. */
const wrapped = new WeakMap<TargetFunction, Map<string, TargetFunction>>()
const leaves = new WeakSet<TargetFunction>()

/**
 * Returns a function that does what `fn` does and is a leaf of tracing. PyTorch's torch.fx.wrap patches the module instead, which is impossible for JavaScript's
 * imports. `wrap` can be called anywhere, and the result stays a leaf when a graph is traced again. A trailing plain object among the arguments holds keyword
 * arguments. Throws ArgumentError for anything but a function, for an anonymous function without `options.name`, and for a name that is taken.
 *
 *     export const lookup = wrap((table, key) => table[key], { name: 'lookup' })
 */
export function wrap<F extends TargetFunction>(fn: F, options: WrapOptions = {}): F {
  checkCount('wrap', arguments, 2)
  if (!isFunction(fn))
    throw new ArgumentError(
      `wrap: Unsupported type for global function! Must be a callable, got ${kindOf(fn)}. ${isModule(fn) ? 'To record a module as one call, override isLeafModule of a Tracer.' : 'wrap takes the function itself and returns the wrapped one: const f = wrap(f0).'}`,
    )
  checkOptions('wrap', options, { name: true, effects: true })
  const given = options.name ?? fn.name
  if (given === '') throw new ArgumentError('wrap: an anonymous function needs a name: wrap(fn, { name }).')
  const name = given.includes('.') ? given : `user.${given}`
  if (leaves.has(fn)) return fn
  const known = wrapped.get(fn)?.get(name)
  if (known !== undefined) return known as F
  const leaf = function (this: unknown, ...args: readonly unknown[]): unknown {
    const override = findOverride(args)
    if (override === null) return fn.apply(this, [...args])
    const [positional, kwargs] = splitKwargs(args)
    const result = override[OVERRIDE]('function', leaf, positional, kwargs)
    if (isProxy(result)) nodeOf(result).meta['is_wrapped'] = true
    return result
  }
  withName(leaf, given.slice(given.lastIndexOf('.') + 1))
  nameTarget(leaf, { name, effects: options.effects ?? effectsOf(fn) })
  leaves.add(leaf)
  wrapped.set(fn, (wrapped.get(fn) ?? new Map<string, TargetFunction>()).set(name, leaf))
  return leaf as F
}
