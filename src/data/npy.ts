// Arrays of numpy: .npy files, and .npz archives of them.
import { ArgumentError } from '../errors/index.ts'
import { bytesOf } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { readStoredZip } from '../formats/zip.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { checkCount } from '../protocol/index.ts'
import { contiguousStrides, numelOf, tensorFromBytes } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { inflate } from './inflate.ts'

/** tensorfx's names of numpy's types, without the byte order. */
const DTYPES: Readonly<Record<string, DType>> = {
  f2: 'float16',
  f4: 'float32',
  f8: 'float64',
  i1: 'int8',
  i2: 'int16',
  i4: 'int32',
  i8: 'int64',
  u1: 'uint8',
  b1: 'bool',
}

/** What the header of an array says. */
export interface NpyHeader {
  /** tensorfx's name of the dtype; null for one that tensorfx lacks. */
  readonly dtype: DType | null
  /** numpy's name of the dtype: `'<f4'`. */
  readonly descr: string
  readonly shape: readonly number[]
  /** Bytes of an element. */
  readonly itemSize: number
  readonly isFortran: boolean
  /** Where the elements begin. */
  readonly start: number
}

const MAGIC = '\x93NUMPY'

/** Reads the header of an array from the beginning of its file. Throws ArgumentError, which says `what` it is, for bytes of another kind. */
export function npyHeader(where: string, what: string, bytes: Uint8Array): NpyHeader {
  const latin = new TextDecoder('latin1')
  const fail = (why: string): ArgumentError => new ArgumentError(`${where}: ${what} is no array of numpy: ${why}.`)
  if (latin.decode(bytes.subarray(0, 6)) !== MAGIC) throw fail('it does not begin as one')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isLong = (bytes[6] ?? 1) > 1
  const from = isLong ? 12 : 10
  if (bytes.length < from) throw fail('it ends within its header')
  const size = isLong ? view.getUint32(8, true) : view.getUint16(8, true)
  const header = latin.decode(bytes.subarray(from, from + size))
  const [, descr] = /'descr':\s*'([^']*)'/.exec(header) ?? []
  const [, order] = /'fortran_order':\s*(True|False)/.exec(header) ?? []
  const [, dims] = /'shape':\s*\(([\d,\sL]*)\)/.exec(header) ?? []
  if (descr === undefined || dims === undefined) throw fail(`its header is ${JSON.stringify(header.slice(0, 60))}`)
  const type = descr.replace(/^[<>|=]/, '')
  return {
    dtype: DTYPES[type] ?? null,
    descr,
    shape: (dims.match(/\d+/g) ?? []).map(Number),
    // The size of an element in bytes, but of a text in characters of four bytes.
    itemSize: Number(/\d+/.exec(type)?.[0] ?? 0) * (type.startsWith('U') ? 4 : 1),
    isFortran: order === 'True',
    start: from + size,
  }
}

/** The array in the bytes of a .npy file. */
export function arrayOf(where: string, what: string, bytes: Uint8Array): Tensor {
  const { dtype, descr, shape, isFortran, start } = npyHeader(where, what, bytes)
  if (dtype === null)
    throw new ArgumentError(
      `${where}: ${what} has dtype ${descr}, but tensorfx reads ${Object.keys(DTYPES).join(', ')} only; convert it first: array.astype('float32').`,
    )
  const { size } = dtypeInfo[dtype]
  const wanted = numelOf(shape) * size
  if (!Number.isSafeInteger(wanted) || bytes.length - start !== wanted)
    throw new ArgumentError(
      `${where}: ${what} has ${bytes.length - start} bytes of elements, but an array of shape [${shape.join(', ')}] and dtype ${dtype} takes ${wanted}; save it again.`,
    )
  const data = descr.startsWith('>') ? swapped(bytes.subarray(start), size) : bytes.subarray(start)
  return tensorFromBytes(data, shape, dtype, isFortran ? contiguousStrides(shape.toReversed()).toReversed() : contiguousStrides(shape))
}

/** Elements in the other byte order. */
export function swapped(bytes: Uint8Array, size: number): Uint8Array {
  const out = Uint8Array.from(bytes)
  for (let at = 0; at < out.length; at += size) out.subarray(at, at + size).reverse()
  return out
}

/** The array of a .npy file of numpy (`numpy.save`), by its path, URL, Blob or bytes. Throws ArgumentError for a damaged file, and a dtype that tensorfx does not have. */
export async function readNpy(source: FileSource): Promise<Tensor> {
  checkCount('readNpy', arguments, 1)
  return arrayOf('readNpy', 'the file', await bytesOf('readNpy', source))
}

/**
 * The arrays of a .npz file of numpy (`numpy.savez`, `numpy.savez_compressed`) by name, by its path, URL, Blob or bytes. Throws ArgumentError for a damaged file, and a
 * dtype that tensorfx does not have.
 *
 * @example const { images, labels } = Object.fromEntries(await readNpz('digits.npz'))
 */
export async function readNpz(source: FileSource): Promise<Map<string, Tensor>> {
  checkCount('readNpz', arguments, 1)
  const packed = new Map<Uint8Array, number>()
  const entries = readStoredZip('readNpz', await bytesOf('readNpz', source), (bytes, size) => {
    packed.set(bytes, size)
    return bytes
  })
  const arrays = new Map<string, Tensor>()
  for (const [name, bytes] of entries) {
    const size = packed.get(bytes)
    const array = size === undefined ? bytes : await inflate('readNpz', bytes, 'deflate-raw', size)
    arrays.set(name.replace(/\.npy$/, ''), arrayOf('readNpz', `the entry '${name}'`, array))
  }
  return arrays
}
