// FxNetAccFusionsFinder: which nodes must stay together. PyTorch's torch.fx.passes.tools_common.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkCount } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { isCall } from '../nodes/calls.ts'
import { isWithoutTensor } from '../nodes/meta.ts'

/**
 * Finds groups of nodes that pass values to each other that are not tensors, such as sizes. An accelerator can only exchange tensors, so a group runs on it as a whole
 * or not at all. Needs the notes of ShapeProp. PyTorch's FxNetAccFusionsFinder.
 *
 *     const fusions = new FxNetAccFusionsFinder(gm, accNodes).run()
 */
export class FxNetAccFusionsFinder {
  readonly #accNodes: Set<Node>
  readonly #nodes: readonly Node[]

  /** `accNodes`: the nodes that the accelerator supports. `run` removes from it the groups that it supports only in part. */
  constructor(gm: GraphModule, accNodes: Set<Node>) {
    checkCount('FxNetAccFusionsFinder', arguments, 2)
    checkGraphModule('FxNetAccFusionsFinder', gm)
    this.#accNodes = accNodes
    this.#nodes = gm.graph.numberNodes()
  }

  /** From each node in a group to the nodes of that group, in graph order. */
  run(): Map<Node, ReadonlySet<Node>> {
    const groups = new Map<Node, ReadonlySet<Node>>()
    for (const node of this.#nodes) {
      if (!this.#accNodes.has(node) || groups.has(node) || !isWithoutTensor(node)) continue
      const found = this.#groupOf(node)
      if ([...found].every((n) => this.#accNodes.has(n))) for (const n of found) groups.set(n, found)
      else for (const n of found) this.#accNodes.delete(n)
    }
    return groups
  }

  /** The smallest group around a node from which no value but tensors goes in or out, and which nothing leaves and comes back to. */
  #groupOf(start: Node): ReadonlySet<Node> {
    const group = new Set([start])
    let joined = [start]
    while (joined.length > 0) {
      this.#joinNeighbours(group, joined)
      joined = this.#between(group)
      for (const node of joined) group.add(node)
    }
    return new Set([...group].sort((a, b) => a.compareTo(b)))
  }

  /** Adds what exchanges values that are not tensors with `joined`, and with what it adds. */
  #joinNeighbours(group: Set<Node>, joined: readonly Node[]): void {
    const waiting = [...joined]
    const join = (node: Node): void => {
      if (!isCall(node) || group.has(node)) return
      group.add(node)
      waiting.push(node)
    }
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (isWithoutTensor(node)) for (const user of node.users) join(user)
      for (const input of node.allInputNodes) if (isWithoutTensor(input)) join(input)
    }
  }

  /** The nodes outside the group that depend on it and that it depends on. */
  #between(group: ReadonlySet<Node>): Node[] {
    const positions = [...group].map((node) => node.position)
    const range = this.#nodes.slice(
      positions.reduce((a, b) => Math.min(a, b)),
      positions.reduce((a, b) => Math.max(a, b)) + 1,
    )
    const below = new Set(group)
    for (const node of range) if (node.allInputNodes.some((n) => below.has(n))) below.add(node)
    const above = new Set(group)
    for (const node of range.toReversed()) if ([...node.users].some((n) => above.has(n))) above.add(node)
    return range.filter((node) => below.has(node) && above.has(node) && !group.has(node))
  }
}
