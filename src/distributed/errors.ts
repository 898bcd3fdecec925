// The errors of process groups.
import { TensorfxError } from '../errors/index.ts'

/**
 * A process group cannot do what was asked: there is none yet, this rank is not in it, or another rank ended.
 *
 * Fix: call `await initProcessGroup(…)` on every rank first; if a rank ended, its own error says why.
 */
export class DistributedError extends TensorfxError {
  /** The rank whose end is why this rank cannot go on; null for other reasons. */
  readonly endedRank: number | null

  constructor(message: string, options: { cause?: unknown; endedRank?: number } = {}) {
    const { endedRank = null, ...rest } = options
    super('TFX_DISTRIBUTED', message, rest)
    this.endedRank = endedRank
  }
}

/**
 * The ranks of a group called different collectives, or the same with different dtypes or sizes. Every rank gets this error, before any data is sent.
 *
 * Fix: make all ranks call the same collectives in the same order; look for branches on the rank or on data, and for batches of different sizes.
 */
export class CollectiveMismatchError extends TensorfxError {
  constructor(message: string) {
    super('TFX_COLLECTIVE_MISMATCH', message)
  }
}

/**
 * A collective did not end within the group's timeout. The message says which ranks did not come.
 *
 * Fix: look at what the missing ranks do meanwhile; raise `timeout` in `initProcessGroup` if they are only slow.
 */
export class CollectiveTimeoutError extends TensorfxError {
  constructor(message: string) {
    super('TFX_COLLECTIVE_TIMEOUT', message)
  }
}
