// Random gradients of convolutions' weights, for the schedules that compute them: windows, sizes around tiles, groups, layouts, padding, epilogues.
import { at, bufferParam, call, cast, constant, iota, load, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import type { ConvolutionSizes, WeightGradientProblem } from '../../../src/kernels/schedules/convolution.ts'
import { directWeight } from '../../../src/kernels/schedules/directWeight.ts'
import type { SumOrder } from '../../../src/kernels/schedules/weightSums.ts'
import { winogradWeight } from '../../../src/kernels/schedules/winogradWeight.ts'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import type { Args } from '../harness.ts'
import { drawnWindow } from './convolutions.ts'
import { sizesOf } from './convolutionSizes.ts'
import { builtWith, elementsOf, floats, untilTaken } from './problem.ts'
import type { DrawProblem } from './problem.ts'

interface WeightCase {
  readonly problem: WeightGradientProblem
  readonly args: Args
  readonly expected: readonly number[]
}

interface WeightDraws {
  readonly sizes: ConvolutionSizes
  readonly groups?: number
  /** The order of the sums, in float32. Default: those of one image after the other. */
  readonly order?: SumOrder | null
  readonly value: () => number
  /** Default: the same. */
  readonly bias?: () => number
  /** Whether no element of an operand lies in two places. Default false. */
  readonly isPlain?: boolean
}

/** out[o, e] = max(sum + bias[o], e - 20); images and gradients lie channel by channel with gaps, channels last, or over each other. */
export function weightCase(
  { int, pick }: Random,
  { sizes, groups = 1, order = null, value, bias: ofBias = value, isPlain = false }: WeightDraws,
): WeightCase {
  const { batch, channels, features, height, width, outHeight, outWidth, kernelHeight, kernelWidth } = sizes
  const [out, image, gradient, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('image', 'float32'),
    bufferParam('gradient', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const area = kernelHeight * kernelWidth
  const [rows, elements] = [loopVar('o', groups * features), loopVar('e', area * channels)]
  const placeOf = (count: number, h: number, w: number) => {
    const gap = int(3)
    const place = pick([
      { start: 0, outer: count * h * (w + gap), channel: h * (w + gap), row: w + gap, col: 1 },
      { start: gap, outer: count * h * w, channel: 1, row: w * count, col: count },
      ...(isPlain ? [] : [{ start: 1, outer: 3, channel: 5, row: gap, col: 1 }]),
    ])
    return {
      ...place,
      reach: place.start + (batch - 1) * place.outer + (count - 1) * place.channel + (h - 1) * place.row + (w - 1) * place.col + 1,
    }
  }
  const [x, g] = [placeOf(groups * channels, height, width), placeOf(groups * features, outHeight, outWidth)]
  const problem: WeightGradientProblem = {
    ...{ name: 'weights', sizes, features: rows, elements },
    image: { buffer: image, ...x },
    gradient: { buffer: gradient, ...g },
    epilogue: (sum) => [
      store(
        out,
        at([rows, area * channels], [elements, 1]),
        call('max', call('add', sum, load(bias, at([rows, 1]))), cast(call('sub', iota(elements), constant('int32', 20)), 'float32')),
      ),
    ],
    params: [out, image, gradient, bias],
  }
  const [X, G, B] = [floats(x.reach, value), floats(g.reach, value), floats(groups * features, ofBias)]
  const { images, lanes } = order ?? { images: 1, lanes: 1 }
  const plus = (a: number, b: number): number => Math.fround(a + b)
  /** The product of a pixel of the gradient and one of the image, 0 outside of it. */
  const product = (n: number, o: number, e: number, oy: number, ox: number): number => {
    const [c, ky, kx] = [Math.floor(e / area), Math.floor((e % area) / kernelWidth), e % kernelWidth]
    const [iy, ix] = [oy * sizes.strideH + ky * sizes.dilationH - sizes.padH, ox * sizes.strideW + kx * sizes.dilationW - sizes.padW]
    const channel = Math.floor(o / features) * channels + c
    const isInside = iy >= 0 && iy < height && ix >= 0 && ix < width
    const pixel = isInside ? (X[x.start + n * x.outer + channel * x.channel + iy * x.row + ix * x.col] ?? NaN) : 0
    return Math.fround(pixel * (G[g.start + n * g.outer + o * g.channel + oy * g.row + ox * g.col] ?? NaN))
  }
  const sumOf = (o: number, e: number): number => {
    let all = 0
    for (let n0 = 0; n0 < batch; n0 += images) {
      const sums = Array.from({ length: lanes }, () => 0)
      for (let n = n0; n < n0 + images; n++)
        for (let oy = 0; oy < outHeight; oy++)
          for (let ox = 0; ox < outWidth; ox++) sums[ox % lanes] = plus(sums[ox % lanes] ?? NaN, product(n, o, e, oy, ox))
      const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = sums
      all = plus(all, plus(plus(s0, s2), plus(s1, s3)))
    }
    return all
  }
  const expected: number[] = []
  for (let o = 0; o < groups * features; o++)
    for (let e = 0; e < area * channels; e++) expected.push(Math.max(plus(sumOf(o, e), B[o] ?? NaN), e - 20))
  return { problem, args: { out: new Float32Array(area * groups * features * channels), image: X, gradient: G, bias: B }, expected }
}

export const winogradWeightProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const { int, pick } = random
    const sizes = sizesOf({
      ...{ batch: pick([1, 1, 2, 3, 0]), height: 1 + int(11), width: 1 + int(13), padH: 1 + int(2), padW: 1 + int(2) },
      ...{ channels: pick([1, 3, 4, 5, 8, 9, 16, 19, 32, 40]), features: pick([1, 3, 4, 7, 8, 9, 15, 16, 17]) },
    })
    // The interpreter takes a second for a large one.
    if (sizes.batch * sizes.channels * sizes.features * sizes.height * sizes.width > 600) return null
    // With multiples of 4 the transforms are exact.
    const { isOdd, any, whole } = elementsOf(random, { unit: 4, most: 3 })
    const { problem, args, expected } = weightCase(random, { sizes, value: any, bias: whole })
    return {
      what: JSON.stringify({ ...sizes, image: problem.image, gradient: problem.gradient }),
      args,
      expected: isOdd ? {} : { out: expected },
      kernels: builtWith({ ...winogradWeight, match: () => true }, problem, (tile) => [
        { ...tile, blockBytes: 1 },
        { ...tile, tilesOfImages: 1 },
      ]),
    }
  })

/** An order in which the sums may be wanted; null for any. */
export function drawnOrder({ pick }: Random, { batch, outWidth }: ConvolutionSizes): SumOrder | null {
  const images = pick([1, batch])
  const orders: readonly (SumOrder | null)[] = [null, { images, lanes: 1 }, ...(outWidth % 4 === 0 ? [{ images, lanes: 4 } as const] : [])]
  return pick(orders)
}

type Tiles<S> = S extends { readonly tiles: (engine: never) => readonly (infer T)[] } ? T : never

/** Sums of one row and one image each, which are copied as few at a time, and those of all images; some panels of channels at a time. */
export const otherBlocks = (tile: Tiles<typeof directWeight>): readonly Tiles<typeof directWeight>[] => [
  { ...tile, mostPixels: 1, leastPixels: 1, pixelsOfImages: 1, copiedBytes: 1 },
  { ...tile, pixelsOfImages: 2 ** 20 },
  { ...tile, copiedBytes: 8192 },
]

export const directWeightProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const { int, pick } = random
    const [window, groups, channels] = [drawnWindow(random, false), pick([1, 1, 2, 3, 5]), pick([1, 2, 3, 5, 7, 8, 9, 16, 19, 32, 37])]
    if (window === null) return null
    const sizes = { ...window, channels }
    const products = sizes.batch * groups * channels * sizes.features * sizes.outHeight * sizes.outWidth * sizes.kernelHeight * sizes.kernelWidth
    if (products > 12_000) return null
    const order = drawnOrder(random, sizes)
    const { any } = elementsOf(random)
    const chosen = int(3)
    const { problem, args, expected } = weightCase(random, { sizes, groups, order, value: any })
    return {
      what: JSON.stringify({ ...sizes, groups, order, image: problem.image, gradient: problem.gradient }),
      args,
      expected: { out: expected },
      kernels: builtWith(directWeight, { ...problem, groups, order }, (tile) => otherBlocks(tile).filter((_, i) => i === chosen)),
    }
  })
