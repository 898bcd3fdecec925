// The ways to divide a graph among devices; see PartitionerConfig.mode.
import { ArgumentError } from '../../../errors/index.ts'
import { Module } from '../../../module/index.ts'
import type { Node } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import {
  checkDependency,
  combineTwoPartitions,
  getBfsLevelPartition,
  getDeviceToPartitionsMapping,
  getLatencyOfPartitionedGraph,
  reorganizePartitions,
  resetPartitionDevice,
  setParentsAndChildren,
} from './partitionList.ts'
import { Partition, getExtraSizeOf, getPartitionToLatencyMapping, isInput } from './partitionerUtils.ts'
import type { Device, PartitionerConfig } from './partitionerUtils.ts'

/** Returns the parts, which know their devices. */
export type Strategy = (gm: GraphModule, config: PartitionerConfig) => Partition[]

const computed = (gm: GraphModule): Node[] => [...gm.graph.nodes].filter((node) => !isInput(node) && node.op !== 'output')

const NO_MAPPING = 'Cannot Get a Valid Partition to Logical Device Mapping: the parts do not fit the memory of the devices'

/** Fills one device after the other, in graph order. What is left goes, node by node, where there is memory. */
export const sizeBased: Strategy = (gm, { devices }) => {
  const partitions: Partition[] = []
  const free = new Set(devices)
  let [current, left]: [Partition | null, number] = [null, 0]
  const open = (node: Node): Partition => {
    const device = takeDevice(node, free)
    const partition = new Partition(partitions.length)
    partition.logicalDeviceIds.push(device.logicalId)
    partitions.push(partition)
    left = device.availableMemBytes
    return partition
  }
  let isFull = false
  for (const node of computed(gm)) {
    if (!isFull) {
      const fits = current !== null && getExtraSizeOf(node, current.nodes) <= left
      isFull = current !== null && !fits && partitions.length === devices.length
      if (!isFull) {
        if (!fits) current = open(node)
        left -= getExtraSizeOf(node, current?.nodes ?? new Set())
        current?.addNode(node)
        continue
      }
    }
    partitions.push(single(node, partitions.length))
  }
  reorganizePartitions(partitions)
  if (!getDeviceToPartitionsMapping(partitions, devices)) throw new ArgumentError(`${NO_MAPPING}.`)
  return partitions
}

function single(node: Node, id: number): Partition {
  const partition = new Partition(id)
  partition.addNode(node)
  return partition
}

/** The first device of a set that can hold a node, which it loses. */
function takeDevice(node: Node, free: Set<Device>): Device {
  const needed = getExtraSizeOf(node, new Set())
  for (const device of free) {
    if (device.availableMemBytes < needed) continue
    free.delete(device)
    return device
  }
  throw new ArgumentError(`${node.name} is too large to fit any device: it needs ${needed} bytes, more than the devices that are left have.`)
}

/** Parts for embeddings, each on a device of its own; all other parts are on each of these devices. */
export const sparseNn: Strategy = (gm, { devices }) => {
  const [first] = devices
  const available = first?.availableMemBytes ?? 0
  if (devices.some((device) => device.availableMemBytes !== available)) throw new ArgumentError('All devices must have same memory size!')
  const partitions: Partition[] = []
  const regions = { embedding: new Set<Partition>(), other: new Set<Partition>() }
  let [current, inEmbeddings]: [Partition | null, boolean] = [null, false]
  for (const node of computed(gm)) {
    const isEmbedding = isEmbeddingNode(gm, node)
    const extra = current === null ? 0 : getExtraSizeOf(node, current.nodes) + current.usedMemBytes
    if (current === null || isEmbedding !== inEmbeddings || extra > available) {
      if (getExtraSizeOf(node, new Set()) > available)
        throw new ArgumentError(`${node.name} is too large to fit into a device, which has ${available} bytes.`)
      current = new Partition(partitions.length)
      partitions.push(current)
      regions[isEmbedding ? 'embedding' : 'other'].add(current)
      inEmbeddings = isEmbedding
    }
    current.addNode(node)
  }
  setParentsAndChildren(partitions)
  combineBySize(partitions, regions.other, available)
  combineBySize(partitions, regions.embedding, available)
  placeSparse([...regions.embedding], [...regions.other], devices, available)
  return partitions
}

