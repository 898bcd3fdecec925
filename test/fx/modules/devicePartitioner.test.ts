// Dividing a graph among devices; PyTorch's experimental.partitioner_utils, experimental.accelerator_partitioner, and the partitioner tests of test_fx_experimental.py.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import {
  Partition,
  Partitioner,
  checkDependency,
  combineTwoPartitions,
  getBfsLevelPartition,
  getCommLatencyBetween,
  getDevicePartitionStats,
  getDeviceToPartitionsMapping,
  getExtraSizeOf,
  getLatencyOfPartitionedGraph,
  getLogicalIdToDevice,
  getNodeToPartitionMapping,
  getPartitionToLatencyMapping,
  reorganizePartitions,
  setParentsAndChildren,
} from 'tensorfx/fx/experimental'
import type { Device, NodeLatency, PartitionerConfig } from 'tensorfx/fx/experimental'
import { Embedding, Linear, Module } from 'tensorfx/nn'
import { getSizeOfAllNodes } from 'tensorfx/fx/passes'
import { detInit, detInput, detTokens } from '../../helpers/deterministic.ts'
import { checkOutput } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { X, Y, describeGolden, expectText, messageOf, names, nodeOf, resultOf } from './golden.ts'

const { add, sub, mul } = operator as unknown as Record<'add' | 'sub' | 'mul', (a: unknown, b: unknown) => Tensor>

class Lin4 extends Module {
  linear: Linear = new Linear(4, 4)
  override forward(a: Tensor, b: Tensor): Tensor {
    const sum = add(a, b)
    return sub(torch.relu(add(this.linear.call(sum), 1)), b)
  }
}

class Sparse extends Module {
  e1: Embedding = new Embedding(50, 4)
  e2: Embedding = new Embedding(50, 4)
  top: Linear = new Linear(4, 2)
  override forward(i: Tensor, j: Tensor): Tensor {
    return this.top.call(add(this.e1.call(i), this.e2.call(j)))
  }
}

class MLP3 extends Module {
  linear: Linear = new Linear(4, 4)
  override forward(a: Tensor): Tensor {
    return add(torch.sin(torch.relu(this.linear.call(a))), 1)
  }
}

const sized = (model: Module, ...inputs: readonly Tensor[]): GraphModule => {
  const gm = symbolicTrace(model) as GraphModule
  getSizeOfAllNodes(gm, inputs)
  return gm
}
const lin4 = (): GraphModule => sized(detInit(new Lin4()), X, Y)

const part = (gm: GraphModule, id: number, ...wanted: readonly string[]): Partition => {
  const partition = new Partition(id)
  for (const name of wanted) partition.addNode(nodeOf(gm, name))
  return partition
}

const inOrder = (nodes: Iterable<Node>): string[] => names([...nodes].toSorted((a, b) => a.compareTo(b)))

type Latencies = Readonly<Record<string, readonly [number, number]>>

const latencies = (gm: GraphModule, table: Latencies): Map<Node, NodeLatency> =>
  new Map(
    Array.from(gm.graph.nodes, (node) => {
      const [memLatencySec, computerLatencySec] = table[node.name] ?? [0, 0]
      return [node, { memLatencySec, computerLatencySec }]
    }),
  )

const devices = (...sizes: readonly number[]): Device[] =>
  sizes.map((availableMemBytes, i) => ({ name: `dev_${i}`, availableMemBytes, logicalId: i }))

