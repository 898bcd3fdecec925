// The debugger's child process, which src/debug/isolate/nodeHelper.ts starts with its own process id as the argument: answers queries from its parent until its
// input ends.
import { setLogSink } from '../debug/log.ts'
import { nodeModule } from '../debug/node.ts'
import { READY, answerLine, queryReader } from '../debug/isolate/pipes.ts'
import { QueryServer } from '../debug/isolate/protocol.ts'
import { startWatchdog } from '../debug/isolate/watchdog.ts'
import { installCompile } from '../install/compile.ts'

startWatchdog(Number(process.argv[2]))
installCompile()
// The answer carries what a candidate says; the parent prints what matters.
setLogSink(() => {})
const server = new QueryServer()
const v8 = nodeModule('node:v8')
if (v8 === null) throw new Error('the child process of the debugger needs node:v8')
// What a candidate prints must not end in the middle of our line.
const print = process.stdout.write.bind(process.stdout)
print(answerLine(READY))
let queue = Promise.resolve()
process.stdin.on(
  'data',
  queryReader(v8, (query) => {
    queue = queue.then(async () => {
      print(answerLine(await server.answer(query)))
    })
  }),
)
process.stdin.on('end', () => process.exit(0))
