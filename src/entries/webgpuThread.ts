// The thread that has the GPU, which src/gpu/thread.ts starts: carries out requests one after the other, and wakes the thread that waits for the answer.
import { DeviceHost } from '../gpu/host.ts'
import { failureOf } from '../gpu/thread.ts'
import type { ThreadAnswer, ThreadRequest, ThreadStart } from '../gpu/thread.ts'
import { InternalError } from '../errors/index.ts'
import { workerThreads } from '../protocol/index.ts'

const threads = workerThreads<ThreadStart, ThreadAnswer, ThreadRequest>()
if (threads === null || threads.parentPort === null) throw new InternalError('the thread of the GPU was not started as a thread')
const { port, answers } = threads.workerData
const host = new DeviceHost()
Atomics.store(answers, 1, 1)

async function answerTo({ number, request }: ThreadRequest): Promise<ThreadAnswer> {
  try {
    return { number, ok: true, answer: await host.answer(request) }
  } catch (error) {
    return { number, ok: false, failure: failureOf(error) }
  }
}

const { parentPort } = threads
parentPort.on('message', (asked) => {
  void answerTo(asked).then((answer) => {
    if (asked.request.kind === 'close') return parentPort.close()
    // The message first: who wakes takes it at once.
    port.postMessage(answer, answer.ok ? answer.answer.words.map((words) => words.buffer) : [])
    Atomics.add(answers, 0, 1)
    Atomics.notify(answers, 0)
    return undefined
  })
})
