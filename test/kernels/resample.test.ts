// Which resizings of lines have kernels of their own, and how large these are. What they compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { kernelsOf } from '../../src/kernels/schedules/resampleGroups.ts'
import type { LineParts } from '../../src/kernels/schedules/resampleGroups.ts'
import { resample } from '../../src/kernels/schedules/resample.ts'
import { drawResampling } from './problems/resample.ts'

describe('lines of another length', () => {
  test('repeat themselves often enough for the loop over repetitions to be tested', () => {
    let repeated = 0
    for (let i = 0; i < 200; i++) {
      const drawn = drawResampling(randomFrom(i))
      if (drawn !== null && resample.match(drawn.problem) && resample.spec(drawn.problem).period !== null) repeated++
    }
    expect(repeated).toBeGreaterThan(10)
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
