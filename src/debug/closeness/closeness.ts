// When two results count as equal: NaN and infinities by their place (`misplaced`), integers and bools exactly (`isOutside`), all other elements by value, within a tolerance and what
// rounding explains at their place (`noiseOf`). All comparisons go through here: judges by `farApart` and `unexplained`, comparisons that tell how large an error is by `errorOf`.
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { exactElements, finfo } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

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
  /** The reference again, with everything moved by a few units in the last place, in pairs that are moved in opposite ways: what it differs by is rounding. */
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
  if (dtype === 'float64' || !dtypeInfo[dtype].floating) return value
  const { max, eps } = finfo(dtype)
  // Half a unit in the last place above the greatest number, which is 2 - eps times a power of two.
  const limit = max + (max * eps) / (4 - 2 * eps)
  return Math.abs(value) >= limit ? Math.sign(value) * Infinity : value
}

/** Whether a number is near enough to stand for one that overflows elsewhere. */
const isNear = (wanted: number, got: number): boolean => Number.isFinite(wanted) && Math.abs(wanted - got) <= LOOSE + LOOSE * Math.abs(wanted)

/** Whether two elements are equal, or with `equalNan` both are NaN. */
const agree = (x: number, y: number, equalNan: boolean): boolean => x === y || (equalNan && Number.isNaN(x) && Number.isNaN(y))

/** Runs that differ by such a factor divide by what rounding makes of zero. */
const POLE = 16

/** Whether a result is an infinity at a place where runs of the reference have one, or are about to, of either sign that they have. */
function isPole(got: number, runs: readonly number[], ref: Elements): boolean {
  if (Math.abs(got) !== Infinity || !runs.some((run) => Math.sign(run) === Math.sign(got))) return false
  const sizes = runs.filter((run) => !Number.isNaN(run)).map(Math.abs)
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  return most === Infinity || (least > 0 && most > POLE * least && most > rootMeanSquare(ref))
}

