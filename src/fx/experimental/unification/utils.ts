// Small helpers of unification. PyTorch's torch.fx.experimental.unification.utils.
import { ArgumentError } from '../../../errors/index.ts'
import { isObject, isPlainObject } from '../../../protocol/index.ts'
import { isTuple, markTuple } from '../../graph/pythonValues.ts'

/** Whether a value is compared by what it is, not by identity: anything but arrays, plain objects, Maps and Sets; a tuple if its elements are. PyTorch's hashable. */
export function hashable(value: unknown): boolean {
  if (Array.isArray(value)) return isTuple(value) && value.every(hashable)
  return !isObject(value) || !(isPlainObject(value) || value instanceof Map || value instanceof Set)
}

/** The value at the end of a chain: `transitiveGet(1, new Map([[1, 2], [2, 3]]))` is 3. A key that is not there stands for itself. PyTorch's transitive_get. */
export function transitiveGet(key: unknown, map: ReadonlyMap<unknown, unknown>): unknown {
  let at = key
  for (let steps = 0; map.has(at); steps++) {
    if (steps > map.size) throw new ArgumentError(`transitiveGet: the map goes in a circle at ${String(key)}.`)
    at = map.get(at)
  }
  return at
}

/** The value as nested tuples: arrays become tuples, objects, Maps and Sets tuples of their entries. PyTorch's freeze. */
export function freeze(value: unknown): unknown {
  if (Array.isArray(value)) return markTuple(value.map(freeze))
  if (value instanceof Map) return markTuple([...value].map(([key, item]) => markTuple([key, freeze(item)])))
  if (value instanceof Set) return markTuple([...value].map(freeze))
  if (isPlainObject(value)) return markTuple(Object.entries(value).map(([key, item]) => markTuple([key, freeze(item)])))
  return value
}

/** From lists of values to lists of keys: `{a: [1, 2], b: [2]}` becomes `1 → [a], 2 → [a, b]`. PyTorch's reverse_dict. */
export function reverseDict<K, V>(lists: ReadonlyMap<K, Iterable<V>>): Map<V, K[]> {
  const result = new Map<V, K[]>()
  for (const [key, values] of lists)
    for (const value of values) {
      const keys = result.get(value)
      if (keys === undefined) result.set(value, [key])
      else keys.push(key)
    }
  return result
}

/**
 * The keys, and what comes after them, in an order in which every key stands before the values of its list; where several could be next, the one that is named first.
 * PyTorch's _toposort.
 * @throws ArgumentError if there is no such order.
 */
export function toposort<T>(edges: ReadonlyMap<T, Iterable<T>>): T[] {
  const missing = new Map<T, number>()
  for (const [from, targets] of edges) {
    missing.set(from, missing.get(from) ?? 0)
    for (const to of new Set(targets)) missing.set(to, (missing.get(to) ?? 0) + 1)
  }
  const order = [...missing].flatMap(([key, count]) => (count === 0 ? [key] : []))
  for (const key of order)
    for (const to of new Set(edges.get(key))) {
      const left = (missing.get(to) ?? 0) - 1
      missing.set(to, left)
      if (left === 0) order.push(to)
    }
  if (order.length < missing.size) throw new ArgumentError('toposort: Input has cycles.')
  return order
}

/** Whether a call throws an error of a class. PyTorch's raises. */
export function raises(error: new (...args: never[]) => Error, call: () => unknown): boolean {
  try {
    call()
  } catch (thrown) {
    if (thrown instanceof error) return true
    throw thrown
  }
  return false
}
