// The calls of layers and functions in a graph, and the regions of a device; PyTorch's passes.utils.source_matcher_utils, passes.backends.cudagraphs and
// fx/test_source_matcher_utils.py.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorProp, makeFx } from 'tensorfx/aot'
import { Graph, GraphModule, operator, tuple } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import {
  CapabilityBasedPartitioner,
  DeviceSupport,
  checkSubgraphsConnected,
  getSourcePartitions,
  legalizeGraph,
  partitionByDevice,
} from 'tensorfx/fx/passes'
import type { SourcePartition } from 'tensorfx/fx/passes'
import { detInit } from '../../helpers/deterministic.ts'
import { X, Y, chain, describeGolden, expectText, messageOf, names, nodeOf, resultOf } from './golden.ts'

const { Linear, GELU, Conv2d, Module } = nn

/** A graph of two linear layers with a relu between them. `mark` says which notes tell where nodes come from. */
function twoLinears(mark: 'fn' | 'torch_fn' | 'stack' | 'stack_str' = 'fn'): GraphModule {
  const graph = new Graph()
  const x = graph.placeholder('x')
  const [w, b] = [graph.getAttr('w'), graph.getAttr('b')]
  const t = graph.callFunction(torch.t, [w])
  const first = graph.createNode('call_function', torch.addmm, [b, x, t])
  const relu = graph.callFunction(torch.relu, [first])
  const w2 = graph.getAttr('w2')
  const t2 = graph.callFunction(torch.t, [w2])
  const second = graph.callFunction(torch.mm, [relu, t2])
  graph.output(second)
  for (const [nodes, path] of [[[w, b, t, first], 'l1'] as const, [[w2, t2, second], 'l2'] as const])
    for (const node of nodes) {
      if (mark === 'fn') node.meta['source_fn_stack'] = [[path, Linear]]
      else if (mark === 'torch_fn') node.meta['torch_fn'] = [path, 'function.linear']
      else node.meta['nn_module_stack'] = new Map([['k', [path, mark === 'stack' ? Linear : 'torch.nn.modules.linear.Linear']]])
    }
  if (mark === 'fn') relu.meta['source_fn_stack'] = [['relu', torch.relu]]
  return new GraphModule({ w: torch.zeros([4, 4]), b: torch.zeros([4]), w2: torch.zeros([4, 4]) }, graph)
}

const nameOf = (source: unknown): string => (typeof source === 'function' ? source.name : String(source))

/** What is found, as the goldens have it. */
const parts = (gm: GraphModule, wanted: readonly unknown[], filter?: (node: Node) => boolean): Record<string, unknown> =>
  Object.fromEntries(
    Array.from(getSourcePartitions(gm.graph, wanted, filter), ([source, found]) => [
      nameOf(source),
      found.map((p) => ({
        nodes: names(p.nodes),
        inputs: names(p.inputNodes),
        outputs: names(p.outputNodes),
        params: names(p.params),
        source: nameOf(p.source),
      })),
    ]),
  )

describeGolden('source_matcher_utils', {
  by_module_class: (golden) => {
    expect(parts(twoLinears(), [Linear, torch.relu, Conv2d])).toEqual(golden.result)
  },
  wanted_order_is_graph_order: (golden) => {
    expect(Object.keys(parts(twoLinears(), [torch.relu, Linear]))).toEqual(golden.result)
  },
  filtered: (golden) => {
    expect(parts(twoLinears(), [Linear], (node) => node.name !== 'w2')).toEqual(golden.result)
  },
  torch_fn_meta: (golden) => {
    expect([parts(twoLinears('torch_fn'), ['linear']), parts(twoLinears('torch_fn'), [Linear])]).toEqual(golden.result)
  },
  module_stack_meta: (golden) => {
    expect([parts(twoLinears('stack'), [Linear]), parts(twoLinears('stack'), [Module]), parts(twoLinears('stack_str'), [Linear])]).toEqual(
      golden.result,
    )
  },
  connected: (golden) => {
    const found = getSourcePartitions(twoLinears().graph, [Linear, torch.relu])
    const [l1, l2, relu] = [...(found.get(Linear) ?? []), ...(found.get(torch.relu) ?? [])] as [SourcePartition, SourcePartition, SourcePartition]
    expect([
      checkSubgraphsConnected(l1, relu),
      checkSubgraphsConnected(relu, l2),
      checkSubgraphsConnected(relu, l1),
      checkSubgraphsConnected(l1, l2),
    ]).toEqual(golden.result)
  },
  nothing_found: (golden) => {
    expect([parts(twoLinears(), [GELU]), parts(chain(), [Linear])]).toEqual(golden.result)
  },
})

