// Drawn collectives on worlds of two to four ranks, and on MPI as if half of the ranks were on another machine. TENSORFX_COLLECTIVES_SEED=2 draws others.
import { drawnCollectivesSuite } from './suites/drawnCollectives.ts'
import { SEVERAL_NODES, describeWorld, worlds } from './worlds.ts'

for (const kind of worlds) for (const size of [2, 3, 4]) describeWorld(kind, size, [drawnCollectivesSuite], ['drawnCollectives'])
for (const size of [2, 4]) describeWorld('mpi', size, [drawnCollectivesSuite], ['drawnCollectives'], SEVERAL_NODES)
