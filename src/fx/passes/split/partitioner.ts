// CapabilityBasedPartitioner: finds maximal groups of supported nodes, each of which can become one submodule. PyTorch's torch.fx.passes.infra.partitioner.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkCount, checkOptions } from '../../../protocol/index.ts'
import { targetText } from '../../graph/node.ts'
import { GraphModule } from '../../run/graphModule.ts'
import type { Node } from '../../graph/node.ts'
import { fuseByPartitions } from './fuse.ts'
import type { OperatorSupportBase } from './operatorSupport.ts'

/** A group of nodes. Groups are numbered from the end of the graph; a group that others are merged into keeps the number of the largest. */
export interface Partition {
  readonly id: number
  readonly nodes: ReadonlySet<Node>
}

/** Options of {@link CapabilityBasedPartitioner}. */
export interface PartitionerOptions {
  /** Keep groups with only one node that computes something. Default false. */
  readonly allowsSingleNodePartition?: boolean
  /** Qualified names of functions that compute nothing, such as views. They do not count, and {@link CapabilityBasedPartitioner.removeBookendNonComputeOps} removes them. */
  readonly nonComputeOps?: readonly string[]
  /** Qualified names of functions that may form a group alone. */
  readonly allowedSingleNodePartitionOps?: readonly string[]
}

const NON_COMPUTE: readonly string[] = ['torch.Tensor.view', 'operator.getitem']

interface Group extends Partition {
  readonly nodes: Set<Node>
}

/**
 * Finds groups of supported nodes, as large as possible, each of which can be replaced with one call. A group may contain nodes that do not depend on each other.
 * PyTorch's CapabilityBasedPartitioner.
 *
 *     const partitioner = new CapabilityBasedPartitioner(gm, createOpSupport((_, node) => node.target === torch.add))
 *     partitioner.partitionAndFuse()
 */
export class CapabilityBasedPartitioner {
  readonly #gm: GraphModule
  readonly #support: OperatorSupportBase
  readonly #options: PartitionerOptions
  readonly #nonCompute: ReadonlySet<string>

  constructor(gm: GraphModule, operatorSupport: OperatorSupportBase, options: PartitionerOptions = {}) {
    checkCount('CapabilityBasedPartitioner', arguments, 3)
    checkGraphModule('CapabilityBasedPartitioner', gm)
    checkOptions('CapabilityBasedPartitioner', options, {
      allowsSingleNodePartition: 'boolean',
      nonComputeOps: true,
      allowedSingleNodePartitionOps: true,
    })
    this.#gm = gm
    this.#support = operatorSupport
    this.#options = options
    this.#nonCompute = new Set(options.nonComputeOps)
  }

  /** Finds the groups. Does not change the graph. */
  proposePartitions(): Partition[] {
    const groups = groupNodes(this.#gm.graph.numberNodes(), (node) => this.#support.isNodeSupported(this.#gm, node))
    return groups.filter((group) => group.nodes.size > 0 && this.#isWorthwhile(group))
  }

  #isWorthwhile(group: Group): boolean {
    if (this.#options.allowsSingleNodePartition === true) return true
    const free = new Set([...NON_COMPUTE, ...this.#nonCompute])
    const alone = new Set(this.#options.allowedSingleNodePartitionOps)
    let count = 0
    for (const node of group.nodes) {
      if (node.op !== 'call_function') continue
      const name = targetText(node.target)
      if (!free.has(name)) count++
      if (alone.has(name)) count++
    }
    return count > 1
  }

  /** Removes `nonComputeOps` at the ends of groups, which should not begin or end with a view. */
  removeBookendNonComputeOps(partitions: readonly Partition[]): Partition[] {
    this.#gm.graph.numberNodes()
    const isFree = (node: Node): boolean => node.op === 'call_function' && this.#nonCompute.has(targetText(node.target))
    return partitions.map(({ id, nodes }) => {
      const sorted = [...nodes].toSorted((a, b) => a.position - b.position)
      // Free nodes that are reached only from outside, or through other free nodes.
      const end = (order: readonly Node[], neighbours: (node: Node) => Iterable<Node>): ReadonlySet<Node> => {
        const found = new Set<Node>()
        const isOutside = (node: Node): boolean => node.op === 'placeholder' || !nodes.has(node) || found.has(node)
        for (const node of order) if (isFree(node) && [...neighbours(node)].every(isOutside)) found.add(node)
        return found
      }
      const first = end(sorted, (node) => node.allInputNodes)
      const last = end(sorted.toReversed(), (node) => node.users)
      return { id, nodes: new Set([...nodes].filter((node) => !first.has(node) && !last.has(node))) }
    })
  }

  /** Replaces the groups with calls of submodules `fused_0`, `fused_1`, … Changes the module and returns it. */
  fusePartitions(partitions: readonly Partition[], prefix: string = 'fused_'): GraphModule {
    return fuseByPartitions(
      this.#gm,
      partitions.map((p) => p.nodes),
      prefix,
    )
  }

  /** Finds the groups and fuses them. */
  partitionAndFuse(prefix: string = 'fused_'): GraphModule {
    return this.fusePartitions(this.proposePartitions(), prefix)
  }
}

/**
 * The groups that come of joining each node, from the last to the first, with the oldest group that allows it. Two groups can be one if neither reaches the other through something else, since
 * the value would leave the merged group and come back. So of two groups that cannot, one reaches the other, and that stays so whatever joins them. Hence the groups are a chain, in which
 * each one reaches all older ones through something else, and of all the groups that a node reaches only the newest matters.
 */
function groupNodes(order: readonly Node[], isSupported: (node: Node) => boolean): Group[] {
  const chain: Group[] = []
  const places = new Map<Node, number>()
  /** The newest group that a node without a group reaches. */
  const reached = new Map<Node, number>()
  let id = 0
  for (const node of order.toReversed()) {
    let direct = -1
    let beyond = -1
    for (const user of node.users) {
      direct = Math.max(direct, places.get(user) ?? -1)
      beyond = Math.max(beyond, reached.get(user) ?? -1)
    }
    if (node.op === 'output' || node.op === 'placeholder' || !isSupported(node)) {
      reached.set(node, Math.max(direct, beyond))
      continue
    }
    const place = Math.max(direct, beyond + 1)
    places.set(node, place)
    const group = chain[place]
    if (group !== undefined && group.nodes.size > 1) group.nodes.add(node)
    else chain[place] = { id, nodes: new Set([node, ...(group?.nodes ?? [])]) }
    id++
  }
  takeItems(order, new Map([...places].map(([node, place]) => [node, chain[place]])))
  return chain.toSorted((a, b) => a.id - b.id)
}

/** Moves the items of a tuple to the group that makes the tuple. */
function takeItems(order: readonly Node[], groupOf: Map<Node, Group | undefined>): void {
  for (const node of order) {
    const items = [...node.users]
    if (items.length === 0 || !items.every((user) => user.op === 'call_function' && targetText(user.target) === 'operator.getitem')) continue
    const home = groupOf.get(node)
    for (const item of items) {
      if (groupOf.get(item) === home) continue
      groupOf.get(item)?.nodes.delete(item)
      home?.nodes.add(item)
      groupOf.set(item, home)
    }
  }
}
