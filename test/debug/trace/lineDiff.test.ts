// The difference of two lists of lines, against the longest common subsequence.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineDiff } from '../../../src/debug/report/lineDiff.ts'

/** The length of the longest common subsequence. */
function common(a: readonly string[], b: readonly string[]): number {
  let row = b.map(() => 0)
  for (const line of a) {
    const next: number[] = []
    for (const [j, other] of b.entries()) next.push(line === other ? (row[j - 1] ?? 0) + 1 : Math.max(row[j] ?? 0, next[j - 1] ?? 0))
    row = next
  }
  return row.at(-1) ?? 0
}

const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 14 })

describe('lineDiff', () => {
  it('has all lines of both in order, and as many in common as there can be', () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const diff = lineDiff(before, after)
        expect(diff.flatMap(([a]) => (a < 0 ? [] : [a]))).toEqual(before.map((_, i) => i))
        expect(diff.flatMap(([, b]) => (b < 0 ? [] : [b]))).toEqual(after.map((_, i) => i))
        const same = diff.filter(([a, b]) => a >= 0 && b >= 0)
        for (const [a, b] of same) expect(before[a]).toBe(after[b])
        expect(same.length).toBe(common(before, after))
      }),
    )
  })

  it('gives up on texts that have little in common', () => {
    const before = Array.from({ length: 3000 }, (_, i) => `a${i}`)
    const after = Array.from({ length: 3000 }, (_, i) => `b${i}`)
    expect(lineDiff(before, after).length).toBe(6000)
  })
})
