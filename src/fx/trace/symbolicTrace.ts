// symbolicTrace: records a module or function as a GraphModule, without data and shapes.
import { Module } from '../../module/index.ts'
import { checkArgument, checkCount, checkOptions, isCallable } from '../../protocol/index.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { makeGraphModule } from '../run/lazyGraphModule.ts'
import type { ConcreteArgs } from './concreteArgs.ts'
import { Tracer } from './tracer.ts'
import type { Traceable } from './tracer.ts'

// eslint-disable-next-line typescript/no-explicit-any -- any function
type AnyFunction = (...args: any[]) => unknown

/** A GraphModule with the signature of what it was traced from: `gm(x)` takes and returns the same as `model(x)`. */
export type Traced<F> = GraphModule & { forward: F }

/** Options of {@link symbolicTrace}. */
export interface SymbolicTraceOptions {
  /** Fixes parameters to these values, given by name or position; see {@link ConcreteArgs}. */
  readonly concreteArgs?: ConcreteArgs
  /** The tracer to use. Default: a Tracer; a MetaTracer of `tensorfx/fx/experimental` traces for given shapes, so that sizes are numbers. */
  readonly tracer?: Tracer
}

/**
 * Records a module or function on symbolic values. Throws TraceError if the program depends on values (control flow, coercions); the message tells where, and what
 * to do. PyTorch's torch.fx.symbolic_trace.
 *
 *     const gm = symbolicTrace(model)
 *     console.log(gm.code)
 */
export function symbolicTrace<M extends Module>(root: M, options?: SymbolicTraceOptions): Traced<M['forward']>
export function symbolicTrace<F extends AnyFunction>(root: F, options?: SymbolicTraceOptions): Traced<F>
export function symbolicTrace(root: Traceable, options?: SymbolicTraceOptions): GraphModule
export function symbolicTrace(root: Traceable, options: SymbolicTraceOptions = {}): GraphModule {
  checkCount('symbolicTrace', arguments, 2)
  checkArgument(isCallable(root), 'symbolicTrace', 'root', 'a function or a Module', root)
  checkOptions('symbolicTrace', options, { concreteArgs: true, tracer: true })
  const { concreteArgs = {}, tracer = new Tracer() } = options
  checkArgument(tracer instanceof Tracer, 'symbolicTrace', 'options.tracer', 'a Tracer', tracer)
  const graph = tracer.trace(root, concreteArgs)
  return makeGraphModule(tracer.root, graph, root instanceof Module ? root.getName() : root.name === '' ? 'GraphModule' : root.name)
}