class Model extends Module {
  linear1: nn.Linear = new Linear(4, 4)
  relu: nn.ReLU = new nn.ReLU()
  linear2: nn.Linear = new Linear(4, 3)
  override forward(x: Tensor): Tensor {
    return this.linear2.call(this.relu.call(this.linear1.call(this.linear1.call(x))))
  }
}

describe('fx/test_source_matcher_utils.py', () => {
  it('test_module_partitioner_linear_relu_linear: each call of a layer, with its parameters', () => {
    const found = getSourcePartitions(makeFx(detInit(new Model()))(X).graph, [Linear, nn.ReLU])
    const [first, again, last] = found.get(Linear) as [SourcePartition, SourcePartition, SourcePartition]
    const [relu] = found.get(nn.ReLU) as [SourcePartition]
    expect([found.get(Linear)?.length, found.get(nn.ReLU)?.length]).toEqual([3, 1])
    expect([first, again, last].map((p) => p.params.length)).toEqual([2, 0, 2])
    expect([checkSubgraphsConnected(first, again), checkSubgraphsConnected(again, relu), checkSubgraphsConnected(relu, last)]).toEqual([
      true,
      true,
      true,
    ])
    expect([checkSubgraphsConnected(first, relu), checkSubgraphsConnected(last, relu)]).toEqual([false, false])
    expect(names(again.inputNodes)).toEqual(names(first.outputNodes))
  })

  it('test_module_partitioner_functional_linear_relu_linear: calls of functions', () => {
    const { linear } = torch.nn.functional
    const program = (x: Tensor, w: Tensor): Tensor => linear(torch.relu(linear(x, w)), w)
    const found = getSourcePartitions(makeFx(program)(X, torch.ones([4, 4])).graph, [linear, torch.relu])
    const [first, second] = found.get(linear) as [SourcePartition, SourcePartition]
    const [relu] = found.get(torch.relu) as [SourcePartition]
    expect([checkSubgraphsConnected(first, relu), checkSubgraphsConnected(relu, second), checkSubgraphsConnected(second, relu)]).toEqual([
      true,
      true,
      false,
    ])
    expect([names(first.nodes), names(second.inputNodes)]).toEqual([['linear'], ['relu', 'w_1']])
  })

  it('test_module_partitioner_conv_relu_maxpool: every kind of layer', () => {
    class Convolution extends Module {
      conv: nn.Conv2d = new Conv2d(1, 2, 3)
      relu: nn.ReLU = new nn.ReLU()
      pool: nn.MaxPool2d = new nn.MaxPool2d(2)
      override forward(x: Tensor): Tensor {
        return this.pool.call(this.relu.call(this.conv.call(x)))
      }
    }
    const found = getSourcePartitions(makeFx(new Convolution())(torch.ones([1, 1, 6, 6])).graph, [Conv2d, nn.ReLU, nn.MaxPool2d])
    const [conv, relu, pool] = [Conv2d, nn.ReLU, nn.MaxPool2d].map((layer) => found.get(layer)?.[0]) as [
      SourcePartition,
      SourcePartition,
      SourcePartition,
    ]
    expect([checkSubgraphsConnected(conv, relu), checkSubgraphsConnected(relu, pool), checkSubgraphsConnected(conv, pool)]).toEqual([
      true,
      true,
      false,
    ])
    expect(conv.params.length).toBe(2)
  })

  it('test_module_partitioner_weight_tied: a shared parameter belongs to the layer that reads it first', () => {
    const layer = new Linear(4, 4, { bias: false })
    class Tied extends Module {
      first: nn.Linear = layer
      second: nn.Linear = new Linear(4, 4, { bias: false })
      override forward(x: Tensor): Tensor {
        this.second.weight = this.first.weight
        return this.second.call(this.first.call(x))
      }
    }
    const [one, two] = getSourcePartitions(makeFx(new Tied())(X).graph, [Linear]).get(Linear) as [SourcePartition, SourcePartition]
    expect([one.params.length, two.params.length, checkSubgraphsConnected(one, two)]).toEqual([1, 0, true])
  })

  it('test_module_partitioner_functional_conv_relu_conv: by the function that the graph calls', () => {
    const { conv2d } = torch.nn.functional
    const program = (x: Tensor, w: Tensor): Tensor => conv2d(torch.relu(conv2d(x, w)), w)
    const { graph } = makeFx(program)(torch.ones([1, 1, 5, 5]), torch.ones([1, 1, 3, 3]))
    const convolution = [...graph.nodes].find((node) => node.op === 'call_function')?.target
    const found = getSourcePartitions(graph, [convolution, torch.relu])
    const [first, second] = found.get(convolution) as [SourcePartition, SourcePartition]
    const [relu] = found.get(torch.relu) as [SourcePartition]
    expect([checkSubgraphsConnected(first, relu), checkSubgraphsConnected(relu, second), checkSubgraphsConnected(second, relu)]).toEqual([
      true,
      true,
      false,
    ])
  })

  it('test_legalize_slice: a slice by a number that is computed stays behind it', () => {
    const graph = new Graph()
    const [x, y] = [graph.placeholder('x'), graph.placeholder('y')]
    const size = graph.callMethod('size', [x, 0])
    graph.output(graph.callMethod('narrow', [y, 0, 0, graph.callFunction(operator.sub, [size, 1])]))
    const gm = new GraphModule({}, graph)
    const want = gm.call(X, Y) as Tensor
    const legal = legalizeGraph(gm)
    legal.graph.lint()
    expect(torch.allclose(legal.call(X, Y), want)).toBe(true)
  })

  it.each([
    ['test_module_partitioner_linear_relu_linear_torch_fn_export', 'linear'],
    ['test_module_partitioner_conv_relu_maxpool_torch_fn_export', 'conv2d'],
    ['test_module_partitioner_functional_conv_relu_conv_torch_fn_export', 'conv2d'],
    ['test_module_partitioner_functional_linear_relu_linear_torch_fn_export', 'linear'],
  ])('%s: calls by the names in torch_fn', (_, layer) => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const first = graph.callFunction(torch.sin, [x])
    const relu = graph.callFunction(torch.relu, [first])
    graph.output(graph.callFunction(torch.cos, [relu]))
    const [, one, two, three] = [...graph.nodes]
    for (const [node, name, fn] of [
      [one, `${layer}_1`, layer],
      [two, 'relu_1', 'relu'],
      [three, `${layer}_2`, layer],
    ] as const)
      if (node !== undefined) node.meta['torch_fn'] = [name, `builtin_function_or_method.${fn}`]
    const found = getSourcePartitions(graph, [layer, 'relu'])
    const [l1, l2] = found.get(layer) as [SourcePartition, SourcePartition]
    const [between] = found.get('relu') as [SourcePartition]
    expect([checkSubgraphsConnected(l1, between), checkSubgraphsConnected(between, l2), checkSubgraphsConnected(l1, l2)]).toEqual([true, true, false])
  })

  it('values in lists are inputs too', () => {
    const gm = makeFx((x: Tensor, y: Tensor) => torch.cat([x, y]))(X, Y)
    const [call] = getSourcePartitions(gm.graph, [torch.cat]).get(torch.cat) ?? []
    expect(names(call?.inputNodes ?? [])).toEqual(['x_1', 'y_1'])
  })

  it('classes that derive from a wanted one count, in the notes of modules', () => {
    class Special extends Linear {}
    const gm = twoLinears('stack')
    nodeOf(gm, 'mm').meta['nn_module_stack'] = new Map([
      ['a', ['a', GELU]],
      ['b', ['b', Special]],
    ])
    expect(Object.keys(parts(gm, [Special]))).toEqual(['Special'])
    expect((parts(gm, [Linear])['Linear'] as unknown[]).length).toBe(3)
  })
})

