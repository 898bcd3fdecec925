// Partitioner: divides a graph among devices. PyTorch's torch.fx.experimental.accelerator_partitioner.
import { ArgumentError } from '../../../errors/index.ts'
import { checkOptions, nearest, valueText } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { getSizeOfAllNodes } from '../../passes/each/sizes.ts'
import { splitModule } from '../../passes/split/splitModule.ts'
import { getDevicePartitionStats, getNodeToPartitionMapping } from './partitionList.ts'
import { aotBased, costAware, klBased, sizeBased, sparseNn } from './partitionStrategies.ts'
import type { Strategy } from './partitionStrategies.ts'
import { Partition, isInput } from './partitionerUtils.ts'
import type { Device, PartitionMode, PartitionerConfig } from './partitionerUtils.ts'

/** A part in the divided module. PyTorch's DAGNode. */
export interface DAGNode {
  /** The node that calls the part. */
  readonly submoduleNode: Node
  /** The nodes whose values it takes. */
  readonly inputNodes: readonly Node[]
  /** Its users if there are several, such as the nodes that take its results apart; otherwise the call itself. */
  readonly outputNodes: readonly Node[]
  readonly logicalDeviceIds: readonly number[]
  /** The bytes that it needs. */
  readonly sizeBytes: number
}

/** What {@link Partitioner.partitionGraph} returns. PyTorch's PartitionResult. */
export interface PartitionResult {
  /** The parts, in the order in which they run. PyTorch's DAG. */
  readonly dag: { readonly nodes: readonly DAGNode[] }
  /** The module that calls the parts in turn: `submod_0`, `submod_1`, … */
  readonly moduleWithSubmodules: GraphModule
}

const STRATEGIES: Readonly<Record<PartitionMode, Strategy>> = { sizeBased, sparseNn, costAware, klBased, aotBased }

const isMode = (mode: string): mode is PartitionMode => Object.hasOwn(STRATEGIES, mode)

/**
 * Divides a graph among devices that are too small for all of it. The devices are descriptions (their memory, how fast values get from one to another), so the result
 * can be planned anywhere. PyTorch's Partitioner.
 *
 *     getSizeOfAllNodes(gm, [x])
 *     const devices = [{ name: 'a', availableMemBytes: 4000, logicalId: 0 }, { name: 'b', availableMemBytes: 4000, logicalId: 1 }]
 *     const { dag, moduleWithSubmodules } = new Partitioner().partitionGraph(gm, { devices })
 */
export class Partitioner {
  /** The parts of the last graph. */
  partitions: Partition[] = []
  /** The number of the part of each node of the last graph. */
  nodeToPartition: ReadonlyMap<Node, number> = new Map()

