// A training program that is killed at drawn moments, in the middle of a step or while its checkpoint is written, goes on from the last whole checkpoint with the same numbers, on another
// number of ranks. `npm run test:kills -- 50 1` does the same many times.
import { expect, test } from 'vitest'
import { killAndResume } from '../../scripts/kills/campaign.mjs'
import { worlds } from './worlds.ts'
import { turn } from '../helpers/rotation.ts'

test.each(
  turn([
    ['flat', 11],
    ['rows', 23],
  ] as const),
)('%s: 3 kills', { timeout: 300_000 }, async (way, seed) => {
  const { findings, killed } = await killAndResume({ kills: 3, seed, backends: worlds, way, steps: 5 })
  expect(findings).toEqual([])
  expect(killed).toBe(3)
})
