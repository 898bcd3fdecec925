// The tensors that the nodes of a graph compute, one node after the other, on copies of the module and its inputs.
import { noGrad } from '../../autograd/index.ts'
import { Interpreter } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { checkArray, targetInfo } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { contained, isolated } from '../runs/isolated.ts'

/** What a node calls, for tables. */
export const targetText = (node: Node): string => (node.op === 'call_function' ? (targetInfo(node.target)?.name ?? node.name) : String(node.target))

/** Called with each node, in the order of the graph, and the tensors that it gives; `true` ends the run. */
export type Visit = (node: Node, tensors: readonly Tensor[], inputs: readonly Tensor[]) => boolean | void

/** What ends a run early. */
class Stop extends Error {}

/** Runs a graph and visits the value of each node: inputs and attributes too. Neither the module nor the inputs are changed. */
export function visitValues(where: string, gm: GraphModule, inputs: readonly unknown[], visit: Visit): void {
  checkGraphModule(where, gm)
  checkArray(where, 'inputs', inputs)
  contained(() => visitInside(gm, inputs, visit))
}

function visitInside(gm: GraphModule, inputs: readonly unknown[], visit: Visit): void {
  const { model: copy, inputs: own } = isolated(gm, inputs)
  const originals = new Map([...gm.graph.nodes].map((node) => [node.name, node]))
  const run = new Interpreter(copy)
  const stop = new Stop()
  const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)
  run.addHook({
    after: (node, value) => {
      const original = originals.get(node.name)
      const tensors = tensorsIn(value)
      if (original === undefined || node.op === 'output') return
      const [args, kwargs] = run.fetchArgsKwargs(node)
      if (visit(original, tensors, tensorsIn([args, kwargs])) === true) throw stop
    },
  })
  try {
    noGrad(() => run.run(...own))
  } catch (error) {
    if (error !== stop) throw error
  }
}
