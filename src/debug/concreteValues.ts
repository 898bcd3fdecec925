// Before minifying, the failing graph runs once, eagerly, and every node keeps its value: delta debugging replaces nodes by inputs with these values.
import { Interpreter } from '../fx/index.ts'
import type { GraphModule, Node } from '../fx/index.ts'
import { CONCRETE_VALUE } from './strategies.ts'
import type { ReproState } from './strategies.ts'

/** Runs `gm` (a copy of the state's graph) on the inputs of the state, and stores each value in the meta of the node of the state's graph. PyTorch's ConcreteProp. */
export function captureValues(gm: GraphModule, state: ReproState): void {
  const mine = new Map([...state.graph.nodes].map((n): [string, Node] => [n.name, n]))
  class ConcreteProp extends Interpreter {
    override runNode(node: Node): unknown {
      const value = super.runNode(node)
      const target = mine.get(node.name)
      if (target !== undefined && target.op !== 'output') target.meta[CONCRETE_VALUE] = value
      return value
    }
  }
  new ConcreteProp(gm).run(...state.inputs)
}
