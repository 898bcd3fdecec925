// All scenarios in one world, another one each day. What is computed from collectives does not depend on how ranks talk to each other, so in a world of the other kind only the collectives
// themselves run.
import { turn } from '../helpers/rotation.ts'
import { goldenSuites } from './suites/all.ts'
import { collectivesSuite } from './suites/collectives.ts'
import { functionalSuite } from './suites/functional.ts'
import { SCENARIOS, SEVERAL_NODES, describeWorld, worlds } from './worlds.ts'

const WORLDS = [
  ['mpi', 2, {}],
  ['threads', 4, {}],
  ['mpi', 4, {}],
  ['threads', 2, {}],
  ['mpi', 2, SEVERAL_NODES],
] as const

const whole = turn(WORLDS.filter(([kind]) => worlds.includes(kind)))
for (const [kind, size, env] of whole) describeWorld(kind, size, goldenSuites, SCENARIOS, env)

const others = WORLDS.filter(([kind]) => whole.every(([other]) => other !== kind))
for (const [kind, size, env] of turn(others)) describeWorld(kind, size, [collectivesSuite, functionalSuite], ['collectives', 'functional'], env)
