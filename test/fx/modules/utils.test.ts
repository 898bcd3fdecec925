// HolderModule, lifted graphs, isomorphism and the parts of fuseByPartitions; PyTorch's passes.utils.common and passes.utils.fuser_utils.
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { operator, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { Linear, Module, Parameter, ReLU, Sequential } from 'tensorfx/nn'
import {
  CapabilityBasedPartitioner,
  HolderModule,
  areIsomorphic,
  createOpSupport,
  eraseNodes,
  fuseAsGraphModule,
  fuseByPartitions,
  insertSubgm,
  liftSubgraphAsModule,
  topoSort,
  validatePartition,
} from 'tensorfx/fx/passes'
import { Branch, X, Y, chain, describeGolden, expectText, messageOf, names, nodeOf, resultOf } from './golden.ts'

const pick = (gm: GraphModule, ...wanted: readonly string[]): Node[] => wanted.map((name) => nodeOf(gm, name))
const branch = (): GraphModule => symbolicTrace(new Branch())

type Fused = [string, string, string[], string[], string, { error: string }, [{ graph: string }, string[], string[]]]

describeGolden('utils', {
  'holder_module (difference: null-is-no-module)': (golden) => {
    const [, children, isNull] = resultOf<[string, string[], boolean]>(golden)
    const holder = new HolderModule({ a: new ReLU(), b: null })
    expect([Array.from(holder.namedChildren(), ([name]) => name), Reflect.get(holder, 'b') === null]).toEqual([children, isNull])
    expect(String(holder)).toBe('HolderModule(\n  (a): ReLU()\n)')
    expect(() => holder.forward()).toThrow('HolderModule only holds modules')
  },
  lift_subgraph: (golden) => {
    const [className, mapping, modules, same, text] = resultOf<[string, Record<string, string>, string[], boolean, string]>(golden)
    class A extends Module {
      blk: Sequential = new Sequential(new Linear(4, 4), new ReLU())
      w: Parameter = new Parameter(torch.zeros([4]))
      override forward(x: Tensor): unknown {
        return operator.add(this.blk.call(x), this.w)
      }
    }
    const gm = symbolicTrace(new A()) as GraphModule
    const { graphModule, qualnames } = liftSubgraphAsModule(gm, gm.graph, 'comp', 'MyClass')
    expect(graphModule.className).toBe(className)
    expect(Object.fromEntries(qualnames)).toEqual(mapping)
    expect(Array.from(graphModule.namedModules(), ([path]) => path).toSorted()).toEqual(modules)
    expect(graphModule.attribute('blk.0') === gm.attribute('blk.0')).toBe(same)
    expectText(graphModule, text)
  },
  compare_graphs_cases: (golden) => {
    const c = symbolicTrace((x: Tensor, y: Tensor) => operator.add(torch.sin(x), y)) as GraphModule
    const d = symbolicTrace((x: Tensor, y: Tensor) => operator.add(torch.sin(y), x)) as GraphModule
    const e = symbolicTrace((p: Tensor, q: Tensor) => operator.add(torch.sin(p), q)) as GraphModule
    const pairs = [
      [chain(), chain()],
      [chain(), c],
      [c, d],
      [c, e],
    ] as const
    expect(pairs.map(([a, b]) => areIsomorphic(a.graph, b.graph))).toEqual(golden.result)
  },
  validate_partitions: (golden) => {
    const [gm, h] = [branch(), chain()]
    expect([
      validatePartition(pick(gm, 'sin', 'add')),
      validatePartition(pick(h, 'relu', 'sin')),
      validatePartition(pick(h, 'relu', 'add')),
      validatePartition([]),
    ]).toEqual(golden.result)
  },
  fuse_as_graphmodule: (golden) => {
    const [text, className, inputs, outputs, tupleText, error, [one, none, all]] = resultOf<Fused>(golden)
    const gm = chain()
    const fused = fuseAsGraphModule(gm, pick(gm, 'add', 'sin'), 'fused')
    expectText(fused.graphModule, text)
    expect([fused.graphModule.className, names(fused.inputs), names(fused.outputs)]).toEqual([className, inputs, outputs])
    expectText(fuseAsGraphModule(gm, pick(gm, 'add', 'sin'), 'fused', { alwaysReturnTuple: true }).graphModule, tupleText)
    expect(messageOf(() => fuseAsGraphModule(gm, pick(gm, 'relu', 'sin'), 'bad'))).toContain(error.error)
    const input = fuseAsGraphModule(gm, pick(gm, 'x'), 'ph')
    expectText(input.graphModule, one.graph)
    expect([names(input.inputs), names(input.outputs)]).toEqual([none, all])
  },
  insert_and_erase: (golden) => {
    const [inserted, erased] = resultOf<[string, string]>(golden)
    const gm = chain()
    insertSubgm(gm, fuseAsGraphModule(gm, pick(gm, 'add', 'sin'), 'fused'))
    expect(String(gm.graph)).toBe(inserted)
    eraseNodes(gm, pick(gm, 'add', 'sin'))
    expect(String(gm.graph)).toBe(erased)
  },
  insert_several_outputs: (golden) => {
    const [whole, part] = resultOf<[string, string]>(golden)
    const gm = branch()
    const fused = fuseAsGraphModule(gm, pick(gm, 'sin', 'cos'), 'fused')
    insertSubgm(gm, fused)
    eraseNodes(gm, pick(gm, 'sin', 'cos'))
    expectText(gm, whole)
    expectText(fused.graphModule, part)
    // fuseByPartitions does both.
    const both = branch()
    fuseByPartitions(both, [pick(both, 'sin', 'cos')])
    expectText(both, whole.replaceAll('fused', 'fused_0'))
  },
  partitioner_with_prefix_and_bookends: (golden) => {
    const [proposed, , text] = resultOf<[string[][], string[][], string]>(golden)
    const gm = symbolicTrace((x: Tensor) => torch.relu(torch.sin(x.view([8])).view([2, 4])).view([4, 2])) as GraphModule
    const partitioner = new CapabilityBasedPartitioner(
      gm,
      createOpSupport((_, node) => node.op.startsWith('call')),
      { allowsSingleNodePartition: true, nonComputeOps: ['view'] },
    )
    const partitions = partitioner.proposePartitions()
    expect(partitions.map(({ nodes }) => names(topoSort(nodes)))).toEqual(proposed)
    expectText(partitioner.fusePartitions(partitioner.removeBookendNonComputeOps(partitions), 'reg_'), text)
  },
})

it('a fused module that always returns a tuple, and one whose result other nodes of it use, are inserted', () => {
  const gm = chain()
  const group = pick(gm, 'relu', 'add')
  insertSubgm(gm, fuseAsGraphModule(gm, group, 'fused', { alwaysReturnTuple: true }))
  eraseNodes(gm, group)
  gm.graph.lint()
  gm.recompile()
  expect(torch.allclose(gm.call(X, Y), chain().call(X, Y))).toBe(true)
  const shared = symbolicTrace((x: Tensor) => {
    const y = torch.relu(x)
    return [torch.sin(y), y]
  }) as GraphModule
  fuseByPartitions(shared, [pick(shared, 'relu', 'sin')])
  const [sin, relu] = shared.call(X) as [Tensor, Tensor]
  expect([torch.allclose(sin, torch.sin(torch.relu(X))), torch.allclose(relu, torch.relu(X))]).toEqual([true, true])
})
