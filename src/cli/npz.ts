// The arrays of a .npz file (numpy.savez, numpy.savez_compressed): a zip archive of .npy files, of which only the headers are read.
import { readFileSync } from 'node:fs'
import { constants, inflateRawSync } from 'node:zlib'
import { ArgumentError } from '../errors/index.ts'
import { readStoredZip } from '../interop/torchFile/zip.ts'
import { numelOf } from '../tensor/index.ts'

/** An array in a file. */
export interface StoredArray {
  readonly name: string
  /** tensorfx's name of the dtype; for one that tensorfx lacks, numpy's. */
  readonly dtype: string
  readonly shape: readonly number[]
  readonly elements: number
  readonly bytes: number
}

/** tensorfx's names of numpy's types, without the byte order. */
const DTYPES: Readonly<Record<string, string>> = {
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

/** As many compressed bytes hold the header of any array. */
const START = 4096

/** The beginning of what was compressed: nothing becomes large. */
function startOf(packed: Uint8Array): Uint8Array {
  try {
    return inflateRawSync(packed.subarray(0, START), { finishFlush: constants.Z_SYNC_FLUSH })
  } catch (error) {
    throw new ArgumentError(`info: an entry of the archive cannot be decompressed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

/** The arrays. Throws ArgumentError for a file that is damaged or holds something else. */
export function readNpz(path: string): readonly StoredArray[] {
  return [...readStoredZip('info', readFileSync(path), startOf)].map(([entry, bytes]) => arrayOf(entry, bytes))
}

const MAGIC = '\x93NUMPY'

function arrayOf(entry: string, bytes: Uint8Array): StoredArray {
  const latin = new TextDecoder('latin1')
  const fail = (what: string): ArgumentError => new ArgumentError(`info: the entry '${entry}' is no array of numpy: ${what}.`)
  if (latin.decode(bytes.subarray(0, 6)) !== MAGIC) throw fail('it does not begin as one')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isLong = (bytes[6] ?? 1) > 1
  const from = isLong ? 12 : 10
  if (bytes.length < from) throw fail('it ends within its header')
  const size = isLong ? view.getUint32(8, true) : view.getUint16(8, true)
  const header = latin.decode(bytes.subarray(from, from + size))
  const [, descr] = /'descr':\s*'([^']*)'/.exec(header) ?? []
  const [, dims] = /'shape':\s*\(([\d,\sL]*)\)/.exec(header) ?? []
  if (descr === undefined || dims === undefined) throw fail(`its header is ${JSON.stringify(header.slice(0, 60))}`)
  const shape = (dims.match(/\d+/g) ?? []).map(Number)
  const type = descr.replace(/^[<>|=]/, '')
  const elements = numelOf(shape)
  // The size of an element in bytes, but of a text in characters of four bytes.
  const each = Number(/\d+/.exec(type)?.[0] ?? 0) * (type.startsWith('U') ? 4 : 1)
  return { name: entry.replace(/\.npy$/, ''), dtype: DTYPES[type] ?? descr, shape, elements, bytes: elements * each }
}
