// Random graphs keep their meaning in every pass that should keep it, and passes that only look change nothing.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { DecompositionInterpreter, FakeTensorProp, decomposeGraph, makeFx, reinplace } from 'tensorfx/aot'
import { Graph, GraphModule } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import {
  applyLayout,
  extractSubgraph,
  foldBatchNorms,
  foldConstants,
  fuse,
  mergeMatmul,
  optimizeForInference,
  removeDropout,
  setTrace,
} from 'tensorfx/fx/experimental'
import {
  FxGraphDrawer,
  FxNetAccFusionsFinder,
  MinimizerBase,
  PassListManager,
  PassManager,
  annotateGetitemNodes,
  areIsomorphic,
  cse,
  deadCode,
  fuseByPartitions,
  getSizeOfAllNodes,
  legalize,
  liftSubgraphAsModule,
  mergeAttributeReads,
  moveNonTensorNodesOnBoundary,
  propagateShapes,
  replaceTargetNodesWith,
  runPasses,
  topoSort,
  unusedSubmodules,
  validatePartition,
} from 'tensorfx/fx/passes'
import type { TraverseMethod } from 'tensorfx/fx/passes'
import { graphOf, inputs, keepsMeaning, numRuns, numbers, programs, tensorPrograms } from './programs.ts'

const isCall = (node: Node): boolean => node.op.startsWith('call_')
const callsOf = (gm: GraphModule): Node[] => [...gm.graph.nodes].filter(isCall)
const close = 1e-4

/** For every random graph; `tensorPrograms` are those without tuples. */
const forEachGraph = (check: (gm: GraphModule) => void, of: typeof programs = programs): void =>
  fc.assert(
    fc.property(of, (steps) => check(graphOf(steps))),
    { numRuns },
  )

describe('random graphs keep their meaning', () => {
  it('in lists of passes', () => {
    const list = [propagateShapes(...inputs()), cse, foldConstants, deadCode, mergeAttributeReads, legalize, unusedSubmodules]
    keepsMeaning((gm) => runPasses(list, gm).value, close)
    keepsMeaning((gm) => new PassManager({ passes: list }).run(gm).graphModule, close)
    keepsMeaning((gm) => {
      const functions = list.map((pass) => (m: GraphModule) => runPasses([pass], m).value)
      return new PassListManager(functions).run(gm)
    }, close)
  })

  it('prepared for inference', () => {
    keepsMeaning((gm) => fuse(gm), close)
    keepsMeaning((gm) => fuse(gm, { inplace: true }), close)
    keepsMeaning((gm) => runPasses([foldBatchNorms], gm).value, close)
    keepsMeaning((gm) => removeDropout(gm))
    keepsMeaning((gm) => optimizeForInference(gm) as GraphModule, close)
  })

  it('with regions in another layout', () => {
    // Transposed memory; the random heuristic refuses some regions.
    let asked = 0
    let used = 0
    const layout = {
      enter: (x: Tensor) => x.t().contiguous().t(),
      leave: (x: Tensor) => x.contiguous(),
      supports: (node: Node) => node.op === 'call_module' || node.target === torch.relu || node.target === torch.neg,
      follows: (node: Node) => node.target === torch.add,
      heuristic: () => asked++ % 3 !== 0,
    }
    keepsMeaning((gm) => {
      used += applyLayout(gm, layout).length
      return gm
    }, close)
    expect(used).toBeGreaterThan(0)
    expect(asked).toBeGreaterThan(used)
  })

  it('with products merged', () => {
    const merged: GraphModule[] = []
    // Few random graphs multiply one matrix by two others: more of them are made until there was one.
    for (let round = 0; round < 50 && merged.length === 0; round++)
      keepsMeaning((gm) => {
        const result = mergeMatmul(gm)
        if (String(result.graph).includes('split_result_tensors')) merged.push(result)
        return result
      }, close)
    expect(merged).not.toEqual([])
  })

  it('with nodes fused, as far as they can be', () => {
    let fused = 0
    keepsMeaning((gm) => {
      const part = callsOf(gm).filter((node) => node.name.length % 2 === 0)
      if (part.length === 0 || !validatePartition(part)) return gm
      fused++
      expect(new Set(topoSort(part.toReversed()))).toEqual(new Set(part))
      return fuseByPartitions(gm, [part])
    })
    expect(fused).toBeGreaterThan(0)
  })

  it('with a function replaced by an equal one', () =>
    keepsMeaning((gm) => {
      const negative = (x: Tensor): Tensor => x.mul(-1)
      replaceTargetNodesWith(gm, 'call_function', torch.neg, 'call_function', negative)
      gm.recompile()
      return gm
    }))

  it('as a part of another module, and as a part of itself', () => {
    keepsMeaning((gm) => liftSubgraphAsModule(gm, gm.graph.deepCopy()).graphModule)
    forEachGraph((gm) => {
      const calls = callsOf(gm)
      fc.pre(calls.length > 0)
      const placeholders = gm.graph.findNodes({ op: 'placeholder' })
      const inner = [...gm.graph.nodes].filter((node) => isCall(node) || node.op === 'get_attr')
      const outputs = calls.filter((node) => !String(node.target).includes('chunk'))
      const part = extractSubgraph(gm, inner, placeholders, outputs)
      const whole = gm.deepCopy()
      whole.graph.outputNode().args = [[...whole.graph.nodes].filter((node) => outputs.some(({ name }) => name === node.name))]
      whole.recompile()
      expect(numbers(part.call(...inputs()))).toEqual(numbers(whole.call(...inputs())))
    })
  })

  it('with a stop of the debugger', () => keepsMeaning((gm) => setTrace(gm)))

  it('as operators: recorded, decomposed, in place', () => {
    keepsMeaning((gm) => {
      const graph = new Graph()
      new DecompositionInterpreter(gm, graph).run(...inputs())
      return new GraphModule(gm, graph)
    }, close)
    keepsMeaning((gm) => decomposeGraph(makeFx((x: Tensor, y: Tensor) => gm.call(x, y))(...inputs())), close)
    torch.noGrad(() => keepsMeaning((gm) => reinplace(makeFx((x: Tensor, y: Tensor) => gm.call(x, y))(...inputs()), ...inputs()), close))
  })
})

