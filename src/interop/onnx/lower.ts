// A graph in the operators that the rules know: traced on tensors without data, with everything else decomposed, and knowing which node each call comes from.
import { DecompositionInterpreter } from '../../aot/index.ts'
import { Graph } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { allOps } from '../../ops/index.ts'
import { normalize } from '../../ops/define/normalize.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { ruleOf } from './rules.ts'

/** How to compute the operators that have no rule of their own. */
function decompositions(): ReadonlyMap<TargetFunction, (...args: never[]) => Tensor | readonly Tensor[]> {
  const table = new Map<TargetFunction, (...args: never[]) => Tensor | readonly Tensor[]>()
  for (const op of allOps()) {
    const { decompose } = op
    // Composite operators (without a derivative) decompose by themselves.
    if (decompose !== null && op.derivative !== null && 'none' in ruleOf(op)) table.set(op.fn, (...given) => decompose(...normalize(op, given)))
  }
  return table
}

/** The lowered graph, its constants, and the node of the original graph that each node computes a part of. */
export interface Lowered {
  readonly graph: Graph
  readonly constants: ReadonlyMap<string, Tensor>
  readonly origins: ReadonlyMap<Node, Node>
}

class Lowering extends DecompositionInterpreter {
  readonly origins = new Map<Node, Node>()

  override runNode(node: Node): unknown {
    const before = [...this.newGraph.nodes.reversed()][0] ?? null
    const value = super.runNode(node)
    for (const made of this.newGraph.nodes.reversed()) {
      if (made === before) break
      this.origins.set(made, node)
    }
    return value
  }
}

/** Lowers a graph. The inputs, one per placeholder, may be tensors without data. */
export function lower(gm: GraphModule, inputs: readonly unknown[]): Lowered {
  const graph = new Graph()
  const lowering = new Lowering(gm, graph, decompositions())
  lowering.runWith(inputs, { processIo: false })
  return { graph, constants: lowering.constants, origins: lowering.origins }
}

/** The attribute that a node reads: a constant of the trace, or one of the module. */
export const attributeOf = (gm: GraphModule, { constants }: Lowered, path: string): unknown => constants.get(path) ?? gm.attribute(path)