/** relu(x) + y and its sine, whose values are on the device `gpu`, but those that `devices` names. */
function marked(devices: Readonly<Record<string, string>>): GraphModule {
  const graph = new Graph()
  const [x, y] = [graph.placeholder('x'), graph.placeholder('y')]
  const relu = graph.createNode('call_function', torch.relu, [x], {}, 'relu_default')
  const add = graph.createNode('call_function', torch.add, [relu, y], {}, 'add_tensor')
  graph.output(graph.createNode('call_function', torch.sin, [add], {}, 'sin_default'))
  const gm = new GraphModule({}, graph)
  for (const node of gm.graph.nodes)
    if (node.op !== 'output') node.meta['val'] = { shape: [2], dtype: 'float32', device: devices[node.name] ?? 'gpu' }
  return gm
}

const supported = (gm: GraphModule): Record<string, boolean> =>
  Object.fromEntries(
    [...gm.graph.nodes].filter((node) => node.op !== 'output').map((node) => [node.name, new DeviceSupport('gpu').isNodeSupported(gm, node)]),
  )

/** PyTorch's graph with the names that functions have here. */
const ours = (text: string): string => text.replaceAll(/torch\.ops\.aten\.(\w+)\.\w+/g, 'torch.$1')

describeGolden('backends.cudagraphs', {
  all_cuda: (golden) => {
    expect(supported(marked({}))).toEqual(golden.result)
  },
  cpu_input_blocks_users: (golden) => {
    expect(supported(marked({ y: 'cpu' }))).toEqual(golden.result)
  },
  cpu_output_blocks: (golden) => {
    expect(supported(marked({ sin_default: 'cpu' }))).toEqual(golden.result)
  },
  fake_result_is_read_too: (golden) => {
    const [found, missing] = resultOf<[unknown, Record<string, unknown>]>(golden)
    const gm = marked({})
    const { meta } = nodeOf(gm, 'relu_default')
    meta['fake_result'] = meta['val']
    Reflect.deleteProperty(meta, 'val')
    expect(supported(gm)).toEqual(found)
    Reflect.deleteProperty(meta, 'fake_result')
    expect(missing['add_tensor']).toBe("builtins.KeyError 'fake_result'")
    expect(messageOf(() => supported(gm))).toBe(
      "the value of node 'relu_default' is not known; run FakeTensorProp of 'tensorfx/aot' on the graph, or pass deviceOf.",
    )
  },
  cpu_graph_has_no_partition: (golden) => {
    const [before, after] = resultOf<[string, string]>(golden)
    expect(before).toBe(after)
    const gm = makeFx((x: Tensor, y: Tensor) => torch.relu(x).add(y).sin())(X, Y)
    const text = String(gm.graph)
    new FakeTensorProp(gm).propagate(X, Y)
    expect(String(partitionByDevice(gm, 'gpu').graph)).toBe(text)
  },
  partition_with_patched_support: (golden) => {
    const [proposed, text] = resultOf<[string[][], string]>(golden)
    const gm = marked({ add_tensor: 'cpu' })
    const partitioner = new CapabilityBasedPartitioner(gm, new DeviceSupport('gpu'), { allowsSingleNodePartition: true })
    const partitions = partitioner.proposePartitions()
    expect(partitions.map(({ nodes }) => names(nodes))).toEqual(proposed)
    expectText(partitioner.fusePartitions(partitions), ours(text))
  },
  all_cuda_is_one_partition: (golden) => {
    const [, text] = resultOf<[string[][], string]>(golden)
    const gm = partitionByDevice(marked({}), 'gpu')
    expectText(gm, ours(text))
    expect(torch.allclose(gm.call(X, Y), marked({}).call(X, Y))).toBe(true)
  },
})

