// The suites that look at what the ranks of a world have found.
import type { World } from '../worlds.ts'
import { collectivesSuite } from './collectives.ts'
import { ddpSuite } from './ddp.ts'
import { fsdpSuite } from './fsdp.ts'
import { fsdpApiSuite } from './fsdpApi.ts'
import { fullyShardSuite } from './fullyShard.ts'

export const goldenSuites: readonly ((world: World) => void)[] = [collectivesSuite, ddpSuite, fsdpSuite, fsdpApiSuite, fullyShardSuite]
