// Functions stay short and take few parameters: those above the limits of scripts/house/functions.mjs are recorded here, each with the reason why it is not split.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { LIMITS, aboveLimits, functionsIn } from '../../scripts/house/functions.mjs'

const above = aboveLimits(join(fileURLToPath(new URL('../../', import.meta.url)), 'src'))

/** Reasons, and the functions that have them. */
type Recorded = Readonly<Record<string, readonly string[]>>

const LONG: Recorded = {
  'one switch, with a case of a few lines for each kind': ['rewriter/names.ts:namesOf', 'distributed/mpi/backend.ts:MpiChannel.#launch'],
  'one view of a page, part by part': ['fx/viewer/page/panel.ts:describe'],
  'one process or world from its start to its end, whose steps share its handles': [
    'debug/isolate/nodeHelper.ts:nodeHelper',
    'debug/isolate/nodeHelper.ts:anonymous',
  ],
}

const WIDE: Recorded = {
  "PyTorch's signature": [
    'vision/functional/geometry.ts:resizedCrop',
    'vision/functional/values.ts:erase',
    'nn/fusion.ts:fuseConvBnWeights',
    'nn/fusion.ts:fuseLinearBnWeights',
    'nn/prune/prune.ts:lnStructured',
    'fx/graph/graph.ts:Graph.createNode',
    'fx/trace/tracer.ts:Tracer.createNode',
    'fx/trace/tracer.ts:Tracer.createProxy',
    'fx/trace/tracerBase.ts:TracerBase.createNode',
    'fx/trace/tracerBase.ts:TracerBase.createProxy',
    'fx/experimental/migrateGradualTypes/operatorRules.ts:generateFlattenConstraints',
    'fx/experimental/partitioner/partitionStrategies.ts:costOfSwapping',
  ],
  "the operator's arguments, in the order of its schema": [
    'ops/random/philox.ts:compute',
    'ops/nn/norm/batchNorm.ts:normalized',
    'ops/nn/norm/batchNorm.ts:evaluated',
    'ops/nn/conv/conv3d.ts:volumes',
    'ops/nn/sample/gridSample.ts:numberedSample',
    'ops/nn/sample/interpolate.ts:resized',
    'ops/reduction/orderStatistics.ts:quantiles',
    'ops/create/signalWindows.ts:window',
    'ops/create/windows.ts:windowOf',
    'ops/nn/conv/convTranspose.ts:transposed',
    'ops/nn/conv/convTranspose.ts:transposedConv',
    'ops/nn/loss/crossEntropy.ts:smoothedLoss',
    'ops/nn/dropout.ts:saturated',
    'ops/nn/norm/groupNorm.ts:checkBackward',
    'ops/nn/norm/layerNorm.ts:checkBackward',
    'ops/nn/norm/layerNorm.ts:backwardFormula',
    'ops/view/indexing.ts:writeLines',
    'ops/view/positions.ts:writeSlices',
    'ops/view/scatter.ts:factorGradient',
    'ops/view/strides.ts:checkWindow',
  ],
  'the numbers of one formula': [
    'ops/view/indices.ts:isLineInside',
    'ops/order/unique.ts:different',
    'ops/nn/sample/resampleTable.ts:resampleTable',
    'ops/nn/windows.ts:windowCount',
    'kernels/schedules/gathered.ts:gatheredSide',
    'fx/viewer/page/camera.ts:zoomed',
    'fx/viewer/page/surface.ts:CanvasSurface.box',
    'fx/viewer/page/surface.ts:SvgSurface.box',
  ],
  'what a kernel runs on, on a path where an object for each call would cost time': [
    'ops/eager/pointwise.ts:runLayout',
    'ops/eager/pointwiseKernels.ts:build',
    'ops/view/indexing.ts:launchLines',
    'ops/nn/conv/convGemm.ts:run',
    'kernels/emit/operations.ts:emitCombine',
    'distributed/shared/reduceOnHeap.ts:reduceRanks',
    'distributed/fingerprint.ts:startCheck',
    'distributed/processGroup.ts:ProcessGroup.#work',
    'distributed/stats.ts:countCollective',
  ],
  'the fields of an object that one place makes, on such a path': [
    'dynamo/call/compiledFunction.ts:Call.constructor',
    'dynamo/segment/tape.ts:SegmentTape.constructor',
    'fx/graph/node.ts:BaseNode.constructor',
    'autograd/opNode.ts:OpNode.constructor',
    'cli/minify/command.ts:Checks.constructor',
    'tensor/tensor.ts:Tensor.constructor',
    'interop/onnx/call.ts:Call.constructor',
    'library/opcheck/opcheck.ts:OpCheckError.constructor',
    'nn/recurrent/recurrent.ts:Recurrent.constructor',
  ],
  'the parts of one thing that two or three places have at hand': [
    'debug/closeness/closeness.ts:unexplained',
    'debug/report/chrome.ts:entry',
    'pipeline/runPasses.ts:passEvent',
    'debug/compare/compareBackends.ts:subject',
    'debug/compare/gradients.ts:composition',
    'debug/flight/origins.ts:Origins.#origin',
    'debug/flight/replay.ts:writeReplay',
    'func/functional.ts:second',
    'fx/trace/source/tokens.ts:anonymous',
    'fx/viewer/page/paint.ts:paint',
  ],
}

const keys = (recorded: Recorded): ReadonlySet<string> => new Set(Object.values(recorded).flat())
const unrecorded = (functions: readonly { readonly key: string }[], recorded: Recorded): readonly string[] =>
  functions.map(({ key }) => key).filter((key) => !keys(recorded).has(key))

describe('functions', () => {
  it(`have at most ${LIMITS.lines} lines: split those that hold more than one idea, or record the reason`, () => {
    expect(unrecorded(above.lines, LONG)).toEqual([])
  })

  it(`have at most ${LIMITS.parameters} parameters: pass what belongs together as one, or record the reason`, () => {
    expect(unrecorded(above.parameters, WIDE)).toEqual([])
  })

  it('are found with their names, wherever they stand', () => {
    const text = `
      export function plain(a, b) {}
      const arrow = remembered((a) => {
        return a
      })
      class Layer extends Module {
        #own(a, b, c) {}
        handler = (x) => x
        constructor(readonly: number) { super() }
      }
      export const op = defineOp({ kernel: (a, b, c, d, e, f) => a, meta(a) {} })
      list.map((x) => x)
    `
    expect(functionsIn(text).map(({ name, parameters, lines }) => [name, parameters, lines])).toEqual([
      ['plain', 2, 1],
      ['arrow', 1, 3],
      ['Layer.#own', 3, 1],
      ['handler', 1, 1],
      ['Layer.constructor', 1, 1],
      ['kernel', 6, 1],
      ['meta', 1, 1],
      ['anonymous', 1, 1],
    ])
  })
})
