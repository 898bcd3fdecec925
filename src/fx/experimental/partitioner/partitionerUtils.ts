// Parts of a graph on devices: how much memory they need, and how long they take. A device is a description, not something that runs. PyTorch's
// torch.fx.experimental.partitioner_utils.
import { ArgumentError } from '../../../errors/index.ts'
import { checkNode } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCount, valueText } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import type { SizeBytes } from '../../passes/each/sizes.ts'

/** Something that can run a part of a graph. PyTorch's Device. */
export interface Device {
  readonly name: string
  /** Bytes for parameters and values. */
  readonly availableMemBytes: number
  /** Its number, by which parts name their devices. */
  readonly logicalId: number
}

/** How long a node takes, in seconds. PyTorch's NodeLatency. */
export interface NodeLatency {
  /** Because of the memory's bandwidth. */
  readonly memLatencySec: number
  /** Because of the computation. */
  readonly computerLatencySec: number
}

/** How long a part takes: sums over its critical path. PyTorch's PartitionLatency. */
export interface PartitionLatency extends NodeLatency {
  /** The larger of the two of each node on the path, in seconds. */
  readonly overallLatencySec: number
}

/** How to divide a graph; see {@link PartitionerConfig}. PyTorch's PartitionMode. */
export type PartitionMode = 'sizeBased' | 'sparseNn' | 'costAware' | 'klBased' | 'aotBased'

/** The devices, and how to divide a graph among them. PyTorch's PartitionerConfig. */
export interface PartitionerConfig {
  readonly devices: readonly Device[]
  /**
   * `'sizeBased'` (default) fills one device after the other, in graph order. `'sparseNn'` keeps embeddings apart, and repeats the rest on each of their devices.
   * `'costAware'` begins with one part for each node, and joins the two that save most time until nothing is saved. `'klBased'` begins with `'sizeBased'`, and swaps
   * nodes while that saves time. Both try all pairs, as PyTorch does, and are for graphs of some hundred nodes. `'aotBased'` takes the parts that the mappings say.
   */
  readonly mode?: PartitionMode
  /** Bytes per second between devices. `'costAware'` and `'klBased'` need it. */
  readonly transferRateBytesPerSec?: number
  /** How long each node takes, for `'costAware'` and `'klBased'`. */
  readonly nodeToLatencyMapping?: ReadonlyMap<Node, NodeLatency>
  /** The number of the part of each node, for `'aotBased'`. */
  readonly nodeToPartitionMapping?: ReadonlyMap<Node, number>
  /** The devices of each part, for `'aotBased'`. */
  readonly partitionToLogicalDeviceMapping?: ReadonlyMap<number, readonly number[]>
  /** Repeat the parts on devices that are left, if these have enough memory. Default false. */
  readonly saturateHost?: boolean
}

/** Whether a node is not computed: a placeholder or an attribute. A part gets its own copy of these. */
export const isInput = (node: Node): boolean => node.op === 'placeholder' || node.op === 'get_attr'

const isSize = (size: unknown): size is SizeBytes => typeof size === 'object' && size !== null && 'outputSize' in size && 'totalSize' in size

/** The size of a node, as getSizeOfAllNodes recorded it. @throws ArgumentError if it did not. */
function sizeOf(node: Node): SizeBytes {
  const size = node.meta['size_bytes']
  if (!isSize(size))
    throw new ArgumentError(`node has no size_bytes attr: the size of node '${node.name}' is not known; call getSizeOfAllNodes(gm, inputs) first.`)
  return size
}

/**
 * The bytes that a node needs beside `nodes`: its own, and those of its inputs that are not among them. PyTorch's get_extra_size_of.
 * @throws ArgumentError if getSizeOfAllNodes has not run.
 */
export function getExtraSizeOf(node: Node, nodes: ReadonlySet<Node>): number {
  checkCount('getExtraSizeOf', arguments, 2)
  checkNode('getExtraSizeOf', node)
  checkArgument(nodes instanceof Set, 'getExtraSizeOf', 'nodes', 'a Set of Nodes', nodes)
  let size = sizeOf(node).totalSize
  for (const input of node.allInputNodes) if (!nodes.has(input)) size += sizeOf(input).outputSize
  return size
}

/** A part of a graph. PyTorch's Partition. */
export class Partition {
  partitionId: number
  readonly nodes = new Set<Node>()
  /** The parts whose values it needs. */
  parents = new Set<Partition>()
  /** The parts that need its values. */
  children = new Set<Partition>()
  /** The most parts on a way to it from a part without parents; -1 if unknown. */
  bfsLevel = -1
  /** Bytes of its nodes, and of the values that they get from other parts. */
  usedMemBytes = 0
  logicalDeviceIds: number[] = []

  constructor(partitionId: number) {
    checkCount('Partition', arguments, 1)
    this.partitionId = partitionId
  }

  /** The number of the part. */
  toString(): string {
    return String(this.partitionId)
  }

  /** Adds a node, and its inputs that are placeholders or attributes. @throws ArgumentError if getSizeOfAllNodes has not run. */
  addNode(node: Node): void {
    for (const input of node.allInputNodes) if (isInput(input)) this.#add(input)
    this.#add(node)
  }

