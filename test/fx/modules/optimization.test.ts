// fuse, removeDropout, extractSubgraph, UnionFind, regions with another layout and optimizeForInference; PyTorch's experimental.optimization.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, operator, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { BatchNorm2d, Conv2d, Dropout, F, Linear, Module, ReLU, Sequential } from 'tensorfx/nn'
import {
  UnionFind,
  applyLayout,
  extractSubgraph,
  fuse,
  matchesModulePattern,
  optimizeForInference,
  removeDropout,
  replaceNodeModule,
  useLongRegions,
} from 'tensorfx/fx/experimental'
import type { InferenceOptions, Layout, LayoutRegion } from 'tensorfx/fx/experimental'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { ResNet } from '../../helpers/models.ts'
import { describeGolden, expectText, messageOf, names, nodeOf, resultOf } from './golden.ts'

class CNN extends Module {
  conv: Conv2d = new Conv2d(1, 2, 3)
  bn: BatchNorm2d = new BatchNorm2d(2)
  drop: Dropout = new Dropout(0.5)
  fc: Linear = new Linear(8, 3)
  override forward(x: Tensor): Tensor {
    const y = this.drop.call(torch.relu(this.bn.call(this.conv.call(x))))
    return this.fc.call(torch.flatten(y, 1))
  }
}

const IMG = detInput([2, 1, 4, 4], 7)
const cnn = (): CNN => detInit(new CNN()).eval()
const trace = (model: Module): GraphModule => symbolicTrace(model) as GraphModule
const same = (a: Module, b: Module): boolean => torch.allclose(trace(a).call(IMG) as Tensor, trace(b).call(IMG) as Tensor, { atol: 1e-5 })
const paths = (gm: Module): string[] => Array.from(gm.namedModules(), ([path]) => path)

interface Data {
  readonly shape: number[]
  readonly data: number[]
}

const expectData = (ours: Tensor, { shape, data }: Data): void => {
  expect(ours.shape).toEqual(shape)
  const values = Array.from(ours.detach().reshape([-1]).toTypedArray(), Number)
  for (const [i, value] of data.entries()) expect(values[i]).toBeCloseTo(value, 5)
}

/** What PyTorch lets compute in MKL-DNN's layout. */
const mkldnn: Layout = {
  enter: 'toMkldnn',
  leave: 'toDense',
  supports: (node, gm) => {
    const layer = node.op === 'call_module' ? gm.attribute(node.target) : null
    return layer instanceof Conv2d || layer instanceof Linear || layer instanceof BatchNorm2d || layer instanceof ReLU || node.target === torch.relu
  },
  follows: (node) => node.target === operator.add || node.target === operator.mul,
}

