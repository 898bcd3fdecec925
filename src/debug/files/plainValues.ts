// Tensors as plain data that can be sent with `postMessage` and between processes: shape, strides, dtype and the bytes of the storage.
import { ArgumentError } from '../../errors/index.ts'
import { isDType } from '../../kernels/index.ts'
import { checkDepth, isPlainObject, setOwn, valueText } from '../../protocol/index.ts'
import type { DType } from '../../kernels/index.ts'
import { decode, integer, list } from '../../protocol/decode.ts'
import { Tensor, tensorFromBytes, windowBytes, windowNumel } from '../../tensor/index.ts'

/** A tensor as data. */
export interface PlainTensor {
  readonly kind: 'tensor'
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  readonly dtype: DType
  readonly requiresGrad: boolean
  readonly isParameter?: boolean
  readonly bytes: Uint8Array
}

/** A value of JavaScript that holds no tensors. */
export type PlainScalar = string | boolean | bigint | null | undefined

/** One graph input as data. */
export type PlainValue =
  | PlainTensor
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'scalar'; readonly value: PlainScalar }
  | { readonly kind: 'array' | 'set'; readonly items: readonly PlainValue[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [PlainValue, PlainValue])[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [string, PlainValue])[] }

/**
 * The value as data: a tensor, number, bigint, boolean, string, null or undefined, or arrays, plain objects, Maps and Sets of them. Throws ArgumentError for any other, so that a repro fails when it is
 * written, not when it is loaded.
 */
export function toPlain(value: unknown, name: string): PlainValue {
  checkPlain(value, name)
  return plain(value)
}

/** Throws ArgumentError for a value that {@link toPlain} and scripts do not hold. */
export function checkPlain(value: unknown, name: string, depth = 0): void {
  checkDepth(depth)
  const parts = value instanceof Tensor || typeof value === 'number' || isScalar(value) ? [] : partsOf(value)
  if (parts === null)
    throw new ArgumentError(
      `input '${name}' cannot be written into a repro (got ${valueText(value)}): a repro holds tensors, numbers, booleans, strings and null, and arrays, objects, Maps and Sets of them.`,
    )
  for (const part of parts) checkPlain(part, name, depth + 1)
}

/** The values inside a container; null for anything else. */
export function partsOf(value: unknown): readonly unknown[] | null {
  if (Array.isArray(value)) return value
  if (value instanceof Map) return [...value].flat()
  if (value instanceof Set) return [...value]
  return isPlainObject(value) ? Object.values(value) : null
}

function plain(value: unknown): PlainValue {
  if (typeof value === 'number') return { kind: 'number', value }
  if (isScalar(value)) return { kind: 'scalar', value }
  if (value instanceof Tensor)
    return {
      kind: 'tensor',
      shape: value.shape,
      strides: value.strides,
      dtype: value.dtype,
      requiresGrad: value.requiresGrad,
      isParameter: value.isParameter,
      bytes: windowBytes(value),
    }
  if (Array.isArray(value)) return { kind: 'array', items: value.map(plain) }
  if (value instanceof Set) return { kind: 'set', items: [...value].map(plain) }
  if (value instanceof Map) return { kind: 'map', entries: [...value].map(([key, item]) => [plain(key), plain(item)]) }
  return { kind: 'object', entries: Object.entries(value ?? {}).map(([key, item]) => [key, plain(item)]) }
}

const isScalar = (value: unknown): value is PlainScalar =>
  value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint'

/** A new value from data. */
export function fromPlain(data: PlainValue): unknown {
  switch (data.kind) {
    case 'number':
    case 'scalar':
      return data.value
    case 'array':
      return data.items.map(fromPlain)
    case 'set':
      return new Set(data.items.map(fromPlain))
    case 'map':
      return new Map(data.entries.map(([key, item]) => [fromPlain(key), fromPlain(item)]))
    case 'object': {
      const out: Record<string, unknown> = {}
      for (const [key, item] of data.entries) setOwn(out, key, fromPlain(item))
      return out
    }
    case 'tensor': {
      if (!isDType(data.dtype)) throw new ArgumentError(`fromPlain: unknown dtype ${valueText(data.dtype)}.`)
      checkLayout('fromPlain', data.shape, data.strides)
      const tensor = tensorFromBytes(data.bytes, data.shape, data.dtype, data.strides)
      tensor.requiresGrad = data.requiresGrad
      if (data.isParameter === true) tensor.isParameter = true
      return tensor
    }
    default:
      throw new ArgumentError(`fromPlain: there is no such kind of data: ${valueText(data)}.`)
  }
}

/** Throws ArgumentError unless the value is a list of sizes. */
export const checkSizes = (where: string, what: string, sizes: unknown): readonly number[] => decode(where, list(integer(), 64), sizes, what)

/** Throws ArgumentError unless shape and strides are equally many sizes: what comes from a script or another process may be anything. */
export function checkLayout(where: string, shape: readonly number[], strides: readonly number[]): void {
  checkSizes(where, 'shape', shape)
  if (checkSizes(where, 'strides', strides).length !== shape.length)
    throw new ArgumentError(`${where}: a shape of ${shape.length} sizes needs as many strides, got ${strides.length}.`)
  if (!Number.isSafeInteger(windowNumel(shape, strides))) throw new ArgumentError(`${where}: a tensor of shape [${shape.join(', ')}] is too large.`)
}
