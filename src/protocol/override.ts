// The override protocol: an argument that carries the symbol takes over the call of a public function or method of the operator table.
import { checkDepth, isPlainObject } from './plainObject.ts'
import type { TargetFunction } from './target.ts'

/** Key of the method that takes over a call; PyTorch's `__torch_function__`. */
export const OVERRIDE: unique symbol = Symbol.for('tensorfx.override')

/** How the user spelled the call: `torch.relu(x)` or `x.relu()`. For a method, `args[0]` is the receiver. */
export type OverrideKind = 'function' | 'method'

/** A value that takes over the calls it is an argument of (an fx Proxy). */
export interface Override {
  [OVERRIDE](kind: OverrideKind, target: TargetFunction, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown
}

const overrides = (value: { readonly constructor: unknown; readonly [OVERRIDE]?: unknown }): boolean => typeof value[OVERRIDE] === 'function'

/** Whether a value takes over calls. The typeof a traced value is 'function', as it is a callable Proxy. */
const isOverride = (value: unknown): value is Override =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') && overrides(value)

/** The first argument that takes over calls; arrays and plain objects are searched too. null if there is none. Throws ArgumentError for one that contains itself. */
export function findOverride(args: readonly unknown[], depth: number = 0): Override | null {
  checkDepth(depth)
  for (const arg of args) {
    if (isOverride(arg)) return arg
    const found = Array.isArray(arg) ? findOverride(arg, depth + 1) : isPlainObject(arg) ? findOverride(Object.values(arg), depth + 1) : null
    if (found !== null) return found
  }
  return null
}
