// When two results count as equal: NaN and infinities by their place, all other elements by value, within a tolerance and what rounding explains. All comparisons go through
// here. `farApart` and `unexplained` judge a result of a whole run, of which several runs tell what rounding does; `errorOf` measures one whose rounding was measured node by node.
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { exactElements, finfo } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** The elements of a tensor in row-major order. */
export type Elements = ArrayLike<number>

/** The elements as numbers, in memory of their own; integers beyond 2^53 are rounded. */
export function elementsOf(tensor: Tensor): Float64Array {
  // Without a function that converts each element, which takes ten times as long.
  return tensor.dtype === 'int64' ? Float64Array.from(exactElements(tensor), Number) : new Float64Array(tensor.toTypedArray())
}

/** NaN if there is no such element, so that a comparison fails. */
const at = (elements: Elements, i: number): number => elements[i] ?? Number.NaN

/** What elements are compared with: all have the same number of them. */
export interface Expected {
  /** The reference, in the precision of the result. */
  readonly ref: Elements
  /** The reference in float64; null if there is none. */
  readonly fp64: Elements | null
  /** The reference again, with inputs moved by a few units in the last place: what it differs by is rounding. */
  readonly others?: readonly Elements[]
}

/** How far elements may be apart. */
export interface Tolerance {
  /** Absolute and relative. */
  readonly tol: number
  /** Whether `tol` as an absolute tolerance shrinks with the size of the elements, so that small ones are judged too. Default false. */
  readonly scaled?: boolean
}

/** Root mean square of the differences. `chosen` says which elements count. */
export function rmseOf(a: Elements, b: Elements, chosen: (i: number) => boolean = () => true): number {
  let [sum, count] = [0, 0]
  for (let i = 0; i < a.length; i++) {
    if (!chosen(i)) continue
    sum += (at(a, i) - at(b, i)) ** 2
    count++
  }
  return Math.sqrt(sum / count)
}

const LOOSE = 0.04

/** Errors of a few units in the last place are never a difference. */
const ROUNDINGS = 8

/** Rounded to a dtype: 70000 is an infinity in float16. */
function rounded(value: number, dtype: DType): number {
  if (dtype === 'float64') return value
  const { max, eps } = finfo(dtype)
  // Half a unit in the last place above the greatest number, which is 2 - eps times a power of two.
  const limit = max + (max * eps) / (4 - 2 * eps)
  return Math.abs(value) >= limit ? Math.sign(value) * Infinity : value
}

/** Whether a number is near enough to stand for one that overflows elsewhere. */
const isNear = (wanted: number, got: number): boolean => Number.isFinite(wanted) && Math.abs(wanted - got) <= LOOSE + LOOSE * Math.abs(wanted)

/** Whether two elements are equal, or with `equalNan` both are NaN. */
const agree = (x: number, y: number, equalNan: boolean): boolean => x === y || (equalNan && Number.isNaN(x) && Number.isNaN(y))

/** Where a NaN or an infinity of the result, or of the reference, has no counterpart: the index, or -1. */
export function misplaced(res: Elements, { ref, fp64, others = [] }: Expected, dtype: DType, equalNan: boolean): number {
  const agrees = (x: number, y: number): boolean => agree(x, y, equalNan)
  for (let i = 0; i < res.length; i++) {
    const [want, got] = [at(ref, i), at(res, i)]
    if ((Number.isFinite(want) && Number.isFinite(got)) || agrees(want, got)) continue
    // What float64 says counts too: the reference may overflow where the result does not.
    const exact = fp64 === null ? want : rounded(at(fp64, i), dtype)
    // So does what rounding makes of the reference.
    if ([exact, ...others.map((other) => at(other, i))].some((value) => agrees(value, got) || isNear(value, got))) continue
    // A reference without a number where float64 has one is off by its own rounding: another infinity is no worse.
    if (others.length > 0 && Number.isFinite(exact) && !Number.isFinite(want) && !Number.isFinite(got)) continue
    return i
  }
  return -1
}

/** Elements are relative to one fourth of this at least: for tensors of that size and above an absolute tolerance is what it says. */
const USUAL = 0.25

/** The size below which values count as zero, for a tolerance of 1. */
const unitOf = (elements: Elements, scaled: boolean): number => (scaled ? Math.min(1, rootMeanSquare(elements) / USUAL) : 1)

function rootMeanSquare(elements: Elements): number {
  let [sum, count] = [0, 0]
  for (let i = 0; i < elements.length; i++) {
    const value = at(elements, i)
    if (!Number.isFinite(value)) continue
    sum += value ** 2
    count++
  }
  return count === 0 ? 0 : Math.sqrt(sum / count)
}

/** The indices of finite elements that are not within the tolerance of the reference. */
export function farApart(res: Elements, ref: Elements, { tol, scaled = false }: Tolerance): number[] {
  const absolute = tol * unitOf(ref, scaled)
  const far: number[] = []
  for (let i = 0; i < ref.length; i++) {
    const [want, got] = [at(ref, i), at(res, i)]
    if (!Number.isFinite(want) || !Number.isFinite(got)) continue
    if (!(Math.abs(want - got) <= absolute + tol * Math.abs(want))) far.push(i)
  }
  return far
}

