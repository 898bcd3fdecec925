// extractAttrsForLowering and annotateGetitemNodes; PyTorch's passes.param_fetch and passes.annotate_getitem_nodes.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, len, operator, symbolicTrace } from 'tensorfx/fx'
import { BatchNorm2d, Conv2d, GELU, Linear, Module, Sequential } from 'tensorfx/nn'
import { annotateGetitemNodes, defaultMatching, extractAttrsForLowering, liftLoweringAttrsToNodes, moduleFetchBook } from 'tensorfx/fx/passes'
import { detInit } from '../../helpers/deterministic.ts'
import { camelCase } from '../../../src/protocol/index.ts'
import { checkOutput } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { Chain, chain, describeGolden, messageOf, resultOf } from './golden.ts'

/** PyTorch's attributes as they are here: camelCase, and without those that layers do not have. */
function expectAttributes(ours: Readonly<Record<string, unknown>>, golden: Readonly<Record<string, unknown>>): void {
  const theirs = Object.entries(golden).filter(([name]) => name !== 'padding_mode')
  expect(Object.keys(ours)).toEqual(theirs.map(([name]) => camelCase(name)))
  for (const [name, value] of theirs) {
    if (name === 'name') expect(ours['name']).toBe(String(value).split('.').at(-1))
    else if (typeof value === 'object' && value !== null && 'shape' in value) checkOutput(ours[camelCase(name)], value as GoldenOutput)
    else expect(ours[camelCase(name)]).toEqual(value)
  }
}

describeGolden('param_fetch', {
  'linear (difference: home-of-classes)': (golden) => {
    const [attributes, bias] = resultOf<[Record<string, unknown>, null]>(golden)
    expectAttributes(extractAttrsForLowering(detInit(new Linear(2, 3))), attributes)
    expect(extractAttrsForLowering(new Linear(2, 2, { bias: false }))['bias']).toBe(bias)
  },
  'conv (difference: drawn-fields)': (golden) => {
    expectAttributes(extractAttrsForLowering(detInit(new Conv2d(1, 2, 2, { stride: [1, 2], padding: 1, groups: 1 }))), resultOf(golden))
  },
  batch_norm: (golden) => {
    expectAttributes(extractAttrsForLowering(detInit(new BatchNorm2d(2, { eps: 0.5 }))), resultOf(golden))
  },
  unknown: (golden) => {
    expect(resultOf<{ error: string }[]>(golden).map((e) => e.error.includes('is not in the module_fetch_book yet'))).toEqual([true, true])
    expect(messageOf(() => extractAttrsForLowering(new GELU()))).toBe(
      "extractAttrsForLowering: GELU is not in moduleFetchBook yet; add it: moduleFetchBook.set(GELU, { version: 1, attributes: ['…'] }).",
    )
    expect(() => extractAttrsForLowering(new Chain())).toThrow('Chain is not in moduleFetchBook yet')
  },
  newer_version: (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toContain('version 1 try to fetch torch.nn.modules.linear.Linear version 99')
    const newer = Object.assign(new Linear(2, 2), { _version: 99 })
    expect(() => extractAttrsForLowering(newer)).toThrow('moduleFetchBook has version 1 of Linear, but the module has version 99; update the entry.')
  },
  'matching_and_table (difference: drawn-fields)': (golden) => {
    const [name, table] = resultOf<[string, Record<string, [number, string[]]>]>(golden)
    expect(defaultMatching('weight', 3)).toBe(name)
    const missing = new Set(['paddingMode', 'returnIndices'])
    const theirs = Object.entries(table).map(([layer, [version, names]]) => [
      layer,
      { version, attributes: names.map(camelCase).filter((n) => !missing.has(n)) },
    ])
    expect([...moduleFetchBook]).toEqual(theirs)
  },
  lifted_to_nodes: (golden) => {
    const gm = chain()
    liftLoweringAttrsToNodes(gm)
    const lifted = Array.from(gm.graph.nodes, (node) => {
      const attributes = node.meta['attrs_for_lowering']
      return [node.name, attributes === undefined ? null : Object.keys(attributes as object)]
    })
    expect(Object.fromEntries(lifted)).toEqual(golden.result)
  },
  lift_fails_on_unknown: (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toContain('GELU is not in the module_fetch_book yet')
    expect(() => liftLoweringAttrsToNodes(symbolicTrace(new Sequential(new GELU())))).toThrow('GELU is not in moduleFetchBook yet')
  },
})

