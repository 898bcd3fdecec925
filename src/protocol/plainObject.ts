// Plain objects: records and options, not instances of classes.
import { ArgumentError } from '../errors/index.ts'

/** Throws ArgumentError beyond 500 levels of nesting: walks of nested values would otherwise end in a stack overflow. */
export function checkDepth(depth: number): void {
  if (depth > 500) throw new ArgumentError('an argument is nested more than 500 deep; does it contain itself?')
}

/** Whether a value is an object literal, or an object without a prototype. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** The entry of a table; undefined if it has none. The prototype of the table does not answer for names such as `constructor`. */
export const entryOf = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined => (Object.hasOwn(table, key) ? table[key] : undefined)

/** Like `out[key] = value`, but also right for the key `__proto__`. */
export function setOwn<T>(out: Record<string, T>, key: string, value: T): void {
  if (key === '__proto__') Object.defineProperty(out, key, { value, enumerable: true, configurable: true, writable: true })
  else out[key] = value
}
