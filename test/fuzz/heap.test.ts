// One short run of fuzz:heap. What it finds becomes a test of its own.
import { expect, test } from 'vitest'
import { fuzzHeapMany, heapApi } from '../../scripts/fuzz/heap.mjs'

test('300 random programs of tensors, views, writes, disposals and failing allocations agree with the model, and leave nothing', async () => {
  const api = await heapApi((entry) => (entry === 'kernels' ? import('tensorfx/kernels') : import('tensorfx')))
  const { before, after } = await fuzzHeapMany(api, 300, 1)
  expect(after).toBeLessThanOrEqual(before + 300_000)
}, 120_000)
