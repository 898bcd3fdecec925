// Random convolutions and transposed ones with their results, for the schedules that compute them: windows, strides, dilations, groups, borders, layouts of images and weights, epilogues.
import { at, bufferParam, call, cast, constant, iota, load, loopVar, sizeParam, store } from '../../../src/kernels/ir/loopIr.ts'
import type { ConvolutionSizes } from '../../../src/kernels/schedules/convolution.ts'
import type { BufferParam, Expr, Size, SizeParam } from '../../../src/kernels/ir/loopIr.ts'
import { gathered, gatheredSide } from '../../../src/kernels/schedules/gathered.ts'
import type { GatheredSide } from '../../../src/kernels/schedules/gathered.ts'
import { direct } from '../../../src/kernels/schedules/direct.ts'
import type { DirectProblem } from '../../../src/kernels/schedules/directParts.ts'
import { fastWinograd, winograd } from '../../../src/kernels/schedules/winograd.ts'
import type { WinogradSchedule } from '../../../src/kernels/schedules/winogradSpec.ts'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import type { Args } from '../harness.ts'
import { sizesOf } from './convolutionSizes.ts'
import { builtWith, elementsOf, floats, untilTaken } from './problem.ts'
import type { DrawProblem } from './problem.ts'

export interface ConvolutionCase {
  readonly problem: DirectProblem
  readonly args: Args
  /** The results of sums in the order channel, y, x, each step rounded by `round`. */
  readonly results: (round: (x: number) => number) => readonly number[]
}

interface ConvolutionDraws {
  readonly sizes: ConvolutionSizes
  readonly transposed?: boolean
  readonly groups?: number
  readonly image: () => number
  readonly weight: () => number
  /** Whether images and weights are contiguous. Default false: one of several layouts. */
  readonly isPlain?: boolean
}

