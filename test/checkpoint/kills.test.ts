// Training programs that are killed at drawn moments, also while a checkpoint is written, go on with the same numbers: the training of another example each day, and one that two ranks divide.
// `npm run test:resume -- 100 1` kills each a hundred times.
import { expect, test } from 'vitest'
import { TRAININGS } from '../../scripts/kills/names.mjs'
import { killAndResume } from '../../scripts/kills/resumeCampaign.mjs'
import { turn } from '../helpers/rotation.ts'

test.each([...turn(TRAININGS.filter((name) => name !== 'fsdp').map((name) => [name] as const)), ['fsdp'] as const])(
  '%s: 3 kills',
  { timeout: 300_000 },
  async (training) => {
    const { findings, killed } = await killAndResume({ training, kills: 3, seed: 3, steps: 6 })
    expect(findings).toEqual([])
    expect(killed).toBeGreaterThanOrEqual(3)
  },
)
