// Who sees operators while they compute, for profiles: unlike a mode, an observer changes nothing in how they run, so compiled functions run compiled.
import type { Arg, OpDef, Result } from './op.ts'

/** Is told of the operators that run. Each method must call `run` once, and return its result. */
export interface OperatorObserver {
  /** The kernel of an operator runs. */
  kernel(op: OpDef, args: readonly Arg[], run: () => Result): Result
  /** An operator runs as those that it is composed of. */
  composite(qualname: string, run: () => Result): Result
}

/** The observer; null for none, as usual. One object, because the hot path reads fields faster than module bindings. */
export const observed: { observer: OperatorObserver | null } = { observer: null }
