// symbolicTrace: a module or function as a GraphModule, without data and shapes.
import { Module } from '../module/index.ts'
import { GraphModule } from './graphModule.ts'
import { Tracer } from './tracer.ts'
import type { Traceable } from './tracer.ts'

/**
 * Records a module or function on symbolic values; PyTorch's torch.fx.symbolic_trace.
 * Throws TraceError where the program depends on values (control flow, coercions); its message says where and what to do.
 *
 *     const gm = symbolicTrace(model)
 *     console.log(gm.code)
 */
export function symbolicTrace(root: Traceable, options: { readonly concreteArgs?: Readonly<Record<string, unknown>> } = {}): GraphModule {
  const tracer = new Tracer()
  const graph = tracer.trace(root, options.concreteArgs ?? {})
  return new GraphModule(tracer.root, graph, root instanceof Module ? root.getName() : root.name === '' ? 'GraphModule' : root.name)
}
