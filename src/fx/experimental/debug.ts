// setTrace: sets a breakpoint in generated code.
import { checkCount } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import type { GraphModule } from '../run/graphModule.ts'

/**
 * Inserts a `debugger` statement at the start of the generated forward. When the module runs, DevTools and `node --inspect` stop there. The statement stays until the
 * next `recompile()`. Returns the module. PyTorch's torch.fx.experimental.debug.set_trace.
 */
export function setTrace(gm: GraphModule): GraphModule {
  checkCount('setTrace', arguments, 1)
  checkGraphModule('setTrace', gm)
  const scope = gm.graph.onGenerateCode((current) => (body) => ['debugger', ...(current === null ? body : current(body))])
  try {
    // Read the code now, because a lazy module would generate it after the transformer is gone.
    void gm.recompile().source
  } finally {
    scope[Symbol.dispose]()
  }
  return gm
}
