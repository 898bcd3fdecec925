// NodeHeap: the nodes that are ready to be placed, the earliest of the original order first.
import { PriorityQueue } from '../../protocol/index.ts'
import type { Node } from '../graph/node.ts'

/** Nodes by `node.position`, which `graph.numberNodes()` sets. */
export class NodeHeap extends PriorityQueue<Node> {
  constructor() {
    super((a, b) => a.position < b.position)
  }
}
