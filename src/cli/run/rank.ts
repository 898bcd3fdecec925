// A rank of `tensorfx run` that is a process: runs the program, whose end is watched from the start on.
import { boardOfJob } from '../../distributed/failures/board.ts'
import { lastWords, watchRank } from '../../distributed/failures/watch.ts'
import { runProgram } from './program.ts'
import { launchedRank } from './launched.ts'

const [, , file = '', ...words] = process.argv
const { rank, size } = launchedRank()
watchRank({
  rank,
  size,
  fail: (failure) => lastWords(failure, {}),
  // Others may wait for it in initProcessGroup.
  leave: (failure) => boardOfJob()?.leave(rank, { failure, progress: {} }),
})
await runProgram(file, words)
