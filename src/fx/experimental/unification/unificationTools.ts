// Functions on dictionaries that change none of their arguments. A dictionary is a plain object or a Map; the result is of the same kind as the first one given.
// PyTorch's torch.fx.experimental.unification.unification_tools.
import { ArgumentError } from '../../../errors/index.ts'
import { isFunction, isObject, isPlainObject, valueText } from '../../../protocol/index.ts'

/** A plain object or a Map. */
export type Dictionary = Readonly<Record<string, unknown>> | ReadonlyMap<unknown, unknown>

type Entry = readonly [key: unknown, value: unknown]

const isMap = (value: unknown): value is ReadonlyMap<unknown, unknown> => value instanceof Map
const isDictionary = (value: unknown): value is Dictionary => isMap(value) || isPlainObject(value)
const entriesOf = (d: Dictionary): Entry[] => (isMap(d) ? [...d] : Object.entries(d))
const like = (d: Dictionary | undefined, entries: readonly Entry[]): Dictionary =>
  isMap(d) ? new Map(entries) : Object.fromEntries(entries.map(([key, value]) => [String(key), value]))

/** All dictionaries as one; later ones win. Takes them as arguments or as one array. PyTorch's merge. */
export function merge(...given: readonly (Dictionary | readonly Dictionary[])[]): Dictionary {
  const dicts = flat(given)
  return like(dicts[0], dicts.flatMap(entriesOf))
}

const flat = (given: readonly (Dictionary | readonly Dictionary[])[]): Dictionary[] =>
  given.flatMap((d) => {
    if (isDictionary(d)) return [d]
    if (Array.isArray(d)) return d.filter(isDictionary)
    throw new ArgumentError(`unificationTools: expected plain objects or Maps, got ${valueText(d)}.`)
  })

/** All dictionaries as one; `combine` gets the list of the values of each key. PyTorch's merge_with. */
export function mergeWith(combine: (values: readonly unknown[]) => unknown, ...given: readonly (Dictionary | readonly Dictionary[])[]): Dictionary {
  const dicts = flat(given)
  const lists = groupby(([key]: Entry) => key, dicts.flatMap(entriesOf))
  return like(
    dicts[0],
    [...lists].map(([key, entries]): Entry => [key, combine(entries.map(([, value]) => value))]),
  )
}

/** A function of every value. PyTorch's valmap. */
export const valmap = (fn: (value: unknown) => unknown, d: Dictionary): Dictionary =>
  like(
    d,
    entriesOf(d).map(([key, value]): Entry => [key, fn(value)]),
  )

/** A function of every key. PyTorch's keymap. */
export const keymap = (fn: (key: unknown) => unknown, d: Dictionary): Dictionary =>
  like(
    d,
    entriesOf(d).map(([key, value]): Entry => [fn(key), value]),
  )

/** A function of every entry, which gives an entry. PyTorch's itemmap. */
export const itemmap = (fn: (entry: Entry) => Entry, d: Dictionary): Dictionary => like(d, entriesOf(d).map(fn))

/** The entries whose value passes. PyTorch's valfilter. */
export const valfilter = (keep: (value: unknown) => boolean, d: Dictionary): Dictionary =>
  like(
    d,
    entriesOf(d).filter(([, value]) => keep(value)),
  )

/** The entries whose key passes. The keys of plain objects are strings. PyTorch's keyfilter. */
export const keyfilter = (keep: (key: unknown) => boolean, d: Dictionary): Dictionary =>
  like(
    d,
    entriesOf(d).filter(([key]) => keep(key)),
  )

/** The entries that pass. PyTorch's itemfilter. */
export const itemfilter = (keep: (entry: Entry) => boolean, d: Dictionary): Dictionary => like(d, entriesOf(d).filter(keep))

/** The dictionary with one more entry, or another value for a key. PyTorch's assoc. */
export const assoc = (d: Dictionary, key: unknown, value: unknown): Dictionary => like(d, [...entriesOf(d), [key, value]])

/** The dictionary without some keys. PyTorch's dissoc. */
export const dissoc = (d: Dictionary, ...keys: readonly unknown[]): Dictionary => {
  const gone = isMap(d) ? keys : keys.map(String)
  return keyfilter((key) => !gone.includes(key), d)
}

/** The dictionary with another value at the end of a path of keys, whose dictionaries are made where they are missing. PyTorch's assoc_in. */
export const assocIn = (d: Dictionary, path: readonly unknown[], value: unknown): Dictionary => updateIn(d, path, () => value)

/** The dictionary with a function of the value (`fallback` if there is none) at the end of a path of keys. PyTorch's update_in. */
export function updateIn(d: Dictionary, path: readonly unknown[], fn: (value: unknown) => unknown, fallback: unknown = null): Dictionary {
  if (path.length === 0) throw new ArgumentError('updateIn: the path must have at least one key.')
  const levels: Dictionary[] = []
  let at: unknown = d
  for (const key of path) {
    const level: Dictionary = isDictionary(at) ? at : like(d, [])
    levels.push(level)
    at = itemOf(level, key)
  }
  let value = fn(at === undefined ? fallback : at)
  for (let i = path.length - 1; i >= 0; i--) value = assoc(levels[i] ?? d, path[i], value)
  return isDictionary(value) ? value : d
}

function itemOf(from: unknown, key: unknown): unknown {
  if (isMap(from)) return from.get(key)
  if (Array.isArray(from)) return typeof key === 'number' ? from.at(key) : undefined
  if (typeof from === 'string') return typeof key === 'number' ? from.at(key) : undefined
  return isObject(from) && Object.hasOwn(from, String(key)) ? Reflect.get(from, String(key)) : undefined
}

/**
 * The value at the end of a path of keys and indices; `fallback` if there is none. PyTorch's get_in.
 * @throws ArgumentError if there is none and `noDefault` is set.
 */
export function getIn(path: readonly unknown[], from: unknown, fallback: unknown = null, options: { readonly noDefault?: boolean } = {}): unknown {
  let at = from
  for (const key of path) {
    at = itemOf(at, key)
    if (at !== undefined) continue
    if (options.noDefault === true) throw new ArgumentError(`getIn: there is no '${String(key)}'.`)
    return fallback
  }
  return at
}

/** A function that reads an index or key, or an array of several. PyTorch's getter. */
export const getter =
  (index: unknown): ((from: unknown) => unknown) =>
  (from) =>
    Array.isArray(index) ? index.map((i) => itemOf(from, i)) : itemOf(from, index)

/** The items by what a function, or the property of that name, gives for them, in order of first appearance. PyTorch's groupby. */
export function groupby<T>(key: ((item: T) => unknown) | string | number, items: Iterable<T>): Map<unknown, T[]> {
  const keyOf = isFunction(key) ? key : getter(key)
  const groups = new Map<unknown, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

/** The first item. PyTorch's first. @throws ArgumentError if there is none. */
export function first<T>(items: Iterable<T>): T {
  for (const item of items) return item
  throw new ArgumentError('first: there are no items.')
}
