// The suites that look at what the ranks of a world have found.
import { expect, test } from 'vitest'
import { unread } from '../goldens.ts'
import type { World } from '../worlds.ts'
import { autocastSuite } from './autocast.ts'
import { checkpointFilesSuite } from './checkpointFiles.ts'
import { checkpointsSuite } from './checkpoints.ts'
import { collectivesSuite } from './collectives.ts'
import { ddpSuite } from './ddp.ts'
import { ddpHooksSuite } from './ddpHooks.ts'
import { fitSuite } from './fit.ts'
import { fsdpSuite } from './fsdp.ts'
import { fsdpApiSuite } from './fsdpApi.ts'
import { fsdpErrorsSuite } from './fsdpErrors.ts'
import { fullyShardSuite } from './fullyShard.ts'
import { functionalSuite } from './functional.ts'

/** Recordings that need no world: other files compare them. */
export const WITHOUT_WORLD = /^(layout_|ignored|shared_params|wrap_policies|debug_utils|ddp_buckets|monitored_barrier)/

/** What is not compared, and why. */
const NOT_COMPARED: Readonly<Record<string, string>> = {
  'fsdp2_api_w2: mixed_then_plain': 'an operator on a DTensor and a Tensor: parameters of fullyShard are ordinary tensors here',
  sync_batchnorm_w2: 'PyTorch refuses SyncBatchNorm without an accelerator, and there is none here',
  sync_batchnorm_w4: 'the same',
}

function allReadSuite({ size }: World): void {
  test('all that PyTorch recorded on as many ranks is compared, but for exceptions with a reason', () => {
    const missing = unread(new RegExp(`^(?!${WITHOUT_WORLD.source}).*_w${size}$`))
    expect(missing.toSorted()).toEqual(
      Object.keys(NOT_COMPARED)
        .filter((name) => name.includes(`_w${size}`))
        .toSorted(),
    )
  })
}

export const goldenSuites: readonly ((world: World) => void)[] = [
  collectivesSuite,
  functionalSuite,
  ddpSuite,
  ddpHooksSuite,
  fsdpSuite,
  fsdpApiSuite,
  fsdpErrorsSuite,
  checkpointsSuite,
  checkpointFilesSuite,
  fullyShardSuite,
  autocastSuite,
  fitSuite,
  allReadSuite,
]
