// A model and its inputs in float64: the reference that tells an error from rounding. PyTorch's torch._dynamo.debug_utils.cast_to_fp64.
import { mapAggregate } from '../../fx/index.ts'
import type { Argument, GraphModule, Node } from '../../fx/index.ts'
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import { bfloat16, double, float, half } from '../../ops/index.ts'
import { checkArray, checkCount } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { isolatedInFloat64 } from './isolated.ts'

/** Conversions to a float type that name it themselves. */
const CONVERSIONS: ReadonlySet<unknown> = new Set(['float', 'half', 'bfloat16', float, half, bfloat16])

/**
 * The model and its inputs in float64, at any depth; where the graph names a float type (in an argument, `x.to(…)`, `x.half()`) it names float64. The originals are not
 * changed. PyTorch's `cast_to_fp64`, which changes them, and leaves positional arguments of methods as they are.
 *
 * @throws ArgumentError for anything but a GraphModule and an array.
 */
export function castToFp64(gm: GraphModule, inputs: readonly unknown[]): { gm: GraphModule; inputs: unknown[] } {
  checkCount('castToFp64', arguments, 2)
  checkGraphModule('castToFp64', gm)
  checkArray('castToFp64', 'inputs', inputs)
  const wide = isolatedInFloat64(gm, inputs)
  for (const node of wide.model.graph.nodes) if (node.op === 'call_function' || node.op === 'call_method') widen(node)
  wide.model.graph.lint()
  wide.model.recompile()
  return { gm: wide.model, inputs: wide.inputs }
}

function widen(node: Node): void {
  if (CONVERSIONS.has(node.target)) node.target = node.op === 'call_method' ? 'double' : double
  const wide = (arg: Argument): Argument => mapAggregate(arg, (leaf) => (isDType(leaf) && dtypeInfo[leaf].floating ? 'float64' : leaf))
  node.args = node.args.map(wide)
  node.kwargs = Object.fromEntries(Object.entries(node.kwargs).map(([key, value]) => [key, wide(value)]))
}
