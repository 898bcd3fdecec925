// getNodeTarget, isNodeOutputTensor, FxNetAccFusionsFinder, legalizeGraph and stableTopologicalSort; PyTorch's passes.tools_common.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { Conv2d, Module, ReLU, Sequential } from 'tensorfx/nn'
import {
  FxNetAccFusionsFinder,
  ShapeProp,
  getAccOpsName,
  getNodeTarget,
  isNodeOutputTensor,
  legalizeGraph,
  stableTopologicalSort,
} from 'tensorfx/fx/passes'
import { nameTarget } from '../../../src/protocol/index.ts'
import { X, chain, describeGolden, expectText, messageOf, names, nodeOf, resultOf } from './golden.ts'

const calls = (gm: GraphModule): Node[] => [...gm.graph.nodes].filter((node) => node.op.startsWith('call'))

/** PyTorch's names of targets as they are here: classes and operators by the names that users write. */
const ourTarget = (name: string): string =>
  name.startsWith('torch.nn.modules.')
    ? (name.split('.').at(-1) ?? '')
    : name.replace(/^_operator\./, 'operator.').replace('torch._C._nn.', 'torch.nn.functional.')

class SizeArithmetic extends Module {
  override forward(x: Tensor): Tensor {
    const y = torch.relu(x)
    const t = operator.add(y.size(0), 1)
    const z = torch.sin(y)
    return z.reshape([operator.sub(t, 1), -1])
  }
}

function shuffled(): GraphModule {
  const graph = new Graph()
  const x = graph.placeholder('x')
  const a = graph.callFunction(torch.relu, [x])
  const b = graph.callFunction(torch.sin, [x])
  const c = graph.callFunction(torch.add, [a, b])
  const d = graph.callFunction(torch.neg, [b])
  graph.output([c, d])
  c.append(a)
  return new GraphModule({}, graph)
}

function cyclic(): GraphModule {
  const graph = new Graph()
  const x = graph.placeholder('x')
  const a = graph.callFunction(torch.relu, [x])
  const b = graph.callFunction(torch.sin, [a])
  graph.output(b)
  a.args = [b]
  return new GraphModule({}, graph)
}

