// setTrace: a breakpoint in generated code.
import type { GraphModule } from '../graphModule.ts'

/**
 * Puts a `debugger` statement at the start of the generated forward, which stops in DevTools or under `node --inspect` when the module runs.
 * It stays until the next `recompile()`. Returns the module. PyTorch's torch.fx.experimental.debug.set_trace.
 */
export function setTrace(gm: GraphModule): GraphModule {
  const scope = gm.graph.onGenerateCode((current) => (body) => ['debugger', ...(current === null ? body : current(body))])
  try {
    // Read at once: a lazy module would write its code when the transformer is gone.
    void gm.recompile().source
  } finally {
    scope[Symbol.dispose]()
  }
  return gm
}
