// The debugger's child process, which src/debug/isolate/nodeHelper.ts forks: answers queries from its parent until the channel closes.
import { setLogSink } from '../debug/log.ts'
import { QueryServer } from '../debug/isolate/protocol.ts'
import type { Query } from '../debug/isolate/protocol.ts'
import { installCompile } from '../install/compile.ts'

installCompile()
// The answer carries what a candidate says; the parent prints what matters.
setLogSink(() => {})
const server = new QueryServer()
let queue = Promise.resolve()
process.on('message', (query) => {
  queue = queue.then(async () => {
    process.send?.(await server.answer(query as Query))
  })
})
process.on('disconnect', () => process.exit(0))
