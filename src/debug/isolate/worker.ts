// The isolated worker in browsers: a script that calls `serveWorker`, and the helper that talks to it.
import { QueryServer } from './protocol.ts'
import type { Query } from './protocol.ts'
import type { Helper, StartHelper } from './helper.ts'

interface WorkerScope {
  onmessage: ((event: { data: unknown }) => void) | null
  postMessage(message: unknown): void
}

/** Answers queries inside a worker. Call it once at the top of the worker's script, after importing what registers your backend. */
export function serveWorker(scope: WorkerScope = globalThis as unknown as WorkerScope): void {
  const server = new QueryServer((progress) => scope.postMessage(progress))
  let queue = Promise.resolve()
  scope.onmessage = (event): void => {
    queue = queue.then(async () => scope.postMessage(await server.answer(event.data as Query)))
  }
}

/** A helper on a worker; `create` makes a worker whose script calls {@link serveWorker}. */
export function workerHelper(create: () => Worker): StartHelper {
  return async (): Promise<Helper> => {
    const worker = create()
    return {
      post: (query) => worker.postMessage(query),
      listen: (onMessage, onDeath) => {
        worker.onmessage = (event): void => onMessage(event.data)
        worker.onerror = (event): void => onDeath(event.message)
      },
      kill: () => worker.terminate(),
    }
  }
}