describeGolden('partitioner_utils', {
  add_and_remove_nodes: (golden) => {
    const gm = lin4()
    const p = part(gm, 0, 'add')
    const state = (): [string[], number] => [inOrder(p.nodes), p.usedMemBytes]
    const seen: unknown[] = [[...state(), String(p)]]
    for (const [change, name] of [
      ['addNode', 'linear'] as const,
      ['addNode', 'sub'] as const,
      ['removeNode', 'add'] as const,
      ['removeNode', 'sub'] as const,
    ]) {
      p[change](nodeOf(gm, name))
      seen.push(state())
    }
    p.removeNode(nodeOf(gm, 'relu'))
    seen.push(p.usedMemBytes)
    expect(seen).toEqual(golden.result)
    p.recalculateMemSize()
    expect(p.usedMemBytes).toBe(seen.at(-1))
  },
  extra_sizes: (golden) => {
    const gm = lin4()
    const sets = [new Set<Node>(), new Set([nodeOf(gm, 'a'), nodeOf(gm, 'b')]), new Set(gm.graph.nodes)]
    const ours = ['a', 'add', 'linear', 'add_1', 'relu', 'sub'].map((name) => [name, sets.map((nodes) => getExtraSizeOf(nodeOf(gm, name), nodes))])
    expect(Object.fromEntries(ours)).toEqual(golden.result)
  },
  size_is_required: (golden) => {
    const gm = symbolicTrace(new Lin4())
    expect(messageOf(() => getExtraSizeOf(nodeOf(gm, 'add'), new Set()))).toContain(resultOf<{ error: string }>(golden).error)
  },
  communication_between: (golden) => {
    const gm = lin4()
    const [p0, p1] = [part(gm, 0, 'add', 'linear'), part(gm, 1, 'add_1', 'relu', 'sub')]
    const seen = [getCommLatencyBetween(p0, p1, 4), getCommLatencyBetween(p1, p0, 4)]
    p0.logicalDeviceIds = [0]
    p1.logicalDeviceIds = [1]
    seen.push(getCommLatencyBetween(p0, p1, 8))
    p1.logicalDeviceIds = [0]
    seen.push(getCommLatencyBetween(p0, p1, 8))
    expect(seen).toEqual(golden.result)
  },
  latency_of_graph: (golden) => {
    const gm = lin4()
    const parts = [part(gm, 0, 'add', 'linear'), part(gm, 1, 'add_1', 'relu'), part(gm, 2, 'sub')]
    setParentsAndChildren(parts)
    const mapping = getPartitionToLatencyMapping(parts, latencies(gm, { add: [2, 1], linear: [3, 9], add_1: [1, 1], relu: [1, 4], sub: [2, 2] }))
    const shown = Object.fromEntries(Array.from(mapping, ([p, l]) => [String(p), [l.memLatencySec, l.computerLatencySec, l.overallLatencySec]]))
    expect([shown, getLatencyOfPartitionedGraph(parts, mapping, 2), getLatencyOfPartitionedGraph(parts, mapping, 1000)]).toEqual(golden.result)
  },
  'configuration_defaults (difference: camel-case)': (golden) => {
    const [mode, , , , , , modes] = resultOf<[string, ...unknown[]]>(golden)
    expect([mode, Object.keys(modes as object)]).toEqual(['size_based', ['size_based', 'sparse_nn', 'cost_aware', 'kl_based', 'aot_based']])
    const wrong = { devices: devices(10), mode: 'costaware' } as unknown as PartitionerConfig
    expect(messageOf(() => new Partitioner().partitionGraph(lin4(), wrong))).toBe(
      "partitionGraph: mode must be one of sizeBased, sparseNn, costAware, klBased, aotBased, got 'costaware'; did you mean 'costAware'?",
    )
  },
  parents_children_levels: (golden) => {
    const gm = lin4()
    const parts = [part(gm, 5, 'add'), part(gm, 6, 'linear'), part(gm, 7, 'add_1', 'relu'), part(gm, 8, 'sub')]
    reorganizePartitions(parts)
    getBfsLevelPartition(parts)
    const shown = parts.map((p) => [
      String(p),
      [...p.parents].map(String).toSorted(),
      [...p.children].map(String).toSorted(),
      p.bfsLevel,
      checkDependency(p),
    ])
    const mapping = Object.fromEntries(Array.from(getNodeToPartitionMapping(parts), ([node, id]) => [node.name, id]))
    expect([...shown, mapping]).toEqual(golden.result)
  },
  combine_two: (golden) => {
    const gm = lin4()
    const parts = [part(gm, 0, 'add'), part(gm, 1, 'linear'), part(gm, 2, 'add_1', 'relu', 'sub')]
    setParentsAndChildren(parts)
    const [first, second] = parts
    if (first !== undefined && second !== undefined) combineTwoPartitions(first, second, parts)
    expect(parts.map((p) => [String(p), inOrder(p.nodes), p.usedMemBytes, [...p.parents].map(String).toSorted()])).toEqual(golden.result)
  },
})

