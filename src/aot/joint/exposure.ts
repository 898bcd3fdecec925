// What a backward may read of memory that the program can write to between the forward and the backward. In eager mode such a write matters to the gradients of a result if the derivatives of that
// very result read the memory, and so it must here: all other values of a backward are computed from memory of the graph's own.
import type { Node } from '../../fx/index.ts'
import { backwardClosure, viewRoot } from './jointGraph.ts'
import type { JointGraph } from './jointGraph.ts'
import { tensorSpecs } from '../meta/valueSpec.ts'

export interface Exposure {
  /** Whether the program can write to the node's memory, and derivatives read it. */
  readonly isRead: (node: Node) => boolean
  /** Whether a backward may compute `user` from what is in the memory of `node` by then: the program cannot write to it, or whoever needs `user` is refused after a write in any case. */
  readonly mayRead: (user: Node, node: Node) => boolean
}

export function exposureOf(joint: JointGraph): Exposure {
  if (joint.mayBeOverwritten !== true) return { isRead: () => false, mayRead: () => true }
  const exposed = new Set([...joint.inputs, ...joint.outputs].filter((node) => tensorSpecs(node).length > 0).map(viewRoot))
  const heads = headsOf(joint)
  // The heads whose derivatives read memory, by the node at the start of the views of it.
  const readers = new Map<Node, bigint>()
  const note = (node: Node, by: bigint): void => {
    const root = viewRoot(node)
    if (joint.forwardNodes.has(node) && exposed.has(root)) readers.set(root, (readers.get(root) ?? 0n) | by)
  }
  for (const [node, by] of heads) if (!joint.forwardNodes.has(node)) for (const input of node.allInputNodes) note(input, by)
  for (const gradient of joint.grads) if (gradient !== null) note(gradient, heads.get(gradient) ?? 0n)
  return {
    isRead: (node) => readers.has(viewRoot(node)),
    mayRead(user, node) {
      const root = viewRoot(node)
      return !exposed.has(root) || ((heads.get(user) ?? 0n) & ~(readers.get(root) ?? 0n)) === 0n
    },
  }
}

/** For each node on which gradients depend, the heads whose backward computes it or starts from what the forward computed from it; a bit for each. */
function headsOf(joint: JointGraph): ReadonlyMap<Node, bigint> {
  const closure = backwardClosure(joint, () => false)
  const live = [...joint.graph.nodes].filter((node) => closure.has(node))
  const heads = new Map<Node, bigint>(joint.tangents.map((tangent, i) => [tangent, 1n << BigInt(i)]))
  const union = (nodes: Iterable<Node>): bigint => {
    let all = 0n
    for (const node of nodes) all |= heads.get(node) ?? 0n
    return all
  }
  for (const node of live) if (!heads.has(node)) heads.set(node, union(node.allInputNodes))
  const every = (1n << BigInt(joint.tangents.length)) - 1n
  for (const gradient of joint.grads) if (gradient !== null && heads.get(gradient) === 0n) heads.set(gradient, every)
  // What depends on no gradient serves those that compute with it.
  for (const node of live.toReversed()) if (heads.get(node) === 0n) heads.set(node, union(node.users.keys()))
  return heads
}
