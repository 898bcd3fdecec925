// moveNonTensorNodesOnBoundary: nodes that belong to another part. PyTorch's torch.fx.passes.split_utils.
import { checkArgument, checkCount, isObject } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import type { Subgraph } from './subgraphs.ts'
import { isCall } from '../nodes/calls.ts'
import { isNodeOutputTensor } from '../nodes/meta.ts'

/**
 * Moves values that are not tensors out of parts for the accelerator, if only one other part uses them, so that only tensors go from part to part. A node moves together
 * with the nodes of its own part that need it; it stays if one of these is needed by a third part. Then the nodes that it needs are tried. Changes the lists of nodes, and
 * prints a line for each move. PyTorch's move_non_tensor_nodes_on_boundary.
 */
export function moveNonTensorNodesOnBoundary(subgraphs: readonly Subgraph[], print: (line: string) => void = (line) => console.log(line)): void {
  checkCount('moveNonTensorNodesOnBoundary', arguments, 2)
  checkArgument(
    Array.isArray(subgraphs) && subgraphs.every((part) => isObject(part) && 'nodes' in part),
    'moveNonTensorNodesOnBoundary',
    'subgraphs',
    'an array of Subgraphs',
    subgraphs,
  )
  const partOf = new Map<Node, number>(subgraphs.flatMap(({ nodes }, i) => nodes.map((node): [Node, number] => [node, i])))
  const nameOf = (index: number): string => `${subgraphs[index]?.isAcc === true ? 'acc' : 'gpu'}_${index}`
  const moved = subgraphs.map(({ nodes }) => new Set(nodes))
  for (const [from, { isAcc, nodes }] of subgraphs.entries()) {
    if (!isAcc) continue
    const waiting = nodes.filter((node) => !isNodeOutputTensor(node))
    for (const node of waiting) {
      if (partOf.get(node) !== from) continue
      const to = onlyOtherPart(node, from, partOf)
      const group = to === null ? null : dependents(node, from, to, partOf)
      if (to === null || group === null) continue
      for (const member of group) {
        partOf.set(member, to)
        moved[from]?.delete(member)
        moved[to]?.add(member)
        print(`In order move the non-tensor node ${node.name} on boundary, moved node ${member.name} from ${nameOf(from)} to ${nameOf(to)}`)
      }
      waiting.push(...node.allInputNodes.filter((input) => isCall(input) && partOf.get(input) === from && !isNodeOutputTensor(input)))
    }
  }
  for (const [i, { nodes }] of subgraphs.entries()) nodes.splice(0, Infinity, ...(moved[i] ?? []))
}

/** The one part other than its own that uses a node; null if there is none, or several. */
function onlyOtherPart(node: Node, own: number, partOf: ReadonlyMap<Node, number>): number | null {
  const parts = new Set([...node.users].map((user) => partOf.get(user)).filter((part) => part !== undefined && part !== own))
  const [part] = parts
  return parts.size === 1 && part !== undefined ? part : null
}

/** A node and the nodes of its part that depend on it; null if a third part needs one of them. */
function dependents(node: Node, from: number, to: number, partOf: ReadonlyMap<Node, number>): ReadonlySet<Node> | null {
  const group = new Set([node])
  for (const member of group)
    for (const user of member.users) {
      const part = partOf.get(user)
      if (part === from) group.add(user)
      else if (part !== undefined && part !== to) return null
    }
  return group
}
