// Who sees operators while they compute, for profiles: unlike a mode, an observer changes nothing in how they run, so compiled functions run compiled.
import type { EngineName } from '../kernels/index.ts'
import type { Arg, OpDef, Result } from './op.ts'

/** A kernel of a compiled function, and what each run of it costs. */
export interface ObservedKernel {
  /** The compiled graph that it belongs to. */
  readonly program: string
  readonly name: string
  /** `loops`, `template`, or `extern` for an eager kernel. */
  readonly kind: string
  /** The instructions that it was compiled to: `wasm`, or `wasm-relaxed` with fused multiply-add. */
  readonly engine: EngineName
  /** Graph nodes that it computes. */
  readonly origins: readonly string[]
  readonly flops: number | null
  readonly bytes: number
}

/** Is told of the operators that run, which nest: each `begin` has its `end`. */
export interface OperatorObserver {
  /** The kernel of an operator begins. */
  begin(op: OpDef, args: readonly Arg[]): void
  /** It has returned `result`; null if it has thrown. */
  end(op: OpDef, args: readonly Arg[], result: Result | null): void
  /** An operator begins to run as those that it is composed of. */
  beginComposite(qualname: string): void
  endComposite(): void
  /** A kernel of a compiled function has run, between these times of `performance.now()`. */
  launched(kernel: ObservedKernel, start: number, end: number): void
}

/** The observer; null for none, as usual. One object, because the hot path reads fields faster than module bindings. */
export const observed: { observer: OperatorObserver | null } = { observer: null }