interface Divided {
  readonly dag: readonly { name: string; inputs: string[]; outputs: string[]; devices: number[]; size: number }[]
  readonly partitions: readonly [number, string[], number, number[]][]
  readonly main: string
  readonly submodules: Readonly<Record<string, string>>
  readonly value: GoldenOutput
}

/** The module is divided as in a golden. */
function divides(
  model: Module,
  inputs: readonly Tensor[],
  config: Omit<PartitionerConfig, 'nodeToLatencyMapping' | 'nodeToPartitionMapping'>,
  golden: Divided,
  more: { latency?: Latencies; mapping?: Readonly<Record<string, number>> } = {},
): void {
  const gm = sized(model, ...inputs)
  const { latency, mapping } = more
  const partitioner = new Partitioner()
  const { dag, moduleWithSubmodules } = partitioner.partitionGraph(gm, {
    ...config,
    ...(latency !== undefined && { nodeToLatencyMapping: latencies(gm, latency) }),
    ...(mapping !== undefined && {
      nodeToPartitionMapping: new Map(
        [...gm.graph.nodes].flatMap((node): [Node, number][] => (node.name in mapping ? [[node, mapping[node.name] ?? 0]] : [])),
      ),
    }),
  })
  expect(partitioner.partitions.map((p) => [p.partitionId, inOrder(p.nodes), p.usedMemBytes, p.logicalDeviceIds])).toEqual(golden.partitions)
  expect(
    dag.nodes.map((node) => ({
      name: node.submoduleNode.name,
      inputs: names(node.inputNodes),
      outputs: names(node.outputNodes),
      devices: node.logicalDeviceIds,
      size: node.sizeBytes,
    })),
  ).toEqual(golden.dag)
  expectText(moduleWithSubmodules, golden.main)
  for (const [name, text] of Object.entries(golden.submodules)) expectText(moduleWithSubmodules.attribute(name) as GraphModule, text)
  checkOutput(moduleWithSubmodules.call(...inputs), golden.value)
}

/** Dividing fails with an error that contains that of a golden. */
function refuses(model: Module, inputs: readonly Tensor[], config: PartitionerConfig, { error }: { error: string }): void {
  expect(messageOf(() => new Partitioner().partitionGraph(sized(model, ...inputs), config))).toContain(error)
}

/** A model from a function. */
const modelOf = (program: (...args: Tensor[]) => Tensor): Module => symbolicTrace(program as (a: Tensor) => Tensor) as GraphModule

const tokens = (k: number): Tensor => torch.tensor(Array.from(detTokens([3], k, 5).toTypedArray(), BigInt))

const perNode: Latencies = { linear: [7, 8], relu: [3, 4], sin: [5, 6], add: [1, 2] }

