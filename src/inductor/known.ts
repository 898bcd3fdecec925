// Lookups that must succeed. A missing entry is a bug in inductor; the error says what was looked up.
import { InternalError } from '../errors/index.ts'

/** The element at a position. Throws InternalError when there is none. */
export function nth<T>(list: readonly T[], at: number): T {
  const value = list[at]
  if (value === undefined) throw new InternalError(`inductor: a list of ${list.length} has no element ${at}`)
  return value
}

/** The value of a key; `what` names the key in the error. Throws InternalError when the map has none. */
export function known<K, V>(map: ReadonlyMap<K, V>, key: K, what: string): V {
  const value = map.get(key)
  if (value === undefined) throw new InternalError(`inductor: there is no entry for ${what}`)
  return value
}
