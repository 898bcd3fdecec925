// The graph of a script: its class, traced. Every call of an operator is a node again, also one of constants alone (`torch.ops.tensorfx.full([2], 1, 'float32')`),
// which a trace would otherwise compute on the spot.
import { withMode } from '../../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../../dispatch/index.ts'
import { Tracer, symbolicTrace } from '../../fx/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Module } from '../../module/index.ts'

/** Records what is called without a traced value. */
class RecordConstants implements DispatchMode {
  readonly name = 'recordConstants'
  readonly #tracer: Tracer

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    // A traced value stands for a tensor, or for several.
    return this.#tracer.createProxy('call_function', op.fn, args, {}) as unknown as Result
  }
}

/** The graph that a script's class holds as code. */
export function tracedScript(root: Module): GraphModule {
  const tracer = new Tracer()
  return withMode(new RecordConstants(tracer), () => symbolicTrace(root, { tracer }))
}