describeGolden('optimization', {
  fuse_result: (golden) => {
    const [text, weight, bias, equal, kept, sameShape] = resultOf<[string, Data, Data, boolean, boolean, boolean]>(golden)
    const model = cnn()
    const fused = fuse(model)
    expectText(fused, text)
    const conv = fused.attribute('conv') as Conv2d
    expectData(conv.weight, weight)
    expectData(conv.bias as Tensor, bias)
    expect([same(model, fused), paths(fused).includes('bn'), String(model.conv.weight.shape) === String(conv.weight.shape)]).toEqual([
      equal,
      kept,
      sameShape,
    ])
  },
  fuse_skips: (golden) => {
    const [text, error] = resultOf<[string, { error: string }]>(golden)
    class A extends Module {
      c: Conv2d = new Conv2d(1, 1, 1)
      b: BatchNorm2d = new BatchNorm2d(1)
      c2: Conv2d = new Conv2d(1, 1, 1)
      b2: BatchNorm2d = new BatchNorm2d(1, { trackRunningStats: false })
      override forward(x: Tensor): unknown {
        const y = this.c.call(x)
        return [operator.add(this.b.call(y), y), this.b2.call(this.c2.call(x))]
      }
    }
    expectText(fuse(detInit(new A()).eval()), text)
    expect([error.error, messageOf(() => fuse(detInit(new CNN()))).split(';')[0]]).toEqual([
      'Fusion only for eval!',
      'fuse: the model is in training mode, where batch norm uses the statistics of each batch',
    ])
  },
  'fuse_no_trace_and_inplace (difference: fuse-in-place)': (golden) => {
    // There, the weights of the given module are folded, but its norms stay.
    expect(golden.result).toEqual([false, false, false, true])
    const model = cnn()
    const gm = trace(model)
    const expected = model.call(IMG)
    const fused = fuse(gm, { inplace: true })
    expect([fused === gm, fused.attribute('conv') === model.conv, String(gm.graph).includes('bn')]).toEqual([true, false, false])
    expect(torch.allclose(gm.call(IMG) as Tensor, expected, { atol: 1e-5 })).toBe(true)
    expect(torch.equal(model.call(IMG), expected)).toBe(true)
    expect(messageOf(() => fuse(model, { inplace: true }))).toContain('options.inplace needs a GraphModule')
  },
  use_mkl_length: (golden) => {
    const graph = new Graph()
    const nodes = ['a', 'b', 'c'].map((name) => graph.placeholder(name))
    const region = (count: number): LayoutRegion => ({ nodes: nodes.slice(0, count), startNodes: [], endNodes: [] })
    expect([0, 2, 3].map((count) => useLongRegions(region(count)))).toEqual(golden.result)
  },
  'optimize_bad_config (difference: layouts-of-backends)': (golden) => {
    const [noObject, noHeuristic] = resultOf<{ error: string }[]>(golden)
    expect([noObject?.error, noHeuristic?.error]).toEqual([
      'mkldnn_layout_optimize config is not a dict',
      'Heuristic not found in mkldnn_layout_optimize config',
    ])
    const given = (layoutOptimize: unknown): string => messageOf(() => optimizeForInference(cnn(), { layoutOptimize } as { layoutOptimize: Layout }))
    expect([given(true), given({}), given({ ...mkldnn, heuristic: 3 })]).toEqual([
      "optimizeForInference: argument 'layout' must be an object with enter, leave and supports, got true.",
      "optimizeForInference: argument 'layout.enter' must be a function or the name of a method, got undefined.",
      "optimizeForInference: argument 'layout.heuristic' must be a function, got 3.",
    ])
  },
  layout_regions_always_and_never: (golden) => {
    const [always, never, regions] = resultOf<[string, string, string[][][]]>(golden)
    const seen: string[][][] = []
    const optimized = (answer: boolean): GraphModule => {
      const heuristic = ({ nodes, startNodes, endNodes }: LayoutRegion): boolean => {
        seen.push([names(nodes), names(startNodes), names(endNodes)])
        return answer
      }
      return optimizeForInference(cnn(), { layoutOptimize: { ...mkldnn, heuristic } }) as GraphModule
    }
    expectText(optimized(true), always)
    expectText(optimized(false), never)
    expect(seen).toEqual(regions)
  },
  layout_add_joins_regions: (golden) => {
    class A extends Module {
      a: Linear = new Linear(4, 4)
      b: Linear = new Linear(4, 4)
      override forward(x: Tensor, y: Tensor): unknown {
        const sum = operator.add(this.a.call(x), this.b.call(y)) as Tensor
        return operator.add(operator.mul(torch.relu(sum), 2), torch.sin(y))
      }
    }
    let regions = 0
    const heuristic = (): boolean => ++regions > 0
    const optimized = optimizeForInference(detInit(new A()).eval(), { layoutOptimize: { ...mkldnn, heuristic } }) as GraphModule
    expect(String(optimized.graph)).toBe(golden.result)
    expect(regions).toBe(1)
  },
  remove_dropout: (golden) => {
    const [before, after, kept, equal] = resultOf<[string, string, boolean, boolean]>(golden)
    const model = cnn()
    const removed = removeDropout(model)
    expectText(trace(model), before)
    expectText(removed, after)
    expect([paths(removed).includes('drop'), same(model, removed)]).toEqual([kept, equal])
    expect(paths(model)).toContain('drop')
  },
  'remove_dropout_only_nn_dropout (difference: no-stacklevel)': (golden) => {
    class A extends Module {
      s: Sequential = new Sequential(new Dropout(), new ReLU())
      override forward(x: Tensor): unknown {
        return this.s.call(F.dropout(x))
      }
    }
    // There is no Dropout2d here, which PyTorch keeps.
    const kept = resultOf<string>(golden).replace(/\n.*target=d\].*\n.*$/, '\n    return s_1')
    expectText(removeDropout(new A()), kept)
  },
  extract_subgraph: (golden) => {
    const [text, shapes, error] = resultOf<[string, number[][], { error: string }]>(golden)
    const gm = trace(cnn())
    const [x, conv, bn, relu] = ['x', 'conv', 'bn', 'relu'].map((name) => nodeOf(gm, name)) as [never, never, never, never]
    const part = extractSubgraph(gm, [conv, bn, relu], [x], [relu, conv])
    expectText(part, text)
    expect((part.call(IMG) as Tensor[]).map((value) => value.shape)).toEqual(shapes)
    expect(messageOf(() => extractSubgraph(gm, [bn], [x], [bn]))).toContain(`the value of '${error.error}' is missing`)
  },
  matches_module_pattern: (golden) => {
    const gm = trace(new CNN())
    const found = Array.from(gm.graph.nodes, (node) => [
      node.name,
      [matchesModulePattern([Conv2d, BatchNorm2d], node, gm), matchesModulePattern([BatchNorm2d, ReLU], node, gm)],
    ])
    expect(Object.fromEntries(found)).toEqual(golden.result)
  },
  union_find: (golden) => {
    const [first, again, all, sizes, error] = resultOf<[number[], number, number[], number[], { error: string }]>(golden)
    const u = new UnionFind(5)
    const found = (): number[] => [0, 1, 2, 3].map((i) => u.find(i))
    for (let i = 0; i < 4; i++) u.makeSet(i)
    u.join(0, 1)
    u.join(2, 3)
    expect(found()).toEqual(first)
    expect(u.join(0, 1)).toBe(again)
    u.join(1, 3)
    expect(found()).toEqual(all)
    expect(u.size).toEqual(sizes)
    expect(messageOf(() => u.find(4))).toContain(error.error)
  },
  optimize_without_layout: (golden) => {
    const [text, equal, unchanged] = resultOf<[string, boolean, boolean]>(golden)
    const model = cnn()
    const optimized = optimizeForInference(model) as GraphModule
    expectText(optimized, text)
    expect([same(model, optimized), optimizeForInference(model, { convBnFuse: false, removeDropout: false }) === model]).toEqual([equal, unchanged])
  },
})

