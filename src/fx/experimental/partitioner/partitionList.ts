// Lists of parts of a graph: which parts need which others, and which devices they fit. PyTorch's helpers in torch.fx.experimental.accelerator_partitioner.
import { ArgumentError } from '../../../errors/index.ts'
import { checkArgument, checkArray, checkCount, isObject } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import { Dependencies, LastReady } from '../../passes/nodes/order.ts'
import { Partition, checkMap, checkPartition, checkPartitions, getCommLatencyBetween, getExtraSizeOf } from './partitionerUtils.ts'
import type { Device, PartitionLatency } from './partitionerUtils.ts'

const isDevice = (value: unknown): boolean =>
  isObject(value) && Number.isInteger(Reflect.get(value, 'logicalId')) && typeof Reflect.get(value, 'availableMemBytes') === 'number'

function checkDevices(where: string, value: unknown): void {
  checkArray(where, 'devices', value)
  if (Array.isArray(value))
    value.forEach((item, i) => checkArgument(isDevice(item), where, `devices[${i}]`, 'a Device { name, logicalId, availableMemBytes }', item))
}

/** Notes which parts need values of which others. PyTorch's set_parents_and_children. */
export function setParentsAndChildren(partitions: readonly Partition[]): void {
  checkCount('setParentsAndChildren', arguments, 1)
  checkPartitions('setParentsAndChildren', partitions)
  // Placeholders and attributes are in every part that needs them.
  const homes = new Map<Node, Partition[]>()
  for (const partition of partitions) {
    partition.parents = new Set()
    partition.children = new Set()
    for (const node of partition.nodes) {
      const known = homes.get(node)
      if (known === undefined) homes.set(node, [partition])
      else known.push(partition)
    }
  }
  for (const partition of partitions)
    for (const node of partition.nodes)
      for (const user of node.users)
        for (const child of homes.get(user) ?? []) {
          if (child === partition || child.nodes.has(node)) continue
          partition.children.add(child)
          child.parents.add(partition)
        }
}

/** Numbers parts by their places, and notes which need which others. PyTorch's reorganize_partitions. */
export function reorganizePartitions(partitions: readonly Partition[]): void {
  checkCount('reorganizePartitions', arguments, 1)
  checkPartitions('reorganizePartitions', partitions)
  for (const [i, partition] of partitions.entries()) partition.partitionId = i
  setParentsAndChildren(partitions)
}

/** Replaces two parts of a list by one with the nodes of both, at the end. PyTorch's combine_two_partitions. */
export function combineTwoPartitions(first: Partition, second: Partition, partitions: Partition[]): void {
  checkCount('combineTwoPartitions', arguments, 3)
  checkPartition('combineTwoPartitions', first, 'first')
  checkPartition('combineTwoPartitions', second, 'second')
  checkPartitions('combineTwoPartitions', partitions)
  const combined = new Partition(partitions.length)
  for (const { nodes } of [first, second]) for (const node of nodes) combined.nodes.add(node)
  combined.recalculateMemSize()
  const rest = partitions.filter((partition) => partition !== first && partition !== second)
  partitions.splice(0, Infinity, ...rest, combined)
  reorganizePartitions(partitions)
}

/** Parts, each behind its parents. Those in a cycle are left out. */
function ordered(partitions: readonly Partition[]): readonly Partition[] {
  const dependencies = new Dependencies(partitions)
  for (const partition of partitions) for (const parent of partition.parents) dependencies.require(partition, parent)
  return dependencies.order(new LastReady()).order
}

/** Sets the levels of parts. PyTorch's get_bfs_level_partition. */
export function getBfsLevelPartition(partitions: readonly Partition[]): void {
  checkCount('getBfsLevelPartition', arguments, 1)
  checkPartitions('getBfsLevelPartition', partitions)
  for (const partition of ordered(partitions)) {
    let level = -1
    for (const parent of partition.parents) level = Math.max(level, parent.bfsLevel)
    partition.bfsLevel = level + 1
  }
}

/** The number of the part of each node; the last part, if several have it. PyTorch's get_node_to_partition_mapping. */
export function getNodeToPartitionMapping(partitions: readonly Partition[]): Map<Node, number> {
  checkCount('getNodeToPartitionMapping', arguments, 1)
  checkPartitions('getNodeToPartitionMapping', partitions)
  const mapping = new Map<Node, number>()
  for (const partition of partitions) for (const node of partition.nodes) mapping.set(node, partition.partitionId)
  return mapping
}

/** Devices by their numbers. PyTorch's get_logical_id_to_device. */
export function getLogicalIdToDevice(devices: readonly Device[]): Map<number, Device> {
  checkCount('getLogicalIdToDevice', arguments, 1)
  checkDevices('getLogicalIdToDevice', devices)
  return new Map(devices.map((device) => [device.logicalId, device]))
}

/** What {@link getDevicePartitionStats} returns. */
export interface DevicePartitionStats {
  readonly deviceToPartitions: Map<Device, Partition[]>
  readonly deviceToLeftMemBytes: Map<Device, number>
  readonly noDevicePartitions: readonly Partition[]
}

