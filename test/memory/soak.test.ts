// A short run of `npm run soak`: the same programs with failures and without, under a limit of 160 MiB.
import { expect, onTestFinished, test } from 'vitest'
import { compile, config, noGrad, torch } from 'tensorfx'
import { reset } from 'tensorfx/compile'
import * as kernels from 'tensorfx/kernels'
import { growth, soak } from '../../scripts/soak/soak.mjs'
import { isFull, rotation } from '../helpers/rotation.ts'

/** 24 programs, or half of them, the other half the next day. */
const COUNT = isFull ? 24 : 12
const FIRST = isFull ? 1 : 1 + COUNT * (rotation % 2)

test(`${COUNT} programs compute the same numbers while allocations fail and hooks throw, and leave no memory in use`, async () => {
  const given = config.memoryLimit
  onTestFinished(() => {
    config.memoryLimit = given
  })
  config.memoryLimit = torch.memory.memoryAllocated() + 160 * 2 ** 20
  const api = { torch, compile, config, noGrad, kernels, reset, rss: () => 0 }
  const figures = await soak(api, { seed: FIRST, goesOn: (count) => count < COUNT, every: 4 })
  expect(Object.values(figures.failures).reduce((sum, n) => sum + n, 0)).toBeGreaterThan((20 * COUNT) / 24)
  expect(growth(figures.samples, 300_000, Infinity)).toBe('')
}, 600_000)

test('growth is seen', () => {
  const grows = Array.from({ length: 9 }, (_, i) => ({ count: i, bytes: i * 1e6, reserved: 0, rss: 0, failures: 0 }))
  expect(growth(grows, 300_000, Infinity)).toContain('more bytes are in use')
  expect(
    growth(
      grows.map((sample) => ({ ...sample, bytes: 0, rss: sample.count * 1e8 })),
      300_000,
      1e7,
    ),
  ).toContain('the process has')
})
