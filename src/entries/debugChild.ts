// The debugger's child process, which src/debug/isolate/nodeHelper.ts starts with its own process id, and the file descriptor for reports, as arguments: answers queries from its parent until its
// input ends.
import { setLogSink } from '../debug/common/log.ts'
import { nodeModule } from '../debug/common/node.ts'
import { READY, answerLine, progressLine, queryReader } from '../debug/isolate/pipes.ts'
import { QueryServer } from '../debug/isolate/protocol.ts'
import { processorTime, startWatchdog } from '../debug/isolate/watchdog.ts'
import { installDefaultBackends } from '../install/backends.ts'

const [, , parent, reports] = process.argv
startWatchdog(Number(parent), reports === undefined ? null : Number(reports))
installDefaultBackends()
// The answer carries what a candidate says; the parent prints what matters.
setLogSink(() => {})
const v8 = nodeModule('node:v8')
if (v8 === null) throw new Error('the child process of the debugger needs node:v8')
// What a candidate prints must not end in the middle of our line.
const print = process.stdout.write.bind(process.stdout)
const server = new QueryServer((progress) => void print(progressLine(progress)), processorTime)
print(answerLine(READY))
let queue = Promise.resolve()
process.stdin.on(
  'data',
  queryReader(v8, (query) => {
    queue = queue.then(async () => {
      // The code generator is loaded only where it is needed. A module that registers a backend loads what it imports.
      if (query.spec.backend.split(':')[0] === 'inductor') (await import('../install/compiler.ts')).installCompiler()
      print(answerLine(await server.answer(query)))
    })
  }),
)
process.stdin.on('end', () => process.exit(0))