/** The parts and the memory left on each device, and the parts that have none. PyTorch's get_device_partition_stats. @throws ArgumentError for a device that is missing. */
export function getDevicePartitionStats(partitions: readonly Partition[], devices: readonly Device[]): DevicePartitionStats {
  checkCount('getDevicePartitionStats', arguments, 2)
  checkPartitions('getDevicePartitionStats', partitions)
  checkDevices('getDevicePartitionStats', devices)
  const byId = getLogicalIdToDevice(devices)
  const deviceToPartitions = new Map(devices.map((device): [Device, Partition[]] => [device, []]))
  const deviceToLeftMemBytes = new Map(devices.map((device) => [device, device.availableMemBytes]))
  for (const partition of partitions)
    for (const id of partition.logicalDeviceIds) {
      const device = byId.get(id)
      if (device === undefined)
        throw new ArgumentError(`part ${partition} is on device ${id}, which is not among the devices; add it, or change the part's devices.`)
      deviceToPartitions.get(device)?.push(partition)
      deviceToLeftMemBytes.set(device, (deviceToLeftMemBytes.get(device) ?? 0) - partition.usedMemBytes)
    }
  return { deviceToPartitions, deviceToLeftMemBytes, noDevicePartitions: partitions.filter((partition) => partition.logicalDeviceIds.length === 0) }
}

/**
 * Gives each part that has no device the one with the least memory left that has more than the part needs. Returns whether there was one for every part. PyTorch's
 * get_device_to_partitions_mapping.
 */
export function getDeviceToPartitionsMapping(partitions: readonly Partition[], devices: readonly Device[]): boolean {
  checkCount('getDeviceToPartitionsMapping', arguments, 2)
  checkPartitions('getDeviceToPartitionsMapping', partitions)
  checkDevices('getDeviceToPartitionsMapping', devices)
  const { deviceToPartitions, deviceToLeftMemBytes, noDevicePartitions } = getDevicePartitionStats(partitions, devices)
  let order = [...devices]
  const left = (device: Device): number => deviceToLeftMemBytes.get(device) ?? 0
  return noDevicePartitions.every((partition) => {
    order = order.toSorted((a, b) => left(a) - left(b))
    for (const device of order) {
      const there = deviceToPartitions.get(device) ?? []
      const needed = neededBeside(partition, there)
      if (needed >= left(device)) continue
      there.push(partition)
      partition.logicalDeviceIds.push(device.logicalId)
      deviceToLeftMemBytes.set(device, left(device) - needed)
      return true
    }
    return false
  })
}

/** The bytes that a part needs on a device that has others. */
function neededBeside(partition: Partition, others: readonly Partition[]): number {
  if (others.every(({ nodes }) => nodes.size === 0)) return partition.usedMemBytes
  const together = new Set([...others, partition].flatMap(({ nodes }) => [...nodes]))
  let bytes = 0
  for (const node of partition.nodes) bytes += getExtraSizeOf(node, together)
  return bytes
}

/** Takes parts off their devices. PyTorch's reset_partition_device. */
export function resetPartitionDevice(partitions: readonly Partition[]): void {
  checkCount('resetPartitionDevice', arguments, 1)
  checkPartitions('resetPartitionDevice', partitions)
  for (const partition of partitions) partition.logicalDeviceIds = []
}

/** Whether a part needs, through others, its own values. PyTorch's check_dependency. */
export function checkDependency(partition: Partition): boolean {
  checkCount('checkDependency', arguments, 1)
  checkPartition('checkDependency', partition)
  const reached = new Set(partition.children)
  for (const next of reached) {
    if (next === partition) return true
    for (const child of next.children) reached.add(child)
  }
  return false
}

/**
 * The time that the parts take, in seconds: that of the longest chain, with the time that values take from part to part. PyTorch's get_latency_of_partitioned_graph.
 * @throws ArgumentError unless the rate is above 0.
 */
export function getLatencyOfPartitionedGraph(
  partitions: readonly Partition[],
  partitionToLatencyMapping: ReadonlyMap<Partition, PartitionLatency>,
  transferRateBytesPerSec: number,
): number {
  checkCount('getLatencyOfPartitionedGraph', arguments, 3)
  checkPartitions('getLatencyOfPartitionedGraph', partitions)
  checkMap('getLatencyOfPartitionedGraph', 'partitionToLatencyMapping', partitionToLatencyMapping)
  // The longest chain that begins with each part.
  const longest = new Map<Partition, number>()
  let most = 0
  for (const partition of ordered(partitions).toReversed()) {
    let rest = 0
    for (const child of partition.children)
      rest = Math.max(rest, (longest.get(child) ?? 0) + getCommLatencyBetween(partition, child, transferRateBytesPerSec))
    const latency = (partitionToLatencyMapping.get(partition)?.overallLatencySec ?? 0) + rest
    longest.set(partition, latency)
    most = Math.max(most, latency)
  }
  return most
}
