// What a page says about the tensors of a module: shape, dtype, and how the values are distributed.
import { getAttribute } from '../../module/index.ts'
import { isFunction, isParameter, isTensorLike } from '../../protocol/index.ts'
import type { ViewStatistics, ViewTensor } from './view.ts'

/** The number of ranges of a histogram. */
export const BINS = 24

/** The facts of a tensor; null for another value. */
export function tensorFacts(name: string, value: unknown, readValues: boolean): ViewTensor | null {
  if (!isTensorLike(value)) return null
  const values = readValues ? valuesOf(value) : null
  return {
    name,
    kind: isParameter(value) ? 'parameter' : 'buffer',
    shape: [...value.shape],
    dtype: value.dtype,
    statistics: values === null ? null : statisticsOf(values),
  }
}

/** The values as numbers; null if the tensor has none to read. This wing imports no tensors, so it asks for the method by its name. */
function valuesOf(tensor: object): ArrayLike<number> | null {
  const read = getAttribute(tensor, 'toTypedArray')
  if (getAttribute(tensor, 'isFake') === true || !isFunction(read)) return null
  try {
    const values: unknown = read.call(tensor)
    return isNumbers(values) ? values : null
  } catch {
    // Memory that was disposed, or an int64 that is not an exact number: the page is shown without the statistics.
    return null
  }
}

const isNumbers = (values: unknown): values is ArrayLike<number> =>
  ArrayBuffer.isView(values) && 'length' in values && !(values instanceof BigInt64Array || values instanceof BigUint64Array)

/** The distribution of the values; null if none of them is finite. */
export function statisticsOf(values: ArrayLike<number>): ViewStatistics | null {
  let [min, max, sum, zeros, special] = [Infinity, -Infinity, 0, 0, 0]
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? NaN
    if (!Number.isFinite(value)) {
      special++
      continue
    }
    if (value < min) min = value
    if (value > max) max = value
    if (value === 0) zeros++
    sum += value
  }
  const count = values.length - special
  if (count === 0) return null
  const mean = sum / count
  const histogram = Array.from({ length: BINS }, () => 0)
  const width = (max - min) / BINS
  let squares = 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? NaN
    if (!Number.isFinite(value)) continue
    squares += (value - mean) ** 2
    const bin = width === 0 ? BINS / 2 : Math.min(BINS - 1, Math.floor((value - min) / width))
    histogram[bin] = (histogram[bin] ?? 0) + 1
  }
  return { min, max, mean, std: Math.sqrt(squares / count), zeros, special, histogram }
}
