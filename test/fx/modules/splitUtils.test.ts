// splitByTags, attributes at paths, and values on the boundary of parts; PyTorch's passes.split_utils.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { Linear, Module, ModuleList, Parameter, ReLU, Sequential, Tanh } from 'tensorfx/nn'
import { ShapeProp, getattrRecursive, moveNonTensorNodesOnBoundary, setattrRecursive, splitByTags } from 'tensorfx/fx/passes'
import type { Subgraph } from 'tensorfx/fx/passes'
import { detInput } from '../../helpers/deterministic.ts'
import { expectGraph } from '../golden.ts'
import { checkOutput } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { Branch, X, Y, chain, describeGolden, messageOf, names, nodeOf, resultOf } from './golden.ts'

interface Shown {
  readonly graph: string
  readonly submodules: Record<string, string>
}

function tagged(gm: GraphModule, tags: Readonly<Record<string, string>>): GraphModule {
  for (const [name, tag] of Object.entries(tags)) nodeOf(gm, name).meta['tag'] = tag
  return gm
}

const halves = { lin: 'a', relu: 'a', add: 'b', sin: 'b', cos: 'b', neg: 'b' }
const branch = (): GraphModule => symbolicTrace(new Branch())

function agrees(gm: GraphModule, golden: Shown): void {
  expectGraph(gm, { str_graph: golden.graph })
  for (const [name, text] of Object.entries(golden.submodules)) expectGraph(gm.attribute(name) as GraphModule, { str_graph: text })
}

const splitError = (gm: GraphModule, tags: readonly string[]): string => messageOf(() => splitByTags(gm, tags))

describeGolden('split_utils', {
  getattr_and_setattr_recursive: (golden) => {
    const [shape, tanh, missing, relu, none, error] = resultOf<[number[], string, null, string, null, { error: string }]>(golden)
    const m = new Sequential(new Linear(2, 3), new Sequential(new ReLU()))
    const holder = { ml: new ModuleList([new ReLU()]) }
    setattrRecursive(m, '1.0', new Tanh())
    expect((getattrRecursive(m, '0.weight') as Tensor).shape).toEqual(shape)
    expect([String(getattrRecursive(m, '1.0')), getattrRecursive(m, '1.nope.x')]).toEqual([tanh, missing])
    expect([String(getattrRecursive(holder, 'ml.0')), getattrRecursive(holder, 'ml.3')]).toEqual([relu, none])
    expect(error.error).toContain("has no attribute 'nope'")
    expect(messageOf(() => setattrRecursive(m, 'nope.x', 1))).toBe(
      "setattrRecursive: cannot set 'nope.x', because 'nope' is missing; set that first.",
    )
  },
  two_tags_single_output: (golden) => {
    const [shown, value] = resultOf<[Shown, GoldenOutput]>(golden)
    const { graphModule } = splitByTags(tagged(chain(), halves), ['a', 'b'])
    agrees(graphModule, shown)
    checkOutput(graphModule.call(X, Y), value)
  },
  fqn_mapping_and_tuple: (golden) => {
    const [shown, mapping] = resultOf<[Shown, Record<string, string>]>(golden)
    const { graphModule, qualnames } = splitByTags(tagged(chain(), halves), ['a', 'b'], { returnTuple: true })
    agrees(graphModule, shown)
    expect(Object.fromEntries(qualnames)).toEqual(mapping)
  },
  unused_tag_makes_an_empty_part: (golden) => {
    agrees(splitByTags(tagged(branch(), { sin: 'a', cos: 'a', add: 'a' }), ['a', 'b']).graphModule, resultOf(golden))
  },
  'wrong_order (difference: tags-explained)': (golden) => {
    const [order, missing] = resultOf<{ error: string }[]>(golden).map((e) => e.error)
    expect(order).toContain('Component a order must be >= max of its upstream components')
    expect(splitError(tagged(branch(), { sin: 'b', cos: 'b', add: 'a' }), ['a', 'b'])).toContain(
      "node 'add' of 'a' needs a value of 'b', which comes later in tags; put that tag first.",
    )
    expect(missing).toContain('Node does not have tag: %cos')
    expect(splitError(tagged(branch(), { sin: 'a' }), ['a'])).toContain("node 'cos' has no tag")
  },
  'get_attr_in_output (difference: paths-kept)': (golden) => {
    const [shown, mapping, values] = resultOf<[Shown, Record<string, string>, GoldenOutput[]]>(golden)
    class Sub extends Module {
      b: Parameter = new Parameter(detInput([3], 2))
      override forward(): never {
        throw new Error('only its parameter is used')
      }
    }
    class A extends Module {
      w: Parameter = new Parameter(detInput([3], 1))
      sub: Sub = new Sub()
      override forward(x: Tensor): unknown[] {
        return [operator.add(x, this.w), this.sub.b]
      }
    }
    const { graphModule, qualnames } = splitByTags(tagged(symbolicTrace(new A()) as GraphModule, { add: 'a' }), ['a'])
    // The attribute keeps its path.
    agrees(graphModule, { ...shown, graph: shown.graph.replace('target=sub_b', 'target=sub.b') })
    expect(Object.fromEntries(qualnames)).toEqual(mapping)
    const result = graphModule.call(detInput([3], 4)) as Tensor[]
    for (const [i, value] of values.entries()) checkOutput(result[i], value)
  },
  interleaved_tags: (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toContain('Component a order must be >= max')
    expect(splitError(tagged(chain(), { ...halves, relu: 'b', add: 'a' }), ['a', 'b'])).toContain("node 'add' of 'a' needs a value of 'b'")
  },
  other_class: (golden) => {
    class MyModule extends GraphModule {}
    const { graphModule } = splitByTags(tagged(branch(), { sin: 'a', cos: 'a', add: 'b' }), ['a', 'b'], { graphModuleClass: MyModule })
    expect([graphModule instanceof MyModule, graphModule.attribute('a') instanceof MyModule]).toEqual(golden.result)
  },
  move_non_tensor_nodes: (golden) => {
    const [{ printed }, parts] = resultOf<[{ printed: string }, string[][]]>(golden)
    const gm = symbolicTrace((x: Tensor) => {
      const y = torch.relu(x)
      const s = y.size(0)
      return torch.sin(y).reshape([s, -1])
    })
    new ShapeProp(gm).propagate(X)
    const node = (name: string) => nodeOf(gm, name)
    const subgraphs: Subgraph[] = [
      { isAcc: true, nodes: [node('relu'), node('size')] },
      { isAcc: false, nodes: [node('sin'), node('reshape')] },
    ]
    const lines: string[] = []
    moveNonTensorNodesOnBoundary(subgraphs, (line) => void lines.push(line))
    expect(`${lines.join('\n')}\n`).toBe(printed)
    expect(subgraphs.map(({ nodes }) => names(nodes))).toEqual(parts)
  },
})

