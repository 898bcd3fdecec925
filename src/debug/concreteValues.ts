// Before minifying, the failing graph runs once, eagerly, and every node keeps its value: candidates get these values in the place of the operators that they leave out.
import { noGrad } from '../autograd/index.ts'
import { Interpreter } from '../fx/index.ts'
import type { GraphModule, Node } from '../fx/index.ts'
import { clone } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import { CONCRETE_VALUE, EARLIER_VALUES, operatorsOf } from './cut.ts'
import type { ReproState } from './cut.ts'
import { contained, isolatedInputs } from './isolated.ts'

/**
 * Runs `gm` (a copy of the state's graph) on the inputs of the state, those of each call, and stores each value in the meta of the node of the state's graph. PyTorch's
 * ConcreteProp, which knows one call.
 */
export function captureValues(gm: GraphModule, state: ReproState): void {
  const byCall = state.earlier.map((inputs) => valuesOf(gm, inputs))
  const last = valuesOf(gm, state.inputs)
  for (const node of state.graph.nodes) {
    if (node.op === 'output') continue
    node.meta[CONCRETE_VALUE] = last.get(node.name)
    node.meta[EARLIER_VALUES] = byCall.map((values) => values.get(node.name))
  }
}

/** The values of all nodes, by their names. */
function valuesOf(gm: GraphModule, inputs: readonly unknown[]): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>()
  // Where operators write in place, a value is kept as it was before later ones. What they write to outside of the graph is put back.
  const writes = operatorsOf(gm.graph).some((node) => node.isImpure())
  const kept = (value: unknown): unknown => (writes && value instanceof Tensor ? copyOf(value) : value)
  class ConcreteProp extends Interpreter {
    override runNode(node: Node): unknown {
      const value = super.runNode(node)
      values.set(node.name, kept(value))
      return value
    }
  }
  contained(() => new ConcreteProp(gm).run(...isolatedInputs(inputs)))
  return values
}

/** A copy without a history, which requires grad if the original does. */
function copyOf(value: Tensor): Tensor {
  const copy = noGrad(() => clone(value))
  copy.requiresGrad = value.requiresGrad
  return copy
}
