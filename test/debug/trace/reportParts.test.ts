// Parts of the page of a run: which stages are shown as differences, and how fast kernels are.
import { describe, expect, it } from 'vitest'
import type { KernelFacts, Stage } from '../../../src/debug/report/data.ts'
import { speedOf } from '../../../src/debug/report/page/kernelTable.ts'
import { linesOf } from '../../../src/debug/report/page/stages.ts'
import { timeText } from '../../../src/protocol/timeText.ts'

const stage = (texts: readonly number[], before: number): Stage => ({ title: '', note: '', lines: texts.map((text) => [text, -1]), before })

describe('stages', () => {
  it('are shown as the difference from the one before', () => {
    const { lines, isDiff } = linesOf([stage([1, 2, 3, 4], -1), stage([1, 3, 5, 4], 0)], 1)
    expect(isDiff).toBe(true)
    expect(lines.map(({ line: [text], change }) => `${change[0] ?? ' '}${text}`)).toEqual([' 1', 'r2', ' 3', 'a5', ' 4'])
  })

  it('are shown as they are if they are the first, or in other words', () => {
    const stages = [stage([1, 2, 3, 4, 5, 6], -1), stage([7, 8, 9, 10, 11, 1], 0)]
    expect([linesOf(stages, 0).isDiff, linesOf(stages, 1).isDiff]).toEqual([false, false])
    expect(linesOf(stages, 1).lines.length).toBe(6)
  })
})

describe('speeds of kernels', () => {
  const kernel: KernelFacts = {
    name: 'k',
    type: 'loops',
    engine: 'wasm',
    places: [],
    text: 0,
    isCached: false,
    compileMilliseconds: 1,
    runs: 3,
    milliseconds: 9,
    least: 2,
    flops: 4e6,
    bytes: 8e6,
  }

  it('count the fastest run, against the peak that limits the kernel', () => {
    // 4e6 operations and 8e6 bytes in 2 ms.
    expect(speedOf(kernel, { gflops: 20, gigabytesPerSecond: 8 })).toEqual({ gflops: 2, gigabytesPerSecond: 4, share: 0.5 })
    expect(speedOf(kernel, { gflops: 2.5, gigabytesPerSecond: 8 }).share).toBe(0.8)
  })

  it('are unknown of kernels that did not run, and without a peak', () => {
    expect(speedOf({ ...kernel, runs: 0, least: 0 }, null)).toEqual({ gflops: null, gigabytesPerSecond: null, share: null })
    expect(speedOf({ ...kernel, flops: null }, null)).toEqual({ gflops: null, gigabytesPerSecond: 4, share: null })
  })
})

it('times are short', () => {
  expect([0.0123, 0.5, 4.56, 45.67, 123.4, 1234, 12_345].map(timeText)).toEqual([
    '12.3 µs',
    '500 µs',
    '4.56 ms',
    '45.7 ms',
    '123 ms',
    '1.23 s',
    '12.3 s',
  ])
})
