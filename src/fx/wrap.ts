// wrap: a function that is recorded as one call when it meets a traced value, instead of being traced through.
import { ArgumentError } from '../errors/index.ts'
import { OVERRIDE, findOverride, nameTarget } from '../protocol/index.ts'
import type { Effects, TargetFunction } from '../protocol/index.ts'
import { splitKwargs } from './proxy.ts'

/**
 * Returns `fn` as a leaf of tracing; PyTorch's torch.fx.wrap, which patches the module instead (JavaScript's imports cannot be patched).
 * It may be called anywhere, and survives re-tracing. An anonymous function needs `options.name`.
 *
 *     export const lookup = wrap((table, key) => table[key], { name: 'lookup' })
 */
export function wrap<F extends TargetFunction>(fn: F, options: { readonly name?: string; readonly effects?: Effects } = {}): F {
  if (typeof fn !== 'function') throw new ArgumentError('wrap: expected a function; it returns the wrapped one.')
  const name = options.name ?? fn.name
  if (name === '') throw new ArgumentError('wrap: an anonymous function needs a name: wrap(fn, { name }).')
  const wrapped = ((...args: readonly unknown[]): unknown => {
    const override = findOverride(args)
    if (override === null) return fn(...args)
    const [positional, kwargs] = splitKwargs(args)
    return override[OVERRIDE]('function', wrapped as unknown as TargetFunction, positional, kwargs)
  }) as unknown as F
  Object.defineProperty(wrapped, 'name', { value: name })
  return nameTarget(wrapped, { name: name.includes('.') ? name : `user.${name}`, effects: options.effects ?? 'pure' })
}
