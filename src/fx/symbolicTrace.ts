// symbolicTrace: a module or function as a GraphModule, without data and shapes.
import { Module } from '../module/index.ts'
import type { GraphModule } from './graphModule.ts'
import { makeGraphModule } from './lazyGraphModule.ts'
import { MetaTracer } from './metaTracer.ts'
import type { ConcreteArgs } from './rootArgs.ts'
import { Tracer } from './tracer.ts'
import type { Traceable } from './tracer.ts'

// eslint-disable-next-line typescript/no-explicit-any -- any function
type AnyFunction = (...args: any[]) => unknown

/** A GraphModule that is called as what it was traced from: `gm.call(x)` takes and returns what `model.call(x)` does. */
export type Traced<F> = GraphModule & { forward: F }

/** Settings of {@link symbolicTrace}. */
export interface SymbolicTraceOptions {
  /** Values for parameters that are fixed in the graph, by name or position; see {@link ConcreteArgs}. */
  readonly concreteArgs?: ConcreteArgs
  /**
   * Tensors by parameter name, of the shapes that the program is traced for: sizes of everything that follows from them are plain numbers, and the
   * graph is good for these shapes only. See {@link MetaTracer} for fake ones.
   */
  readonly metaArgs?: Readonly<Record<string, unknown>>
  /** The tracer to use. Default: a plain Tracer, or a MetaTracer when there are metaArgs. */
  readonly tracer?: Tracer
}

/**
 * Records a module or function on symbolic values; PyTorch's torch.fx.symbolic_trace.
 * Throws TraceError where the program depends on values (control flow, coercions); its message says where and what to do.
 *
 *     const gm = symbolicTrace(model)
 *     console.log(gm.code)
 */
export function symbolicTrace<M extends Module>(root: M, options?: SymbolicTraceOptions): Traced<M['forward']>
export function symbolicTrace<F extends AnyFunction>(root: F, options?: SymbolicTraceOptions): Traced<F>
export function symbolicTrace(root: Traceable, options?: SymbolicTraceOptions): GraphModule
export function symbolicTrace(root: Traceable, options: SymbolicTraceOptions = {}): GraphModule {
  const tracer = options.tracer ?? (options.metaArgs === undefined ? new Tracer() : new MetaTracer({ metaArgs: options.metaArgs }))
  const graph = tracer.trace(root, options.concreteArgs ?? {})
  return makeGraphModule(tracer.root, graph, root instanceof Module ? root.getName() : root.name === '' ? 'GraphModule' : root.name)
}
