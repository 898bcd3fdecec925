// One short run of fuzz:heap. What it finds becomes a test of its own.
import { expect, test } from 'vitest'
import { fuzzHeapMany, heapApi } from '../../scripts/fuzz/heap.mjs'
import { isFull, rotation } from '../helpers/rotation.ts'

/** All 300, or a tenth of them, another one each day. */
const COUNT = isFull ? 300 : 30
const FIRST = isFull ? 1 : 1 + COUNT * (rotation % 10)

test(`${COUNT} random programs of tensors, views, writes, disposals and failing allocations agree with the model, and leave nothing`, async () => {
  const entries: Readonly<Record<string, () => Promise<unknown>>> = {
    tensorfx: () => import('tensorfx'),
    compile: () => import('tensorfx/compile'),
    kernels: () => import('tensorfx/kernels'),
  }
  const api = await heapApi((entry) => entries[entry]?.() ?? Promise.reject(new Error(entry)))
  const { before, after } = await fuzzHeapMany(api, COUNT, FIRST)
  expect(after).toBeLessThanOrEqual(before + 300_000)
}, 600_000)
