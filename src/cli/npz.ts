// The arrays of a .npz file (numpy.savez, numpy.savez_compressed): a zip archive of .npy files, of which only the headers are read.
import { readFileSync } from 'node:fs'
import { constants, inflateRawSync } from 'node:zlib'
import { npyHeader } from '../data/npy.ts'
import { ArgumentError, messageOf } from '../errors/index.ts'
import { readStoredZip } from '../formats/zip.ts'
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

/** As many compressed bytes hold the header of any array. */
const START = 4096

/** The beginning of what was compressed: nothing becomes large. */
function startOf(packed: Uint8Array): Uint8Array {
  try {
    return inflateRawSync(packed.subarray(0, START), { finishFlush: constants.Z_SYNC_FLUSH })
  } catch (error) {
    throw new ArgumentError(`info: an entry of the archive cannot be decompressed: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/** The arrays. Throws ArgumentError for a file that is damaged or holds something else. */
export function readNpz(path: string): readonly StoredArray[] {
  return [...readStoredZip('info', readFileSync(path), startOf)].map(([entry, bytes]) => arrayOf(entry, bytes))
}

function arrayOf(entry: string, bytes: Uint8Array): StoredArray {
  const { dtype, descr, shape, itemSize } = npyHeader('info', `the entry '${entry}'`, bytes)
  const elements = numelOf(shape)
  return { name: entry.replace(/\.npy$/, ''), dtype: dtype ?? descr, shape, elements, bytes: elements * itemSize }
}