describeGolden('tools_common', {
  'node_targets (difference: home-of-classes)': (golden) => {
    const gm = chain()
    const expected = Object.entries(resultOf<Record<string, string>>(golden)).map(([name, target]) => [name, ourTarget(target)])
    expect(calls(gm).map((node) => [node.name, getNodeTarget(gm, node)])).toEqual(expected)
  },
  node_target_of_placeholder: (golden) => {
    const gm = chain()
    expect(resultOf<{ error: string }>(golden).error).toContain('but found placeholder')
    expect(() => getNodeTarget(gm, nodeOf(gm, 'x'))).toThrow(
      "node 'x' must be one of call_function, call_method and call_module, which have a target, but it is a placeholder",
    )
  },
  node_target_of_operators_and_modules: (golden) => {
    class A extends Module {
      c: Conv2d = new Conv2d(1, 1, 1)
      s: Sequential = new Sequential(new ReLU())
      override forward(x: Tensor): Tensor {
        const gelu = torch.nn.functional.gelu(this.s.call(this.c.call(x)) as Tensor)
        return operator.mul(operator.getitem(gelu, 0), 2) as Tensor
      }
    }
    const gm = symbolicTrace(new A())
    const expected = resultOf<[string, string][]>(golden).map(([name, target]) => [name, ourTarget(target)])
    expect(calls(gm).map((node) => [node.name, getNodeTarget(gm, node)])).toEqual(expected)
  },
  output_is_tensor: (golden) => {
    class A extends Module {
      override forward(x: Tensor): Tensor {
        return operator.add(operator.getitem(torch.split(x, 2, 1), 0), x.size(0)) as Tensor
      }
    }
    const gm = symbolicTrace(new A())
    const [before, after] = resultOf<[boolean[], Record<string, boolean>]>(golden)
    expect(Array.from(gm.graph.nodes, isNodeOutputTensor)).toEqual(before)
    new ShapeProp(gm).propagate(X)
    expect(Object.fromEntries(Array.from(gm.graph.nodes, (node) => [node.name, isNodeOutputTensor(node)]))).toEqual(after)
  },
  fusions_finder: (golden) => {
    const gm = symbolicTrace(new SizeArithmetic())
    new ShapeProp(gm).propagate(X)
    const [all, some, left] = resultOf<[Record<string, string[]>, Record<string, string[]>, string[]]>(golden)
    const found = (acc: Set<Node>): Record<string, string[]> =>
      Object.fromEntries([...new FxNetAccFusionsFinder(gm, acc).run()].map(([node, group]) => [node.name, names(group)]))
    expect(found(new Set(calls(gm)))).toEqual(all)
    const part = new Set(calls(gm).filter((node) => node.name !== 'sin'))
    expect(found(part)).toEqual(some)
    expect(names(part)).toEqual(left)
  },
  legalize_reorders: (golden) => {
    const [before, error, after] = resultOf<[string, { error: string }, string]>(golden)
    const gm = shuffled()
    expect(names(gm.graph.nodes)).toEqual([...before.matchAll(/%(\w+) :/g)].map((m) => m[1]).concat('output'))
    expect(error.error).toContain("Argument 'relu' of Node 'add' was used before it has been defined!")
    expect(() => gm.graph.lint()).toThrow("'relu'")
    legalizeGraph(gm)
    expectText(gm, after)
  },
  legalize_puts_size_arithmetic_first: (golden) => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const y = graph.placeholder('y')
    const a = graph.callFunction(torch.relu, [x])
    const b = graph.callFunction(torch.sin, [y])
    const c = graph.callFunction(operator.add, [x, y])
    const d = graph.callFunction(operator.mul, [x, x])
    graph.output(graph.callFunction(torch.cat, [[a, b, c, d]]))
    const gm = legalizeGraph(new GraphModule({}, graph))
    expect(String(gm.graph)).toBe(golden.result)
  },
  cycles: (golden) => {
    const errors = resultOf<{ error: string }[]>(golden).map((e) => e.error)
    expect([messageOf(() => legalizeGraph(cyclic())), messageOf(() => stableTopologicalSort(cyclic()))]).toEqual(errors)
  },
})

describe('groups of nodes', () => {
  it('a node between two nodes of a group joins it, and a group that the accelerator supports in part leaves it', () => {
    // relu is needed by the size's user reshape, and takes part in it only as a tensor; here it depends on the size too.
    const gm = symbolicTrace((x: Tensor) => {
      const size = x.size(0)
      const sum = torch.relu(operator.add(x, size))
      return sum.reshape([size, -1])
    })
    new ShapeProp(gm).propagate(X)
    const groups = new FxNetAccFusionsFinder(gm, new Set(calls(gm))).run()
    expect(names(groups.get(nodeOf(gm, 'size')) ?? [])).toEqual(['size', 'add', 'relu', 'reshape'])
    const part = new Set(calls(gm).filter((node) => node.name !== 'relu'))
    expect(new FxNetAccFusionsFinder(gm, part).run().size).toBe(0)
    expect(names(part)).toEqual([])
  })

  it('getAccOpsName keeps the module acc_ops of a function', () => {
    const linear = nameTarget((x: unknown) => x, { name: 'vendor.acc_ops.linear_of_this_test' })
    expect([getAccOpsName(linear), getAccOpsName('acc_ops.linear'), getAccOpsName(torch.relu)]).toEqual([
      'acc_ops.linear_of_this_test',
      'acc_ops.linear',
      'torch.relu',
    ])
  })
})

describe('orders', () => {
  it('stableTopologicalSort leaves a graph in order as it is, and moves as little as it can', () => {
    const gm = chain()
    const before = String(gm.graph)
    expect(String(stableTopologicalSort(gm).graph)).toBe(before)
    expect(names(stableTopologicalSort(shuffled()).graph.nodes)).toEqual(['x', 'sin', 'relu', 'add', 'neg', 'output'])
  })
})
