// Which resizings of lines have kernels of their own, and how large these are. What they compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import type { LineParts } from '../../../src/kernels/schedules/resampleGroups.ts'
import { printKernel } from '../../../src/kernels/ir/print.ts'
import { resample, resamplingsOf } from '../../../src/kernels/schedules/resample.ts'
import { drawResampling } from '../problems/resample.ts'

describe('lines of another length', () => {
  test('are drawn in every way: written out, repeated, in a loop over one window or one for each part', () => {
    const ways = { written: 0, repeated: 0, 'one window': 0, 'windows of parts': 0 }
    for (let i = 0; i < 200; i++) {
      const drawn = drawResampling(randomFrom(i))
      if (drawn === null || !resample.match(drawn.problem)) continue
      const { way } = resample.spec(drawn.problem)
      if (way.kind === 'loop') ways[way.windows === 1 ? 'one window' : 'windows of parts']++
      else ways[way.written.period === null ? 'written' : 'repeated']++
    }
    expect(Object.entries(ways).filter(([, times]) => times <= 10)).toEqual([])
  })

  const lineOf = (size: number, out: number, place: (k: number) => number): LineParts => ({
    size,
    out,
    taps: 1,
    positions: Int32Array.from({ length: out }, (_, k) => place(k)),
    weights: null,
  })
  const resized = (size: number, out: number): LineParts => lineOf(size, out, (k) => Math.floor((k * size) / out))
  const kernels = (line: LineParts): readonly string[] =>
    (resamplingsOf(line, null, 4) ?? []).map((problem) => printKernel(resample.build(resample.spec(problem), 'only')))

  test('that become longer share one kernel, whatever their lengths; those that repeat themselves have a kernel of the same size, however long they are', () => {
    expect(kernels(resized(101, 211))).toEqual(kernels(resized(300, 1009)))
    const [short = '', long = ''] = [400, 4000].flatMap((size) => kernels(resized(2 * size, size)))
    expect(long.length / short.length).toBeCloseTo(1, 1)
  })

  test('that become shorter and do not repeat themselves take more kernels the longer they are, up to a limit', () => {
    const odd = (out: number): LineParts => lineOf(2 * out, out, (k) => Math.floor(k * 1.618033988749895))
    const groups = (resamplingsOf(odd(600), null, 4) ?? []).map((problem) => problem.groups)
    expect(groups.length).toBeGreaterThan(1)
    expect(groups.flat().filter((end, i, all) => i > 0 && i % 2 === 0 && end !== all[i - 1])).toEqual([])
    const rows = { taps: 2, weighted: true, first: false }
    expect([resamplingsOf(odd(600), rows, 4), resamplingsOf(odd(20000), null, 4), resamplingsOf(resized(2 ** 16, 2 ** 17), null, 4)]).toEqual([
      ...[null, null, null],
    ])
  })

  test('of fewer than four elements, or whose neighbours are far from each other, are left to other kernels', () => {
    const matches = (line: LineParts): boolean => resample.match({ line, groups: [0, 1], rows: null, together: 1 })
    expect([matches(lineOf(4, 4, (k) => k)), matches(lineOf(3, 4, () => 0)), matches(lineOf(4, 3, () => 0))]).toEqual([true, false, false])
    const far: LineParts = { size: 99, out: 4, taps: 4, positions: Int32Array.from({ length: 16 }, (_, i) => i * 6), weights: null }
    expect([matches(far), resamplingsOf(far, null, 4)]).toEqual([false, null])
  })
})
