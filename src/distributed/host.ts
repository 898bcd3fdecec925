// What process groups use of Node: worker threads, and the exit of the process.
import { hostProcess } from '../protocol/index.ts'

type WorkerThreads = typeof import('node:worker_threads')

/** Node's worker threads; null in a browser. */
export const workerThreads = (): WorkerThreads | null =>
  (hostProcess()?.getBuiltinModule?.('node:worker_threads') as WorkerThreads | undefined) ?? null

/** Calls `callback` when the process exits. No effect in a browser. */
export function onProcessExit(callback: (code: number) => void): void {
  hostProcess()?.on?.('exit', callback)
}
