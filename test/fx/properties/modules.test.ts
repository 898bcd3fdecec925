// Random graphs keep their meaning when they are divided among devices, normalized, annotated or rewritten.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Tensor } from 'tensorfx'
import { FakeTensorProp, makeFx } from 'tensorfx/aot'
import type { GraphModule, Node } from 'tensorfx/fx'
import { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators, Partitioner } from 'tensorfx/fx/experimental'
import type { Device, PartitionMode } from 'tensorfx/fx/experimental'
import { getSizeOfAllNodes, getSourcePartitions, partitionByDevice } from 'tensorfx/fx/passes'
import { rewriteFunction } from 'tensorfx/rewriter'
import { graphOf, inputs, keepsMeaning, numRuns, numbers, programs, tensorPrograms } from './programs.ts'

const isCall = (node: Node): boolean => node.op.startsWith('call')

/** Divides a graph among devices that together have enough memory, but none of them alone if there are several calls. */
function divided(gm: GraphModule, mode: PartitionMode): GraphModule {
  const total = [...getSizeOfAllNodes(gm, inputs()).values()].reduce((sum, { totalSize }) => sum + totalSize, 0)
  const sizes = mode === 'sparseNn' ? [total - 1, total - 1] : [Math.ceil(total * 0.8), total - 1, total - 1]
  const devices = sizes.map((availableMemBytes, logicalId): Device => ({ name: `d${logicalId}`, availableMemBytes, logicalId }))
  const latency = { memLatencySec: 1, computerLatencySec: 2 }
  const nodes = [...gm.graph.nodes]
  try {
    return new Partitioner().partitionGraph(gm, {
      devices,
      mode,
      transferRateBytesPerSec: 24,
      nodeToLatencyMapping: new Map(nodes.map((node) => [node, latency])),
      nodeToPartitionMapping: new Map(nodes.filter(isCall).map((node, i, all) => [node, Math.floor((2 * i) / all.length)])),
      partitionToLogicalDeviceMapping: new Map([
        [0, [0]],
        [1, [1]],
      ]),
    }).moduleWithSubmodules
  } catch (error) {
    // Parts that no devices can hold, or a graph of inputs only, are no defect.
    if (/No Partition|too large|Logical Device Mapping|not fit into one device/.test(String(error))) return gm
    throw error
  }
}

describe('random graphs keep their meaning', () => {
  it.each<PartitionMode>(['sizeBased', 'sparseNn', 'costAware', 'klBased', 'aotBased'])('divided among devices: %s', (mode) => {
    let dividedGraphs = 0
    keepsMeaning(
      (gm) => {
        const result = divided(gm, mode)
        if (result !== gm) dividedGraphs++
        return result
      },
      0,
      tensorPrograms,
    )
    expect(dividedGraphs).toBeGreaterThan(numRuns / 3)
  })

  it('as regions of a device', () => {
    keepsMeaning((gm) => {
      new FakeTensorProp(gm).propagate(...inputs())
      return partitionByDevice(gm, 'cpu')
    })
    keepsMeaning((gm) => partitionByDevice(gm, 'gpu', { deviceOf: (node) => (node.name.length % 3 === 0 ? 'cpu' : 'gpu') }))
  })

  it('with types, normal arguments and operators', () => {
    keepsMeaning((gm) => new AnnotateTypesWithSchema(gm).transform())
    keepsMeaning((gm) => new NormalizeArgs(gm).transform())
    keepsMeaning((gm) => new NormalizeArgs(gm, { onlyKwargs: false }).transform())
    keepsMeaning((gm) => new NormalizeOperators(gm).transform())
  })

  it('traced on values too, and the calls of their functions are found', () => {
    fc.assert(
      fc.property(programs, (steps) => {
        const gm = graphOf(steps)
        const run = (x: Tensor, y: Tensor): unknown => gm.call(x, y)
        const made = makeFx(run, { tracingMode: 'real' })(...inputs())
        made.graph.lint()
        expect(numbers(made.call(...inputs()))).toEqual(numbers(gm.call(...inputs())))
        const sources = [...made.graph.nodes].filter(isCall).map((node) => node.target)
        const found = [...getSourcePartitions(made.graph, sources).values()].flat().flatMap(({ nodes }) => nodes)
        expect(new Set(found).size).toBe(found.length)
      }),
      { numRuns },
    )
  })
})

/** Expressions of a, b and c, with what the rewriter changes. */
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('a', 'b', 'c', '0', '1', 'null', '""', 'undefined'),
    fc
      .tuple(tie('expression'), fc.constantFrom('&&', '||', '===', '!==', '==', '!=', '<', '+', ','), tie('expression'))
      .map(([x, op, y]) => `(${x} ${op} ${y})`),
    tie('expression').map((x) => `!${x}`),
    tie('expression').map((x) => `typeof ${x}`),
    fc.tuple(tie('expression'), tie('expression'), tie('expression')).map(([x, y, z]) => `(${x} ? ${y} : ${z})`),
    fc
      .tuple(tie('expression'), tie('expression'))
      .map(([x, y]) => `(function (d) { if (${x}) return ${y}\n  while (!d) d = 1\n  return [d, ${x}] })(${y})`),
  ),
}))

it('rewritten functions of plain values do the same', () => {
  fc.assert(
    fc.property(
      expression,
      fc.array(fc.oneof(fc.integer(), fc.string(), fc.constant(null), fc.constant(undefined)), { maxLength: 3 }),
      (source, args) => {
        // oxlint-disable-next-line no-new-func -- random sources are what is tested
        const fn = new Function('a', 'b', 'c', `return ${source}`) as (...given: unknown[]) => unknown
        expect(rewriteFunction(fn)(...args)).toEqual(fn(...args))
      },
    ),
    { numRuns: numRuns * 10 },
  )
})
