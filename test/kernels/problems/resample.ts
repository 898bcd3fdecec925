// Random resizings of lines and of images with their results: places that ascend by a ratio or jump, weights, rows above each other before or after the lines.
import type { Random } from '../../../scripts/fuzz/random.mjs'
import { resample, resamplingsOf } from '../../../src/kernels/schedules/resample.ts'
import type { Resampling } from '../../../src/kernels/schedules/resample.ts'
import { rowsInBlocks, weightsInGroups } from '../../../src/kernels/schedules/resampleGroups.ts'
import type { LineParts } from '../../../src/kernels/schedules/resampleGroups.ts'
import { loopTables, windowsOf } from '../../../src/kernels/schedules/resampleWindows.ts'
import { builtWith, floats, untilTaken } from './problem.ts'
import type { DrawProblem } from './problem.ts'

const LENGTHS = [4, 5, 7, 8, 11, 13, 16, 17, 24, 31, 48, 97] as const

/** A line as interpolate makes them, with places that ascend by a ratio, or one whose places jump. */
function drawLine({ pick, int }: Random, lengths: readonly number[] = LENGTHS, most = 4): LineParts {
  const [size, taps, shift, ratio] = [pick(lengths), pick([1, 2, 2, most]), pick([0, 0.5, -0.3]), pick([0, 0, 2, 1.5, 0.75])]
  const out = ratio > 0 && size > 30 ? Math.floor(size * ratio) : pick(lengths)
  const jumps = ratio === 0 && int(3) === 0
  const positions = Int32Array.from({ length: taps * out }, (_, entry) => {
    const place = Math.floor(((entry % out) + shift) * (size / out)) + Math.floor(entry / out)
    return Math.min(Math.max(jumps ? place + int(3) : place, 0), size - 1)
  })
  return { size, out, taps, positions, weights: int(4) === 0 ? null : Float64Array.from({ length: taps * out }, () => int(9) / 4 - 1) }
}

/** The lines of `a` along an axis whose elements are `inner` apart, one part after the other, rounded to float32 after each step. */
function summed(a: Float32Array, { size, out, taps, positions, weights }: LineParts, inner: number): Float32Array {
  const outer = a.length / size / inner
  return Float32Array.from({ length: outer * out * inner }, (_, i) => {
    const [o, k, j] = [Math.floor(i / inner / out), Math.floor(i / inner) % out, i % inner]
    let sum = 0
    for (let t = 0; t < taps; t++) {
      const value = a[(o * size + (positions[t * out + k] ?? 0)) * inner + j] ?? NaN
      const part = weights === null ? value : Math.fround(value * Math.fround(weights[t * out + k] ?? NaN))
      sum = t === 0 ? part : Math.fround(sum + part)
    }
    return sum
  })
}

/**
 * A resizing: its sizes, whether there are rows, and one of the kernels that it takes, or one with its groups in a loop where they may also be; null where it is left to
 * other kernels.
 */
export function drawResampling(random: Random) {
  const { pick } = random
  const line = drawLine(random)
  const kind = pick(['lines', 'lines', 'rows first', 'rows last'] as const)
  const rows = drawLine(random, [2, 3, 5, 8], kind === 'rows first' ? 2 : 3)
  const lines = kind === 'rows first' ? rows.out : kind === 'lines' ? pick([1, 2, 3, 5]) : rows.size
  const above = kind === 'lines' ? null : { taps: rows.taps, weighted: rows.weights !== null, first: kind === 'rows first' }
  const taken = resamplingsOf(line, above, lines)
  if (taken === null) return null
  const given = pick(taken)
  const isLoop = windowsOf(line) !== null && random.chance(1 / 3)
  const problem: Resampling = isLoop
    ? { line, groups: 'loop', rows: above, together: Math.min(lines, pick([1, 2, 3, 4])) }
    : { ...given, together: Math.min(given.together, pick([1, 2, 4])) }
  return { problem, line, kind, rows, lines }
}

const SPECIAL = [NaN, Infinity, -Infinity, -0, 1e-45, 3e38]

export const resampleProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const { int, pick, chance } = random
    const drawn = drawResampling(random)
    if (drawn === null) return null
    const { problem, line, kind, rows, lines } = drawn
    const images = pick([0, 1, 2])
    const count = kind === 'lines' ? lines * line.size : images * rows.size * line.size
    const a = floats(count, () => (chance(1 / 40) ? pick(SPECIAL) : int(1000) / 128 - 4))
    const whole =
      kind === 'lines'
        ? summed(a, line, 1)
        : kind === 'rows first'
          ? summed(summed(a, rows, line.size), line, 1)
          : summed(summed(a, line, 1), rows, line.out)
    // The kernel makes some groups of four elements of each line; the others stay as they were.
    const { groups } = problem
    const [start, end] = groups === 'loop' ? [0, line.out] : groups
    const expected = whole.map((value, at) => (at % line.out >= 4 * start && at % line.out < 4 * end ? value : 0))
    const block = kind === 'rows first' ? problem.together : 1
    const [weights, rowWeights] = [weightsInGroups(line), rows.weights === null ? null : rowsInBlocks(rows, rows.weights, block)]
    const windows = groups === 'loop' ? windowsOf(line) : null
    const [starts, chosen] = windows === null ? [] : loopTables(line, windows)
    const inLoop =
      starts === undefined || chosen === undefined ? {} : { starts, chosen, groups: Math.ceil(line.out / 4), size: line.size, length: line.out }
    const args = {
      ...inLoop,
      ...{ out: new Float32Array(expected.length), a, positions: rowsInBlocks(rows, rows.positions, block) },
      ...(weights === null ? {} : { weights: Float32Array.from(weights) }),
      ...(rowWeights === null ? {} : { row_weights: Float32Array.from(rowWeights) }),
      ...{ lines, images, rows: rows.size, out_rows: rows.out },
    }
    const what = `${kind}, ${line.size} to ${line.out} by ${line.taps}, groups ${groups === 'loop' ? 'in a loop' : `${start} to ${end}`}`
    return { what, args, expected: { out: expected }, kernels: builtWith(resample, problem) }
  })