describe('optimization', () => {
  it('a chain of joins is found without recursion', () => {
    const n = 100_000
    const u = new UnionFind(n)
    for (let i = 0; i < n; i++) u.makeSet(i)
    for (let i = 1; i < n; i++) u.join(i - 1, i)
    expect([u.find(n - 1), u.size[0]]).toEqual([0, n])
  })

  it('replaceNodeModule puts another module at the path of a call', () => {
    const gm = trace(cnn())
    const fc = new Linear(8, 5)
    replaceNodeModule(nodeOf(gm, 'fc'), gm, fc)
    expect((gm.call(IMG) as Tensor).shape).toEqual([2, 5])
    expect(() => replaceNodeModule(nodeOf(gm, 'relu'), gm, fc)).toThrow("node 'relu' must be a call_module, got a call_function")
  })

  it('subclasses of Dropout are removed too', () => {
    class Mine extends Dropout {}
    expect(String(removeDropout(new Sequential(new ReLU(), new Mine())).graph)).not.toContain('call_module[target=1]')
  })
})

/** Channels last, as a backend could want its images; counts the conversions. */
function channelsLast(): { layout: Layout; conversions: () => number } {
  let conversions = 0
  const layout: Layout = {
    enter: (x: Tensor) => {
      conversions++
      return x.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
    },
    leave: (x: Tensor) => x.contiguous(),
    supports: (node, gm) => node.target === torch.relu || (node.op === 'call_module' && gm.attribute(node.target) instanceof Conv2d),
    follows: (node) => node.target === operator.add,
    heuristic: () => true,
  }
  return { layout, conversions: () => conversions }
}

