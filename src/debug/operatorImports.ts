// The modules that a graph's own operators and functions come from: a repro script imports them, and so do isolated processes.
import type { GraphModule } from '../fx/index.ts'
import { opOf } from '../ops/index.ts'
import { targetInfo } from '../protocol/index.ts'

/** URLs of the modules that register what the graph calls; see TargetInfo.module. */
export function operatorImports(gm: GraphModule): readonly string[] {
  const modules = gm.graph.findNodes({ op: 'call_function' }).flatMap((node) => targetInfo(node.target)?.module ?? [])
  return [...new Set(modules)]
}

/** Whether a program defined the operator: its namespace is none of tensorfx's. */
const isOfProgram = (qualname: string): boolean => /^torch\.ops\.(?!tensorfx\.)/.test(qualname)

/** Why another process would not know an operator of the graph; null if it would. */
export function whyNotImportable(gm: GraphModule): string | null {
  for (const node of gm.graph.findNodes({ op: 'call_function' })) {
    const op = opOf(node.target)
    if (op !== undefined && op.module === null && isOfProgram(op.qualname))
      return `the operator ${op.qualname} was defined without its module; pass { module: import.meta.url } to torch.library.customOp or defineOp to have it isolated`
  }
  return null
}
