// Lines of another length and images of such lines, against sums of their parts one by one, for every tile and both engines.
import { describe, expect, test } from 'vitest'
import { withStrict } from '../../src/kernels/engine.ts'
import { kernelsOf, weightsInGroups, rowsInBlocks } from '../../src/kernels/schedules/resampleGroups.ts'
import type { LineParts } from '../../src/kernels/schedules/resampleGroups.ts'
import { resample } from '../../src/kernels/schedules/resample.ts'
import type { Resampling } from '../../src/kernels/schedules/resample.ts'
import { numbersOf, runBoth } from './harness.ts'

let state = 5
const random = (below: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0]
const LENGTHS = [4, 5, 7, 8, 11, 13, 16, 17, 24, 31, 48, 97] as const

/** A line as interpolate makes them, with places that ascend by a ratio, or one whose places jump. */
function drawLine(lengths: readonly [number, ...number[]] = LENGTHS, most = 4): LineParts {
  const [size, taps, shift, ratio] = [pick(lengths), pick([1, 2, 2, most]), pick([0, 0.5, -0.3]), pick([0, 0, 2, 1.5, 0.75])]
  const out = ratio > 0 && size > 30 ? Math.floor(size * ratio) : pick(lengths)
  const jumps = ratio === 0 && random(3) === 0
  const positions = Int32Array.from({ length: taps * out }, (_, entry) => {
    const place = Math.floor(((entry % out) + shift) * (size / out)) + Math.floor(entry / out)
    return Math.min(Math.max(jumps ? place + random(3) : place, 0), size - 1)
  })
  return { size, out, taps, positions, weights: random(4) === 0 ? null : Float64Array.from({ length: taps * out }, () => random(9) / 4 - 1) }
}

const special = [NaN, Infinity, -Infinity, -0, 1e-45, 3e38]
const values = (count: number): Float32Array =>
  Float32Array.from({ length: count }, () => (random(40) === 0 ? (special[random(6)] ?? 0) : random(1000) / 128 - 4))

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

const floats = (name: string, weights: Float64Array | null): Record<string, Float32Array> =>
  weights === null ? {} : { [name]: Float32Array.from(weights) }

describe('lines of another length', () => {
  test('are the sums of their parts, of lines and of images, for every tile and both engines', () => {
    const problems = Number(process.env['TENSORFX_FUZZ'] ?? 40)
    let repeated = 0
    let matched = 0
    for (let i = 0; i < problems; i++) {
      const line = drawLine()
      const kind = pick(['lines', 'lines', 'rows first', 'rows last'] as const)
      const rows = drawLine([2, 3, 5, 8], kind === 'rows first' ? 2 : 3)
      const lines = kind === 'rows first' ? rows.out : kind === 'lines' ? pick([1, 2, 3, 5]) : rows.size
      const parts = kernelsOf(line, kind === 'rows last')
      const problem: Omit<Resampling, 'groups'> = {
        line,
        rows: kind === 'lines' ? null : { taps: rows.taps, weighted: rows.weights !== null, first: kind === 'rows first' },
        together: Math.min(lines, pick([1, 2, 3])),
      }
      if (parts === null || !parts.every((groups) => resample.match({ ...problem, groups }))) continue
      matched++
      const images = pick([0, 1, 2])
      const a = values(kind === 'lines' ? lines * line.size : images * rows.size * line.size)
      const expected =
        kind === 'lines'
          ? summed(a, line, 1)
          : kind === 'rows first'
            ? summed(summed(a, rows, line.size), line, 1)
            : summed(summed(a, line, 1), rows, line.out)
      const block = kind === 'rows first' ? problem.together : 1
      const args = {
        out: new Float32Array(expected.length),
        a,
        ...floats('weights', weightsInGroups(line)),
        positions: rowsInBlocks(rows, rows.positions, block),
        ...floats('row_weights', rows.weights === null ? null : rowsInBlocks(rows, rows.weights, block)),
        lines,
        images,
        rows: rows.size,
        out_rows: rows.out,
      }
      const tiles = resample.tiles('wasm')
      const tile = tiles[i % tiles.length]
      if (tile === undefined) throw new Error('a schedule has tiles')
      for (const groups of parts) {
        const spec = resample.spec({ ...problem, groups })
        if (spec.period !== null) repeated++
        const { wasm, oracle } = withStrict(i % 4 < 2, () => runBoth(resample.build(spec, tile), args))
        const what = `problem ${i}: ${kind}, ${line.size} to ${line.out} by ${line.taps}`
        const [start, end] = groups.map((group) => 4 * group)
        const made = (_: unknown, at: number): boolean => at % line.out >= (start ?? 0) && at % line.out < (end ?? 0)
        expect([...numbersOf('float32', wasm['out'])].filter(made), what).toEqual(Array.from(expected).filter(made))
        expect(oracle['out'], what).toEqual(wasm['out'])
      }
    }
    expect(matched).toBeGreaterThan(problems / 2)
    expect(repeated).toBeGreaterThan(problems / 20)
  })

  const lineOf = (size: number, out: number, place: (k: number) => number): LineParts => ({
    size,
    out,
    taps: 1,
    positions: Int32Array.from({ length: out }, (_, k) => place(k)),
    weights: null,
  })
  const bytes = (line: LineParts): number => {
    const [groups = [0, 0] as const] = kernelsOf(line, false) ?? []
    const [tile] = resample.tiles('wasm')
    if (tile === undefined) throw new Error('a schedule has tiles')
    return JSON.stringify(resample.build(resample.spec({ line, groups, rows: null, together: 1 }), tile)).length
  }

  test('that repeat themselves take a kernel of the same size, however long they are; others take more kernels, up to a limit', () => {
    const doubled = (size: number): LineParts => lineOf(size, 2 * size, (k) => k >> 1)
    expect(bytes(doubled(4000)) / bytes(doubled(400))).toBeCloseTo(1, 1)
    const odd = (out: number): LineParts => lineOf(2 * out, out, (k) => Math.floor(k * 1.618033988749895))
    expect(kernelsOf(odd(600), false)).toEqual([
      [0, 64],
      [64, 128],
      [128, 150],
    ])
    expect([kernelsOf(odd(600), true), kernelsOf(odd(5000), false), kernelsOf(doubled(2 ** 16), false)]).toEqual([null, null, null])
  })

  test('of fewer than four elements, or whose neighbours are far from each other, are left to other kernels', () => {
    const matches = (line: LineParts): boolean => resample.match({ line, groups: [0, 1], rows: null, together: 1 })
    expect([matches(lineOf(4, 4, (k) => k)), matches(lineOf(3, 4, () => 0)), matches(lineOf(4, 3, () => 0))]).toEqual([true, false, false])
    const far: LineParts = { size: 99, out: 4, taps: 4, positions: Int32Array.from({ length: 16 }, (_, i) => i * 6), weights: null }
    expect(matches(far)).toBe(false)
  })
})
