// What a dataset can ask about the worker thread that reads it.
import { checkCount } from '../protocol/index.ts'

/** The worker thread that reads a dataset. */
export interface WorkerInfo {
  /** From 0 to `numWorkers - 1`. */
  readonly id: number
  readonly numWorkers: number
  /** The seed of this pass over the data, the same in all workers. */
  readonly seed: number
}

const current: { info: WorkerInfo | null } = { info: null }

/**
 * In a worker thread of a DataLoader: which of how many it is, so that a stream can give its share of the samples. Null elsewhere. PyTorch's `get_worker_info`.
 *
 * @example
 * const { id, numWorkers } = getWorkerInfo() ?? { id: 0, numWorkers: 1 }
 * for (let i = id; i < 1000; i += numWorkers) yield i
 */
export function getWorkerInfo(): WorkerInfo | null {
  checkCount('getWorkerInfo', arguments, 0)
  return current.info
}

/** Says what {@link getWorkerInfo} returns from here on. */
export function setWorkerInfo(info: WorkerInfo): void {
  current.info = info
}
