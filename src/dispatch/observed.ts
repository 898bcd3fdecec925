// Who sees operators while they compute, for profiles: unlike a mode, an observer changes nothing in how they run, so compiled functions run compiled.
import type { Arg, OpDef, Result } from './op.ts'

/** A kernel of a compiled function, and what each run of it costs. */
export interface ObservedKernel {
  /** The compiled graph that it belongs to. */
  readonly program: string
  readonly name: string
  /** `loops`, `template`, or `extern` for an eager kernel. */
  readonly kind: string
  /** Graph nodes that it computes. */
  readonly origins: readonly string[]
  readonly flops: number | null
  readonly bytes: number
}

/** Is told of the operators that run. Methods that get `run` must call it once, and return its result. */
export interface OperatorObserver {
  /** The kernel of an operator runs. */
  kernel(op: OpDef, args: readonly Arg[], run: () => Result): Result
  /** An operator runs as those that it is composed of. */
  composite(qualname: string, run: () => Result): Result
  /** A kernel of a compiled function has run, between these times of `performance.now()`. */
  launched(kernel: ObservedKernel, start: number, end: number): void
}

/** The observer; null for none, as usual. One object, because the hot path reads fields faster than module bindings. */
export const observed: { observer: OperatorObserver | null } = { observer: null }
