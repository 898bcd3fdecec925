// Graphs in float64, and the tensors in what they take and return.
import { Interpreter } from '../../fx/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { castToFp64 } from '../runs/castToFp64.ts'
import { isolatedInputs } from '../runs/isolated.ts'

/** The tensors in a value, in the order of `treeLeaves`. */
export const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)

/** What a part computes in float64. */
export function inFloat64(part: GraphModule, inputs: readonly Tensor[]): readonly Tensor[] {
  if (!inputs.some((input) => dtypeInfo[input.dtype].floating) && part.graph.findNodes({ op: 'call_module' }).length === 0)
    return tensorsIn(new Interpreter(part.deepCopy()).run(...isolatedInputs(inputs)))
  const wide = castToFp64(part, inputs)
  return tensorsIn(new Interpreter(wide.gm).run(...wide.inputs))
}
