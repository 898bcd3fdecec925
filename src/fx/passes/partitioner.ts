// CapabilityBasedPartitioner: finds maximal groups of supported nodes, each of which can become one submodule. PyTorch's torch.fx.passes.infra.partitioner.
import { ArgumentError } from '../../errors/index.ts'
import { checkOptions } from '../../protocol/index.ts'
import { targetText } from '../graph/node.ts'
import { GraphModule } from '../run/graphModule.ts'
import type { Node } from '../graph/node.ts'
import { fuseByPartitions } from './fuserUtils.ts'
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

interface Group {
  readonly id: number
  readonly nodes: Set<Node>
  /** Nodes outside that use its values. */
  readonly users: Set<Node>
  /** The id of the oldest group that was merged into it. */
  oldest: number
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
    if (!(gm instanceof GraphModule)) throw new ArgumentError('CapabilityBasedPartitioner: the first argument must be a GraphModule.')
    checkOptions('CapabilityBasedPartitioner', options, { allowsSingleNodePartition: true, nonComputeOps: true, allowedSingleNodePartitionOps: true })
    this.#gm = gm
    this.#support = operatorSupport
    this.#options = options
    this.#nonCompute = new Set(options.nonComputeOps)
  }

  /** Finds the groups. Does not change the graph. */
  proposePartitions(): Partition[] {
    return new Grouping(this.#gm, (node) => this.#support.isNodeSupported(this.#gm, node)).groups((group) => this.#isWorthwhile(group))
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
    return partitions.map((partition) => {
      const removed = new Set<Node>()
      const outside = (node: Node): boolean => node.op === 'placeholder' || !partition.nodes.has(node) || removed.has(node)
      const isFree = (node: Node): boolean => node.op === 'call_function' && this.#nonCompute.has(targetText(node.target))
      const reach = (node: Node, next: (n: Node) => Iterable<Node>): boolean =>
        outside(node) || (isFree(node) && [...next(node)].every((n) => reach(n, next)))
      for (const node of partition.nodes) if (isFree(node) && (reach(node, (n) => n.allInputNodes) || reach(node, (n) => n.users))) removed.add(node)
      return { id: partition.id, nodes: new Set([...partition.nodes].filter((n) => !removed.has(n))) }
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

class Grouping {
  readonly #order: readonly Node[]
  readonly #isSupported: (node: Node) => boolean
  readonly #groups = new Map<number, Group>()
  readonly #groupOf = new Map<Node, Group>()

  constructor(gm: GraphModule, isSupported: (node: Node) => boolean) {
    this.#order = gm.graph.numberNodes()
    this.#isSupported = isSupported
  }

  groups(isWorthwhile: (group: Group) => boolean): Group[] {
    let count = 0
    for (const node of this.#order.toReversed()) {
      if (node.op === 'output' || node.op === 'placeholder' || !this.#isSupported(node)) continue
      let group: Group = { id: count, nodes: new Set([node]), users: new Set(node.users), oldest: count }
      count++
      const others = [...this.#groups.values()].toSorted((x, y) => x.oldest - y.oldest)
      this.#groups.set(group.id, group)
      this.#groupOf.set(node, group)
      // Merge it with every group that allows it, to get fewer and larger groups. No path leads back to a node that has no group yet, so one search tells for all.
      const blocked = this.#beyond(group)
      for (const other of others) if (group.nodes.size === 1 ? !blocked.has(other) : !this.#comesBack(group, other)) group = this.#merge(group, other)
    }
    this.#takeItems()
    return [...this.#groups.values()].filter((group) => group.nodes.size > 0 && isWorthwhile(group))
  }

  /** Merges the smaller of two groups into the larger. */
  #merge(group: Group, other: Group): Group {
    const [into, from] = group.nodes.size < other.nodes.size ? [other, group] : [group, other]
    for (const node of from.nodes) {
      into.nodes.add(node)
      into.users.delete(node)
      this.#groupOf.set(node, into)
    }
    for (const user of from.users) if (!into.nodes.has(user)) into.users.add(user)
    into.oldest = Math.min(into.oldest, from.oldest)
    this.#groups.delete(from.id)
    return into
  }

  /** The groups that a path from a group reaches through other nodes or groups. */
  #beyond(group: Group): ReadonlySet<Group> {
    const reached = new Set<Group>()
    // A group acts as one node: reaching one of its nodes reaches the users of all of them.
    const seen = new Set<Group | Node>(Array.from(group.users, (user) => this.#groupOf.get(user) ?? user))
    for (const next of seen)
      for (const user of next.users) {
        const home = this.#groupOf.get(user)
        if (home !== undefined && home !== next) reached.add(home)
        seen.add(home ?? user)
      }
    return reached
  }

  /** Whether a value would leave the two groups, merged, and come back to them through other nodes or groups. */
  #comesBack(group: Group, other: Group): boolean {
    const seen = new Set<Group | Node>()
    const isInside = (next: Group | Node): boolean => next === group || next === other
    for (const user of [...group.users, ...other.users]) {
      const next = this.#groupOf.get(user) ?? user
      if (!isInside(next)) seen.add(next)
    }
    for (const next of seen)
      for (const user of next.users) {
        const after = this.#groupOf.get(user) ?? user
        if (isInside(after)) return true
        seen.add(after)
      }
    return false
  }

  /** Moves the items of a tuple to the group that makes the tuple. */
  #takeItems(): void {
    for (const node of this.#order) {
      const items = [...node.users]
      if (items.length === 0 || !items.every((user) => user.op === 'call_function' && targetText(user.target) === 'operator.getitem')) continue
      const home = this.#groupOf.get(node)
      for (const item of items) {
        if (this.#groupOf.get(item) === home) continue
        this.#groupOf.get(item)?.nodes.delete(item)
        if (home === undefined) this.#groupOf.delete(item)
        else {
          home.nodes.add(item)
          this.#groupOf.set(item, home)
        }
      }
    }
  }
}
