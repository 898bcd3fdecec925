// DistributedSampler: the rules of PyTorch's, with this library's random orders.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { DistributedSampler } from 'tensorfx/distributed'

const all = (size: number, numReplicas: number, options: object = {}, epoch = 0): number[][] =>
  Array.from({ length: numReplicas }, (_, rank) => {
    const sampler = new DistributedSampler(size, { numReplicas, rank, ...options })
    sampler.setEpoch(epoch)
    expect([...sampler]).toHaveLength(sampler.length)
    return [...sampler]
  })

test('without shuffling rank r takes r, r + W, …; the list is filled up from its start, or cut', () => {
  expect(all(10, 4, { shuffle: false })).toEqual([
    [0, 4, 8],
    [1, 5, 9],
    [2, 6, 0],
    [3, 7, 1],
  ])
  expect(all(10, 4, { shuffle: false, dropLast: true })).toEqual([
    [0, 4],
    [1, 5],
    [2, 6],
    [3, 7],
  ])
  expect(all(1, 3, { shuffle: false })).toEqual([[0], [0], [0]])
  expect(all(0, 2)).toEqual([[], []])
})

test('ranks have equally many samples, together all of them, in an order of the epoch and the seed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 7 }), fc.nat(5), fc.nat(100), (size, replicas, epoch, seed) => {
      const parts = all(size, replicas, { seed }, epoch)
      expect(new Set(parts.map(({ length }) => length)).size).toBe(1)
      expect(new Set(parts.flat())).toEqual(new Set(Array.from({ length: size }, (_, i) => i)))
      expect(all(size, replicas, { seed }, epoch)).toEqual(parts)
    }),
    { numRuns: 30 },
  )
  expect(all(100, 2, {}, 1)).not.toEqual(all(100, 2, {}, 2))
  expect(all(100, 2, { seed: 1 })).toEqual(all(100, 2, {}, 1))
})

test('refuses impossible ranks and data sets', () => {
  expect(() => new DistributedSampler(10, { numReplicas: 2, rank: 2 })).toThrow('Invalid rank 2, rank should be in the interval [0, 1]')
  expect(() => new DistributedSampler(10, { numReplicas: 2, rank: -1 })).toThrow('Invalid rank -1, rank should be in the interval [0, 1]')
  expect(() => new DistributedSampler(1.5, { numReplicas: 2, rank: 0 })).toThrow(/dataset must be a number of samples/)
  expect(() => new DistributedSampler(10, { numReplicas: 0, rank: 0 })).toThrow(/numReplicas must be a positive integer/)
  expect(() => new DistributedSampler(10, { numReplicas: 2, rank: 0 }).setEpoch(-1)).toThrow(/epoch must be a non-negative integer/)
  expect(new DistributedSampler([7, 8, 9], { numReplicas: 1, rank: 0 }).length).toBe(3)
})
