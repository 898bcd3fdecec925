// All that is tested on 2 ranks of the thread world.
import { goldenSuites } from './suites/all.ts'
import { describeWorld } from './worlds.ts'

describeWorld('threads', 2, goldenSuites)