describe('passes that look', () => {
  it('change nothing but notes', () => {
    keepsMeaning((gm) => {
      const text = String(gm.graph)
      new FakeTensorProp(gm).propagate(...inputs())
      annotateGetitemNodes(gm.graph)
      new FxNetAccFusionsFinder(gm, new Set(callsOf(gm))).run()
      String(new FxGraphDrawer(gm, 'random').getDotGraph())
      moveNonTensorNodesOnBoundary([{ isAcc: true, nodes: callsOf(gm) }], () => {})
      expect(String(gm.graph)).toBe(text)
      gm.recompile()
      return gm
    })
    keepsMeaning(
      (gm) => {
        getSizeOfAllNodes(gm, inputs())
        return gm
      },
      0,
      tensorPrograms,
    )
  })

  it('find a copy of the graph in the graph, and no difference between two equal backends', () => {
    forEachGraph((gm) => {
      gm.graph.eliminateDeadCode()
      gm.recompile()
      // A pattern has no unused inputs.
      fc.pre(callsOf(gm).length > 0 && gm.graph.findNodes({ op: 'placeholder' }).every((node) => node.users.size > 0))
      expect(areIsomorphic(gm.graph, gm.graph.deepCopy())).toBe(true)
    }, tensorPrograms)
    forEachGraph((gm) => {
      fc.pre(callsOf(gm).length > 0)
      for (const traverseMethod of ['sequential', 'binary', 'accumulate', 'block', 'defined'] satisfies TraverseMethod[]) {
        const run = (part: GraphModule, args: readonly unknown[]): unknown => part.call(...args)
        const compare = (a: unknown, b: unknown): readonly [number, boolean] => [0, String(numbers(a)) === String(numbers(b))]
        const minimizer = new MinimizerBase(gm, inputs(), compare, { runA: run, runB: run, settings: { traverseMethod }, print: () => {} })
        expect([...minimizer.minimize()]).toEqual([])
      }
    }, tensorPrograms)
  })
})
