// Reads the values that PyTorch's comparison functions were recorded with (test/goldens/debug3).
import { readFileSync } from 'node:fs'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { camelCase } from '../../src/protocol/index.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A recorded call. */
export interface Case {
  readonly name: string
  readonly function?: string
  readonly ref?: Json
  readonly res?: Json
  readonly fp64_ref?: Json
  readonly source?: string
  readonly options?: Readonly<Record<string, number | boolean>>
  readonly config?: Readonly<Record<string, number | boolean>>
  readonly result?: Json
  readonly raises?: { readonly error: string; readonly text: string }
}

export function casesOf(file: string): readonly Case[] {
  const text = readFileSync(new URL(`../goldens/debug3/${file}.json`, import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly cases: readonly Case[] }).cases
}

/** What has no counterpart: other dtypes and layouts, values that only Python has. */
export class NotHere extends Error {}

const DTYPES: ReadonlySet<string> = new Set(['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64'])

const numberOf = (x: Json): number => (x === '-0' ? -0 : Number(x))

function tensorOf(json: Readonly<Record<string, Json>>): Tensor {
  const { tensor: dtype, shape, data, cycle, patch, layout, requires_grad: requiresGrad } = json
  if (!DTYPES.has(String(dtype)) || layout !== undefined) throw new NotHere(`${String(dtype)} ${String(layout)}`)
  const sizes = (shape as readonly number[]).slice()
  const numel = sizes.reduce((a, b) => a * b, 1)
  const list = (data ?? cycle) as readonly Json[]
  const values = Array.from({ length: numel }, (_, i) => numberOf(list[i % list.length] ?? 0))
  for (const [i, value] of (patch ?? []) as readonly (readonly [number, Json])[]) values[i] = numberOf(value)
  const flat = torch.tensor(values, { dtype: dtype as DType })
  const made = flat.reshape(sizes)
  return requiresGrad === true ? made.requiresGrad_() : made
}

const ARRAYS: Readonly<Record<string, new (values: number[]) => unknown>> = { float64: Float64Array, float32: Float32Array, int32: Int32Array }

/** The value that is meant. Classes by their names, each made once. */
export function decoder(): (json: Json) => unknown {
  const classes = new Map<string, new () => object>()
  const classOf = (name: string): new () => object => {
    const known = classes.get(name) ?? { [name]: class {} }[name]
    if (known === undefined) throw new NotHere(name)
    classes.set(name, known)
    return known
  }
  const decode = (json: Json): unknown => {
    if (json === null || typeof json !== 'object') return json
    if (Array.isArray(json)) return json.map(decode)
    const value = json as Readonly<Record<string, Json>>
    const items = (key: string): unknown[] => (value[key] as readonly Json[]).map(decode)
    if ('tensor' in value) return tensorOf(value)
    if ('float' in value) return numberOf(value.float ?? 0)
    for (const key of ['list', 'tuple', 'deque', 'size', 'parameter_list']) if (key in value) return items(key)
    if ('set' in value) return new Set(items('set'))
    if ('dict' in value) {
      const pairs = value.dict as readonly (readonly [Json, Json])[]
      return pairs.every(([key]) => typeof key === 'string')
        ? Object.fromEntries(pairs.map(([key, item]) => [String(key), decode(item)]))
        : new Map(pairs.map(([key, item]) => [decode(key), decode(item)]))
    }
    if ('numpy' in value) {
      const made = ARRAYS[String(value.numpy)]
      const data = (value.data as readonly Json[]).map(numberOf)
      if (made !== undefined) return new made(data)
      if (value.numpy === 'int64') return BigInt64Array.from(data, BigInt)
    }
    if (value.numpy_scalar === 'int64') return BigInt(Number(value.value))
    if ('class' in value) {
      const { attrs } = value
      return Object.assign(
        new (classOf(String(value.class)))(),
        Object.fromEntries(Object.entries(attrs ?? {}).map(([key, item]) => [key, decode(item)])),
      )
    }
    throw new NotHere(Object.keys(value).join())
  }
  return decode
}

/** `tol`, `equal_nan` as `tol`, `equalNan`. */
export const optionsOf = (options: Case['options'] = {}): Record<string, number | boolean> =>
  Object.fromEntries(Object.entries(options).map(([key, value]) => [camelCase(key), value]))

/** `running_mean` as `runningMean`, in names of parameters and buffers. */

/** What is compared: numbers to five digits, what is left of sums that cancel as zero, under our names. */
export function shown(value: unknown): unknown {
  if (value instanceof torch.Tensor)
    return {
      shape: [...value.shape],
      dtype: value.dtype,
      values: Array.from(value.toTypedArray(), (x) => (Math.abs(x) < 1e-6 ? 0 : Number(x.toPrecision(5)))),
    }
  if (Array.isArray(value)) return value.map(shown)
  if (value instanceof Map) return shown(Object.fromEntries(value))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [camelCase(key), shown(item)]))
  return value
}

export function byName(file: string, fn?: string): ReadonlyMap<string, Case> {
  return new Map(casesOf(file).flatMap((one) => (fn === undefined || one.function === fn ? [[one.name, one] as const] : [])))
}