/** Layers are recognised by their attributes, because minifiers change class names. */
function isEmbeddingNode(gm: GraphModule, node: Node): boolean {
  const module = node.op === 'call_module' ? gm.attribute(node.target) : null
  return module instanceof Module && [...module.modules()].some((m) => 'numEmbeddings' in m)
}

/** Joins the smallest part of a region with the largest other one that is at most one level away and leaves enough memory, until there is none. */
function combineBySize(partitions: Partition[], region: Set<Partition>, available: number): void {
  for (;;) {
    getBfsLevelPartition(partitions)
    const [smallest, ...others] = [...region].toSorted((a, b) => a.usedMemBytes - b.usedMemBytes)
    const partner = others
      .toReversed()
      .find((other) => smallest !== undefined && Math.abs(smallest.bfsLevel - other.bfsLevel) <= 1 && sizeTogether(smallest, other) <= available)
    if (smallest === undefined || partner === undefined) return
    combineTwoPartitions(partner, smallest, partitions)
    region.delete(smallest)
    region.delete(partner)
    const combined = partitions.at(-1)
    if (combined !== undefined) region.add(combined)
  }
}

function sizeTogether(a: Partition, b: Partition): number {
  const together = new Set([...a.nodes, ...b.nodes])
  let bytes = 0
  for (const node of together) bytes += getExtraSizeOf(node, together)
  return bytes
}

function placeSparse(embeddings: readonly Partition[], others: readonly Partition[], devices: readonly Device[], available: number): void {
  if (embeddings.length > devices.length) throw new ArgumentError(`Need ${embeddings.length} devices, but only ${devices.length} provided`)
  const rest = others.reduce((sum, partition) => sum + partition.usedMemBytes, 0)
  const used: number[] = []
  for (const [i, partition] of embeddings.entries()) {
    if (rest + partition.usedMemBytes > available)
      throw new ArgumentError(
        `partition_${partition}(embedding partition) and non embedding partitions can not fit into one device: they need ${rest + partition.usedMemBytes} of ${available} bytes.`,
      )
    for (const device of devices.slice(i, i + 1)) used.push(device.logicalId)
    partition.logicalDeviceIds = used.slice(-1)
  }
  for (const partition of others) partition.logicalDeviceIds = [...used]
}

const costOf = (partitions: readonly Partition[], { nodeToLatencyMapping = new Map(), transferRateBytesPerSec = 0 }: PartitionerConfig): number =>
  getLatencyOfPartitionedGraph(partitions, getPartitionToLatencyMapping(partitions, nodeToLatencyMapping), transferRateBytesPerSec)

/** Begins with a part for each node, and joins the two parts with which the graph takes least, as long as it does not take longer. */
export const costAware: Strategy = (gm, config) => {
  const partitions = computed(gm).map(single)
  setParentsAndChildren(partitions)
  getBfsLevelPartition(partitions)
  while (joinBestPair(partitions, config));
  reorganizePartitions(partitions)
  if (partitions.some((partition) => partition.logicalDeviceIds.length === 0)) throw new ArgumentError(`${NO_MAPPING}.`)
  return partitions
}

function joinBestPair(partitions: Partition[], config: PartitionerConfig): boolean {
  let cost = costOf(partitions, config)
  let best: readonly [Partition, Partition] | null = null
  for (const [i, first] of partitions.entries())
    for (const second of partitions.slice(i + 1)) {
      const joined = costOfJoining(first, second, [...partitions], config)
      if (joined <= cost) {
        cost = joined
        best = [first, second]
      }
      reorganizePartitions(partitions)
    }
  if (best !== null) combineTwoPartitions(...best, partitions)
  getBfsLevelPartition(partitions)
  resetPartitionDevice(partitions)
  getDeviceToPartitionsMapping(partitions, config.devices)
  return best !== null
}

