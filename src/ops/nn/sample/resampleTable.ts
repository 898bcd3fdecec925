// Which elements of a line an element of the resized one is made of, and their weights, for each mode of interpolate.

import { ArgumentError } from '../../../errors/index.ts'
import { BoundedCache } from '../../../kernels/index.ts'

/** Tables are made in JavaScript, where they take more memory than a tensor. */
export const MOST_WEIGHTS: number = 2 ** 24

/** Throws ArgumentError unless a line of `size` elements can become one of `out`. */
export function checkSizes(size: number, out: number): void {
  if ([size, out].every((n) => Number.isInteger(n) && n >= 1 && n <= MOST_WEIGHTS)) return
  throw new ArgumentError(
    `torch.nn.functional.interpolate: ${size} elements cannot become ${out}: both must be integers from 1 to ${MOST_WEIGHTS}. Leave empty tensors out.`,
  )
}

/** Memory for a table. Throws ArgumentError if it would be too large. */
function newTable(taps: number, out: number): readonly [positions: Int32Array, weights: Float64Array] {
  if (taps * out > 4 * MOST_WEIGHTS)
    throw new ArgumentError(
      `torch.nn.functional.interpolate: the table of ${out} elements with ${taps} parts each has more than ${4 * MOST_WEIGHTS} weights; choose smaller sizes.`,
    )
  return [new Int32Array(taps * out), new Float64Array(taps * out)]
}

/**
 * The elements of the `out` elements of a resized line: entry t * out + k is the t-th of element k. `weights` is null if all are 1. Where `guarded`, some have fewer
 * than `taps`, and the weights of the rest are 0.
 */
export interface ResampleTable {
  /** The length of the line. */
  readonly size: number
  readonly out: number
  readonly taps: number
  readonly positions: Int32Array
  readonly weights: Float64Array | null
  readonly guarded: boolean
}

/** Keys' cubic kernel; PyTorch's constant is -0.75, and -0.5 for antialiasing. */
function cubic(x: number, a: number): number {
  const d = Math.abs(x)
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0
}

const triangle = (x: number): number => Math.max(0, 1 - Math.abs(x))

const tables = new BoundedCache<ResampleTable>('tables of interpolate', 2 ** 22)

/** The table of {@link resampleTable}, or with `isBackward` its transpose, made once for calls with the same sizes. */
export function tableOf(isBackward: boolean, ...how: Parameters<typeof resampleTable>): ResampleTable {
  const key = `${isBackward} ${how.join(' ')}`
  const known = tables.get(key)
  if (known !== undefined) return known
  const forward = resampleTable(...how)
  const table = isBackward ? transposedTable(forward) : forward
  // An estimate, with the tables that kernels make of it. Large ones take little time next to what they are for.
  const bytes = 1000 + 40 * table.positions.length
  if (bytes < 2 ** 20) tables.set(key, table, bytes)
  return table
}

/** The elements of each element of the result: `size` is the length of the line, `out` of the result, `scale` the step in the line for one in the result. */
export function resampleTable(size: number, out: number, mode: string, scale: number, align: boolean, antialias: boolean): ResampleTable {
  checkSizes(size, out)
  if (mode === 'area')
    return spanTable(
      size,
      out,
      (i) => [Math.floor((i * size) / out), Math.ceil(((i + 1) * size) / out)],
      () => 1,
    )
  if (antialias) return antialiasTable(size, out, mode, scale)
  const inside = (position: number): number => Math.min(Math.max(position, 0), size - 1)
  if (mode === 'nearest' || mode === 'nearest-exact') {
    const shift = mode === 'nearest' ? 0 : 0.5
    const positions = Int32Array.from({ length: out }, (_, i) => inside(Math.floor(Math.fround((i + shift) * Math.fround(scale)))))
    return { size, out, taps: 1, positions, weights: null, guarded: false }
  }
  const taps = mode === 'bicubic' ? 4 : 2
  const [positions, weights] = newTable(taps, out)
  for (let i = 0; i < out; i++) {
    const place = align ? i * scale : (i + 0.5) * scale - 0.5
    const center = taps === 4 ? place : Math.max(place, 0)
    const first = Math.floor(center) - (taps === 4 ? 1 : 0)
    for (let t = 0; t < taps; t++) {
      positions[t * out + i] = inside(first + t)
      weights[t * out + i] = taps === 4 ? cubic(center - first - t, -0.75) : t === 0 ? 1 - (center - first) : center - first
    }
  }
  return { size, out, taps, positions, weights, guarded: false }
}

function antialiasTable(size: number, out: number, mode: string, scale: number): ResampleTable {
  const stretch = Math.max(scale, 1)
  const kernel = mode === 'bicubic' ? (x: number): number => cubic(x, -0.5) : triangle
  const reach = (mode === 'bicubic' ? 2 : 1) * stretch
  // With aligned corners too, as in PyTorch: only the scale is another.
  const center = (i: number): number => scale * (i + 0.5)
  return spanTable(
    size,
    out,
    (i) => [Math.max(0, Math.trunc(center(i) - reach + 0.5)), Math.min(size, Math.trunc(center(i) + reach + 0.5))],
    (i, j) => kernel((j - center(i) + 0.5) / stretch),
  )
}

/** Element i is the mean of the elements of a span, weighted. */
function spanTable(
  size: number,
  out: number,
  spanOf: (i: number) => readonly [number, number],
  weightOf: (i: number, j: number) => number,
): ResampleTable {
  const spans = Array.from({ length: out }, (_, i) => spanOf(i))
  const taps = spans.reduce((most, [start, end]) => Math.max(most, end - start), 1)
  const [positions, weights] = newTable(taps, out)
  for (const [i, [start, end]] of spans.entries()) {
    let total = 0
    for (let j = start; j < end; j++) total += weightOf(i, j)
    for (let j = start; j < end; j++) {
      positions[(j - start) * out + i] = j
      weights[(j - start) * out + i] = weightOf(i, j) / total
    }
  }
  return { size, out, taps, positions, weights, guarded: true }
}

/** The other way: of which elements of the result an element of the line is a part. */
function transposedTable({ size, out, taps, positions, weights }: ResampleTable): ResampleTable {
  const counts = new Int32Array(size)
  const isUsed = (entry: number): boolean => weights === null || weights[entry] !== 0
  positions.forEach((position, entry) => {
    if (isUsed(entry)) counts[position] = (counts[position] ?? 0) + 1
  })
  const most = counts.reduce((a, b) => Math.max(a, b), 1)
  const [back, backWeights] = newTable(most, size)
  counts.fill(0)
  for (let k = 0; k < out; k++)
    for (let t = 0; t < taps; t++) {
      const entry = t * out + k
      const position = positions[entry] ?? 0
      if (!isUsed(entry)) continue
      const count = counts[position] ?? 0
      counts[position] = count + 1
      back[count * size + position] = k
      backWeights[count * size + position] = weights?.[entry] ?? 1
    }
  return { size: out, out: size, taps: most, positions: back, weights: backWeights, guarded: true }
}