describe('moveNonTensorNodesOnBoundary', () => {
  const program = (x: Tensor): unknown => {
    const s = x.size(0)
    const t = operator.add(s, 1)
    const u = operator.mul(t, 2)
    return [torch.relu(x).reshape([operator.sub(t, 1), -1]), u, operator.neg(u)]
  }
  function moved(parts: readonly (readonly string[])[], acc: readonly boolean[]): string[][] {
    const gm = symbolicTrace(program) as GraphModule
    new ShapeProp(gm).propagate(X)
    const subgraphs = parts.map((nodes, i) => ({ isAcc: acc[i] === true, nodes: nodes.map((name) => nodeOf(gm, name)) }))
    moveNonTensorNodesOnBoundary(subgraphs, () => {})
    return subgraphs.map(({ nodes }) => names(nodes))
  }

  it('what a moved node needs follows it', () => {
    expect(
      moved(
        [
          ['size', 'add', 'relu'],
          ['sub', 'reshape', 'mul', 'neg'],
        ],
        [true, false],
      ),
    ).toEqual([['relu'], ['sub', 'reshape', 'mul', 'neg', 'add', 'size']])
  })

  it('a node stays if two other parts use it, or if a third part needs what depends on it', () => {
    const two = [
      ['size', 'add', 'relu'],
      ['sub', 'reshape'],
      ['mul', 'neg'],
    ]
    expect(moved(two, [true, false, false])).toEqual(two)
    const third = [['size', 'add', 'mul', 'relu'], ['sub', 'reshape'], ['neg']]
    // mul itself goes to the part of neg; then add is used by two parts.
    expect(moved(third, [true, false, false])).toEqual([
      ['size', 'add', 'relu'],
      ['sub', 'reshape'],
      ['neg', 'mul'],
    ])
  })
})