/** Where a NaN or an infinity of the result, or of the reference, has no counterpart: the index, or -1. */
export function misplaced(res: Elements, { ref, fp64, others = [] }: Expected, dtype: DType, equalNan: boolean): number {
  const agrees = (x: number, y: number): boolean => agree(x, y, equalNan)
  for (let i = 0; i < res.length; i++) {
    const [want, got] = [at(ref, i), at(res, i)]
    if ((Number.isFinite(want) && Number.isFinite(got)) || agrees(want, got)) continue
    // What float64 says counts too: the reference may overflow where the result does not.
    const exact = fp64 === null ? want : rounded(at(fp64, i), dtype)
    // So does what rounding makes of the reference.
    const runs = [exact, ...others.map((other) => at(other, i))]
    if (runs.some((value) => agrees(value, got) || isNear(value, got))) continue
    // A reference without a number where float64 or another run has one is off by its own rounding: another infinity is no worse.
    if (others.length > 0 && runs.some(Number.isFinite) && !Number.isFinite(want) && !Number.isFinite(got)) continue
    if (others.length > 0 && isPole(got, [want, ...runs], ref)) continue
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

/** What nine in ten of these distances are at most. */
function usual(distances: readonly number[]): number {
  const finite = distances.filter((distance) => Number.isFinite(distance)).sort((x, y) => x - y)
  return finite[Math.floor(0.9 * (finite.length - 1))] ?? 0
}

const distancesOf = (a: Elements, b: Elements): readonly number[] => Array.from(a, (value, i) => Math.abs(value - at(b, i)))

/** The number that an element should have: the reference decides where float64 has none. */
const wantedAt = ({ ref, fp64 }: Expected, i: number): number => (fp64 !== null && Number.isFinite(at(fp64, i)) ? at(fp64, i) : at(ref, i))

/**
 * How far rounding moves an element: as far as any run of the reference is from float64 at that place, or usually is, since a run may be exact by luck. Where a run jumps, as `floor` does at a whole
 * number, this is the jump, at that place alone: of two runs that were moved in opposite ways one stays where it was.
 */
export function noiseOf(expected: Expected): (i: number) => number {
  const { ref, fp64, others = [] } = expected
  const exact = fp64 ?? ref
  const distances = [ref, ...others].map((run) => distancesOf(exact, run))
  const [own = [], ...moved] = distances
  const smooth = moved.flatMap((first, k) => {
    const second = k % 2 === 0 ? moved[k + 1] : undefined
    return second === undefined ? [] : [usual(first.map((distance, i) => Math.min(distance, second[i] ?? NaN)))]
  })
  const least = Math.max(usual(own), ...smooth)
  return (i) => {
    let noise = least
    for (const run of [ref, ...others]) {
      const distance = Math.abs(at(run, i) - wantedAt(expected, i))
      if (Number.isFinite(distance)) noise = Math.max(noise, distance)
    }
    return noise
  }
}

/** Elements that are exact: those of int64 are bigints. */
export type ExactElements = ArrayLike<number | bigint | boolean>

/** Whether an integer or a bool lies outside of what runs of the reference give at its place. Where rounding decides (which of two nearly equal values is the greatest), runs differ. */
export function isOutside(res: ExactElements, runs: readonly ExactElements[], i: number): boolean {
  const value = res[i] ?? NaN
  return !(runs.some((run) => (run[i] ?? NaN) <= value) && runs.some((run) => (run[i] ?? NaN) >= value))
}

/**
 * Of the indices `far`, the one whose element is farther from float64 than rounding explains, by the largest factor; -1 if none is. An element may be `multiplier` times as
 * far as the reference is there, or usually is, or as it gets with inputs moved by a few units in the last place: the reference may be exact by luck.
 */
export function unexplained(
  far: readonly number[],
  res: Elements,
  expected: Expected,
  dtype: DType,
  multiplier: number,
  { tol, scaled = false }: Tolerance,
): number {
  const { ref, fp64 } = expected
  const exact = fp64 ?? ref
  const noise = noiseOf(expected)
  const floor = (tol / 10) * unitOf(exact, scaled) + (dtypeInfo[dtype].floating ? ROUNDINGS * finfo(dtype).eps * rootMeanSquare(exact) : 0)
  let [worst, factor] = [-1, 1]
  for (const i of far) {
    const off = Math.abs(at(res, i) - wantedAt(expected, i)) / (multiplier * noise(i) + floor)
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

/** How many times the movement that runs show is allowed: an implementation rounds more often than once. */
export const MARGIN = 8

/** What is known of the rounding of a result. */
export interface Explained {
  /** The same computation in the dtype of the result. Default: what is wanted. */
  readonly eager?: Tensor
  /** An absolute difference that rounding explains in any element. Default 0. */
  readonly slack?: number
  /** Runs that rounding has moved, as in {@link Expected}. An element may be {@link MARGIN} times as far as they are. Default none. */
  readonly others?: readonly Tensor[]
  /** Results that are as right as what is wanted, element by element. Default none. */
  readonly alternatives?: readonly Tensor[]
}

/**
 * The greatest difference of two tensors of one shape, relative to 1 plus the value; for a tensor of small values relative to their size instead of 1. Infinity for a NaN or an infinity that is
 * {@link misplaced}. What rounding explains stays below the tolerance. For integers and bools, the greatest difference of one that {@link isOutside}.
 */
export function errorOf(want: Tensor, got: Tensor, tol: number, { eager = want, slack = 0, others = [], alternatives = [] }: Explained = {}): number {
  const { floating } = dtypeInfo[got.dtype]
  if (!floating && !dtypeInfo[want.dtype].floating) return exactError(got, [want, eager, ...others, ...alternatives])
  const [res, wide] = [elementsOf(got), elementsOf(want)]
  const [moved, exact] = [others.map(elementsOf), alternatives.map(elementsOf)]
  const expected: Expected = { ref: elementsOf(eager), fp64: wide, others: [...moved, ...exact] }
  if (misplaced(res, expected, got.dtype, true) >= 0) return Infinity
  const unit = Math.min(1, rootMeanSquare(wide))
  const fixed = slack + (floating ? flushedBelow(got.dtype) : 0)
  const noise = moved.length === 0 ? () => 0 : noiseOf({ ...expected, others: moved })
  let greatest = 0
  for (let i = 0; i < res.length; i++) {
    const wanted = wantedAt(expected, i)
    let difference = Math.abs(wanted - at(res, i))
    for (const other of exact) {
      const apart = Math.abs(at(other, i) - at(res, i))
      if (apart < difference) difference = apart
    }
    // Equal, or a NaN or an infinity that is in its place.
    if (difference === 0 || !Number.isFinite(difference)) continue
    const relative = difference / (unit + Math.abs(wanted))
    // What rounding explains is shown, but is never more than half of the tolerance.
    greatest = Math.max(greatest, difference > fixed + MARGIN * noise(i) ? relative : Math.min(relative, tol / 2))
  }
  return greatest
}

/** Some processors, and WebGPU, flush what is smaller to zero. float16 is computed in float32, which has its small values. */
function flushedBelow(dtype: DType): number {
  const { tiny, eps } = finfo(dtype)
  return dtype === 'float16' ? tiny * eps : tiny
}

function exactError(got: Tensor, runs: readonly Tensor[]): number {
  const res = exactElements(got)
  const known = runs.map((run) => exactElements(run))
  let greatest = 0
  for (let i = 0; i < res.length; i++)
    // Beyond 2^53 two different integers may be one number.
    if (isOutside(res, known, i)) greatest = Math.max(greatest, 1, Math.abs(Number(res[i]) - Number(known[0]?.[i])))
  return greatest
}
