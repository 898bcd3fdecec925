// Elements as they lie on the GPU: a word each, or two for an int64.
import { dtypeInfo, isComplexDType, readElement, realDType, writeElement } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { bitsOfFloat } from '../../kernels/wgsl/wgslCode.ts'
import type { Tensor } from '../../tensor/index.ts'

const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)

/** Whether elements lie in memory as they do on the GPU. */
const isPlain = (dtype: DType): boolean => dtype === 'float32' || dtype === 'int32' || dtype === 'int64'

/** The words of `count` elements of a tensor's storage, from the tensor's first on; of what lies beyond the storage, 0. Pairs of a complex tensor count as two elements. */
export function wordsOf(tensor: Tensor, count: number): Uint32Array<ArrayBuffer> {
  const storage = tensor.realize()
  const dtype = isComplexDType(tensor.dtype) ? realDType(tensor.dtype) : tensor.dtype
  const { size, array } = dtypeInfo[dtype]
  const start = tensor.offset * dtypeInfo[tensor.dtype].size
  const bytes = new Uint8Array(Math.ceil((count * size) / 8) * 8)
  bytes.set(storage.readBytes(start, Math.min(storage.nbytes, start + count * size)))
  if (isPlain(dtype)) return new Uint32Array(bytes.buffer, 0, (count * size) / 4)
  const data = new array(bytes.buffer)
  return Uint32Array.from({ length: count }, (_, i) => {
    const value = Number(readElement(dtype, data, i))
    return dtypeInfo[dtype].floating ? bitsOfFloat(value) : value
  })
}

/** The bytes of elements that lie on the GPU as `words`. */
export function bytesOf(words: Uint32Array<ArrayBuffer>, dtype: DType): Uint8Array {
  if (isPlain(dtype)) return new Uint8Array(words.buffer, words.byteOffset, words.byteLength)
  const data = new dtypeInfo[dtype].array(words.length)
  words.forEach((word, i) => {
    bits[0] = word
    writeElement(dtype, data, i, dtypeInfo[dtype].floating ? (float[0] ?? 0) : word | 0)
  })
  return new Uint8Array(data.buffer)
}

/** The words of a number that a kernel gets. */
export function numberWords(value: number, dtype: DType): readonly number[] {
  if (dtype === 'int64') {
    const whole = BigInt.asUintN(64, BigInt(Math.trunc(value)))
    return [Number(whole & 0xffffffffn), Number(whole >> 32n)]
  }
  if (dtypeInfo[dtype].floating) return [bitsOfFloat(value)]
  return [dtype === 'bool' ? Number(value !== 0) : value | 0]
}
