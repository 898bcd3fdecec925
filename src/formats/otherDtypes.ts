// Dtypes of files that tensorfx does not have, and the ones in which their values fit.
import type { DType } from '../kernels/index.ts'

/** How the values of a dtype are stored, and what they become. */
export interface OtherDtype {
  readonly size: number
  readonly becomes: DType
  /** The bytes of the same values as `becomes`. Throws RangeError for a value that does not fit. */
  convert(bytes: Uint8Array): Uint8Array
}

const bytesOf = (array: ArrayBufferView): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

/** Numbers of 8 bits with an exponent: the value of each byte, from a table. */
function float8(exponentBits: number, bias: number, special: (magnitude: number) => number | null): OtherDtype {
  const fractionBits = 7 - exponentBits
  const table = Float32Array.from({ length: 256 }, (_, byte) => {
    const sign = byte >= 128 ? -1 : 1
    const magnitude = byte & 127
    const other = special(magnitude)
    if (other !== null) return sign * other
    const exponent = magnitude >> fractionBits
    const fraction = (magnitude & ((1 << fractionBits) - 1)) / (1 << fractionBits)
    return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias))
  })
  return { size: 1, becomes: 'float32', convert: (bytes) => bytesOf(Float32Array.from(bytes, (byte) => table[byte] ?? NaN)) }
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** By the name in safetensors files. */
export const OTHER_DTYPES: ReadonlyMap<string, OtherDtype> = new Map<string, OtherDtype>([
  // The greatest number is 448, and the pattern above it NaN: there are no infinities.
  ['F8_E4M3', float8(4, 7, (magnitude) => (magnitude === 127 ? NaN : null))],
  ['F8_E5M2', float8(5, 15, (magnitude) => (magnitude < 124 ? null : magnitude === 124 ? Infinity : NaN))],
  [
    'U16',
    {
      size: 2,
      becomes: 'int32',
      convert: (bytes) => bytesOf(Int32Array.from({ length: bytes.length / 2 }, (_, i) => viewOf(bytes).getUint16(2 * i, true))),
    },
  ],
  [
    'U32',
    {
      size: 4,
      becomes: 'int64',
      convert: (bytes) => bytesOf(BigInt64Array.from({ length: bytes.length / 4 }, (_, i) => BigInt(viewOf(bytes).getUint32(4 * i, true)))),
    },
  ],
  [
    'U64',
    {
      size: 8,
      becomes: 'int64',
      convert: (bytes) => {
        for (let at = 7; at < bytes.length; at += 8)
          if ((bytes[at] ?? 0) > 127) throw new RangeError('a value is above 2 ** 63 - 1, the greatest int64')
        return bytes
      },
    },
  ],
])
