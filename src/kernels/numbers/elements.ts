// Elements of typed arrays as JavaScript values: the only place that knows how each dtype is stored.
import { ArgumentError } from '../../errors/index.ts'
import type { DType, ElementValue, StorageArray } from './dtype.ts'
import { bfloat16Bits, bfloat16Number, float16Bits, float16Number } from './halfPrecision.ts'
import { converted } from './numbers.ts'

/** The element at `at`, exactly: a bigint for int64, otherwise a number. Undefined outside the array. */
export function readElement(dtype: DType, data: StorageArray, at: number): ElementValue | undefined {
  const stored = data[at]
  if (typeof stored !== 'number') return stored
  return dtype === 'float16' ? float16Number(stored) : dtype === 'bfloat16' ? bfloat16Number(stored) : stored
}

/** The element at `at` as a number. Undefined outside the array. Throws ArgumentError for an int64 beyond the integers that numbers represent exactly. */
export function readNumber(dtype: DType, data: StorageArray, at: number): number | undefined {
  const value = readElement(dtype, data, at)
  return typeof value === 'bigint' ? safeNumber(value) : value
}

/** The integer as a number. Throws ArgumentError beyond ±(2^53 - 1). */
function safeNumber(value: bigint): number {
  const number = Number(value)
  if (Number.isSafeInteger(number)) return number
  throw new ArgumentError(
    `the int64 value ${value} has no exact JavaScript number (those end at ±${Number.MAX_SAFE_INTEGER}); read it with toBigIntArray(), or convert the tensor to float64 first.`,
  )
}

/** Stores a value, converted to the dtype as by `cast`. */
export function writeElement(dtype: DType, data: StorageArray, at: number, value: ElementValue): void {
  const element = converted(dtype, value)
  if (data instanceof BigInt64Array) data[at] = BigInt(element)
  else data[at] = bitsOf(dtype, Number(element))
}

/** What an array of the dtype stores for a number. */
const bitsOf = (dtype: DType, value: number): number =>
  dtype === 'float16' ? float16Bits(value) : dtype === 'bfloat16' ? bfloat16Bits(value) : value

/** Whether two arrays have the same bytes. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  // Four bytes at a time where the arrays begin at such addresses.
  const inWords = a.byteOffset % 4 === 0 && b.byteOffset % 4 === 0 ? a.length - (a.length % 4) : 0
  const words = ({ buffer, byteOffset }: Uint8Array): Uint32Array => new Uint32Array(buffer, inWords === 0 ? 0 : byteOffset, inWords / 4)
  const [x, y] = [words(a), words(b)]
  for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return false
  for (let i = inWords; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