describe('optimizeForInference', () => {
  const close = (model: Module, input: Tensor, options: InferenceOptions): boolean => {
    const call = (m: Module): Tensor => (symbolicTrace(m) as GraphModule).call(input) as Tensor
    return torch.allclose(call(optimizeForInference(model, options)), call(model), { rtol: 1e-4, atol: 1e-4 })
  }
  const layout = (heuristic: (region: LayoutRegion) => boolean): InferenceOptions => ({ layoutOptimize: { ...channelsLast().layout, heuristic } })

  it('test_optimize_for_inference_cpu: chains of layers, two of them added, with every option (channels last for MKL-DNN)', () => {
    const chain = (): Module[] => Array.from({ length: 10 }, () => [new Conv2d(3, 3, 1), new BatchNorm2d(3), new ReLU()]).flat()
    class TwoChains extends Module {
      model: Sequential = new Sequential(...chain())
      model2: Sequential = new Sequential(...chain())
      override forward(x: Tensor): Tensor {
        return operator.add(this.model.call(x), this.model2.call(x)) as Tensor
      }
    }
    const model = detInit(new TwoChains()).eval()
    const input = detInput([1, 3, 8, 8], 5)
    const all: InferenceOptions[] = [{}, { convBnFuse: false }, { removeDropout: false }, layout(useLongRegions), layout(() => true)]
    for (const options of all) expect(close(model, input, options)).toBe(true)
    expect(String((optimizeForInference(model) as GraphModule).graph)).not.toMatch(/target=model2?\.1\]/)
  })

  it('test_optimize_for_inference_cpu_torchvision: a ResNet', () => {
    const model = detInit(new ResNet()).eval()
    const input = detInput([1, 3, 16, 16], 6)
    for (const options of [{}, layout(useLongRegions)]) expect(close(model, input, options)).toBe(true)
  })
})

describe('applyLayout', () => {
  class Residual extends Module {
    first: Conv2d = new Conv2d(2, 2, 1)
    second: Conv2d = new Conv2d(2, 2, 1)
    override forward(x: Tensor): Tensor {
      const y = torch.relu(this.first.call(x))
      return torch.sin(operator.add(torch.relu(this.second.call(y)), this.first.call(y)) as Tensor)
    }
  }
  const image = detInput([1, 2, 3, 3], 4)

  it('the result is the same, and one region needs one conversion of its input', () => {
    const model = detInit(new Residual())
    const gm = trace(model)
    const { layout, conversions } = channelsLast()
    const regions = applyLayout(gm, layout)
    expect(regions.map(({ nodes }) => names(nodes))).toEqual([['first', 'relu', 'second', 'relu_1', 'first_1', 'add']])
    expect(torch.allclose(gm.call(image), model.call(image))).toBe(true)
    expect(conversions()).toBe(1)
  })

  it('layers of a region are converted; one that is also called elsewhere is kept for those calls', () => {
    const model = detInit(new Residual())
    const gm = trace(model)
    const { layout } = channelsLast()
    const isFirst = (node: Node): boolean => node.name === 'first' || node.name === 'second' || node.name === 'relu'
    const converted: Module[] = []
    const convert = (layer: Module): Module => {
      converted.push(layer)
      const copy = new Conv2d(2, 2, 1)
      copy.loadStateDict(layer.stateDict())
      return copy
    }
    applyLayout(gm, { ...layout, supports: isFirst, convert })
    expect(converted).toEqual([model.first, model.second])
    expect([nodeOf(gm, 'first').target, nodeOf(gm, 'first_1').target]).toEqual(['first_1', 'first'])
    expect([gm.attribute('first') === model.first, gm.attribute('first_1') === model.first]).toEqual([true, false])
    expect(torch.allclose(gm.call(image), model.call(image))).toBe(true)
  })

  it('regions that the heuristic refuses leave the graph as it was', () => {
    const gm = trace(detInit(new Residual()))
    const before = String(gm.graph)
    expect(applyLayout(gm, { ...channelsLast().layout, heuristic: () => false })).toEqual([])
    expect(String(gm.graph)).toBe(before)
  })
})
