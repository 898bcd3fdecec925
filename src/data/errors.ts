// The errors of data loading.
import { TensorfxError } from '../errors/index.ts'

/**
 * A dataset threw while a DataLoader asked it for a sample, or samples could not be collated. The message has the index of the sample, `index` too, and `cause` is what the dataset threw.
 *
 * Fix: call `dataset.get(index)` in the main thread, and step through it.
 */
export class SampleError extends TensorfxError {
  /** The index of the sample; null in a stream, and where a whole batch is at fault. */
  readonly index: number | null

  constructor(message: string, index: number | null, options?: { cause?: unknown }) {
    super('TFX_SAMPLE', message, options)
    this.index = index
  }
}

/**
 * A worker thread of a DataLoader could not start, ended, or did not answer in time.
 *
 * Fix: look at what the message says of it; `numWorkers: 0` reads the dataset in the main thread, where a debugger reaches it.
 */
export class WorkerError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_DATA_WORKER', message, options)
  }
}
