// A rank of `tensorfx run` that is a process: runs the program, whose end is watched from the start on.
import { lastWords, watchRank } from '../../distributed/failures/watch.ts'
import { runProgram } from './program.ts'
import { launchedRank } from './launched.ts'

const [, , file = '', ...words] = process.argv
watchRank({ ...launchedRank(), fail: (failure) => lastWords(failure, {}), leave: () => {} })
await runProgram(file, words)
