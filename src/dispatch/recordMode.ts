// RecordMode: runs every operator as usual and keeps a list of the calls, for tests, operator counts and the profiler.
import { dispatchBelowAutograd } from './dispatch.ts'
import type { DispatchMode } from './dispatch.ts'
import type { Arg, OpDef, Result } from './op.ts'

/** One operator call below autograd. */
export interface RecordedCall {
  readonly op: OpDef
  readonly args: readonly Arg[]
  readonly result: Result
}

/** Records the operator calls made under it. They run in the modes outside it, or on real data. */
export class RecordMode implements DispatchMode {
  readonly name = 'RecordMode'
  readonly calls: RecordedCall[] = []

  handle(op: OpDef, args: readonly Arg[]): Result {
    const result = dispatchBelowAutograd(op, args)
    this.calls.push({ op, args, result })
    return result
  }

  /** The qualified names of the calls, in order. */
  get names(): readonly string[] {
    return this.calls.map((call) => call.op.qualname)
  }
}
