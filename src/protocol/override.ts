// The override protocol: before a public function or method of the operator table does anything, an argument that carries the symbol takes the call over.
import type { TargetFunction } from './target.ts'

/** Key of the method that takes a call over; PyTorch's `__torch_function__`. */
export const OVERRIDE: unique symbol = Symbol.for('tensorfx.override') as never

/** How the user spelled the call: `torch.relu(x)` or `x.relu()`. For a method, `args[0]` is the receiver. */
export type OverrideKind = 'function' | 'method'

/** A value that takes over the calls it is an argument of (an fx Proxy). */
export interface Override {
  [OVERRIDE](kind: OverrideKind, target: TargetFunction, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown
}

function asOverride(value: unknown): Override | null {
  // A traced value is a callable Proxy, so `typeof` says 'function'.
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return null
  return typeof (value as Partial<Override>)[OVERRIDE] === 'function' ? (value as Override) : null
}

/** The first argument that overrides, looking into arrays and plain option objects; null when there is none. */
export function findOverride(args: readonly unknown[]): Override | null {
  for (const arg of args) {
    const direct = asOverride(arg)
    if (direct !== null) return direct
    if (typeof arg !== 'object' || arg === null) continue
    if (Array.isArray(arg)) {
      const nested = findOverride(arg)
      if (nested !== null) return nested
    } else if (Object.getPrototypeOf(arg) === Object.prototype) {
      const nested = findOverride(Object.values(arg))
      if (nested !== null) return nested
    }
  }
  return null
}
