// The scheduler decides which nodes share a kernel. It starts with one group per node and merges along data edges (producer into consumer,
// pointwise into a template's epilogue), then between siblings that read the same buffers, as long as the groups have a common iteration
// space (groups.ts) and the merge makes no cycle.
import { present } from '../errors/index.ts'
import { groupOf, nodesOf, tryMerge } from './groups.ts'
import type { Group } from './groups.ts'
import type { Buffer, IrGraph, IrNode } from './ir.ts'
import { known } from './known.ts'

/** Readers of a buffer are not merged as siblings if there are more than this: it would take too long. */
const MAX_SIBLINGS = 16

/** Two nodes that share data and were not merged. */
export interface Refusal {
  readonly first: IrNode
  readonly second: IrNode
  readonly reason: string
}

/** Groups a program into kernels and returns them in an order that respects the data flow. `refused` gets the pairs that were not merged. */
export function schedule(graph: IrGraph, refused: Refusal[] | null = null): Group[] {
  const before = refused?.length ?? 0
  const groups = new Scheduler(graph, refused, false).run()
  if (groups !== null) return groups
  // Rare: a quick search has missed a way between two groups, and they wait for each other.
  refused?.splice(before)
  return present(new Scheduler(graph, refused, true).run(), 'an order of the groups')
}

/** A group that is being built. */
interface Cluster {
  group: Group
  /** The clusters that it reads from, and those that read from it. */
  readonly inputs: Set<Cluster>
  readonly outputs: Set<Cluster>
  /** Merged into another. */
  dead: boolean
  /** Program positions of its first and its last node. */
  first: number
  position: number
}

class Scheduler {
  readonly #graph: IrGraph
  readonly #order: ReadonlyMap<IrNode, number>
  readonly #clusters = new Map<IrNode, Cluster>()
  readonly #refused: Refusal[] | null
  /** Whether all paths between two groups are searched. It takes time that grows with the square of the graph. */
  readonly #isExact: boolean

  constructor(graph: IrGraph, refused: Refusal[] | null, isExact: boolean) {
    this.#isExact = isExact
    this.#graph = graph
    this.#refused = refused
    this.#order = new Map(graph.nodes.map((node, i) => [node, i]))
    graph.nodes.forEach((node, position) => {
      this.#clusters.set(node, { group: groupOf(node), inputs: new Set(), outputs: new Set(), dead: false, first: position, position })
    })
    for (const node of graph.nodes) {
      for (const { buffer } of node.reads) if (buffer.producer !== null && buffer.producer !== node) link(this.#of(buffer.producer), this.#of(node))
    }
  }

  /** The groups in the order in which they can run; null if there is none, which an exact search does not let happen. */
  run(): Group[] | null {
    // Producer into consumer, in program order.
    for (const node of this.#graph.nodes) {
      for (const { buffer } of node.reads) if (buffer.producer !== null) this.#merge(buffer.producer, node)
    }
    // Siblings: nodes that read the same buffer.
    const readers = new Map<Buffer, IrNode[]>()
    for (const node of this.#graph.nodes) {
      for (const { buffer } of node.reads) {
        const nodes = readers.get(buffer)
        if (nodes === undefined) readers.set(buffer, [node])
        else nodes.push(node)
      }
    }
    for (const nodes of readers.values()) {
      if (nodes.length > MAX_SIBLINGS) continue
      let before: IrNode | null = null
      for (const node of nodes) {
        if (before !== null) this.#merge(before, node)
        before = node
      }
    }
    return inDependencyOrder([...new Set(this.#clusters.values())])
  }

  #of(node: IrNode): Cluster {
    return known(this.#clusters, node, `node ${node.origin}`)
  }

  /** Merges the clusters of two nodes, if they fit. */
  #merge(one: IrNode, other: IrNode): void {
    const reason = this.#tryMerge(this.#of(one), this.#of(other))
    if (reason !== null) this.#refused?.push({ first: one, second: other, reason })
  }

  /** Returns why not, or null. */
  #tryMerge(a: Cluster, b: Cluster): string | null {
    if (a === b || a.dead || b.dead) return null
    const [first, second] = a.position <= b.position ? [a, b] : [b, a]
    const [early, late] = second.outputs.has(first) ? [second, first] : [first, second]
    const merged = tryMerge(early.group, late.group, this.#order)
    if (typeof merged === 'string') return merged
    if (reaches(early, late, this.#isExact) || reaches(late, early, this.#isExact)) return 'another kernel has to run between them'
    for (const node of nodesOf(late.group)) this.#clusters.set(node, early)
    early.group = merged
    early.position = Math.max(early.position, late.position)
    early.first = Math.min(early.first, late.first)
    for (const other of late.inputs) {
      other.outputs.delete(late)
      if (other !== early) link(other, early)
    }
    for (const other of late.outputs) {
      other.inputs.delete(late)
      if (other !== early) link(early, other)
    }
    early.inputs.delete(late)
    early.outputs.delete(late)
    late.dead = true
    return null
  }
}

function link(from: Cluster, to: Cluster): void {
  from.outputs.add(to)
  to.inputs.add(from)
}

/**
 * Whether `to` depends on `from` through at least one cluster between them. Unless it is exact, clusters that begin after the last node of `to` are passed over: data flows forward through the program.
 * They lead to `to` only through a cluster that has nodes both before `to` and behind them.
 */
function reaches(from: Cluster, to: Cluster, isExact: boolean): boolean {
  const end = isExact ? Infinity : to.position
  const stack = [...from.outputs].filter((cluster) => cluster !== to && cluster.first < end)
  const seen = new Set<Cluster>(stack)
  for (let cluster = stack.pop(); cluster !== undefined; cluster = stack.pop()) {
    for (const next of cluster.outputs) {
      if (next === to) return true
      if (next.first < end && !seen.has(next)) {
        seen.add(next)
        stack.push(next)
      }
    }
  }
  return false
}

/** Null if clusters wait for each other. */
function inDependencyOrder(clusters: readonly Cluster[]): Group[] | null {
  const waiting = new Map(clusters.map((cluster) => [cluster, cluster.inputs.size]))
  const ready = clusters.filter((cluster) => cluster.inputs.size === 0).sort((x, y) => x.position - y.position)
  const out: Group[] = []
  // `ready` grows during the loop.
  for (const { group, outputs } of ready) {
    out.push(group)
    for (const next of outputs) {
      const left = known(waiting, next, 'a group') - 1
      waiting.set(next, left)
      if (left === 0) ready.push(next)
    }
  }
  return out.length === clusters.length ? out : null
}
