// One short run of fuzz:heap. What it finds becomes a test of its own.
import { expect, test } from 'vitest'
import { fuzzHeapMany, heapApi } from '../../scripts/fuzz/heap.mjs'
import { rotation } from '../helpers/rotation.ts'

test('60 random programs of tensors, views, writes, disposals and failing allocations agree with the model, and leave nothing', async () => {
  const entries: Readonly<Record<string, () => Promise<unknown>>> = {
    tensorfx: () => import('tensorfx'),
    compile: () => import('tensorfx/compile'),
    kernels: () => import('tensorfx/kernels'),
  }
  const api = await heapApi((entry) => entries[entry]?.() ?? Promise.reject(new Error(entry)))
  const { before, after } = await fuzzHeapMany(api, 60, 1 + 60 * (rotation % 10))
  expect(after).toBeLessThanOrEqual(before + 300_000)
}, 600_000)