  /** Removes a node, and its inputs that are placeholders or attributes and that no other node of the part uses. */
  removeNode(node: Node): void {
    if (!this.#delete(node)) return
    for (const input of node.allInputNodes) if (isInput(input) && ![...input.users].some((user) => this.nodes.has(user))) this.#delete(input)
  }

  /** Computes `usedMemBytes` again, after `nodes` was changed. */
  recalculateMemSize(): void {
    this.usedMemBytes = 0
    for (const node of this.nodes) this.usedMemBytes += getExtraSizeOf(node, this.nodes)
  }

  #add(node: Node): void {
    if (this.nodes.has(node)) return
    this.nodes.add(node)
    this.usedMemBytes += getExtraSizeOf(node, this.nodes) - this.#countedAsInput(node)
  }

  #delete(node: Node): boolean {
    if (!this.nodes.has(node)) return false
    this.usedMemBytes += this.#countedAsInput(node) - getExtraSizeOf(node, this.nodes)
    return this.nodes.delete(node)
  }

  /** The bytes that a node's users in the part need for its value if the part does not have the node. */
  #countedAsInput(node: Node): number {
    let users = 0
    for (const user of node.users) if (this.nodes.has(user)) users++
    return users === 0 ? 0 : users * sizeOf(node).outputSize
  }
}

/** Throws ArgumentError unless the argument is a Partition. */
export const checkPartition = (where: string, value: unknown, name = 'partition'): void =>
  checkArgument(value instanceof Partition, where, name, 'a Partition', value)

/** Throws ArgumentError unless the argument is an array of Partitions. */
export function checkPartitions(where: string, value: unknown): void {
  checkArray(where, 'partitions', value)
  if (Array.isArray(value)) value.forEach((item, i) => checkPartition(where, item, `partitions[${i}]`))
}

/** Throws ArgumentError unless the argument is a Map. */
export const checkMap = (where: string, name: string, value: unknown): void => checkArgument(value instanceof Map, where, name, 'a Map', value)

const NONE: PartitionLatency = { memLatencySec: 0, computerLatencySec: 0, overallLatencySec: 0 }

/**
 * The latency of the critical path of a part: the longest chain of its nodes that need each other. PyTorch's get_latency_of_one_partition.
 * @throws ArgumentError for a node without a latency.
 */
export function getLatencyOfOnePartition(partition: Partition, nodeToLatencyMapping: ReadonlyMap<Node, NodeLatency>): PartitionLatency {
  checkCount('getLatencyOfOnePartition', arguments, 2)
  checkPartition('getLatencyOfOnePartition', partition)
  checkMap('getLatencyOfOnePartition', 'nodeToLatencyMapping', nodeToLatencyMapping)
  const nodes = [...partition.nodes].filter((node) => !isInput(node)).sort((a, b) => a.compareTo(b))
  // The longest chain that begins with each node.
  const longest = new Map<Node, PartitionLatency>()
  for (const node of nodes.toReversed()) {
    const latency = nodeToLatencyMapping.get(node)
    if (latency === undefined)
      throw new ArgumentError(`getLatencyOfOnePartition: nodeToLatencyMapping has no latency for node '${node.name}'; add one.`)
    const rest = slowest([...node.users].map((user) => longest.get(user)))
    longest.set(node, {
      memLatencySec: latency.memLatencySec + rest.memLatencySec,
      computerLatencySec: latency.computerLatencySec + rest.computerLatencySec,
      overallLatencySec: Math.max(latency.memLatencySec, latency.computerLatencySec) + rest.overallLatencySec,
    })
  }
  const inside = new Set(nodes)
  return slowest(nodes.filter((node) => !node.allInputNodes.some((input) => inside.has(input))).map((node) => longest.get(node)))
}

/** The first of the latencies that is largest. */
function slowest(latencies: readonly (PartitionLatency | undefined)[]): PartitionLatency {
  let most = NONE
  for (const latency of latencies) if (latency !== undefined && latency.overallLatencySec > most.overallLatencySec) most = latency
  return most
}

/** The latency of each part. PyTorch's get_partition_to_latency_mapping. */
export function getPartitionToLatencyMapping(
  partitions: readonly Partition[],
  nodeToLatencyMapping: ReadonlyMap<Node, NodeLatency>,
): Map<Partition, PartitionLatency> {
  checkCount('getPartitionToLatencyMapping', arguments, 2)
  checkPartitions('getPartitionToLatencyMapping', partitions)
  checkMap('getPartitionToLatencyMapping', 'nodeToLatencyMapping', nodeToLatencyMapping)
  return new Map(partitions.map((partition) => [partition, getLatencyOfOnePartition(partition, nodeToLatencyMapping)]))
}

/**
 * How long the values of `parent` take to get to `child`, in seconds; 0 if both are on the same devices. PyTorch's get_comm_latency_between.
 * @throws ArgumentError unless the rate is above 0.
 */
export function getCommLatencyBetween(parent: Partition, child: Partition, transferRateBytesPerSec: number): number {
  checkCount('getCommLatencyBetween', arguments, 3)
  checkPartition('getCommLatencyBetween', parent, 'parent')
  checkPartition('getCommLatencyBetween', child, 'child')
  const { logicalDeviceIds: devices } = parent
  if (devices.length > 0 && devices.length === child.logicalDeviceIds.length && devices.every((id, i) => id === child.logicalDeviceIds[i])) return 0
  if (!(transferRateBytesPerSec > 0))
    throw new ArgumentError(
      `transferRateBytesPerSec must be a number above 0, got ${valueText(transferRateBytesPerSec)}; it says how fast values get from device to device.`,
    )
  const sent = new Set<Node>()
  for (const node of child.nodes) for (const input of node.allInputNodes) if (parent.nodes.has(input)) sent.add(input)
  let bytes = 0
  for (const node of sent) bytes += sizeOf(node).outputSize
  return bytes / transferRateBytesPerSec
}
