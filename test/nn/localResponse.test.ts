// CrossMapLRN2d.
import { expect, test } from 'vitest'
import { nn } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detInput } from '../helpers/deterministic.ts'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)

test('CrossMapLRN2d counts the first channel in every later window, as PyTorch does', () => {
  const x = detInput([1, 5, 1, 2], 10)
  const layer = new nn.CrossMapLRN2d(3, { alpha: 0.6, beta: 1, k: 2 })
  const squares = values(x).map((v) => v * v)
  const expected = values(x).map((v, i) => {
    const [channel, at] = [i >> 1, i & 1]
    const window = [channel - 1, channel, channel + 1, ...(channel >= 2 ? [0] : [])].filter((c) => c >= 0 && c < 5)
    return v / (2 + (0.6 / 3) * window.reduce((sum, c) => sum + (squares[2 * c + at] ?? 0), 0))
  })
  values(layer(x)).forEach((v, i) => expect(v).toBeCloseTo(expected[i] ?? NaN, 6))
})
