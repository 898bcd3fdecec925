// What process groups use of Node: worker threads. Written out, so that users' programs need no types of Node.
import { hostProcess } from '../protocol/index.ts'

interface NodeWorker {
  on(event: 'message', listener: (message: never) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: (code: number) => void): unknown
  terminate(): unknown
}

/** The part of node:worker_threads that is used. */
interface WorkerThreads {
  readonly isMainThread: boolean
  readonly Worker: { new (url: URL, options: { readonly workerData: unknown }): NodeWorker }
  readonly parentPort: { postMessage(message: unknown): void } | null
  /** What {@link WorkerThreads.Worker} was given: the program knows its type. */
  readonly workerData: never
}

/** Node's worker threads; null in a browser. */
export const workerThreads = (): WorkerThreads | null =>
  (hostProcess()?.getBuiltinModule?.('node:worker_threads') as WorkerThreads | undefined) ?? null
