// Lists and options that are kept after a call belong to the caller, who may change them: what is kept is a copy.
import { checkDepth, isPlainObject } from './plainObject.ts'

/** A copy of nested arrays and plain objects. Everything else (a number, a tensor, a function) stays what it is. Throws ArgumentError for a value that contains itself. */
export function ownCopy<T>(value: T, depth?: number): T
export function ownCopy(value: unknown, depth = 0): unknown {
  checkDepth(depth)
  if (Array.isArray(value)) return value.map((item) => ownCopy<unknown>(item, depth + 1))
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, ownCopy(item, depth + 1)]))
}
