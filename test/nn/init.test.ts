// Initial values that keep a promise: orthogonal, within bounds, sparse.
import { describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const values = (t: unknown): number[] => Array.from((t as Tensor).detach().contiguous().toTypedArray(), Number)

describe('initial values', () => {
  test('orthogonal_ gives orthonormal rows or columns', () => {
    const wide = nn.init.orthogonal_(torch.empty([3, 5]))
    values(wide.matmul(wide.t())).forEach((v, i) => expect(v).toBeCloseTo(i % 4 === 0 ? 1 : 0, 5))
    const tall = nn.init.orthogonal_(torch.empty([5, 3]), 2)
    values(tall.t().matmul(tall)).forEach((v, i) => expect(v).toBeCloseTo(i % 4 === 0 ? 4 : 0, 5))
  })

  test('truncNormal_ stays within its bounds, and is normal in between', () => {
    torch.manualSeed(0)
    const x = nn.init.truncNormal_(torch.empty([4000]), { mean: 1, std: 2, a: 0, b: 4 })
    const all = values(x)
    expect([Math.min(...all) >= 0, Math.max(...all) <= 4]).toEqual([true, true])
    // The mean of the normal distribution with mean 1 and deviation 2 between 0 and 4.
    expect(all.reduce((a, b) => a + b, 0) / 4000).toBeCloseTo(1.71, 1)
  })

  test('sparse_ leaves that part of each column zero', () => {
    const x = nn.init.sparse_(torch.empty([10, 4]), 0.3)
    expect(x.eq(0).sum(0).toArray()).toEqual([3, 3, 3, 3])
  })
})
