// The error of accuracy checks.
import { TensorfxError } from '../../errors/index.ts'

/**
 * The compiled model does not compute what the graph computes; `cause` says where, and by how much.
 *
 * Fix: run the minifier's script (`minifierPath`) for the smallest graph that differs; if the difference is only rounding, raise `config.reproTolerance`.
 */
export class AccuracyError extends TensorfxError {
  /** The path of the minifier's script, if one was written. */
  minifierPath: string | null = null

  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_ACCURACY', message, options)
  }
}
