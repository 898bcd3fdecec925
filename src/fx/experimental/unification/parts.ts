// What unification sees in a value: its kind, its parts, and how to build such a value from other parts. Arrays, plain objects, Maps, slices, iterators, and classes
// that `unifiable` registered have parts; everything else is an atom.
import { isObject, isPlainObject } from '../../../protocol/index.ts'
import { Slice, isTuple, markTuple } from '../../graph/pythonValues.ts'

/** A value that has parts. */
export interface Compound {
  /** Values of different kinds do not unify. */
  readonly kind: unknown
  /** The names of the parts; null for parts in order. */
  readonly keys: readonly unknown[] | null
  readonly parts: readonly unknown[]
  build(parts: readonly unknown[]): unknown
}

/** A class whose objects unify by their properties. */
export interface ClassOfValues {
  readonly name: string
  readonly prototype: object
}

/** How the objects of a class are taken apart. */
export interface ObjectRule {
  readonly keys: (value: object) => readonly string[]
  readonly build: (value: object, properties: Readonly<Record<string, unknown>>) => object
}

const rules = new Map<object, ObjectRule>()

/** Makes the objects of a class compound values. */
export const registerParts = (of: ClassOfValues, rule: ObjectRule): void => void rules.set(of.prototype, rule)

const isIterator = (value: object): value is Iterator<unknown> & Iterable<unknown> =>
  'next' in value && Symbol.iterator in value && !Array.isArray(value)

/** The elements of iterators that were read, which can be read only once. */
const elements = new WeakMap<object, readonly unknown[]>()

function elementsOf(value: Iterable<unknown> & object): readonly unknown[] {
  let read = elements.get(value)
  if (read === undefined) elements.set(value, (read = [...value]))
  return read
}

/** The parts of a value; null for an atom. */
export function compound(value: unknown): Compound | null {
  if (Array.isArray(value)) {
    const asTuple = isTuple(value)
    return { kind: Array, keys: null, parts: value, build: (parts) => (asTuple ? markTuple([...parts]) : [...parts]) }
  }
  if (!isObject(value)) return null
  if (value instanceof Slice) {
    const { start, stop, step } = value
    return { kind: Slice, keys: null, parts: [start, stop, step], build: ([a, b, c]) => new Slice(a, b, c) }
  }
  if (value instanceof Map) {
    const keys = [...value.keys()]
    return { kind: Map, keys, parts: [...value.values()], build: (parts) => new Map(keys.map((key, i) => [key, parts[i]])) }
  }
  if (isPlainObject(value)) {
    const keys = Object.keys(value)
    return { kind: Object, keys, parts: Object.values(value), build: (parts) => Object.fromEntries(keys.map((key, i) => [key, parts[i]])) }
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  const rule = isObject(prototype) ? rules.get(prototype) : undefined
  if (rule !== undefined) {
    const keys = rule.keys(value)
    return {
      kind: prototype,
      keys,
      parts: keys.map((key) => Reflect.get(value, key)),
      build: (parts) => rule.build(value, Object.fromEntries(keys.map((key, i) => [key, parts[i]]))),
    }
  }
  if (isIterator(value)) return { kind: Array, keys: null, parts: elementsOf(value), build: (parts) => parts }
  return null
}
