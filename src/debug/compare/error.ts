// How far a result is from the reference: one number that a tolerance is compared with.
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { exactElements, finfo } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** Rounding that a computation may show beyond the tolerance, in units of the last place of its inputs. */
const ROUNDINGS = 8

/** The tolerance for results of a dtype: that of the caller, or what rounding to the dtype costs. Integers and bools are compared exactly. */
export const toleranceOf = (dtype: DType, tol: number): number => (dtypeInfo[dtype].floating ? Math.max(tol, ROUNDINGS * finfo(dtype).eps) : 0)

/** The elements as numbers; those of int64 beyond 2^53 are rounded. */
export function numbersOf(tensor: Tensor): Float64Array {
  // Without a function that converts each element, which takes ten times as long.
  return tensor.dtype === 'int64' ? Float64Array.from(exactElements(tensor), Number) : new Float64Array(tensor.toTypedArray())
}

/** The greatest finite magnitude of a tensor's elements; 0 for integers and bools. */
export function magnitudeOf(tensor: Tensor): number {
  let greatest = 0
  if (dtypeInfo[tensor.dtype].floating)
    for (const value of numbersOf(tensor)) if (Number.isFinite(value)) greatest = Math.max(greatest, Math.abs(value))
  return greatest
}

/**
 * The greatest difference of two tensors of one shape, relative to 1 plus the value; for a tensor of small values relative to their size instead of 1. NaN and
 * infinity differ from anything else by Infinity. `slack` is an absolute difference that rounding explains: up to there the error stays below the tolerance, and an
 * integer counts as equal. For integers and bools, the greatest difference.
 *
 * `eager` is the same computation in the dtype of `got`: where it overflows and the reference does not, a result may be as either of them.
 */
export function errorOf(want: Tensor, got: Tensor, slack: number, tol: number, eager: Tensor | null = null): number {
  const { floating } = dtypeInfo[got.dtype]
  if (!floating && !dtypeInfo[want.dtype].floating) return exactError(want, got, slack)
  const [a, b] = [numbersOf(want), numbersOf(got)]
  const native = eager === null ? b : numbersOf(eager)
  const unit = Math.min(1, rootMeanSquare(a))
  const flushed = floating ? flushedBelow(got.dtype) : 0
  let greatest = 0
  for (let i = 0; i < a.length; i++) {
    const [x = NaN, y = NaN, z = NaN] = [a[i], b[i], native[i]]
    if (x === y || (Number.isNaN(x) && Number.isNaN(y))) continue
    if (eager !== null && !Number.isFinite(z) && Object.is(y, z)) continue
    const difference = Math.abs(x - y)
    if (!Number.isFinite(difference)) return Infinity
    const relative = difference / (unit + Math.abs(x))
    // What rounding explains is shown, but is never more than half of the tolerance.
    greatest = Math.max(greatest, difference > slack + flushed ? relative : Math.min(relative, tol / 2))
  }
  return greatest
}

/** Some processors, and WebGPU, flush what is smaller to zero. float16 is computed in float32, which has its small values. */
function flushedBelow(dtype: DType): number {
  const { tiny, eps } = finfo(dtype)
  return dtype === 'float16' ? tiny * eps : tiny
}

function exactError(want: Tensor, got: Tensor, slack: number): number {
  const [a, b] = [exactElements(want), exactElements(got)]
  let greatest = 0
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i], b[i]]
    if (typeof x === typeof y ? x === y : Number(x) === Number(y)) continue
    // Beyond 2^53 two different integers may be one number.
    const difference = Math.max(1, Math.abs(Number(x) - Number(y)))
    if (difference > slack) greatest = Math.max(greatest, difference)
  }
  return greatest
}

function rootMeanSquare(values: Float64Array): number {
  let [sum, count] = [0, 0]
  for (const value of values) {
    if (!Number.isFinite(value)) continue
    sum += value ** 2
    count++
  }
  return count === 0 ? 0 : Math.sqrt(sum / count)
}