describe('partitionByDevice', () => {
  it('the backward of an embedding is never part of a region, wherever its values are', () => {
    const loss = (weight: Tensor, index: Tensor): Tensor => torch.nn.functional.embedding(index, weight).sum()
    const gradient = (weight: Tensor, index: Tensor): unknown => torch.autograd.grad(loss(weight, index), weight)[0]
    const gm = makeFx(gradient)(torch.ones([3, 2]).requiresGrad_(), torch.zeros([2], { dtype: 'int32' }))
    const support = new DeviceSupport('cpu', { deviceOf: () => 'cpu' })
    const refused = [...gm.graph.nodes].filter((node) => node.op === 'call_function' && !support.isNodeSupported(gm, node))
    expect(names(refused)).toEqual(['embedding_backward'])
  })

  it('without other devices everything runs in one region of the CPU', () => {
    const model = detInit(new Model())
    const gm = makeFx(model)(X)
    expect([...partitionByDevice(gm, 'cpu').graph.nodes].filter((node) => node.op.startsWith('call')).map((node) => node.target)).toEqual(['fused_0'])
    expect(torch.allclose(gm.call(Y), model.call(Y))).toBe(true)
  })

  it('a backend can say where values are; numbers and values on several devices are on none of them', () => {
    const gm = marked({})
    const onlyRelu = partitionByDevice(gm, 'npu', { deviceOf: (node) => (node.name === 'relu_default' || node.name === 'x' ? 'npu' : 'cpu') })
    expect(onlyRelu.graph.findNodes({ op: 'call_module' }).map((node) => node.allInputNodes.map(String))).toEqual([['x']])
    const graph = new Graph()
    const x = graph.placeholder('x')
    const pair = graph.callFunction(torch.topk, [x, 1])
    graph.output(tuple(graph.callFunction(operator.getitem, [pair, 0]), graph.callMethod('size', [x, 0])))
    const other = new GraphModule({}, graph)
    x.meta['val'] = { device: 'gpu' }
    pair.meta['val'] = [{ device: 'gpu' }, { device: 'cpu' }]
    nodeOf(other, 'size').meta['val'] = 3
    expect(supported(other)).toEqual({ x: false, topk: false, getitem: true, size: false })
    expect(new DeviceSupport('gpu', { never: ['torch.topk'], deviceOf: () => 'gpu' }).isNodeSupported(other, pair)).toBe(false)
  })
})
