// Groups the nodes of a graph into subgraphs that alternate between the accelerator and the CPU, as few as possible. Part of the splitter (torch.fx.passes.splitter_base).
import { GraphError } from '../graph/errors.ts'
import type { Node } from '../graph/node.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { NodeHeap } from './nodeHeap.ts'
import { isCallable } from './toolsCommon.ts'

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
  const waiting = new Waiting(gm, fusions)
  const ready = { acc: new NodeHeap(), cpu: new NodeHeap() }
  const heapOf = (node: Node): NodeHeap => (accNodes.has(node) ? ready.acc : ready.cpu)
  for (const node of waiting.start()) heapOf(node).add(node)
  let isAcc = ready.cpu.size === 0
  let nodes: Node[] = []
  let count = 0
  const subgraphs: Subgraph[] = []
  while (ready.acc.size + ready.cpu.size > 0) {
    const node = (isAcc ? ready.acc : ready.cpu).take()
    if (node === undefined) {
      subgraphs.push({ isAcc, nodes })
      isAcc = !isAcc
      nodes = []
      continue
    }
    nodes.push(node)
    count++
    for (const next of waiting.finish(node)) heapOf(next).add(next)
  }
  if (nodes.length > 0) subgraphs.push({ isAcc, nodes })
  if (count < waiting.nodes.length) throw new GraphError("Couldn't create subgraphs: nodes need each other's results; lint the graph.")
  if (subgraphs.length === 0) throw new GraphError("Couldn't create subgraphs: the graph has no node that calls something.")
  return subgraphs
}

/** A point that a fusion passes: all that it needs is there (before its nodes run), or all its nodes have run. */
class Gate {}

type Item = Node | Gate

const isGate = (item: Item): item is Gate => item instanceof Gate

/**
 * What each node waits for. All nodes of a fusion wait for what any of them needs, and what uses one of them waits for all of them. Gates stand between, because the
 * pairs of nodes could be many.
 */
class Waiting {
  readonly nodes: readonly Node[]
  readonly #counts = new Map<Item, number>()
  readonly #users = new Map<Item, Item[]>()

  constructor(gm: GraphModule, fusions: ReadonlyMap<Node, ReadonlySet<Node>>) {
    this.nodes = gm.graph.numberNodes().filter(isCallable)
    const gates = new Map<ReadonlySet<Node>, { before: Gate; after: Gate }>()
    for (const fusion of new Set(fusions.values())) gates.set(fusion, { before: new Gate(), after: new Gate() })
    const gatesOf = (node: Node): { before: Gate; after: Gate } | undefined => gates.get(fusions.get(node) ?? new Set())
    for (const node of this.nodes) {
      const own = gatesOf(node)
      this.#require(node, own?.before)
      if (own !== undefined) this.#require(own.after, node)
      for (const input of node.allInputNodes) {
        if (!isCallable(input)) continue
        const other = gatesOf(input)
        if (other === own) this.#require(node, input)
        else this.#require(own?.before ?? node, other?.after ?? input)
      }
    }
  }

  #require(item: Item, needed: Item | undefined): void {
    if (needed === undefined) return
    this.#counts.set(item, (this.#counts.get(item) ?? 0) + 1)
    const users = this.#users.get(needed) ?? []
    users.push(item)
    this.#users.set(needed, users)
  }

  /** The nodes that wait for nothing. */
  start(): Node[] {
    const gates = [...this.#users.keys()].filter((item) => isGate(item) && !this.#counts.has(item))
    return [...this.nodes.filter((node) => !this.#counts.has(node)), ...this.finish(...gates)]
  }

  /** The nodes that wait for nothing any more after these are done. */
  finish(...done: readonly Item[]): Node[] {
    const ready: Node[] = []
    const stack = [...done]
    for (let item = stack.pop(); item !== undefined; item = stack.pop())
      for (const user of this.#users.get(item) ?? []) {
        const left = (this.#counts.get(user) ?? 0) - 1
        this.#counts.set(user, left)
        if (left > 0) continue
        if (isGate(user)) stack.push(user)
        else ready.push(user)
      }
    return ready
  }
}
