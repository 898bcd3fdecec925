// The elements of tensors in files as numbers, for their statistics.
import { OTHER_DTYPES } from '../../../formats/otherDtypes.ts'
import { dtypeInfo, readElement } from '../../../kernels/index.ts'
import type { DType } from '../../../kernels/index.ts'
import type { StoredView } from '../../../formats/torchFile.ts'

/** The elements that bytes hold. int64 is rounded to the nearest number. */
export function elementsIn(bytes: Uint8Array, dtype: DType): ArrayLike<number> {
  // A typed array begins at a multiple of its elements' size, which a file need not.
  const stored = new dtypeInfo[dtype].array(bytes.slice().buffer)
  if (!(stored instanceof BigInt64Array) && dtype !== 'float16' && dtype !== 'bfloat16') return stored
  const numbers = new Float64Array(stored.length)
  for (let i = 0; i < numbers.length; i++) numbers[i] = Number(readElement(dtype, stored, i))
  return numbers
}

/** The elements of a dtype that only files have; null if a value is none that tensorfx could hold. */
export function otherElementsIn(bytes: Uint8Array, storedAs: string): ArrayLike<number> | null {
  const other = OTHER_DTYPES.get(storedAs)
  if (other === undefined) return null
  try {
    return elementsIn(other.convert(bytes), other.becomes)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** The elements of a view of a storage. */
export function elementsOf(storage: ArrayLike<number>, { size, stride, offset }: StoredView): ArrayLike<number> {
  const count = size.reduce((product, n) => product * n, 1)
  const numbers = new Float64Array(count)
  const at = size.map(() => 0)
  let place = offset
  for (let i = 0; i < count; i++) {
    numbers[i] = storage[place] ?? NaN
    for (let d = size.length - 1; d >= 0; d--) {
      const [next, step] = [(at[d] ?? 0) + 1, stride[d] ?? 0]
      if (next < (size[d] ?? 1)) {
        at[d] = next
        place += step
        break
      }
      place -= ((size[d] ?? 1) - 1) * step
      at[d] = 0
    }
  }
  return numbers
}
