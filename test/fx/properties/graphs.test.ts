// Random graphs keep their meaning on every way that they can go. TENSORFX_FUZZ=2000 runs that many of each.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Interpreter, SubgraphMatcher, Transformer, replacePattern } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { compareGraphs, graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { GraphJson } from 'tensorfx/fx/json'
import {
  CSEPass,
  CapabilityBasedPartitioner,
  ShapeProp,
  SplitterBase,
  createOpSupport,
  inlineModule,
  legalizeGraph,
  splitByTags,
  splitModule,
  stableTopologicalSort,
} from 'tensorfx/fx/passes'
import { FakeTensorProp } from 'tensorfx/aot'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule as Gm } from 'tensorfx/fx'
import { loadGraphModule, saveGraphModule } from 'tensorfx/interop'
import { splitConstSubgraphs } from 'tensorfx/fx/experimental'
import { goldenGraph, goldenText } from '../samples/golden.ts'
import { parseGraph } from '../samples/parseGraph.ts'
import { graphOf, inputs, keepsMeaning, numRuns, numbers, programs } from './programs.ts'

describe('random graphs keep their meaning', () => {
  it('interpreted', () => {
    fc.assert(
      fc.property(programs, (steps) => {
        const gm = graphOf(steps)
        expect(numbers(new Interpreter(gm).run(...inputs()))).toEqual(numbers(gm.call(...inputs())))
      }),
      { numRuns },
    )
  })
  it('transformed without a change', () => keepsMeaning((gm) => new Transformer(gm).transform()))
  it('copied deeply', () => keepsMeaning((gm) => gm.deepCopy()))
  it('as JSON', () => keepsMeaning((gm) => new Gm(gm, graphFromJson(JSON.parse(JSON.stringify(graphToJson(gm.graph))) as GraphJson))))
  it('as a file', () => keepsMeaning((gm) => loadGraphModule(saveGraphModule(gm))))
  it('without dead code', () =>
    keepsMeaning((gm) => {
      gm.graph.eliminateDeadCode()
      gm.recompile()
      return gm
    }))
  it('without common subexpressions', () => keepsMeaning((gm) => new CSEPass().run(gm).graphModule))
  it('with constants folded', () => keepsMeaning((gm) => splitConstSubgraphs(gm)))
  it('with shapes noted', () =>
    keepsMeaning((gm) => {
      new ShapeProp(gm).propagate(...inputs())
      return gm
    }))
  it('split into parts, and put together again', () => {
    const third = (gm: GraphModule): GraphModule => {
      const calls = [...gm.graph.nodes].filter((n) => !['placeholder', 'get_attr', 'output'].includes(n.op))
      const part = new Map(calls.map((n, i) => [n, Math.floor((3 * i) / calls.length)]))
      return splitModule(gm, (node) => part.get(node) as number)
    }
    keepsMeaning(third)
    keepsMeaning((gm) => {
      const split = third(gm)
      for (const call of split.graph.findNodes({ op: 'call_module' })) inlineModule(split, call)
      split.recompile()
      return split
    })
  })
  it('split by tags', () =>
    keepsMeaning((gm) => {
      const calls = [...gm.graph.nodes].filter((n) => n.op.startsWith('call'))
      calls.forEach((node, n) => (node.meta['tag'] = n < calls.length / 2 ? 'first' : 'second'))
      return splitByTags(gm, ['first', 'second']).graphModule
    }))
  it('with everything that can be fused in as few modules as possible', () =>
    keepsMeaning((gm) =>
      new CapabilityBasedPartitioner(
        gm,
        createOpSupport((_gm, node) => node.op === 'call_method'),
        { allowsSingleNodePartition: true },
      ).partitionAndFuse(),
    ))
  it('put in order', () => keepsMeaning((gm) => legalizeGraph(gm)))
  it('put in order with few moves', () => keepsMeaning((gm) => stableTopologicalSort(gm)))
  it('split between an accelerator and the CPU', () =>
    keepsMeaning((gm) => {
      // The splitter refuses a graph without calls.
      fc.pre([...gm.graph.nodes].some((node) => node.op.startsWith('call_')))
      const support = createOpSupport((_, node) => node.name.length % 2 === 0)
      return new SplitterBase(gm, inputs(), support, { settings: { minAccModuleSize: 2 }, print: () => {} }).run()
    }))
  it('with shapes of values that nobody computed', () =>
    keepsMeaning((gm) => {
      new FakeTensorProp(gm).propagate(...inputs())
      return gm
    }))
  it('with a pattern replaced by what equals it', () =>
    keepsMeaning((gm) => {
      replacePattern(
        gm,
        (x: Tensor) => torch.neg(x),
        (x: Tensor) => torch.mul(x, -1),
      )
      expect(new SubgraphMatcher(replaceable()).match(gm.graph)).toEqual([])
      return gm
    }))

  it('printed and read back', () => {
    fc.assert(
      fc.property(programs, (steps) => {
        const { graph } = graphOf(steps)
        const text = String(graph)
        expect(goldenText(goldenGraph(parseGraph(text)))).toBe(text)
      }),
      { numRuns },
    )
  })

  it('copies are equal to the last note', () => {
    fc.assert(
      fc.property(programs, (steps) => {
        const { graph } = graphOf(steps)
        expect(compareGraphs(graph, graph.deepCopy())).toBeNull()
      }),
      { numRuns },
    )
  })
})

function replaceable(): GraphModule['graph'] {
  const gm = graphOf([{ kind: 11, a: 0, b: 0, c: 0 }])
  gm.graph.outputNode().args = [gm.graph.findNodes({ op: 'call_function', target: torch.neg })[0] ?? null]
  for (const node of gm.graph.findNodes({ op: 'placeholder' })) if (node.users.size === 0) gm.graph.eraseNode(node)
  return gm.graph
}