/** What the graph takes if two parts of a list are joined; Infinity if they cannot be. */
function costOfJoining(first: Partition, second: Partition, partitions: Partition[], config: PartitionerConfig): number {
  if (Math.abs(first.bfsLevel - second.bfsLevel) > 1 && !second.parents.has(first) && !second.children.has(first)) return Infinity
  combineTwoPartitions(first, second, partitions)
  const combined = partitions.at(-1)
  if (combined === undefined || checkDependency(combined)) return Infinity
  resetPartitionDevice(partitions)
  return getDeviceToPartitionsMapping(partitions, config.devices) ? costOf(partitions, config) : Infinity
}

/** Begins with {@link sizeBased}; then each node in turn moves to another part, alone or in exchange for a node of that part, if the graph then takes less. */
export const klBased: Strategy = (gm, config) => {
  const partitions = sizeBased(gm, config)
  let cost = costOf(partitions, config)
  for (const node of computed(gm)) {
    const home = partitions.find(({ nodes }) => nodes.has(node))
    if (home === undefined) continue
    let best: readonly [Node | null, Partition] | null = null
    for (const other of partitions) {
      if (other === home) continue
      const candidates = [...other.nodes].filter((n) => !isInput(n)).toSorted((a, b) => a.compareTo(b))
      for (const candidate of [...candidates, null]) {
        const swapped = costOfSwapping(node, candidate, home, other, partitions, config)
        if (swapped >= cost) continue
        cost = swapped
        best = [candidate, other]
      }
    }
    if (best !== null) swap(node, best[0], home, best[1])
    place(partitions, config)
  }
  return partitions
}

/** Takes parts off their devices and finds devices again; false if they do not fit. */
function place(partitions: readonly Partition[], { devices }: PartitionerConfig): boolean {
  reorganizePartitions(partitions)
  resetPartitionDevice(partitions)
  return getDeviceToPartitionsMapping(partitions, devices)
}

function swap(node: Node, other: Node | null, home: Partition, target: Partition): void {
  home.removeNode(node)
  target.addNode(node)
  if (other === null) return
  home.addNode(other)
  target.removeNode(other)
}

/** What the graph takes if two nodes are exchanged; Infinity if they cannot be. The parts stay as they are. */
function costOfSwapping(
  node: Node,
  other: Node | null,
  home: Partition,
  target: Partition,
  partitions: readonly Partition[],
  config: PartitionerConfig,
): number {
  const before = [home, target].map((partition) => [...partition.nodes])
  swap(node, other, home, target)
  const isPlaced = place(partitions, config)
  const isLegal = isPlaced && !checkDependency(home) && !checkDependency(target)
  const cost = isLegal ? costOf(partitions, config) : Infinity
  for (const [i, partition] of [home, target].entries()) {
    partition.nodes.clear()
    for (const n of before[i] ?? []) partition.nodes.add(n)
    partition.recalculateMemSize()
  }
  place(partitions, config)
  return cost
}

/** The parts and devices that the mappings say. */
export const aotBased: Strategy = (_gm, { nodeToPartitionMapping = new Map<Node, number>(), partitionToLogicalDeviceMapping = new Map() }) => {
  const partitions = new Map<number, Partition>()
  for (const [node, id] of nodeToPartitionMapping) {
    const partition = partitions.get(id) ?? new Partition(id)
    if (!partitions.has(id)) {
      const devices: readonly number[] | undefined = partitionToLogicalDeviceMapping.get(id)
      if (devices === undefined) throw new ArgumentError(`partitionToLogicalDeviceMapping has no devices for part ${id}; add them.`)
      partition.logicalDeviceIds = [...devices]
      partitions.set(id, partition)
    }
    partition.addNode(node)
  }
  return [...partitions.values()]
}
