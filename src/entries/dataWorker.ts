// A worker thread of a DataLoader, which src/data/pool.ts starts: makes the dataset by its recipe, and answers with batches.
import { hasIndices, isStream } from '../data/dataset.ts'
import { SampleError } from '../data/errors.ts'
import { END, Fetcher } from '../data/fetcher.ts'
import { buffersOf, encodeMessage } from '../data/messages.ts'
import type { Answer, Failure, Question, WorkerStart } from '../data/pool.ts'
import { followRecipe } from '../data/recipe.ts'
import { setWorkerInfo } from '../data/workerInfo.ts'
import { InternalError, messageOf } from '../errors/index.ts'
import { installTensors } from '../install/tensors.ts'
import { workerThreads } from '../protocol/index.ts'

installTensors()

type Send = (answer: Answer, transfer: ArrayBuffer[]) => void

/** `what` failed, unless the error says it itself. */
function failureOf(what: string, error: unknown): Failure {
  const cause = error instanceof SampleError ? error.cause : error
  const { name, message, stack } = cause instanceof Error ? cause : new Error(String(cause))
  const text = messageOf(error)
  return {
    message: error instanceof SampleError ? text : `DataLoader: ${what}: ${text}`,
    ...(error instanceof SampleError ? { index: error.index } : {}),
    causeName: name,
    causeMessage: message,
    causeStack: stack ?? '',
  }
}

/** Answers questions one after the other. */
function answering({ recipe, plan, id, numWorkers }: WorkerStart, send: Send): (question: Question) => void {
  let fetcher: Promise<Fetcher> | null = null
  const makeFetcher = async (): Promise<Fetcher> => {
    const source = await followRecipe(recipe)
    if (!hasIndices(source) && !isStream(source)) throw new InternalError('a recipe gave no dataset')
    return new Fetcher(source, plan, id)
  }
  const answer = async ({ ticket, request }: Question): Promise<void> => {
    setWorkerInfo({ id, numWorkers, seed: request.seed })
    let what = 'the dataset could not be made'
    try {
      fetcher ??= makeFetcher()
      const batch = await (await fetcher).fetch(request)
      what = 'a batch cannot be sent to the main thread'
      if (batch === END) return send({ ticket, kind: 'end' }, [])
      const encoded = encodeMessage(batch)
      send({ ticket, kind: 'batch', batch: encoded }, buffersOf(encoded))
    } catch (error) {
      send({ ticket, kind: 'error', failure: failureOf(what, error) }, [])
    }
  }
  let last: Promise<void> = Promise.resolve()
  return (question) => {
    last = last.then(() => answer(question))
  }
}

const threads = workerThreads<WorkerStart, Answer, Question>()
const port = threads?.parentPort ?? null
if (threads !== null && port !== null)
  port.on(
    'message',
    answering(threads.workerData, (answer, transfer) => port.postMessage(answer, transfer)),
  )
else {
  let onQuestion: ((question: Question) => void) | null = null
  globalThis.addEventListener('message', (event: MessageEvent<WorkerStart & Question>) => {
    if (onQuestion === null) onQuestion = answering(event.data, (answer, transfer) => globalThis.postMessage(answer, { transfer }))
    else onQuestion(event.data)
  })
}
