// IDX files, which hold MNIST and its like: a header of sizes, then elements with the most significant byte first.
import { ArgumentError } from '../errors/index.ts'
import { bytesOf } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { checkCount } from '../protocol/index.ts'
import { numelOf, tensorFromBytes } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { inflate } from './inflate.ts'
import { swapped } from './npy.ts'

const DTYPES: ReadonlyMap<number, DType> = new Map([
  [0x08, 'uint8'],
  [0x09, 'int8'],
  [0x0b, 'int16'],
  [0x0c, 'int32'],
  [0x0d, 'float32'],
  [0x0e, 'float64'],
])

/** Larger files than any data set in this format. */
const MOST = 2 ** 31

/**
 * The array of an IDX file, such as MNIST's `train-images-idx3-ubyte`, by its path, URL, Blob or bytes; a file that gzip has compressed is decompressed. Throws ArgumentError for a
 * file of another kind.
 *
 * @example const images = (await readIdx('train-images-idx3-ubyte.gz')).div(255) // [60000, 28, 28]
 */
export async function readIdx(source: FileSource): Promise<Tensor> {
  checkCount('readIdx', arguments, 1)
  const read = await bytesOf('readIdx', source)
  return idxArray(read[0] === 0x1f && read[1] === 0x8b ? await inflate('readIdx', read, 'gzip', MOST) : read)
}

/** The array in the bytes of an IDX file. */
export function idxArray(bytes: Uint8Array): Tensor {
  const dtype = DTYPES.get(bytes[2] ?? -1)
  const rank = bytes[3] ?? 0
  const start = 4 + 4 * rank
  if (bytes[0] !== 0 || bytes[1] !== 0 || dtype === undefined || bytes.length < start)
    throw new ArgumentError(`readIdx: this is no IDX file: it begins with the bytes ${bytes.slice(0, 4).join(', ')}.`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const shape = Array.from({ length: rank }, (_, i) => view.getUint32(4 + 4 * i))
  const { size } = dtypeInfo[dtype]
  const wanted = numelOf(shape) * size
  if (bytes.length - start !== wanted)
    throw new ArgumentError(
      `readIdx: the file has ${bytes.length - start} bytes of elements, but its sizes [${shape.join(', ')}] of ${dtype} take ${wanted}. Copy it again.`,
    )
  const data = bytes.subarray(start)
  return tensorFromBytes(size === 1 ? data : swapped(data, size), shape, dtype)
}