describeGolden('accelerator_partitioner', {
  single_partition: (golden) => {
    divides(detInit(new Lin4()), [X, Y], { devices: devices(125, 250, 1000) }, resultOf(golden))
  },
  no_devices_and_no_operations: (golden) => {
    const [none, empty] = resultOf<[{ error: string }, { error: string }]>(golden)
    refuses(detInit(new Lin4()), [X, Y], { devices: [] }, none)
    refuses(
      modelOf((a) => a as Tensor),
      [X],
      { devices: devices(100) },
      empty,
    )
  },
  not_enough_memory: (golden) => {
    refuses(detInit(new Lin4()), [X, Y], { devices: devices(40, 60) }, resultOf(golden))
  },
  size_based_more_partitions_than_devices: (golden) => {
    const model = modelOf((a) => mul(add(torch.relu(torch.neg(torch.cos(torch.sin(a as Tensor)))), a), 2))
    refuses(model, [X], { devices: devices(110, 150), mode: 'sizeBased' }, resultOf(golden))
  },
  a_node_is_too_large: (golden) => {
    class A extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor): Tensor {
        return add(add(add(add(this.linear.call(a), 1), 2), 3), 4)
      }
    }
    refuses(detInit(new A()), [X], { devices: devices(100, 100, 100) }, resultOf(golden))
  },
  cannot_map_left_over_nodes: (golden) => {
    const model = modelOf((a) => torch.cat([torch.sin(a as Tensor), torch.cos(a as Tensor), torch.neg(a as Tensor), torch.relu(a as Tensor)]).sum())
    refuses(model, [X], { devices: devices(150, 160) }, resultOf(golden))
  },
  sparse_nn: (golden) => {
    divides(detInit(new Sparse()), [tokens(1), tokens(2)], { devices: devices(1100, 1100), mode: 'sparseNn' }, resultOf(golden))
  },
  cost_aware: (golden) => {
    const config = { devices: devices(200, 150, 150), mode: 'costAware', transferRateBytesPerSec: 2 } as const
    divides(detInit(new MLP3()), [X], config, resultOf(golden), { latency: perNode })
  },
  cost_aware_free_communication: (golden) => {
    const config = { devices: devices(200, 150, 150), mode: 'costAware', transferRateBytesPerSec: 1e9 } as const
    divides(detInit(new MLP3()), [X], config, resultOf(golden), { latency: perNode })
  },
  kl_based: (golden) => {
    class A extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor, b: Tensor, c: Tensor, d: Tensor): Tensor {
        const add1 = add(a, b)
        const add2 = add(add1, c)
        const linear1 = this.linear.call(add1)
        return add(add(add2, linear1), d)
      }
    }
    const inputs = [0, 1, 2, 3].map((k) => detInput([1, 4], k))
    const latency: Latencies = { add: [1, 2], add_1: [1, 2], linear: [6, 4], add_2: [1, 1], add_3: [1, 1] }
    divides(detInit(new A()), inputs, { devices: devices(128, 128, 128), mode: 'klBased', transferRateBytesPerSec: 1 }, resultOf(golden), { latency })
  },
  aot_based: (golden) => {
    const mapping = { a: 0, b: 0, add: 0, linear: 0, add_1: 1, relu: 1, sub: 1 }
    const config = {
      devices: devices(10, 10),
      mode: 'aotBased',
      partitionToLogicalDeviceMapping: new Map([
        [0, [0]],
        [1, [1, 2]],
      ]),
    } as const
    divides(detInit(new Lin4()), [X, Y], config, resultOf(golden), { mapping })
  },
  saturate_single_partition: (golden) => {
    divides(detInit(new Lin4()), [X, Y], { devices: devices(1000, 400, 300), saturateHost: true }, resultOf(golden))
  },
  device_statistics: (golden) => {
    const gm = lin4()
    const parts = [part(gm, 0, 'add'), part(gm, 1, 'linear'), part(gm, 2, 'relu')]
    for (const first of parts.slice(0, 1)) first.logicalDeviceIds = [0, 1]
    const all = devices(500, 600, 300)
    const { deviceToPartitions, deviceToLeftMemBytes, noDevicePartitions } = getDevicePartitionStats(parts, all)
    const before = [
      Object.fromEntries(Array.from(deviceToPartitions, ([device, there]) => [device.name, there.map(String)])),
      Object.fromEntries(Array.from(deviceToLeftMemBytes, ([device, left]) => [device.name, left])),
      noDevicePartitions.map(String),
    ]
    const found = getDeviceToPartitionsMapping(parts, all)
    expect([...before, found, parts.map((p) => p.logicalDeviceIds), [...getLogicalIdToDevice(all).keys()]]).toEqual(golden.result)
  },
  strictly_less_memory_needed: (golden) => {
    const p = part(lin4(), 0, 'add')
    const fits = (bytes: number): boolean => getDeviceToPartitionsMapping([p], devices(bytes))
    expect([p.usedMemBytes, fits(p.usedMemBytes), fits(p.usedMemBytes + 1)]).toEqual(golden.result)
  },
})

/** Divides a model, and checks that it still computes the same. */
function divided(
  model: Module,
  inputs: readonly Tensor[],
  config: (gm: GraphModule) => PartitionerConfig,
): { partitioner: Partitioner; gm: GraphModule; devicesOf: number[][] } {
  const gm = sized(model, ...inputs)
  const partitioner = new Partitioner()
  const { dag, moduleWithSubmodules } = partitioner.partitionGraph(gm, config(gm))
  moduleWithSubmodules.graph.lint()
  expect(torch.allclose(moduleWithSubmodules.call(...inputs), gm.call(...inputs))).toBe(true)
  return { partitioner, gm, devicesOf: dag.nodes.map((node) => [...node.logicalDeviceIds]) }
}

