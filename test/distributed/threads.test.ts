// All that is tested in the thread world: on 2 and on 4 ranks. One of them each day.
import { turn } from '../helpers/rotation.ts'
import { goldenSuites } from './suites/all.ts'
import { describeWorld } from './worlds.ts'

for (const size of turn([4, 2])) describeWorld('threads', size, goldenSuites)
