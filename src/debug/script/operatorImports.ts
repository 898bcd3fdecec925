// The modules that a graph's own operators and functions come from: a repro script imports them, and so do isolated processes.
import type { GraphModule, TargetFunction } from '../../fx/index.ts'
import { opOf } from '../../ops/index.ts'
import { targetInfo } from '../../protocol/index.ts'

/** The functions that a graph calls. */
const functionsOf = (gm: GraphModule): readonly TargetFunction[] =>
  [...gm.graph.nodes].flatMap((node) => (node.op === 'call_function' ? [node.target] : []))

/** URLs of the modules that register what the graph calls; see TargetInfo.module. */
export const operatorImports = (gm: GraphModule): readonly string[] => [
  ...new Set(functionsOf(gm).flatMap((target) => targetInfo(target)?.module ?? [])),
]

/** Whether a program defined the operator: its namespace is none of tensorfx's. */
const isOfProgram = (qualname: string): boolean => /^torch\.ops\.(?!tensorfx\.)/.test(qualname)

/** Why another process would not know an operator of the graph; null if it would. */
export function whyNotImportable(gm: GraphModule): string | null {
  for (const target of functionsOf(gm)) {
    const op = opOf(target)
    if (op !== undefined && op.module === null && isOfProgram(op.qualname))
      return `the operator ${op.qualname} was defined without its module; pass { module: import.meta.url } to torch.library.customOp or defineOp to have it isolated`
  }
  return null
}
