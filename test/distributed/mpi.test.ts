// All that is tested in the MPI world: on 2 and on 4 ranks, and on 2 as if each were on a machine of its own. One of them each day.
import { turn } from '../helpers/rotation.ts'
import { goldenSuites } from './suites/all.ts'
import { SCENARIOS, SEVERAL_NODES, describeWorld } from './worlds.ts'

for (const [size, env] of turn([[2, {}] as const, [4, {}] as const, [2, SEVERAL_NODES] as const]))
  describeWorld('mpi', size, goldenSuites, SCENARIOS, env)
