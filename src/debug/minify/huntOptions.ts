// What a hunt is told, and what it finds.
import type { Backend } from '../../dynamo/index.ts'
import type { Calls } from '../runs/history.ts'
import type { StartHelper } from '../isolate/helper.ts'
import type { FailureSpec } from '../judge/judge.ts'
import type { MinifierOptions, MinifierResult } from './minifier.ts'

/** Options of `minifyBackendFailure`. */
export interface HuntOptions extends Pick<MinifierOptions, 'offloadToDisk' | 'saveDir' | 'skipOffload'> {
  /** The failing backend: a registered name, or a function (then candidates are judged in this process). */
  readonly backend: string | Backend
  /** What counts as a failure; default 'none': the compiled graph throws. */
  readonly accuracy?: FailureSpec['accuracy']
  /** Only errors whose text contains this. */
  readonly checkStr?: string | null
  /** Which error counts (`signatureOf`); default any. */
  readonly signature?: string | null
  readonly onlyFwd?: boolean
  /** Judge candidates outside this process. Default true if possible: with child processes in Node, with `startHelper` in browsers. */
  readonly isolate?: boolean
  /** How to start an isolated helper; default a child process in Node. */
  readonly startHelper?: StartHelper
  /**
   * Milliseconds of processor time, after the imports, before a candidate counts as hanging; in browsers, of time. Where the original takes long on `eager`, candidates
   * get more. Default 30,000.
   */
  readonly timeoutMs?: number
  /** Milliseconds for the imports of an isolated process: those of the backend's module. Default 120,000. */
  readonly importTimeoutMs?: number
  /** The failure ends the process, or never ends: see {@link FailureSpec}. Default null. */
  readonly death?: string | null
  /** The same as `death: 'any'`. Default false. */
  readonly deathFails?: boolean
  /**
   * Find out first how the graph fails, in this order: it ends its process or never ends, it throws, it computes wrong numbers. Instead of `accuracy`, `signature` and
   * `death`. Default false.
   */
  readonly findFailure?: boolean
  readonly maxGranularity?: number
  readonly skipSanity?: boolean
  /**
   * The inputs of the calls before the failing one, oldest first, for a failure that needs a history: calls are dropped first. Wrong numbers are then judged call by call;
   * see {@link FailureSpec}. Default none.
   */
  readonly earlier?: Calls
  /** Judge by the contract of backends, also for one call; see {@link FailureSpec}. Default false. */
  readonly contract?: boolean
  /** Where the failure was seen, for the script. Default 'dynamo'. */
  readonly after?: 'dynamo' | 'aot'
  /** The run's debug folder; checkpoints go to its minifier/checkpoints. Null writes nothing. Default null. */
  readonly runDir?: string | null
  /** Receives the minifier's progress lines. Default: the debug log. */
  readonly print?: (line: string) => void
}

/** A failure of another kind than the one that was minified. */
export interface Lead {
  /** Tells failures apart: `signatureOf` of the error, or how the process died. */
  readonly signature: string
  readonly message: string
  /** The script that shows it, or null when none was written. */
  readonly path: string | null
}

/** What `minifyBackendFailure` found: the smallest graph that fails, and its script. */
export interface HuntResult extends MinifierResult {
  /** The last script written, or null when nothing was. */
  readonly path: string | null
  /** Whether candidates were judged in isolation; if not, why. */
  readonly isolated: boolean
  readonly whyNotIsolated: string | null
  /** Isolated processes used: one for the search and one for the final check, unless some died or hung. */
  readonly processes: number
  /** Other failures that candidates met. */
  readonly leads: readonly Lead[]
}
