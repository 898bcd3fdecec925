// The state of a training as JSON: tensors become references to those of the file, and what JSON lacks (NaN, bigint, undefined, Map) objects with a key that begins with $.
import { ArgumentError } from '../errors/index.ts'
import { checkDepth, isPlainObject, isTensorLike, setOwn, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { About } from './format.ts'

/** What a checkpoint holds. */
export interface ReadState {
  readonly about: About
  readonly states: Readonly<Record<string, unknown>>
  /** Why this rank cannot load a part that the checkpoint has, by its name. */
  readonly unfit: Readonly<Record<string, string>>
  readonly extra: unknown
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A tensor of which each rank holds some parts: a `ShardedTensor` of `tensorfx/distributed`. */
export interface DividedTensor extends TensorLike {
  readonly dtype: Tensor['dtype']
  readonly localShards: readonly { readonly tensor: Tensor; readonly offsets: readonly number[] }[]
}

const isDivided = (value: unknown): value is DividedTensor => isTensorLike(value) && Array.isArray(Reflect.get(value, 'localShards'))

/** A state in two parts. */
export interface EncodedState {
  readonly json: Json
  /** The tensors by the names that the JSON has. */
  readonly tensors: ReadonlyMap<string, Tensor | DividedTensor>
}

/** Takes a state apart. Throws ArgumentError, which names the place, for what a file cannot hold: functions, and instances of classes. */
export function encodeState(where: string, state: Readonly<Record<string, unknown>>): EncodedState {
  const tensors = new Map<string, Tensor | DividedTensor>()
  const names = new Map<Tensor | DividedTensor, string>()
  const tensorAt = (tensor: Tensor | DividedTensor, path: string): Json => {
    // A tensor that is there twice, such as a tied weight, is written once.
    let name = names.get(tensor)
    if (name === undefined) {
      name = path
      names.set(tensor, name)
      tensors.set(name, tensor)
    }
    return { $tensor: name }
  }
  const encode = (value: unknown, path: string, depth: number): Json => {
    checkDepth(depth)
    if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
    if (typeof value === 'number')
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: Object.is(value, -0) ? '-0' : String(value) }
    if (typeof value === 'bigint') return { $bigint: String(value) }
    if (value === undefined) return { $undefined: true }
    if (value instanceof Tensor || isDivided(value)) return tensorAt(value, path)
    if (Array.isArray(value)) return value.map((item, i) => encode(item, `${path}.${i}`, depth + 1))
    if (value instanceof Map)
      return { $map: [...value].map(([key, item]) => [encode(key, `${path}.key`, depth + 1), encode(item, `${path}.${String(key)}`, depth + 1)]) }
    if (isPlainObject(value)) {
      const out: Record<string, Json> = {}
      for (const [key, item] of Object.entries(value)) setOwn(out, key.startsWith('$') ? `$${key}` : key, encode(item, `${path}.${key}`, depth + 1))
      return out
    }
    throw new ArgumentError(
      `${where}: ${path} is ${valueText(value)}, which a file cannot hold; give tensors, numbers, texts, booleans, arrays, objects and Maps of these.`,
    )
  }
  const json: Record<string, Json> = {}
  for (const [key, value] of Object.entries(state)) json[key] = encode(value, key, 0)
  return { json, tensors }
}

/** Puts a state together. Throws ArgumentError for JSON that {@link encodeState} does not give. */
export function decodeState(where: string, json: unknown, tensors: { get(name: string): Tensor | undefined }): unknown {
  const damaged = (what: string): ArgumentError => new ArgumentError(`${where}: the checkpoint is damaged: ${what}. Use an older one.`)
  const special = (key: string, value: unknown, depth: number): unknown => {
    if (key === '$tensor' && typeof value === 'string') {
      const tensor = tensors.get(value)
      if (tensor === undefined) throw damaged(`the tensor '${value}' is missing`)
      return tensor
    }
    if (key === '$number' && typeof value === 'string') return Number(value)
    if (key === '$bigint' && typeof value === 'string' && /^-?\d{1,1000}$/.test(value)) return BigInt(value)
    if (key === '$undefined') return undefined
    if (key === '$map' && Array.isArray(value))
      return new Map(
        value.map((entry: unknown): [unknown, unknown] => {
          if (!Array.isArray(entry)) throw damaged('an entry of a Map is no pair')
          return [decode(entry[0], depth + 1), decode(entry[1], depth + 1)]
        }),
      )
    throw damaged(`it has '${key}'`)
  }
  const decode = (value: unknown, depth: number): unknown => {
    checkDepth(depth)
    if (Array.isArray(value)) return value.map((item) => decode(item, depth + 1))
    if (!isPlainObject(value)) return value
    const entries = Object.entries(value)
    const [first] = entries
    if (first !== undefined && entries.length === 1 && /^\$[^$]/.test(first[0])) return special(first[0], first[1], depth)
    const out: Record<string, unknown> = {}
    for (const [key, item] of entries) setOwn(out, key.startsWith('$$') ? key.slice(1) : key, decode(item, depth + 1))
    return out
  }
  return decode(json, 0)
}

/** The states of parts, and what the program has added. Throws ArgumentError for a state without parts. */
export function statesOf(where: string, read: unknown): Pick<ReadState, 'states' | 'extra'> {
  if (!isPlainObject(read) || !isPlainObject(read['parts']))
    throw new ArgumentError(`${where}: the checkpoint is damaged: it has no parts. Use an older one.`)
  return { states: read['parts'], extra: read['extra'] }
}
