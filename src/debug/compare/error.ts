// How far a result is from the reference: one number that a tolerance is compared with.
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { exactElements, finfo } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** Rounding that a computation may show beyond the tolerance, in units of the last place of its inputs. */
const ROUNDINGS = 8

/** The tolerance for results of a dtype: that of the caller, or what rounding to the dtype costs. */
export const toleranceOf = (dtype: DType, tol: number): number => (dtypeInfo[dtype].floating ? Math.max(tol, ROUNDINGS * finfo(dtype).eps) : tol)

function numbersOf(tensor: Tensor): Float64Array {
  // Without a function that converts each element, which takes ten times as long.
  return tensor.dtype === 'int64' ? Float64Array.from(exactElements(tensor), Number) : new Float64Array(tensor.toTypedArray())
}

/** The greatest finite magnitude among tensors. */
export function magnitude(tensors: readonly Tensor[]): number {
  let greatest = 0
  for (const tensor of tensors) {
    if (!dtypeInfo[tensor.dtype].floating) continue
    for (const value of numbersOf(tensor)) if (Number.isFinite(value)) greatest = Math.max(greatest, Math.abs(value))
  }
  return greatest
}

/**
 * The greatest difference of two tensors of one shape, relative to 1 plus the value; for a tensor of small values relative to their size instead of 1. NaN and
 * infinity differ from anything else by Infinity. `scale` is the magnitude of what the values were computed from: differences that rounding it explains stay
 * below the tolerance. For integers and bools, the greatest difference.
 */
export function errorOf(want: Tensor, got: Tensor, scale: number, tol: number): number {
  const [a, b] = [numbersOf(want), numbersOf(got)]
  const floating = dtypeInfo[got.dtype].floating
  const unit = floating ? Math.min(1, Math.max(rootMeanSquare(a), 0.01 * scale)) : 1
  const noise = floating ? Math.min(ROUNDINGS * finfo(got.dtype).eps * scale, tol / 10) : 0
  let greatest = 0
  for (let i = 0; i < a.length; i++) {
    const [x = NaN, y = NaN] = [a[i], b[i]]
    if (x === y || (Number.isNaN(x) && Number.isNaN(y))) continue
    const difference = Math.abs(x - y)
    if (!Number.isFinite(difference)) return Infinity
    const relative = floating ? difference / (unit + Math.abs(x)) : difference
    // What rounding explains is shown, but is never more than half of the tolerance.
    greatest = Math.max(greatest, difference > noise ? relative : Math.min(relative, tol / 2))
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
