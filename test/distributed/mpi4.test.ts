// All that is tested on 4 ranks of the MPI world.
import { goldenSuites } from './suites/all.ts'
import { describeWorld } from './worlds.ts'

describeWorld('mpi', 4, goldenSuites)