/** What nine in ten elements are at most apart. Few that jump, because an input is at a threshold, do not count. */
function usualDistance(a: Elements, b: Elements): number {
  const distances: number[] = []
  for (let i = 0; i < a.length; i++) {
    const distance = Math.abs(at(a, i) - at(b, i))
    if (Number.isFinite(distance)) distances.push(distance)
  }
  distances.sort((x, y) => x - y)
  return distances[Math.floor(0.9 * (distances.length - 1))] ?? 0
}

/**
 * Of the indices `far`, the one whose element is farther from float64 than rounding explains, by the largest factor; -1 if none is. An element may be `multiplier` times as
 * far as the reference is there, or usually is, or as it gets with inputs moved by a few units in the last place: the reference may be exact by luck.
 */
export function unexplained(
  far: readonly number[],
  res: Elements,
  { ref, fp64, others = [] }: Expected,
  dtype: DType,
  multiplier: number,
  { tol, scaled = false }: Tolerance,
): number {
  const exact = fp64 ?? ref
  const runs = [ref, ...others].map((elements) => ({ elements, usual: usualDistance(exact, elements) }))
  const floor = (tol / 10) * unitOf(exact, scaled) + (dtypeInfo[dtype].floating ? ROUNDINGS * finfo(dtype).eps * rootMeanSquare(exact) : 0)
  let [worst, factor] = [-1, 1]
  for (const i of far) {
    // Where float64 has no number, the reference decides.
    const want = Number.isFinite(at(exact, i)) ? at(exact, i) : at(ref, i)
    let noise = 0
    for (const { elements, usual } of runs) {
      const own = Math.abs(at(elements, i) - want)
      noise = Math.max(noise, usual, Number.isFinite(own) ? own : 0)
    }
    const off = Math.abs(at(res, i) - want) / (multiplier * noise + floor)
    if (!(off <= factor)) [worst, factor] = [i, off]
  }
  return worst
}

/** The tolerance for results of a dtype: that of the caller, or what rounding to the dtype costs. Integers and bools are compared exactly. */
export const toleranceOf = (dtype: DType, tol: number): number => (dtypeInfo[dtype].floating ? Math.max(tol, ROUNDINGS * finfo(dtype).eps) : 0)

/** The greatest finite magnitude of a tensor's elements; 0 for integers and bools. */
export function magnitudeOf(tensor: Tensor): number {
  let greatest = 0
  if (dtypeInfo[tensor.dtype].floating)
    for (const value of elementsOf(tensor)) if (Number.isFinite(value)) greatest = Math.max(greatest, Math.abs(value))
  return greatest
}

/**
 * The greatest difference of two tensors of one shape, relative to 1 plus the value; for a tensor of small values relative to their size instead of 1. NaN and
 * infinity differ from anything else by Infinity. `slack` is an absolute difference that rounding explains: up to there the error stays below the tolerance, and an
 * integer counts as equal. For integers and bools, the greatest difference.
 *
 * `eager` is the same computation in the dtype of `got`: where it overflows and the reference does not, a result may be as either of them. `others` are runs of the reference that rounding
 * has moved: where one of them overflows, or stops to, nothing can be said.
 */
export function errorOf(want: Tensor, got: Tensor, slack: number, tol: number, eager: Tensor | null = null, others: readonly Tensor[] = []): number {
  const { floating } = dtypeInfo[got.dtype]
  if (!floating && !dtypeInfo[want.dtype].floating) return exactError(want, got, slack)
  const [a, b] = [elementsOf(want), elementsOf(got)]
  const native = eager === null ? b : elementsOf(eager)
  const moved = others.map(elementsOf)
  const unit = Math.min(1, rootMeanSquare(a))
  const flushed = floating ? flushedBelow(got.dtype) : 0
  let greatest = 0
  for (let i = 0; i < a.length; i++) {
    const [x = NaN, y = NaN, z = NaN] = [a[i], b[i], native[i]]
    if (agree(x, y, true)) continue
    if (eager !== null && !Number.isFinite(z) && Object.is(y, z)) continue
    const difference = Math.abs(x - y)
    if (!Number.isFinite(difference)) {
      if (isUndecided(x, i, moved)) continue
      return Infinity
    }
    const relative = difference / (unit + Math.abs(x))
    // What rounding explains is shown, but is never more than half of the tolerance.
    greatest = Math.max(greatest, difference > slack + flushed ? relative : Math.min(relative, tol / 2))
  }
  return greatest
}

/** Whether both are finite, or the same NaN or infinity. */
const isAlike = (x: number, y: number): boolean => (Number.isFinite(x) ? Number.isFinite(y) : Object.is(x, y))

/** Whether rounding alone makes a NaN or an infinity of a number at a place, or the other way round: then nothing can be said of it. */
const isUndecided = (want: number, i: number, others: readonly Elements[]): boolean => others.some((run) => !isAlike(want, at(run, i)))

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