describe('the partitioner tests of test_fx_experimental.py', () => {
  const seven = (a: Tensor, b: Tensor): Tensor => sub(add(add(a, b), 1), sub(a, b))

  it('test_find_single_partition: everything is on the largest device', () => {
    const { devicesOf } = divided(
      modelOf((a, b) => add(a, b)),
      [torch.randn([1]), torch.randn([1])],
      () => ({ devices: devices(125, 150, 125) }),
    )
    expect(devicesOf).toEqual([[1]])
  })

  it('test_lack_of_devices: too little memory is an error', () => {
    const gm = sized(
      modelOf((a, b) => add(a, b)),
      torch.randn([4]),
      torch.randn([4]),
    )
    expect(() => new Partitioner().partitionGraph(gm, { devices: devices(4, 4) })).toThrow('Devices do not have enough memory')
  })

  it('test_large_node_error: a node that no device can hold', () => {
    class Large extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor): Tensor {
        return add(add(this.linear.call(a), 2), 4)
      }
    }
    const gm = sized(new Large(), torch.randn([4]))
    expect(() => new Partitioner().partitionGraph(gm, { devices: devices(40, 40, 40, 40) })).toThrow('linear is too large to fit any device')
  })

  it('test_size_based_partition: parts in graph order', () => {
    class A extends Module {
      linear: Linear = new Linear(4, 4)
      c: nn.Parameter = new nn.Parameter(torch.randn([4]))
      override forward(a: Tensor, b: Tensor): Tensor {
        const sum = add(a, b)
        return add(this.linear.call(sum), this.c)
      }
    }
    const { devicesOf } = divided(new A(), [torch.randn([4]), torch.randn([4])], () => ({ devices: devices(125, 125, 125) }))
    expect(devicesOf).toEqual([[0], [1], [2]])
  })

  it('test_partition_device_mapping: the nodes that are left go to devices with memory', () => {
    class A extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor): Tensor {
        const b = torch.relu(a)
        return add(this.linear.call(b), torch.sin(a))
      }
    }
    const { devicesOf } = divided(new A(), [torch.randn([4])], () => ({ devices: devices(120, 160) }))
    expect(devicesOf.flat().every((id) => id === 0 || id === 1)).toBe(true)
  })

  it('test_sparse_nn_partition: every embedding has a device, the rest is on all of them', () => {
    class Sum extends Module {
      tables: nn.ModuleList = new nn.ModuleList([0, 1, 2, 3].map(() => new Embedding(500, 4)))
      top: Linear = new Linear(4, 2)
      override forward(i: Tensor): Tensor {
        const values = [...this.tables].map((table) => (table as Embedding).call(i))
        return this.top.call(values.reduce((a, b) => add(a, b)))
      }
    }
    const { devicesOf, partitioner } = divided(new Sum(), [tokens(1)], () => ({ devices: devices(17_000, 17_000), mode: 'sparseNn' }))
    expect(
      devicesOf
        .filter((ids) => ids.length === 1)
        .flat()
        .toSorted(),
    ).toEqual([0, 1])
    expect(partitioner.partitions.length).toBe(3)
  })

  it('test_cost_aware_partition: no other pair of parts saves time', () => {
    const { partitioner } = divided(new MLP3(), [torch.randn([4])], (gm) => ({
      devices: devices(125, 125, 125, 125),
      mode: 'costAware',
      transferRateBytesPerSec: 0.5,
      nodeToLatencyMapping: latencies(gm, perNode),
    }))
    expect(partitioner.partitions.length).toBeLessThan(4)
  })

  it('test_aot_based_partition: nodes without a part are an error that names them', () => {
    const gm = sized(
      modelOf((a, b) => add(add(a, b), 1)),
      torch.randn([4]),
      torch.randn([4]),
    )
    const config = { devices: devices(200, 200), mode: 'aotBased', partitionToLogicalDeviceMapping: new Map([[0, [0]]]) } as const
    const nodeToPartitionMapping = new Map([[nodeOf(gm, 'add'), 0]])
    expect(() => new Partitioner().partitionGraph(gm, { ...config, nodeToPartitionMapping })).toThrow("no part for node 'add_1'")
    expect(() => new Partitioner().partitionGraph(gm, { ...config, nodeToPartitionMapping: new Map([[nodeOf(gm, 'add'), 7]]) })).toThrow(
      'partitionToLogicalDeviceMapping has no devices for part 7',
    )
  })

  it('test_saturate_host: parts are repeated as often as idle devices can hold them', () => {
    class A extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor): Tensor {
        return add(add(this.linear.call(a), a), 1)
      }
    }
    const { devicesOf } = divided(new A(), [torch.randn([4])], () => ({ devices: devices(120, 120, 120, 120, 120, 120), saturateHost: true }))
    expect(devicesOf).toEqual([
      [0, 2, 4],
      [1, 3, 5],
    ])
  })

  it('test_kl_based_partition: swaps save time, and the divided module is that of the swapped parts (difference: kl-swaps)', () => {
    class A extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor, b: Tensor): Tensor {
        const x = torch.sin(a)
        const y = torch.cos(b)
        const z = torch.neg(x)
        return add(add(this.linear.call(y), z), x)
      }
    }
    const inputs = [torch.randn([4]), torch.randn([4])]
    const config = (gm: GraphModule): PartitionerConfig => ({
      devices: devices(150, 150, 150),
      mode: 'klBased',
      transferRateBytesPerSec: 2,
      nodeToLatencyMapping: latencies(gm, { sin: [1, 1], cos: [1, 1], neg: [1, 1], linear: [3, 3], add: [1, 1], add_1: [1, 1] }),
    })
    const cost = ({ partitioner, gm }: ReturnType<typeof divided>): number =>
      getLatencyOfPartitionedGraph(
        partitioner.partitions,
        getPartitionToLatencyMapping(partitioner.partitions, config(gm).nodeToLatencyMapping ?? new Map()),
        2,
      )
    const before = divided(new A(), inputs, (gm) => ({ ...config(gm), mode: 'sizeBased' }))
    const after = divided(new A(), inputs, config)
    expect(cost(after)).toBeLessThan(cost(before))
    for (const partition of after.partitioner.partitions)
      for (const node of partition.nodes)
        if (node.op.startsWith('call')) expect(after.partitioner.nodeToPartition.get(node)).toBe(partition.partitionId)
  })

  it('test_partition_node_manipulation: a node takes its inputs along, and back', () => {
    const gm = sized(
      modelOf((a, b) => add(add(a, b), sub(a, b))),
      torch.randn([4]),
      torch.randn([4]),
    )
    const partition = part(gm, 0, 'add', 'sub')
    expect(inOrder(partition.nodes)).toEqual(['a', 'b', 'add', 'sub'])
    partition.removeNode(nodeOf(gm, 'add'))
    expect(inOrder(partition.nodes)).toEqual(['a', 'b', 'sub'])
    partition.removeNode(nodeOf(gm, 'sub'))
    expect([partition.nodes.size, partition.usedMemBytes]).toEqual([0, 0])
  })

  it('test_partition_latency: the critical path of a part', () => {
    const gm = sized(
      modelOf((a) => add(add(torch.relu(add(a, 1)), torch.sin(a as Tensor)), 2)),
      torch.randn([4]),
    )
    const names = [...gm.graph.nodes].filter((node) => node.op.startsWith('call')).map((node) => node.name)
    const table = Object.fromEntries(names.map((name, i): [string, [number, number]] => [name, [i + 1, 2]]))
    const [latency] = getPartitionToLatencyMapping([part(gm, 0, ...names)], latencies(gm, table)).values()
    // add, relu, add_1, add_2; sin is not on it.
    expect(latency).toEqual({ memLatencySec: 1 + 2 + 4 + 5, computerLatencySec: 8, overallLatencySec: 2 + 2 + 4 + 5 })
  })

  it('communication needs a rate', () => {
    const gm = sized(modelOf(seven as (...args: Tensor[]) => Tensor), torch.randn([40]), torch.randn([40]))
    const config = { devices: devices(700, 700), mode: 'costAware', nodeToLatencyMapping: latencies(gm, {}) } as const
    expect(() => new Partitioner().partitionGraph(gm, config)).toThrow('transferRateBytesPerSec must be a number above 0, got 0')
  })
})
