// The weights of convolutions by Winograd's algorithms, transformed and in the panels that their products read: by a part of the convolution's kernel, or by a kernel of its own where they
// are kept for many calls.
import { constant, declareArray, element, forLoop, load, localArray, loopVar, setElement, store } from '../ir/loopIr.ts'
import type { Expr, LoopVar, Memory, Scratch, Stmt } from '../ir/loopIr.ts'
import { fromLines, transformed } from './bothSides.ts'
import type { Line } from './bothSides.ts'
import type { ConvolutionProblem } from './convolution.ts'
import { QUAD, down, nest } from './notation.ts'
import type { WinogradAlgorithm } from './winogradTransforms.ts'

/** Elements between the matrices of two products, so that they do not all lie in the same part of the cache. */
export const GAP = 16
/** Weights of a window that fill whole vectors; there is one more. */
const NEIGHBOURS = 8

/** What is transformed. */
interface Weights {
  readonly algorithm: WinogradAlgorithm
  readonly problem: ConvolutionProblem
  /** Features of a panel: the columns of the products' register tile. */
  readonly columns: number
  /** What the transform keeps between columns and rows; null where that is in registers. */
  readonly half: Scratch | null
}

/** Where transformed weights go. */
export interface TransformedWeights {
  readonly memory: Memory
  /** Elements from one product to the next. */
  readonly stride: number
  /** Their features, which begin where the loops over groups of features around are. */
  readonly features: number
  readonly groups: readonly LoopVar[]
}

/** Panels of the register tile's columns: [product][features of a panel][channel][feature]. */
export function transformWeights(weights: Weights, target: TransformedWeights): readonly Stmt[] {
  const whole = down(target.features, weights.columns)
  return [
    ...panels(weights, target, { first: 0, extent: whole, lanes: QUAD }),
    ...panels(weights, target, { first: whole, extent: target.features - whole, lanes: 1 }),
  ]
}

/** `extent` features from `first` on, `lanes` at a time. */
interface Features {
  readonly first: number
  readonly extent: number
  readonly lanes: number
}

/** Where the nine weights of a window are neighbours, all but the last are transposed from vectors. */
function panels({ algorithm, problem, columns, half }: Weights, target: TransformedWeights, { first, extent, lanes }: Features): readonly Stmt[] {
  if (extent === 0) return []
  const { weights, window } = algorithm
  const { weight } = problem
  const { channels } = problem.sizes
  const { outer, channel, row, col } = weight
  const inPanel = Math.min(extent, columns)
  const [panel, part] = [loopVar('panel', extent, inPanel), loopVar('part', inPanel, lanes)]
  const [c, o, k] = [loopVar('channel', channels), loopVar('o', lanes), loopVar('k', NEIGHBOURS)]
  const start = weight.start + first * outer
  const groups = target.groups.map((group) => [group, outer] as const)
  const loaded = (base: number, line: Line, stride: number): Expr =>
    load(weight.buffer, fromLines(base, ...groups, [panel, outer], [part, outer], [o, outer], [c, channel], [line, stride]))
  const areNeighbours = lanes === QUAD && row === 3 * col && Math.abs(col) === 1
  const lowest = start + Math.min(0, NEIGHBOURS * col)
  const windows = localArray('windows', 'float32', [QUAD, NEIGHBOURS])
  const gather = [
    declareArray(windows, constant('float32', 0)),
    forLoop(o, 'unroll', [forLoop(k, 'lanes', [setElement(windows, [o, k], loaded(lowest, k, 1))])]),
  ]
  const taken = (y: number, x: Line): Expr => {
    const place = typeof x === 'number' ? start + y * row + x * col : null
    return areNeighbours && place !== null && place < lowest + NEIGHBOURS ? element(windows, o, place - lowest) : loaded(start + y * row, x, col)
  }
  const put = (y: Line, x: number, value: Expr): Stmt =>
    store(
      target.memory,
      fromLines(
        x * target.stride + first * channels,
        ...([
          [y, window * target.stride],
          [panel, channels],
          [part, 1],
          [c, columns],
          [o, 1],
        ] as const),
      ),
      value,
    )
  const transform = transformed({ transform: weights, lane: o, half, at: taken, put, columns: areNeighbours ? 'unroll' : 'serial' })
  // The loop inside is the one along which weights lie closer together.
  const order = channel > outer ? [panel, c, part] : [panel, part, c]
  return nest('serial', order, [...(areNeighbours ? gather : []), ...transform])
}
