// What dead-code elimination removes, by name.
import type { Graph, Node } from 'tensorfx/fx'

/** Removes dead code: the names of what is gone, last first. */
export function removedNodes(graph: Graph, ...isImpure: readonly [((node: Node) => boolean)?]): string[] {
  const before = [...graph.nodes]
  const changed = graph.eliminateDeadCode(...isImpure)
  const left = new Set(graph.nodes)
  const gone = before.filter((node) => !left.has(node)).map((node) => node.name)
  if (changed !== gone.length > 0) throw new Error(`eliminateDeadCode returned ${changed}, and ${gone.length} nodes are gone`)
  return gone.toReversed()
}
