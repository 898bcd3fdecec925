// The weights of convolutions by Winograd's algorithms, transformed and in the panels that their products read: by a part of the convolution's kernel, or by a kernel of its own where they
// are kept for many calls.
import { constant, declareArray, element, forLoop, load, localArray, loopVar, setElement, store } from '../ir/loopIr.ts'
import type { Expr, LoopVar, Memory, Scratch, Stmt } from '../ir/loopIr.ts'
import { fromLines, transformed } from './bothSides.ts'
import type { Line } from './bothSides.ts'
import type { ConvolutionProblem, ConvolutionSizes } from './convolution.ts'
import { widestColumns } from './machineTiles.ts'
import { QUAD, down, serial, shared, up } from './notation.ts'
import { tilesOf } from './winogradSpec.ts'
import type { WinogradSchedule } from './winogradSpec.ts'
import { F43 } from './winogradTransforms.ts'

import type { WinogradAlgorithm } from './winogradTransforms.ts'

/** Elements between the matrices of two products, so that they do not all lie in the same part of the cache. */
export const GAP = 16
/** Features of a panel of transformed weights. */
export const COLUMNS = 8
const BYTES = 4
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
  /** Whether threads share the work, which is then inside no other parallel loop. */
  readonly isShared: boolean
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
  return (target.isShared ? shared : serial)(order, [...(areNeighbours ? gather : []), ...transform])
}

/** With more tiles than that, transforming the weights in each call takes less than a fiftieth of the time: it is not worth a copy of them. */
const MOST_TILES = 512
/** Larger transformed weights come from memory, which takes about as long as transforming the weights. */
const MOST_WEIGHT_BYTES = 8 * 2 ** 20
/** Behind the weights, for the kernel that transforms them: a vector for each product. */
const PACK_SCRATCH_BYTES = BYTES * F43.products * QUAD + 2 * 64

/** Where that begins. */
export const packScratchAt = ({ products }: WinogradAlgorithm, { features, channels }: Pick<ConvolutionSizes, 'features' | 'channels'>): number =>
  up(BYTES * products * (up(features, widestColumns(COLUMNS)) * channels + GAP), 64)

/** The bytes of transformed weights that are kept for many calls; null where that does not pay. */
export function keptWeightBytes({ algorithm }: WinogradSchedule, sizes: ConvolutionSizes): number | null {
  const bytes = packScratchAt(algorithm, sizes)
  return sizes.batch * tilesOf(sizes, algorithm.side) > MOST_TILES || bytes > MOST_WEIGHT_BYTES ? null : bytes + PACK_SCRATCH_BYTES
}
