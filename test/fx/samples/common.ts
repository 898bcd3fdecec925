// What every sample needs: the deterministic weights and inputs (rebuilt bit by bit from a hash), and what a sample is.
import type { SymbolicTraceOptions, Traceable } from 'tensorfx/fx'
export { detInit, detInput, detTokens } from '../../helpers/deterministic.ts'

/** A program and its inputs. */
export interface Program {
  /** The program; weights are set and layers are in eval mode. */
  readonly make: () => Traceable
  /** Example inputs; null when it cannot run. */
  readonly inputs: (() => readonly unknown[]) | null
  /** How it is traced, a tracer of its own each time. */
  readonly trace?: () => SymbolicTraceOptions
}

/** One program, ported from the goldens' Python. */
export interface Sample extends Program {
  /** The golden's name: test/goldens/fx/NAME.json. */
  readonly golden: string
}

/** A program of which there is no golden; its graph has to agree with itself. */
export interface Variant extends Program {
  readonly name: string
}
