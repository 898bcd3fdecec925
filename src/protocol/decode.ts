// Decoders of data from outside: they turn an unknown value into one of a known type, or throw ArgumentError, which names the place of what is wrong,
// `nodes[3].args[0]`. They read own properties only, so that no prototype takes part, and stop before a value is too deep or has too many parts.
import { ArgumentError } from '../errors/index.ts'
import { isPlainObject } from './plainObject.ts'
import { valueText } from './valueText.ts'

/** Values that are nested deeper are refused. */
export const MAX_DEPTH = 200
/** Values with more parts are refused: about as many as a graph of a million nodes has. */
const MAX_PARTS = 20_000_000
/** Longer names are refused. */
const MAX_NAME = 10_000

/** Where a decoder is in the data. */
export class Place {
  /** The function that reads the data. */
  readonly where: string
  readonly #outer: Place | null
  readonly #key: string | number
  readonly #depth: number
  readonly #parts: { left: number }

  constructor(where: string, root = 'the data', outer: Place | null = null, key: string | number = root) {
    this.where = where
    this.#outer = outer
    this.#key = key
    this.#depth = outer === null ? 0 : outer.#depth + 1
    this.#parts = outer === null ? { left: MAX_PARTS } : outer.#parts
  }

  /** The place of a part. Throws ArgumentError if that is too deep, or one too many. */
  at(key: string | number): Place {
    if (this.#depth >= MAX_DEPTH) throw new ArgumentError(`${this.where}: the data are nested more than ${MAX_DEPTH} deep.`)
    if (--this.#parts.left < 0) throw new ArgumentError(`${this.where}: the data have more than ${MAX_PARTS} parts.`)
    return new Place(this.where, '', this, key)
  }

  /** `nodes[3].args[0]` */
  toString(): string {
    if (this.#outer === null) return String(this.#key)
    const outer = String(this.#outer)
    const key = typeof this.#key === 'string' && this.#key.length > 100 ? `${this.#key.slice(0, 100)}…` : this.#key
    // A field of the data needs no more than its name; a position needs to be told of what.
    if (typeof key === 'string' && /^[A-Za-z_$][\w$]*$/.test(key)) return this.#outer.#outer === null ? key : `${outer}.${key}`
    return `${outer}[${typeof key === 'number' ? key : JSON.stringify(key)}]`
  }

  /** Throws ArgumentError: this value is not what was `expected`. */
  refuse(expected: string, value: unknown): never {
    throw new ArgumentError(`${this.where}: ${String(this)} must be ${expected}, got ${value === undefined ? 'nothing' : shown(value)}.`)
  }
}

/** valueText for values from outside, of which an object may have any keys. */
const shown = (value: unknown): string =>
  Array.isArray(value) ? `an array of length ${value.length}` : isPlainObject(value) ? 'an object' : valueText(value)

/** Reads a value of type T at a place. Throws ArgumentError for any other value. */
export type Decoder<T> = (value: unknown, place: Place) => T

/** The type that a decoder returns. */
export type Decoded<D> = D extends Decoder<infer T> ? T : never

/** A string of at most `longest` characters. */
export const string =
  (longest = 1e7): Decoder<string> =>
  (value, place) => {
    if (typeof value !== 'string') return place.refuse('a string', value)
    return value.length <= longest ? value : place.refuse(`at most ${longest} characters long`, value)
  }

/** A name: a short string. */
export const name: Decoder<string> = string(MAX_NAME)

/** Any number; JSON has neither NaN nor infinities. */
export const number: Decoder<number> = (value, place) => (typeof value === 'number' ? value : place.refuse('a number', value))

/** An integer from `least` to `most`. */
export const integer =
  (least = 0, most = Number.MAX_SAFE_INTEGER): Decoder<number> =>
  (value, place) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? value
      : place.refuse(most === Number.MAX_SAFE_INTEGER ? `an integer from ${least} on` : `an integer from ${least} to ${most}`, value)

export const boolean: Decoder<boolean> = (value, place) => (typeof value === 'boolean' ? value : place.refuse('true or false', value))

/** One of a few values. */
export const oneOf =
  <const T extends string | number | boolean | null>(values: readonly T[]): Decoder<T> =>
  (value, place) => {
    const found = values.find((known) => known === value)
    return found === undefined ? place.refuse(values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`, value) : found
  }

/** What is left out, or what `inner` reads. */
export const optional =
  <T>(inner: Decoder<T>): Decoder<T | undefined> =>
  (value, place) =>
    value === undefined ? undefined : inner(value, place)

/** An array of at most `longest` items. */
export const list =
  <T>(item: Decoder<T>, longest = MAX_PARTS): Decoder<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) return place.refuse('an array', value)
    if (value.length > longest) return place.refuse(`an array of at most ${longest} items`, value)
    const items: readonly unknown[] = value
    // Array.from also visits the holes of an array, which `map` skips.
    return Array.from(items, (one, i) => item(one, place.at(i)))
  }

/** The keys of an object. Throws ArgumentError for anything but a plain object, and for the key `__proto__`, which stands for the prototype in much code. */
function keysOf(value: object, place: Place): readonly string[] {
  const keys = Object.keys(value)
  if (keys.includes('__proto__'))
    throw new ArgumentError(`${place.where}: ${String(place)} has the key '__proto__', which would be taken for a prototype; rename it.`)
  return keys
}

/** An object with any keys, as a Map. */
export const mapOf =
  <T>(item: Decoder<T>): Decoder<ReadonlyMap<string, T>> =>
  (value, place) => {
    if (!isPlainObject(value)) return place.refuse('an object', value)
    return new Map(keysOf(value, place).map((key) => [key, item(value[key], place.at(key))]))
  }

/** An object with any keys, as an object with the same keys. */
export const record =
  <T>(item: Decoder<T>): Decoder<Readonly<Record<string, T>>> =>
  (value, place) => {
    if (!isPlainObject(value)) return place.refuse('an object', value)
    const out: Record<string, T> = {}
    for (const key of keysOf(value, place)) out[key] = item(value[key], place.at(key))
    return out
  }

/** An object with these fields; others are ignored. The result has no prototype. */
export const object =
  <F extends Readonly<Record<string, Decoder<unknown>>>>(fields: F): Decoder<{ readonly [K in keyof F]: Decoded<F[K]> }> =>
  (value, place) => {
    if (!isPlainObject(value)) return place.refuse('an object', value)
    keysOf(value, place)
    const out = Object.create(null)
    for (const [key, field] of Object.entries(fields)) out[key] = field(Object.hasOwn(value, key) ? value[key] : undefined, place.at(key))
    return out
  }

/** Reads data with a decoder. `where` is the function that got them. */
export const decode = <T>(where: string, decoder: Decoder<T>, value: unknown, root = 'the data'): T => decoder(value, new Place(where, root))
