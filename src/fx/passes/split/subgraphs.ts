// Groups the nodes of a graph into subgraphs that alternate between the accelerator and the CPU, as few as possible. Part of the splitter (torch.fx.passes.splitter_base).
import { GraphError } from '../../graph/errors.ts'
import type { Node } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { isCall } from '../nodes/calls.ts'
import { Dependencies, LastReady, NodeHeap } from '../nodes/order.ts'
import type { Ready } from '../nodes/order.ts'

/** Nodes that run together. PyTorch's Subgraph. */
export interface Subgraph {
  /** Whether they run on the accelerator. */
  readonly isAcc: boolean
  readonly nodes: Node[]
}

/**
 * The nodes in subgraphs that can run one after the other. Takes as many nodes of one kind as can run, then as many of the other kind, and so on; among the nodes that
 * can run, the first in the graph is taken first. `fusions`: the nodes that must be in one subgraph.
 * @throws GraphError if nodes need each other's results, or none can be run.
 */
export function putNodesIntoSubgraphs(gm: GraphModule, accNodes: ReadonlySet<Node>, fusions: ReadonlyMap<Node, ReadonlySet<Node>>): Subgraph[] {
  const ready = new Alternating(accNodes)
  const { cyclic } = needsOf(gm.graph.numberNodes().filter(isCall), fusions).order(ready)
  if (cyclic.length > 0) throw new GraphError("Couldn't create subgraphs: nodes need each other's results; lint the graph.")
  if (ready.subgraphs.length === 0) throw new GraphError("Couldn't create subgraphs: the graph has no node that calls something.")
  return ready.subgraphs
}

/** A point that a fusion passes: all that it needs is there (before its nodes run), or all its nodes have run. */
class Gate {}

type Item = Node | Gate

const isGate = (item: Item): item is Gate => item instanceof Gate

/** Gates first; then the nodes of one kind as long as there are any, those of the CPU if there are both. Collects the nodes that it gives as subgraphs. */
class Alternating implements Ready<Item> {
  readonly subgraphs: Subgraph[] = []
  readonly #accNodes: ReadonlySet<Node>
  readonly #gates = new LastReady<Gate>()
  readonly #acc = new NodeHeap()
  readonly #cpu = new NodeHeap()

  constructor(accNodes: ReadonlySet<Node>) {
    this.#accNodes = accNodes
  }

  add(item: Item): void {
    if (isGate(item)) this.#gates.add(item)
    else if (this.#accNodes.has(item)) this.#acc.add(item)
    else this.#cpu.add(item)
  }

  take(): Item | undefined {
    return this.#gates.take() ?? this.#node()
  }

  #node(): Node | undefined {
    const last = this.subgraphs.at(-1)
    const stays = last !== undefined && (last.isAcc ? this.#acc : this.#cpu).size > 0
    const isAcc = stays ? last.isAcc : this.#cpu.size === 0
    const node = (isAcc ? this.#acc : this.#cpu).take()
    if (node === undefined) return undefined
    if (stays) last.nodes.push(node)
    else this.subgraphs.push({ isAcc, nodes: [node] })
    return node
  }
}

/**
 * What each node needs. All nodes of a fusion need what any of them needs, and what uses one of them needs all of them. Gates stand between, because the pairs of nodes
 * could be many.
 */
function needsOf(nodes: readonly Node[], fusions: ReadonlyMap<Node, ReadonlySet<Node>>): Dependencies<Item> {
  const needs = new Dependencies<Item>(nodes)
  const gates = new Map<ReadonlySet<Node>, { readonly before: Gate; readonly after: Gate }>()
  for (const fusion of new Set(fusions.values())) gates.set(fusion, { before: new Gate(), after: new Gate() })
  const gatesOf = (node: Node): { readonly before: Gate; readonly after: Gate } | undefined => {
    const fusion = fusions.get(node)
    return fusion === undefined ? undefined : gates.get(fusion)
  }
  for (const node of nodes) {
    const own = gatesOf(node)
    if (own !== undefined) {
      needs.require(node, own.before)
      needs.require(own.after, node)
    }
    for (const input of node.allInputNodes) {
      if (!isCall(input)) continue
      const other = gatesOf(input)
      if (other === own) needs.require(node, input)
      else needs.require(own?.before ?? node, other?.after ?? input)
    }
  }
  return needs
}
