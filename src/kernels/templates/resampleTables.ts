// The tables of the kernels for lines of another length: which elements of a line four neighbours of the result are made of, and their weights.

/** The elements of a vector. */
export const LANES = 4
/**
 * The table has an entry for each part of each four elements, of this many words: bytes for the swizzle, weights, where the four elements of the line begin and where
 * those of the result go, in bytes; filled up to whole vectors.
 */
export const ENTRY = 12
/** Where they are in an entry, in bytes. */
export const [MASK, WEIGHTS, FROM, TO] = [0, 16, 32, 36]
/** An entry of a table of pairs, for each four elements, has this many words: the weights of the first parts and of the second. */
export const PAIR_ENTRY = 8

/** The parts of the elements of a line: entry t * out + k is part t of element k. `weights` is null if all are 1. */
export interface LineParts {
  readonly out: number
  readonly taps: number
  readonly positions: Int32Array
  readonly weights: Float64Array | null
}

/** The table for lines of `size` elements; null if the parts of four neighbours do not lie within four of the line. */
export function swizzleTable({ out, taps, positions, weights }: LineParts, size: number): Int32Array | null {
  if (size < LANES || out < LANES) return null
  const words = new Int32Array(Math.ceil(out / LANES) * taps * ENTRY)
  const floats = new Float32Array(words.buffer)
  const bytes = new Uint8Array(words.buffer)
  let entry = 0
  for (let group = 0; group < out; group += LANES) {
    // The last four may overlap those before.
    const first = Math.min(group, out - LANES)
    for (let t = 0; t < taps; t++, entry += ENTRY) {
      const places = Array.from(positions.subarray(t * out + first, t * out + first + LANES))
      const start = Math.min(...places, size - LANES)
      if (Math.max(...places) - start >= LANES) return null
      words[entry + FROM / 4] = 4 * start
      words[entry + TO / 4] = 4 * first
      for (const [lane, place] of places.entries()) {
        floats[entry + WEIGHTS / 4 + lane] = weights?.[t * out + first + lane] ?? 1
        for (let byte = 0; byte < 4; byte++) bytes[4 * (entry + lane) + MASK + byte] = 4 * (place - start) + byte
      }
    }
  }
  return words
}

/** The table for lines of `size` elements whose elements are made of two; null if they are not, or there are too few. */
export function pairTable({ out, taps, weights }: LineParts, size: number): Int32Array | null {
  if (size < LANES || out < LANES || taps !== 2 || weights === null) return null
  const words = new Float32Array(Math.ceil(out / LANES) * PAIR_ENTRY)
  for (let entry = 0, group = 0; group < out; group += LANES, entry += PAIR_ENTRY) {
    // The last four may overlap those before.
    const first = Math.min(group, out - LANES)
    for (let t = 0; t < taps; t++) words.set(weights.subarray(t * out + first, t * out + first + LANES), entry + LANES * t)
  }
  return new Int32Array(words.buffer)
}

/**
 * What all groups of four but the first and the last have in common where a line grows by a whole number: the place of the first element of group 1 that it is made of,
 * the step to the next group, in elements, and then for each part the four places from there. Empty if they differ, or have more than four elements together.
 */
export function commonLanes({ out, taps, positions, weights }: LineParts, size: number): readonly number[] {
  const groups = Math.ceil(out / LANES)
  const at = (group: number, t: number, lane: number): number => t * out + group * LANES + lane
  const each = Array.from({ length: taps * LANES }, (_, i) => [Math.floor(i / LANES), i % LANES] as const)
  const startOf = (group: number): number => Math.min(...each.map(([t, lane]) => positions[at(group, t, lane)] ?? 0))
  if (groups < 4) return []
  const [start, step] = [startOf(1), startOf(2) - startOf(1)]
  const lanes = each.map(([t, lane]) => (positions[at(1, t, lane)] ?? 0) - start)
  if (lanes.some((lane) => lane >= LANES)) return []
  for (let group = 1; group < groups - 1; group++) {
    const first = start + (group - 1) * step
    const isSame = each.every(
      ([t, lane], i) =>
        (positions[at(group, t, lane)] ?? 0) - first === lanes[i] && (weights === null || weights[at(group, t, lane)] === weights[at(1, t, lane)]),
    )
    if (!isSame || first + LANES > size) return []
  }
  return [start, step, ...lanes]
}

/** The table for columns: for each element and part the number of the row, and its weight. */
export function columnTable({ out, taps, positions, weights }: LineParts): Int32Array {
  const words = new Int32Array(2 * out * taps)
  const floats = new Float32Array(words.buffer)
  for (let k = 0; k < out; k++)
    for (let t = 0; t < taps; t++) {
      words[2 * (k * taps + t)] = positions[t * out + k] ?? 0
      floats[2 * (k * taps + t) + 1] = weights?.[t * out + k] ?? 1
    }
  return words
}