/** out[n, o, y, x] = max(sum + bias[o], pixel - 40). */
export function convolutionCase(
  { int, pick }: Random,
  { sizes, transposed = false, groups = 1, image: ofImage, weight: ofWeight, isPlain = false }: ConvolutionDraws,
): ConvolutionCase {
  const { batch, channels, features, height, width, outHeight, outWidth, padH, padW, strideH, strideW } = sizes
  const { dilationH, dilationW, kernelHeight, kernelWidth } = sizes
  const [out, image, weight, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('image', 'float32'),
    bufferParam('weight', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const [plane, area] = [outHeight * outWidth, kernelHeight * kernelWidth]
  const [images, rows, pixels] = [loopVar('n', batch), loopVar('o', groups * features), loopVar('p', plane)]
  const [gap, all] = [int(3), groups * channels]
  const plainImage = { start: 0, outer: all * height * width, channel: height * width, row: width, col: 1 }
  const place = isPlain
    ? plainImage
    : pick([
        ...[plainImage, { ...plainImage, start: 3 }],
        { start: gap, outer: all * height * width, channel: 1, row: width * all, col: all },
        { start: 0, outer: all * height * (width + gap), channel: height * (width + gap), row: width + gap, col: 1 },
        // Rows, channels and images lie over each other; every other pixel; the same row again and again.
        { start: 2, outer: 5, channel: 3, row: 1, col: 1 },
        { start: 0, outer: all * height * width * 2, channel: height * width * 2, row: width * 2, col: 2 },
        { start: 0, outer: width, channel: 0, row: 0, col: 1 },
      ])
  const plainWeight = { start: 0, outer: area * channels, channel: area, row: kernelWidth, col: 1 }
  const weights = isPlain
    ? plainWeight
    : pick([
        plainWeight,
        { start: 0, outer: area, channel: area * features, row: kernelWidth, col: 1 },
        { start: area - 1, outer: area, channel: area * features, row: -kernelWidth, col: -1 },
      ])
  const problem: DirectProblem = {
    ...{ name: 'convolution', sizes, images, features: rows, pixels, transposed, groups },
    image: { buffer: image, ...place },
    weight: { buffer: weight, ...weights },
    epilogue: (sum) => [
      store(
        out,
        at([images, groups * features * plane], [rows, plane], [pixels, 1]),
        call('max', call('add', sum, load(bias, at([rows, 1]))), cast(call('sub', iota(pixels), constant('int32', 40)), 'float32')),
      ),
    ],
    params: [out, image, weight, bias],
  }
  // The rows of some layouts end with their last pixel.
  const extent = place.start + (batch - 1) * place.outer + (all - 1) * place.channel + (height - 1) * place.row + (width - 1) * place.col + 1
  const [X, W, B] = [floats(extent, ofImage), floats(groups * area * channels * features, ofWeight), floats(groups * features, ofWeight)]
  /** Where an element of a window is read along one side; null between pixels. */
  const source = (result: number, k: number, stride: number, pad: number, dilation: number): number | null => {
    if (!transposed) return result * stride + k * dilation - pad
    const sum = result + pad - k * dilation
    return sum % stride === 0 ? sum / stride : null
  }
  const sumOf = (n: number, o: number, p: number, round: (x: number) => number): number => {
    const group = Math.floor(o / features)
    const ofFeature = weights.start + group * features * channels * area + (o % features) * weights.outer
    let sum = 0
    for (let c = 0; c < channels; c++)
      for (let ky = 0; ky < kernelHeight; ky++)
        for (let kx = 0; kx < kernelWidth; kx++) {
          const y = source(Math.floor(p / outWidth), ky, strideH, padH, dilationH)
          const x = source(p % outWidth, kx, strideW, padW, dilationW)
          if (y === null || x === null || y < 0 || y >= height || x < 0 || x >= width) continue
          const w = W[ofFeature + c * weights.channel + ky * weights.row + kx * weights.col] ?? NaN
          const from = place.start + n * place.outer + (group * channels + c) * place.channel + y * place.row + x * place.col
          sum = round(sum + round((X[from] ?? NaN) * w))
        }
    return sum
  }
  const results = (round: (x: number) => number): number[] =>
    Array.from({ length: batch }, (_, n) =>
      Array.from({ length: groups * features }, (__, o) =>
        Array.from({ length: plane }, (___, p) => Math.max(round(sumOf(n, o, p, round) + (B[o] ?? NaN)), p - 40)),
      ),
    ).flat(2)
  return { problem, args: { out: new Float32Array(batch * groups * features * plane), image: X, weight: W, bias: B }, results }
}

/** Random sizes of a convolution; null where the window does not fit. */
export function drawnWindow({ int, pick }: Random, transposed: boolean): ConvolutionSizes | null {
  const kernelHeight = pick([1, 1, 2, 3, 3, 5])
  const kernelWidth = pick([kernelHeight, kernelHeight, 1, 3, 9])
  const [height, width] = [1 + int(9), 1 + int(17)]
  const [strideH, dilationH] = [pick([1, 2, 1, 3]), pick([1, 1, 2, 3])]
  const [strideW, dilationW] = [pick([strideH, 1, 2]), pick([dilationH, 1, 2])]
  const [padH, padW] = [int(kernelHeight + 1), int(kernelWidth + 1)]
  // Some rows of the result reach no window.
  const size = (has: number, kernel: number, stride: number, pad: number, dilation: number): number =>
    transposed
      ? (has - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1 + int(stride)
      : Math.floor((has + 2 * pad - dilation * (kernel - 1) - 1) / stride) + 1
  const [outHeight, outWidth] = [size(height, kernelHeight, strideH, padH, dilationH), size(width, kernelWidth, strideW, padW, dilationW)]
  if (outHeight < 1 || outWidth < 1) return null
  return {
    ...{ batch: pick([1, 1, 2, 3, 4]), channels: pick([1, 2, 3, 5, 8]), features: pick([1, 3, 4, 5, 8, 9, 13]) },
    ...{ height, width, outHeight, outWidth, kernelHeight, kernelWidth, strideH, strideW, padH, padW, dilationH, dilationW },
  }
}

/** Larger convolutions take the interpreter too long. */
const isSmall = (s: ConvolutionSizes, groups: number): boolean =>
  s.batch * groups * s.channels * s.features * s.outHeight * s.outWidth * s.kernelHeight * s.kernelWidth <= 12_000

type Tiles<S> = S extends { readonly tiles: (engine: never) => readonly (infer T)[] } ? T : never

/** Blocks of few columns, and one image at a time. */
export const smallBlocks = (tile: Tiles<typeof direct>): readonly Tiles<typeof direct>[] => [
  { ...tile, blockBytes: 0 },
  { ...tile, blockBytes: 4096, leastColumns: 1 },
]

/** Few features in a group, blocks of rows, blocks of one row. */
export const smallGroups = (tile: Tiles<typeof winograd>): readonly Tiles<typeof winograd>[] => [
  { ...tile, weightBytes: 1 },
  { ...tile, windowBytes: 0, windowsOfWeights: 0 },
  { ...tile, windowBytes: 0, windowsOfWeights: 0, blockBytes: 1 },
]

export const directProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const transposed = random.chance(1 / 2)
    const [sizes, groups] = [drawnWindow(random, transposed), random.pick([1, 1, 2, 3])]
    if (sizes === null || !isSmall(sizes, groups)) return null
    // A border of zeros times an infinite weight is NaN, where plain sums skip it.
    const { any, whole } = elementsOf(random)
    const chosen = random.int(2)
    const { problem, args, results } = convolutionCase(random, { sizes, transposed, groups, image: any, weight: whole })
    const what = JSON.stringify({ ...sizes, transposed, groups, image: problem.image, weight: problem.weight })
    return {
      what,
      args,
      expected: { out: results((x) => x) },
      kernels: builtWith(direct, problem, (tile) => smallBlocks(tile).filter((_, i) => i === chosen)),
    }
  })

const problemOf = (random: Random, schedule: WinogradSchedule, tolerance: number): ReturnType<DrawProblem> =>
  untilTaken(() => {
    const { int, pick } = random
    const sizes = sizesOf({
      ...{ batch: pick([1, 1, 2, 0]), height: 1 + int(11), width: 1 + int(13), padH: 1 + int(3), padW: 1 + int(3) },
      ...{ channels: pick([1, 3, 4, 5, 8, 9, 16, 19]), features: pick([1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 32]) },
    })
    if (!isSmall(sizes, 1)) return null
    // With multiples of 4 the transforms of F(2,3) are exact.
    const { isOdd, any } = elementsOf(random, { unit: 4, most: 4 })
    const { problem, args, results } = convolutionCase(random, { sizes, image: any, weight: any })
    const what = JSON.stringify({ ...sizes, image: problem.image, weight: problem.weight })
    // What pays is another question than what is computed: all sizes are taken here.
    const chosen = int(3)
    const everySize = { ...schedule, match: () => true }
    return {
      what,
      args,
      expected: isOdd ? {} : { out: results((x) => x) },
      tolerance,
      kernels: builtWith(everySize, problem, (tile) => smallGroups(tile).filter((_, i) => i === chosen)),
    }
  })

export const winogradProblem: DrawProblem = (random) => problemOf(random, winograd, 0)
export const fastWinogradProblem: DrawProblem = (random) => problemOf(random, fastWinograd, 0.01)

/** The same convolutions as products with windows, of sizes that are known or parameters of each call. */
export const gatheredProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const [transposed, symbolic] = [random.chance(1 / 2), random.chance(1 / 2)]
    const [sizes, groups] = [drawnWindow(random, transposed), random.pick([1, 1, 2, 3])]
    if (sizes === null || !isSmall(sizes, 4 * groups)) return null
    const { batch, channels, features, kernelHeight, kernelWidth, outHeight, outWidth } = sizes
    const { any, whole } = elementsOf(random)
    const { problem, args, results } = convolutionCase(random, { sizes, transposed, groups, image: any, weight: whole, isPlain: true })
    const [plane, area] = [outHeight * outWidth, kernelHeight * kernelWidth]
    const depth = channels * area
    const values: Record<string, number> = {}
    const params: SizeParam[] = []
    const size = (name: string, value: number): Size => {
      values[name] = value
      if (!symbolic) return value
      const param = sizeParam(name)
      params.push(param)
      return param
    }
    const side = (name: string, ...of: readonly [number, number, number, number, number, number]): GatheredSide => {
      const { size: pixels, kernel, out, copy, first, spread, start, step, tap } = gatheredSide(...of, transposed)
      const part = (what: string, value: number): Size => size(`${name}_${what}`, value)
      return {
        ...{
          size: part('size', pixels),
          kernel: part('kernel', kernel),
          out: part('out', out),
          copy: part('copy', copy),
          first: part('first', first),
        },
        ...{ spread: part('spread', spread), start: part('start', start), step: part('step', step), tap: part('tap', tap) },
      }
    }
    const { strideH, strideW, padH, padW, dilationH, dilationW, height, width } = sizes
    const sides = {
      rows: side('rows', height, kernelHeight, outHeight, strideH, padH, dilationH),
      cols: side('cols', width, kernelWidth, outWidth, strideW, padW, dilationW),
    }
    const [images, group] = [loopVar('n', size('batch', batch)), loopVar('g', size('groups', groups))]
    const [rows, cols] = [loopVar('o', size('features', features)), loopVar('p', size('plane', plane))]
    const [out, image, weight, bias] = problem.params.filter((param): param is BufferParam => param.kind === 'buffer')
    if (out === undefined || image === undefined || weight === undefined || bias === undefined) return null
    const depthOf = size('depth', depth)
    const channelCount = size('channels', channels)
    const strides = { channelStride: problem.image.channel, rowStride: problem.image.row, colStride: problem.image.col }
    const product = {
      ...{ name: 'gathered', batch: [images, group], rows, cols, depth: depthOf, reduceBatch: 0 },
      a: { buffer: weight, rowStride: depth, colStride: 1, batchStrides: [0, features * depth] },
      b: { buffer: image, rowStride: 0, colStride: 0, batchStrides: [problem.image.outer, channels * problem.image.channel] },
      epilogue: (sum: Expr) => [
        store(
          out,
          at([images, groups * features * plane], [group, features * plane], [rows, plane], [cols, 1]),
          call(
            'max',
            call('add', sum, load(bias, at([group, features], [rows, 1]))),
            cast(call('sub', iota(cols), constant('int32', 40)), 'float32'),
          ),
        ),
      ],
      params: [...problem.params, ...params, bufferParam('scratch', 'float32', 'readwrite')],
    }
    return {
      what: JSON.stringify({ ...sizes, transposed, groups, symbolic }),
      args: { ...args, ...values },
      expected: { out: results((x) => x) },
      kernels: builtWith(gathered, { product, windows: { channels: channelCount, ...sides, ...strides, swapped: false } }),
    }
  })
