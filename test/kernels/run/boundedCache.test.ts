// The caches of kernels are bounded, and what is in use is not lost with them.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { cacheSizes } from 'tensorfx/kernels'
import { BoundedCache, kernelsByCall, kernelsByLiterals, kernelsByText } from '../../../src/kernels/run/boundedCache.ts'

describe('a cache of 100 bytes', () => {
  it('never holds more, and drops what was not used for the longest time', () => {
    const cache = new BoundedCache<number>('test', 100)
    for (let i = 0; i < 1000; i++) {
      cache.set(`k${i}`, i, 10)
      expect(cache.get('k0') ?? 0).toBe(0)
      expect(cache.size.bytes).toBeLessThanOrEqual(100)
      expect(cache.size.bytes).toBe(cache.size.entries * 10)
    }
    // Used at every step.
    expect(cache.get('k0')).toBe(0)
    expect(cache.get('k1')).toBeUndefined()
    expect(cache.get('k999')).toBe(999)
    expect(cache.get('k996')).toBe(996)
  })

  it('keeps everything that fits into half of it', () => {
    const cache = new BoundedCache<number>('test', 100)
    for (let i = 0; i < 5; i++) cache.set(`k${i}`, i, 10)
    for (let round = 0; round < 50; round++) for (let i = 0; i < 5; i++) expect(cache.get(`k${i}`)).toBe(i)
    expect(cache.size).toEqual({ name: 'test', entries: 5, bytes: 50, limit: 100 })
  })

  it('holds one entry that is larger than all of it', () => {
    const cache = new BoundedCache<string>('test', 100)
    cache.set('small', 'a', 10)
    cache.set('large', 'b', 1000)
    expect(cache.get('large')).toBe('b')
    cache.set('next', 'c', 10)
    cache.set('last', 'd', 45)
    expect(cache.get('large')).toBeUndefined()
    expect(cache.size.bytes).toBeLessThanOrEqual(100)
  })
})

describe('the caches of kernels', () => {
  const caches = [kernelsByText, kernelsByCall, kernelsByLiterals]
  const limits = caches.map((cache) => cache.size.limit)
  afterEach(() => caches.forEach((cache, i) => cache.setLimit(limits[i] ?? 0)))
  const limitAll = (bytes: number): void => caches.forEach((cache) => void cache.setLimit(bytes))
  const LIMIT = 2 ** 20

  const x = torch.arange(8, { dtype: 'float32' })
  const scaled = (factor: number): ((x: Tensor) => Tensor) => compile((t: Tensor) => torch.sin(t).mul(factor))

  it('stay below their limit while functions are compiled and dropped; a function that is kept still runs', () => {
    limitAll(LIMIT)
    const kept = scaled(2)
    const before = kept(x).toArray()
    for (let i = 0; i < 150; i++) {
      scaled(3 + i / 7)(x)
      expect(kernelsByText.size.bytes).toBeLessThanOrEqual(LIMIT)
    }
    expect(kernelsByText.size.entries).toBeLessThan(60)
    expect(kept(x).toArray()).toEqual(before)
    // Compiled again, since the cache has dropped it.
    expect(scaled(2)(x).toArray()).toEqual(before)
  })

  it('stay below their limit while eager calls build arguments into kernels', () => {
    limitAll(LIMIT)
    const grid = torch.arange(16, { dtype: 'float32' }).reshape([4, 4])
    for (let i = 0; i < 150; i++) {
      const exponent = 2 + i / 7
      torch.pow(x, exponent)
      torch.clamp(x, 0, exponent)
      torch.pow(grid.t(), exponent)
    }
    for (const cache of caches) expect(cache.size.bytes).toBeLessThanOrEqual(LIMIT)
    expect(torch.pow(x, 2).toArray()).toEqual([0, 1, 4, 9, 16, 25, 36, 49])
  })

  it('tell their sizes', () => {
    torch.pow(x, 2)
    torch.softmax(x, 0)
    x.sum()
    scaled(5)(x)
    const sizes = cacheSizes()
    expect(sizes.map(({ name }) => name)).toEqual(['kernels', 'eager calls', 'eager calls with literals'])
    for (const { entries, bytes, limit } of sizes) {
      expect(entries).toBeGreaterThan(0)
      expect(bytes).toBeGreaterThanOrEqual(entries * 20_000)
      expect(limit).toBeGreaterThanOrEqual(2 ** 24)
    }
  })
})
