// What every sample needs: the deterministic weights and inputs (rebuilt bit by bit from a hash), and what a sample is.
import type { SymbolicTraceOptions, Traceable } from 'tensorfx/fx'
export { detInit, detInput, detTokens } from '../../helpers/deterministic.ts'

/** One program, ported from the goldens' Python. */
export interface Sample {
  /** The golden's name: test/goldens/fx/NAME.json. */
  readonly golden: string
  /** The program; weights are set and layers are in eval mode. */
  readonly make: () => Traceable
  /** Example inputs; null when the golden has none. */
  readonly inputs: (() => readonly unknown[]) | null
  /** How it is traced, a tracer of its own each time. */
  readonly trace?: () => SymbolicTraceOptions
}
