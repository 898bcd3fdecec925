// All that is tested on 4 ranks of the MPI world, as if two of them were on another machine.
import { goldenSuites } from './suites/all.ts'
import { SCENARIOS, SEVERAL_NODES, describeWorld } from './worlds.ts'

describeWorld('mpi', 4, goldenSuites, SCENARIOS, SEVERAL_NODES)
