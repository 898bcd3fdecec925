// Which elements of a line four neighbours of a resized one are made of, how these are loaded, and where they repeat themselves.
import { QUAD } from './notation.ts'

/**
 * The parts of the elements of a line of `size` elements that becomes one of `out`: entry t * out + k is part t of element k. `weights` is null if all are 1. There are at
 * least four elements before and after.
 */
export interface LineParts {
  readonly size: number
  readonly out: number
  readonly taps: number
  readonly positions: Int32Array
  readonly weights: Float64Array | null
}

/** Four neighbours of the result. */
export interface Group {
  /** The first of them. */
  readonly first: number
  /** The elements of the line that are loaded, in vectors: neighbours, or two pairs of neighbours. */
  readonly vectors: readonly (readonly number[])[]
  /** For each part the vector and the lane of each of the four elements. */
  readonly chosen: readonly (readonly (readonly [vector: number, lane: number])[])[]
}

/** The groups `start` to `start + count * groups` in which each number of `groups` groups is made as those before, of elements that lie `step` further. */
export interface Period {
  readonly start: number
  readonly groups: number
  readonly count: number
  readonly step: number
}

/** The first elements of the groups of four that make up the result. The last may overlap the one before. */
export const firstsOf = ({ out }: LineParts): readonly number[] =>
  Array.from({ length: Math.ceil(out / QUAD) }, (_, g) => Math.min(g * QUAD, out - QUAD))

/** The groups that make up the result. */
export const groupsOf = (line: LineParts): readonly Group[] => firstsOf(line).map((first) => groupAt(line, first))

/**
 * Which vector the elements of a part and a lane are in, best first: all in one, those of each two lanes in one, or those of each part in one. So vectors are shuffled into
 * lanes by instructions that are fast: of one vector, or two elements of one and two of another.
 */
const WAYS: readonly ((part: number, lane: number) => number)[] = [() => 0, (_, lane) => lane >> 1, (part) => part]

function groupAt(line: LineParts, first: number): Group {
  const { size, out, taps } = line
  const parts = Array.from({ length: taps }, (_, t) => Array.from(line.positions.subarray(t * out + first, t * out + first + QUAD)))
  for (const wayOf of WAYS) {
    const elements: number[][] = []
    for (const [t, positions] of parts.entries()) for (const [lane, position] of positions.entries()) (elements[wayOf(t, lane)] ??= []).push(position)
    const vectors = elements.map((positions) => vectorsOf(size, positions))
    if (vectors.every(({ length }) => length === 1)) return groupOf(first, parts, vectors.flat(), wayOf)
  }
  const vectors = vectorsOf(size, parts.flat())
  return groupOf(first, parts, vectors, (t, lane) => vectors.findIndex((elements) => elements.includes(parts[t]?.[lane] ?? 0)))
}

const groupOf = (
  first: number,
  parts: readonly (readonly number[])[],
  vectors: Group['vectors'],
  wayOf: (part: number, lane: number) => number,
): Group => ({
  first,
  vectors,
  chosen: parts.map((positions, t) => positions.map((position, lane) => [wayOf(t, lane), vectors[wayOf(t, lane)]?.indexOf(position) ?? 0] as const)),
})

/** Vectors that hold these elements, as few as there can be. */
function vectorsOf(size: number, elements: readonly number[]): readonly (readonly number[])[] {
  const pairs: number[] = []
  for (const position of elements.toSorted((a, b) => a - b)) {
    const last = pairs.at(-1)
    if (last === undefined || position > last + 1) pairs.push(Math.min(position, size - 2))
  }
  const vectors: (readonly number[])[] = []
  for (let i = 0; i < pairs.length; i += 2) {
    const [a = 0, b = a] = pairs.slice(i, i + 2)
    const start = Math.min(a, size - QUAD)
    vectors.push(b + 2 - start <= QUAD ? [start, start + 1, start + 2, start + 3] : [a, a + 1, b, b + 1])
  }
  return vectors
}

/** Groups of the line that are not part of repetitions, at most. */
const MOST_OTHERS = 16
const LONGEST_PERIOD = 16
/** The least number of groups that are worth an iteration. */
const LEAST_GROUPS = 6

/** How the groups repeat themselves; null where they do not, or not often. The first may be different. */
export function periodOf(groups: readonly Group[]): Period | null {
  for (let length = 1; length <= LONGEST_PERIOD && 2 * length < groups.length; length++) {
    const step = (groups[1 + length]?.vectors[0]?.[0] ?? 0) - (groups[1]?.vectors[0]?.[0] ?? 0)
    let end = 1 + length
    while (end < groups.length && isShifted(groups[end - length], groups[end], length * QUAD, step)) end++
    const together = length * Math.max(1, Math.ceil(LEAST_GROUPS / length))
    const count = Math.floor((end - 1) / together)
    if (count < 2 || groups.length - (count - 1) * together > MOST_OTHERS + together) continue
    return { start: 1, groups: together, count, step: (step * together) / length }
  }
  return null
}

/** Whether a group is made as another one, of elements that lie `step` further. */
function isShifted(one: Group | undefined, other: Group | undefined, first: number, step: number): boolean {
  if (one === undefined || other === undefined || other.first !== one.first + first || one.vectors.length !== other.vectors.length) return false
  const vectors = one.vectors.every((vector, v) => vector.every((element, i) => other.vectors[v]?.[i] === element + step))
  return (
    vectors &&
    one.chosen.every((places, t) => places.every(([vector, lane], i) => other.chosen[t]?.[i]?.[0] === vector && other.chosen[t]?.[i]?.[1] === lane))
  )
}

/** The weights as the kernel reads them: those of group g and part t at (g * taps + t) * 4; null where all are 1. */
export function weightsInGroups(line: LineParts): Float64Array | null {
  const { out, taps, weights } = line
  if (weights === null) return null
  const firsts = firstsOf(line)
  const table = new Float64Array(firsts.length * taps * QUAD)
  for (const [g, first] of firsts.entries()) {
    for (let t = 0; t < taps; t++) table.set(weights.subarray(t * out + first, t * out + first + QUAD), (g * taps + t) * QUAD)
  }
  return table
}

/** What belongs to rows as the kernel reads it, which makes `together` rows at a time: that of part t of row r of block b at (b * together + r) * taps + t. */
export function rowsInBlocks(line: LineParts, of: Int32Array, together: number): Int32Array
export function rowsInBlocks(line: LineParts, of: Float64Array, together: number): Float64Array
export function rowsInBlocks({ out, taps }: LineParts, of: Int32Array | Float64Array, together: number): Int32Array | Float64Array {
  const rows = Math.ceil(out / together) * together
  const table = of instanceof Int32Array ? new Int32Array(rows * taps) : new Float64Array(rows * taps)
  for (let row = 0; row < rows; row++) {
    // The last block may overlap the one before.
    const y = Math.min(row - (row % together), out - together) + (row % together)
    for (let t = 0; t < taps; t++) table[row * taps + t] = of[t * out + y] ?? 0
  }
  return table
}
