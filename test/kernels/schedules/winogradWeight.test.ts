// Which gradients of weights are computed by Winograd's algorithm. What the kernels compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { takesWinogradWeight } from '../../../src/kernels/schedules/winogradWeight.ts'
import { sizesOf } from '../problems/convolutionSizes.ts'

describe("the gradient of a convolution's weight by F(2,3)", () => {
  test('is taken where the convolution is, of weights whose sums stay in the cache', () => {
    expect(takesWinogradWeight(sizesOf({}))).toBe(true)
    expect(takesWinogradWeight(sizesOf({ channels: 256, features: 256 }))).toBe(true)
    for (const other of [{ channels: 257, features: 256 }, { strideH: 2 }, { channels: 15 }])
      expect(takesWinogradWeight(sizesOf(other)), JSON.stringify(other)).toBe(false)
  })
})
