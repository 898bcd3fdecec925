// A training program that is killed at drawn moments, also while a checkpoint is written, goes on with the same numbers. `npm run test:resume -- 100 1` does the same a hundred times.
import { expect, test } from 'vitest'
import { killAndResume } from '../../scripts/kills/resumeCampaign.mjs'

test('4 kills', { timeout: 300_000 }, async () => {
  const { findings, killed } = await killAndResume({ kills: 4, seed: 3, steps: 8 })
  expect(findings).toEqual([])
  expect(killed).toBeGreaterThanOrEqual(4)
})