  /**
   * Divides a graph, which does not change. ShapeProp must have run on it, as `getSizeOfAllNodes(gm, inputs)` does. PyTorch's partition_graph, which also takes the
   * original module.
   * @throws ArgumentError without devices, for a graph that computes nothing, and if the devices have not enough memory.
   */
  partitionGraph(gm: GraphModule, config: PartitionerConfig): PartitionResult {
    const { devices, mode = 'sizeBased' } = checked(gm, config)
    const sizes = getSizeOfAllNodes(gm)
    if ([...gm.graph.nodes].every((node) => isInput(node) || node.op === 'output'))
      throw new ArgumentError('No Partition since no operations in the module')
    const total = [...sizes.values()].reduce((sum, { totalSize }) => sum + totalSize, 0)
    const largest = devices.reduce((a, b) => (b.availableMemBytes > a.availableMemBytes ? b : a))
    if (mode === 'aotBased') this.partitions = aotBased(gm, config)
    else if (total <= largest.availableMemBytes) this.partitions = [wholeGraph(gm, total, largest)]
    else if (total > devices.reduce((sum, device) => sum + device.availableMemBytes, 0))
      throw new ArgumentError(`Devices do not have enough memory for the module: it needs ${total} bytes.`)
    else this.partitions = STRATEGIES[mode](gm, config)
    this.nodeToPartition = mode === 'aotBased' ? new Map(config.nodeToPartitionMapping) : getNodeToPartitionMapping(this.partitions)
    if (config.saturateHost === true) this.saturateHost(devices)
    const moduleWithSubmodules = splitModule(gm, (node) => this.#partOf(node))
    return { dag: { nodes: this.#dagOf(moduleWithSubmodules) }, moduleWithSubmodules }
  }

  /**
   * Repeats the parts on devices that have none, as often as there are enough: each device that is used gets the smallest idle one that can hold its parts. PyTorch's
   * saturate_host, which also prints the devices of each part. Throws ArgumentError if a part has no device yet.
   */
  saturateHost(devices: readonly Device[]): void {
    const { deviceToPartitions, deviceToLeftMemBytes, noDevicePartitions } = getDevicePartitionStats(this.partitions, devices)
    if (noDevicePartitions.length > 0) throw new ArgumentError(`saturateHost: ${noDevicePartitions.length} parts have no device; give them one.`)
    const used = devices.filter((device) => (deviceToPartitions.get(device) ?? []).length > 0)
    const replicas = new Map<Device, Device>()
    while (used.length * 2 + replicas.size <= devices.length) {
      const idle = new Set(devices.filter((device) => !used.includes(device) && !replicas.has(device)))
      const round = new Map<Device, Device>()
      for (const original of used) {
        const needed = original.availableMemBytes - (deviceToLeftMemBytes.get(original) ?? 0)
        const [smallest] = [...idle]
          .filter((device) => device.availableMemBytes >= needed)
          .toSorted((a, b) => a.availableMemBytes - b.availableMemBytes)
        if (smallest === undefined) break
        idle.delete(smallest)
        round.set(smallest, original)
      }
      if (round.size < used.length || round.size === 0) break
      for (const [replica, original] of round) replicas.set(replica, original)
    }
    for (const [replica, original] of replicas)
      for (const partition of deviceToPartitions.get(original) ?? []) partition.logicalDeviceIds.push(replica.logicalId)
  }

  #partOf(node: Node): number {
    const id = this.nodeToPartition.get(node)
    if (id === undefined) throw new ArgumentError(`nodeToPartitionMapping has no part for node '${node.name}'; add one.`)
    return id
  }

  #dagOf(gm: GraphModule): DAGNode[] {
    const byPath = new Map(this.partitions.map((partition) => [`submod_${partition}`, partition]))
    return [...gm.graph.nodes].flatMap((node) => {
      const partition = node.op === 'call_module' ? byPath.get(node.target) : undefined
      if (partition === undefined) return []
      const { logicalDeviceIds, usedMemBytes: sizeBytes } = partition
      return [
        {
          submoduleNode: node,
          inputNodes: node.allInputNodes,
          outputNodes: node.users.size > 1 ? [...node.users] : [node],
          logicalDeviceIds,
          sizeBytes,
        },
      ]
    })
  }
}

function checked(gm: GraphModule, config: PartitionerConfig): PartitionerConfig {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('partitionGraph: the first argument must be a GraphModule; trace the model with symbolicTrace first.')
  checkOptions('partitionGraph', config, {
    devices: true,
    mode: true,
    transferRateBytesPerSec: 'number',
    nodeToLatencyMapping: true,
    nodeToPartitionMapping: true,
    partitionToLogicalDeviceMapping: true,
    saturateHost: 'boolean',
  })
  const { devices, mode = 'sizeBased' } = config
  if (!Array.isArray(devices) || devices.length === 0) throw new ArgumentError('No devices: partitionGraph needs a list with at least one.')
  if (!isMode(mode)) {
    const meant = nearest(String(mode), Object.keys(STRATEGIES))
    throw new ArgumentError(
      `partitionGraph: mode must be one of ${Object.keys(STRATEGIES).join(', ')}, got ${valueText(mode)}${meant === null ? '.' : `; did you mean '${meant}'?`}`,
    )
  }
  return config
}

/** One part, on one device. */
function wholeGraph(gm: GraphModule, size: number, device: Device): Partition {
  const partition = new Partition(0)
  for (const node of gm.graph.nodes) if (node.op !== 'output') partition.nodes.add(node)
  partition.usedMemBytes = size
  partition.logicalDeviceIds = [device.logicalId]
  return partition
}
