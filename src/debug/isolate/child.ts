// Entry of the isolated child process: answers queries from its parent until the channel closes.
import '../../index.ts'
import { setLogSink } from '../log.ts'
import { QueryServer } from './protocol.ts'
import type { Query } from './protocol.ts'

// What a candidate says is in the answer; the parent prints what matters.
setLogSink(() => {})
const server = new QueryServer()
let queue = Promise.resolve()
process.on('message', (query) => {
  queue = queue.then(async () => {
    process.send?.(await server.answer(query as Query))
  })
})
process.on('disconnect', () => process.exit(0))
