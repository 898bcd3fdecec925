// Windows of four neighbours of a line that hold the elements of four neighbours of a resized one, and the tables by which a loop reads them.
import { QUAD } from './notation.ts'
import { firstsOf } from './resampleGroups.ts'
import type { LineParts } from './resampleGroups.ts'

/** The first elements of the windows of the group at `first`, one for all of its elements or one for each part of them; null if its elements are further from each other. */
function startsOf({ size, out, taps, positions }: LineParts, first: number, windows: number): readonly number[] | null {
  const starts = Array.from({ length: windows }, (_, window) => {
    const parts = windows === 1 ? Array.from({ length: taps }, (__, t) => t) : [window]
    const places = parts.flatMap((t) => Array.from(positions.subarray(t * out + first, t * out + first + QUAD)))
    const start = Math.min(size - QUAD, ...places)
    return Math.max(...places) < start + QUAD ? start : -1
  })
  return starts.includes(-1) ? null : starts
}

/** How many windows hold the elements of each group of a line: one, or one for each part; null where these do not, as in most lines that shrink. */
export const windowsOf = (line: LineParts): number | null =>
  [1, line.taps].find((windows) => firstsOf(line).every((first) => startsOf(line, first, windows) !== null)) ?? null

/**
 * What the kernel reads. For each group the first elements of its windows and its own first element; and for each group and part the numbers that choose elements of the
 * window.
 */
export function loopTables(line: LineParts, windows: number): readonly [starts: Int32Array, chosen: Int32Array] {
  const { out, taps, positions } = line
  const starts: number[] = []
  const chosen: number[] = []
  for (const first of firstsOf(line)) {
    const ofGroup = startsOf(line, first, windows) ?? []
    starts.push(...ofGroup, first)
    for (let t = 0; t < taps; t++)
      for (let lane = 0; lane < QUAD; lane++) chosen.push((positions[t * out + first + lane] ?? 0) - (ofGroup[windows === 1 ? 0 : t] ?? 0))
  }
  return [Int32Array.from(starts), Int32Array.from(chosen)]
}
