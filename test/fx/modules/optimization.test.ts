// removeDropout, extractSubgraph, UnionFind and optimizeForInference; PyTorch's experimental.optimization, but for its layouts of MKL-DNN.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { BatchNorm2d, Conv2d, Dropout, F, Linear, Module, ReLU, Sequential } from 'tensorfx/nn'
import { UnionFind, extractSubgraph, matchesModulePattern, optimizeForInference, removeDropout, replaceNodeModule } from 'tensorfx/fx/experimental'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { describeGolden, expectText, messageOf, nodeOf, resultOf } from './golden.ts'

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

describeGolden('optimization', {
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
  it('MKL-DNN’s layouts are no option (difference: no-mkldnn)', () => {
    const options = { mkldnnLayoutOptimize: {} } as unknown as Parameters<typeof optimizeForInference>[1]
    expect(String(optimizeForInference(cnn().eval(), options))).not.toContain('mkldnn')
  })

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
