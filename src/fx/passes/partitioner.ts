// CapabilityBasedPartitioner: finds maximal groups of supported nodes, each of which can become one submodule. PyTorch's torch.fx.passes.infra.partitioner.
import { ArgumentError } from '../../errors/index.ts'
import { checkOptions } from '../../protocol/index.ts'
import { targetText } from '../graph/node.ts'
import { GraphModule } from '../run/graphModule.ts'
import type { Node } from '../graph/node.ts'
import { BitSet } from './bitSet.ts'
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
  /** Its place among the groups, and in bit sets; -1 until it has one. */
  slot: number
  reach: Reach
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

/** Which groups can be reached from a node, or from a group as a whole. */
interface Reach {
  /** By one edge. */
  readonly direct: BitSet
  /** Through at least one other node or group. */
  readonly beyond: BitSet
}

/**
 * Goes through the graph from its end, and merges each supported node with every group that allows it. Two groups can be one if neither reaches the other through something else, since the
 * value would leave the merged group and come back. So every node and group keeps the groups that it reaches, as a bit set of their slots.
 */
class Grouping {
  readonly #order: readonly Node[]
  readonly #isSupported: (node: Node) => boolean
  readonly #groups = new Map<number, Group>()
  readonly #groupOf = new Map<Node, Group>()
  /** Of the nodes without a group. */
  readonly #reachOf = new Map<Node, Reach>()
  /** The groups by slot, in the order of their oldest nodes; a group that was merged into another has given up its slot. */
  readonly #bySlot: Group[] = []
  readonly #slots = new BitSet()

  constructor(gm: GraphModule, isSupported: (node: Node) => boolean) {
    this.#order = gm.graph.numberNodes()
    this.#isSupported = isSupported
  }

  groups(isWorthwhile: (group: Group) => boolean): Group[] {
    let count = 0
    for (const node of this.#order.toReversed()) {
      const reach = this.#reachThrough(node.users)
      if (node.op === 'output' || node.op === 'placeholder' || !this.#isSupported(node)) {
        this.#reachOf.set(node, reach)
        continue
      }
      let group: Group = { id: count, nodes: new Set([node]), users: new Set(node.users), slot: -1, reach }
      count++
      this.#groups.set(group.id, group)
      this.#groupOf.set(node, group)
      // Merge it with every group that allows it, the oldest first, to get fewer and larger groups.
      for (let slot = this.#slots.nextOutside(reach.beyond, 0); slot >= 0; slot = this.#slots.nextOutside(group.reach.beyond, slot + 1)) {
        const other = this.#bySlot[slot]
        if (other !== undefined && !other.reach.beyond.has(group.slot)) group = this.#merge(group, other)
      }
      if (group.slot >= 0) continue
      group.slot = this.#bySlot.push(group) - 1
      this.#slots.add(group.slot)
    }
    this.#takeItems()
    return [...this.#groups.values()].filter((group) => group.nodes.size > 0 && isWorthwhile(group))
  }

  /** What can be reached through some users, but for those in `inside`. */
  #reachThrough(users: Iterable<Node>, inside: readonly Group[] = []): Reach {
    const reach: Reach = { direct: new BitSet(), beyond: new BitSet() }
    for (const user of users) {
      const home = this.#groupOf.get(user)
      if (home !== undefined && inside.includes(home)) continue
      if (home !== undefined) reach.direct.add(home.slot)
      const next = home?.reach ?? this.#reachOf.get(user)
      if (next === undefined) continue
      reach.beyond.addAll(next.direct)
      reach.beyond.addAll(next.beyond)
    }
    return reach
  }

  /** Merges the smaller of two groups into the larger. */
  #merge(group: Group, other: Group): Group {
    // What one of them reaches only through the other is no longer beyond anything.
    const touch = group.reach.direct.has(other.slot) || other.reach.direct.has(group.slot)
    const [ours, theirs] = touch
      ? [this.#reachThrough(group.users, [group, other]), this.#reachThrough(other.users, [group, other])]
      : [group.reach, other.reach]
    const reach: Reach = { direct: ours.direct.copy(), beyond: ours.beyond.copy() }
    reach.direct.addAll(theirs.direct)
    reach.beyond.addAll(theirs.beyond)
    this.#updateReach(group, other, reach)
    const slot = group.slot < 0 ? other.slot : Math.min(group.slot, other.slot)
    const [into, from] = group.nodes.size < other.nodes.size ? [other, group] : [group, other]
    for (const node of from.nodes) {
      into.nodes.add(node)
      into.users.delete(node)
      this.#groupOf.set(node, into)
    }
    for (const user of from.users) if (!into.nodes.has(user)) into.users.add(user)
    into.slot = slot
    into.reach = reach
    this.#bySlot[slot] = into
    this.#groups.delete(from.id)
    return into
  }

  /** Tells what reaches one of two groups that it now reaches both, and `reach`, what they reach together. */
  #updateReach(group: Group, other: Group, reach: Reach): void {
    // Nothing reaches a node before it has a slot. Then most merges, those with a user, add nothing to what is known.
    if (group.slot < 0 && reach.direct.isWithin(other.reach) && reach.beyond.isWithin(other.reach)) return
    const gone = Math.max(group.slot, other.slot)
    const stays = group.slot < 0 ? other.slot : Math.min(group.slot, other.slot)
    const update = ({ direct, beyond }: Reach): void => {
      const isDirect = direct.has(gone) || direct.has(stays)
      const isBeyond = beyond.has(gone) || beyond.has(stays)
      if (!isDirect && !isBeyond) return
      if (isDirect) direct.add(stays)
      if (isBeyond) beyond.add(stays)
      if (gone !== stays) {
        direct.delete(gone)
        beyond.delete(gone)
      }
      beyond.addAll(reach.direct)
      beyond.addAll(reach.beyond)
    }
    for (const each of this.#reachOf.values()) update(each)
    for (const each of this.#groups.values()) if (each !== group && each !== other) update(each.reach)
    if (gone !== stays) this.#slots.delete(gone)
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
