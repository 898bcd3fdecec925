// All that is tested on 2 ranks of the MPI world, as if each were on a machine of its own.
import { goldenSuites } from './suites/all.ts'
import { SCENARIOS, SEVERAL_NODES, describeWorld } from './worlds.ts'

describeWorld('mpi', 2, goldenSuites, SCENARIOS, SEVERAL_NODES)