describe('param_fetch', () => {
  it('test_fetch: a class of the user’s own can be added, and child GraphModules are entered', () => {
    class Scale extends Module {
      factor = 3
      override forward(x: Tensor): Tensor {
        return x.mul(this.factor)
      }
    }
    moduleFetchBook.set(Scale, { version: 1, attributes: ['k'], matching: () => 'factor' })
    try {
      const inner = new Graph()
      inner.output(inner.callModule('scale', [inner.placeholder('x')]))
      const child = new GraphModule({ scale: new Scale() }, inner)
      const outer = new Graph()
      outer.output(outer.callModule('child', [outer.placeholder('x')]))
      const gm = new GraphModule({ child }, outer)
      liftLoweringAttrsToNodes(gm)
      expect(gm.graph.findNodes({ op: 'call_module' })[0]?.meta['attrs_for_lowering']).toBeUndefined()
      expect(child.graph.findNodes({ op: 'call_module' })[0]?.meta['attrs_for_lowering']).toEqual({ name: 'Scale', k: 3 })
    } finally {
      moduleFetchBook.delete(Scale)
    }
  })
})

const NT = { namedTuples: { NT: { a: 'int', b: 'torch.Tensor' } } }

/** The types of elements of a sequence. */
function annotated(type: string, ...indices: readonly number[]): (string | null)[] {
  const graph = new Graph()
  const x = graph.placeholder('x', type)
  const items = indices.map((i) => graph.callFunction(operator.getitem, [x, i]))
  graph.output(items)
  annotateGetitemNodes(graph, NT)
  return items.map((node) => (node.type === null ? null : String(node.type)))
}

const shortNames = (types: readonly (string | null)[]): (string | null)[] => types.map((type) => type?.replace('torch.', '') ?? null)

describeGolden('annotate_getitem_nodes', {
  tuples: (golden) => {
    expect([
      shortNames(annotated('Tuple[int, torch.Tensor]', 0, 1)),
      annotated('tuple[int, str]', 1),
      annotated('Tuple[int, ...]', 0, 7),
      annotated('tuple[float, ...]', 3),
    ]).toEqual(golden.result)
  },
  lists: (golden) => {
    expect([shortNames(annotated('List[torch.Tensor]', 0, 5)), annotated('list[int]', 2)]).toEqual(golden.result)
  },
  named_tuple: (golden) => {
    expect(shortNames(annotated('NT', 0, 1))).toEqual(golden.result)
  },
  out_of_range: (golden) => {
    const [first, second] = resultOf<{ error: string }[]>(golden).map((e) => e.error)
    expect(messageOf(() => annotated('Tuple[int, str]', 2))).toContain(first)
    expect(messageOf(() => annotated('tuple[int]', 1))).toContain(second)
    expect(() => annotated('NT', 2)).toThrow('Index 2 out of range for parameterized_types (len=2)')
  },
  nested: (golden) => {
    const graph = new Graph()
    const x = graph.placeholder('x', 'Tuple[int, List[Tuple[str, float]]]')
    const a = graph.callFunction(operator.getitem, [x, 1])
    const b = graph.callFunction(operator.getitem, [a, 3])
    const c = graph.callFunction(operator.getitem, [b, 1])
    graph.output(c)
    annotateGetitemNodes(graph)
    expect([a.type, b.type, c.type]).toEqual(resultOf<string[]>(golden).map((type) => type.replaceAll('typing.', '')))
  },
  only_getitem: (golden) => {
    const graph = new Graph()
    const a = graph.callFunction(len, [graph.placeholder('x', 'Tuple[int, int]')])
    graph.output(a)
    annotateGetitemNodes(graph)
    expect(a.type).toBe(golden.result)
  },
  overwrites_existing: (golden) => {
    const graph = new Graph()
    const a = graph.callFunction(operator.getitem, [graph.placeholder('x', 'Tuple[int, str]'), 0], {}, 'float')
    graph.output(a)
    annotateGetitemNodes(graph)
    expect(a.type).toBe(golden.result)
  },
})

describe('annotate_getitem_nodes', () => {
  it('test_annotate_getitem_node: TypeScript’s types, indices from the end, and what has no elements', () => {
    expect(annotated('readonly [number, Tensor]', 1)).toEqual(['Tensor'])
    expect(annotated('[Map<string, number>, Tensor]', 0, -1)).toEqual(['Map<string, number>', 'Tensor'])
    expect([annotated('Tensor[]', 4), annotated('readonly Tensor[]', 4), annotated('ReadonlyArray<[number, string]>', 0)]).toEqual([
      ['Tensor'],
      ['Tensor'],
      ['[number, string]'],
    ])
    expect([annotated('torch.Tensor', 0), annotated('Dict[str, int]', 0), annotated('tuple', 0)]).toEqual([[null], [null], [null]])
  })

  it('leaves an index that is a value, and a sequence without a type', () => {
    const graph = new Graph()
    const [x, i] = [graph.placeholder('x', 'Tuple[int, int]'), graph.placeholder('i')]
    const items = [graph.callFunction(operator.getitem, [x, i]), graph.callFunction(operator.getitem, [i, 0])]
    graph.output([...items, graph.callFunction(torch.relu, [i])])
    annotateGetitemNodes(graph)
    expect(items.map((node) => node.type)).toEqual([null, null])
  })
})
