// Drawn collectives on worlds of two to four ranks, and on MPI as if half of the ranks were on another machine: one of each kind a day. TENSORFX_COLLECTIVES_SEED=2 draws others.
import { drawnCollectivesSuite } from './suites/drawnCollectives.ts'
import { SEVERAL_NODES, describeWorld } from './worlds.ts'
import { turn } from '../helpers/rotation.ts'

for (const size of turn([2, 3, 4])) describeWorld('threads', size, [drawnCollectivesSuite], ['drawnCollectives'])
for (const [size, env] of turn([[2, {}] as const, [3, {}] as const, [4, {}] as const, [2, SEVERAL_NODES] as const, [4, SEVERAL_NODES] as const]))
  describeWorld('mpi', size, [drawnCollectivesSuite], ['drawnCollectives'], env)
