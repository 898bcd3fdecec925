// Before minifying, the failing graph runs once, eagerly, and every node keeps its value: candidates get these values in the place of the operators that they leave out.
import { noGrad } from '../autograd/index.ts'
import { Interpreter } from '../fx/index.ts'
import type { GraphModule, Node } from '../fx/index.ts'
import { clone } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import { CONCRETE_VALUE } from './cut.ts'
import type { ReproState } from './cut.ts'
import { contained, isolatedInputs } from './isolated.ts'

/** Runs `gm` (a copy of the state's graph) on the inputs of the state, and stores each value in the meta of the node of the state's graph. PyTorch's ConcreteProp. */
export function captureValues(gm: GraphModule, state: ReproState): void {
  const mine = new Map([...state.graph.nodes].map((n): [string, Node] => [n.name, n]))
  // Where operators write in place, a value is kept as it was before later ones. What they write to outside of the graph is put back.
  const writes = [...gm.graph.nodes].some((node) => node.op !== 'placeholder' && node.op !== 'output' && node.isImpure())
  const kept = (value: unknown): unknown => (writes && value instanceof Tensor ? copyOf(value) : value)
  class ConcreteProp extends Interpreter {
    override runNode(node: Node): unknown {
      const value = super.runNode(node)
      const target = mine.get(node.name)
      if (target !== undefined && target.op !== 'output') target.meta[CONCRETE_VALUE] = kept(value)
      return value
    }
  }
  contained(() => new ConcreteProp(gm).run(...isolatedInputs(state.inputs)))
}

/** A copy without a history, which requires grad if the original does. */
function copyOf(value: Tensor): Tensor {
  const copy = noGrad(() => clone(value))
  copy.requiresGrad = value.requiresGrad
  return copy
}
