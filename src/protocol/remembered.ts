// Values that are made once for each key.

/** The value of a key in a Map or WeakMap, which is made and kept if there is none. */
export function remembered<K, V>(
  cache: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: (key: K) => Exclude<V, undefined>,
): Exclude<V, undefined> {
  const known = cache.get(key)
  if (isKnown(known)) return known
  const made = make(key)
  cache.set(key, made)
  return made
}

const isKnown = <V>(value: V): value is Exclude<V, undefined> => value !== undefined
