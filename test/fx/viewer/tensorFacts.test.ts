// Statistics of parameters and buffers.
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { torch, nn } from 'tensorfx'
import { BINS, statisticsOf, tensorFacts } from '../../../src/fx/viewer/tensorFacts.ts'

describe('statistics', () => {
  test('of a tensor by hand', () => {
    expect(statisticsOf([1, 2, 3, 4, 0, NaN, Infinity])).toMatchObject({ min: 0, max: 4, mean: 2, std: Math.sqrt(2), zeros: 1, special: 2 })
    expect(statisticsOf([1, 2, 3, 4, 0])?.histogram.filter((count) => count > 0)).toEqual([1, 1, 1, 1, 1])
    expect(statisticsOf([5, 5])?.histogram[BINS / 2]).toBe(2)
    expect([statisticsOf([]), statisticsOf([NaN])]).toEqual([null, null])
  })

  test('agree with operators on any values', () => {
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true, min: -1000, max: 1000 }), { minLength: 1, maxLength: 50 }), (values) => {
        const found = statisticsOf(values)
        const x = torch.tensor(values, { dtype: 'float64' })
        expect(found?.mean).toBeCloseTo(x.mean().item(), 8)
        expect(found?.std).toBeCloseTo(x.sub(x.mean()).square().mean().sqrt().item(), 6)
        expect([found?.min, found?.max]).toEqual([Math.min(...values), Math.max(...values)])
        expect(found?.histogram.reduce((sum, count) => sum + count, 0)).toBe(values.length)
      }),
      { numRuns: 50 },
    )
  })
})

describe('the facts of a tensor', () => {
  test('are its kind, shape, dtype and statistics', () => {
    expect(tensorFacts('w', new nn.Parameter(torch.tensor([[1, 3]])), true)).toMatchObject({
      name: 'w',
      kind: 'parameter',
      shape: [1, 2],
      dtype: 'float32',
      statistics: { min: 1, max: 3, mean: 2 },
    })
    expect(tensorFacts('b', torch.tensor([true, false]), true)).toMatchObject({ kind: 'buffer', dtype: 'bool', statistics: { mean: 0.5, zeros: 1 } })
    expect(tensorFacts('n', torch.tensor([3, 4], { dtype: 'int64' }), true)?.statistics).toMatchObject({ min: 3, max: 4 })
  })

  test('are without values where there are none, or they are not asked for', () => {
    expect(tensorFacts('w', torch.ones([2]), false)).toEqual({ name: 'w', kind: 'buffer', shape: [2], dtype: 'float32', statistics: null })
    expect(tensorFacts('e', torch.zeros([0, 2]), true)?.statistics).toBeNull()
    expect(tensorFacts('i', torch.tensor([9007199254740993n], { dtype: 'int64' }), true)?.statistics).toBeNull()
    expect([tensorFacts('x', 3, true), tensorFacts('x', null, true)]).toEqual([null, null])
  })
})
