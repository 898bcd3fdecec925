// Tensors as plain data that can be sent with `postMessage` and between processes: shape, strides, dtype and the bytes of the storage.
import { ArgumentError } from '../errors/index.ts'
import { isDType } from '../kernels/index.ts'
import { valueText } from '../protocol/index.ts'
import type { DType } from '../kernels/index.ts'
import { decode, integer, list } from '../protocol/decode.ts'
import { Tensor, tensorFromBytes, windowBytes, windowNumel } from '../tensor/index.ts'

/** One graph input as data. */
export type PlainValue =
  | {
      readonly kind: 'tensor'
      readonly shape: readonly number[]
      readonly strides: readonly number[]
      readonly dtype: DType
      readonly requiresGrad: boolean
      readonly bytes: Uint8Array
    }
  | { readonly kind: 'number'; readonly value: number }

/** The value as data. Throws ArgumentError for anything but tensors and numbers, so that a repro fails when it is written, not when it is loaded. */
export function toPlain(value: unknown, name: string): PlainValue {
  if (typeof value === 'number') return { kind: 'number', value }
  if (!(value instanceof Tensor))
    throw new ArgumentError(
      `input '${name}' is neither a Tensor nor a number (got ${value === null ? 'null' : typeof value}); a repro can only hold those.`,
    )
  return {
    kind: 'tensor',
    shape: value.shape,
    strides: value.strides,
    dtype: value.dtype,
    requiresGrad: value.requiresGrad,
    bytes: windowBytes(value),
  }
}

/** A new value from data. */
export function fromPlain(plain: PlainValue): Tensor | number {
  if (plain.kind === 'number') return plain.value
  if (!isDType(plain.dtype)) throw new ArgumentError(`fromPlain: unknown dtype ${valueText(plain.dtype)}.`)
  checkLayout('fromPlain', plain.shape, plain.strides)
  const tensor = tensorFromBytes(plain.bytes, plain.shape, plain.dtype, plain.strides)
  tensor.requiresGrad = plain.requiresGrad
  return tensor
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
