// Direct convolutions and transposed ones, for every tile: against plain sums in the order channel, y, x, whose bits they have in strict code, and against the reference interpreter. Windows, strides,
// dilations, groups, borders, layouts of images and weights, epilogues.
import { describe, expect, test } from 'vitest'
import { withStrict } from '../../src/kernels/engine.ts'
import { at, bufferParam, call, cast, constant, iota, load, loopVar, store } from '../../src/kernels/loopIr.ts'
import type { ConvolutionSizes } from '../../src/kernels/schedules/convolution.ts'
import { direct } from '../../src/kernels/schedules/direct.ts'
import type { DirectProblem } from '../../src/kernels/schedules/direct.ts'
import { emitKernel } from '../../src/kernels/wasm/emit.ts'
import { verifyKernel } from '../../src/kernels/verify.ts'
import { runOracle, runWasm } from './harness.ts'
import type { Args } from './harness.ts'

let state = 5
const random = (below: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0]
const number = (): number => Math.fround((random(2 ** 24) / 2 ** 24 - 0.5) * 4)

interface Case {
  readonly problem: DirectProblem
  readonly args: Args
  readonly expected: readonly number[]
}

/** out[n, o, y, x] = max(sum + bias[o], pixel - 40). */
function caseOf(sizes: ConvolutionSizes, transposed: boolean, value: () => number, groups: number = 1): Case {
  const {
    batch,
    channels,
    features,
    height,
    width,
    outHeight,
    outWidth,
    padH,
    padW,
    strideH,
    strideW,
    dilationH,
    dilationW,
    kernelHeight,
    kernelWidth,
  } = sizes
  const [out, image, weight, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('image', 'float32'),
    bufferParam('weight', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const [plane, area] = [outHeight * outWidth, kernelHeight * kernelWidth]
  const [images, rows, pixels] = [loopVar('n', batch), loopVar('o', groups * features), loopVar('p', plane)]
  const [gap, all] = [random(3), groups * channels]
  const place = pick([
    { outer: all * height * width, channel: height * width, row: width, col: 1 },
    { outer: all * height * width, channel: height * width, row: width, col: 1 },
    { outer: all * height * width, channel: 1, row: width * all, col: all },
    { outer: all * height * (width + gap), channel: height * (width + gap), row: width + gap, col: 1 },
  ])
  const weights = pick([
    { start: 0, outer: area * channels, channel: area, row: kernelWidth, col: 1 },
    { start: 0, outer: area, channel: area * features, row: kernelWidth, col: 1 },
    { start: area - 1, outer: area, channel: area * features, row: -kernelWidth, col: -1 },
  ])
  const problem: DirectProblem = {
    ...{ name: 'direct', sizes, images, features: rows, pixels, transposed, groups },
    image: { buffer: image, start: 0, ...place },
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
  const data = (count: number): Float32Array => Float32Array.from({ length: count }, value)
  // The rows of the last layout end with the last pixel.
  const extent = (batch - 1) * place.outer + (all - 1) * place.channel + (height - 1) * place.row + (width - 1) * place.col + 1
  const [X, W, B] = [data(extent), data(groups * area * channels * features), data(groups * features)]
  /** Where an element of a window is read along one side; null between pixels. */
  const source = (result: number, k: number, stride: number, pad: number, dilation: number): number | null => {
    if (!transposed) return result * stride + k * dilation - pad
    const sum = result + pad - k * dilation
    return sum % stride === 0 ? sum / stride : null
  }
  const expected: number[] = []
  for (let n = 0; n < batch; n++)
    for (let o = 0; o < groups * features; o++)
      for (let p = 0; p < plane; p++) {
        let sum = 0
        for (let c = 0; c < channels; c++)
          for (let ky = 0; ky < kernelHeight; ky++)
            for (let kx = 0; kx < kernelWidth; kx++) {
              const y = source(Math.floor(p / outWidth), ky, strideH, padH, dilationH)
              const x = source(p % outWidth, kx, strideW, padW, dilationW)
              if (y === null || x === null || y < 0 || y >= height || x < 0 || x >= width) continue
              const group = Math.floor(o / features)
              const first = weights.start + group * features * channels * area
              const w = W[first + (o % features) * weights.outer + c * weights.channel + ky * weights.row + kx * weights.col] ?? NaN
              sum = Math.fround(
                sum + Math.fround((X[n * place.outer + (group * channels + c) * place.channel + y * place.row + x * place.col] ?? NaN) * w),
              )
            }
        expected.push(Math.max(Math.fround(sum + (B[o] ?? NaN)), p - 40))
      }
  return { problem, args: { out: new Float32Array(batch * groups * features * plane), image: X, weight: W, bias: B }, expected }
}

/** Random sizes; null where the window does not fit. */
function drawn(transposed: boolean): ConvolutionSizes | null {
  const kernelHeight = pick([1, 1, 2, 3, 3, 5])
  const kernelWidth = pick([kernelHeight, kernelHeight, 1, 3, 9])
  const [height, width] = [1 + random(9), 1 + random(17)]
  const [strideH, dilationH] = [pick([1, 2, 1, 3]), pick([1, 1, 2, 3])]
  const [strideW, dilationW] = [pick([strideH, 1, 2]), pick([dilationH, 1, 2])]
  const [padH, padW] = [random(kernelHeight + 1), random(kernelWidth + 1)]
  // Some rows of the result reach no window.
  const size = (has: number, kernel: number, stride: number, pad: number, dilation: number): number =>
    transposed
      ? (has - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1 + random(stride)
      : Math.floor((has + 2 * pad - dilation * (kernel - 1) - 1) / stride) + 1
  const [outHeight, outWidth] = [size(height, kernelHeight, strideH, padH, dilationH), size(width, kernelWidth, strideW, padW, dilationW)]
  if (outHeight < 1 || outWidth < 1) return null
  return {
    ...{ batch: pick([1, 1, 2, 3, 4]), channels: pick([1, 2, 3, 5, 8]), features: pick([1, 3, 4, 5, 8, 9, 13]) },
    ...{ height, width, outHeight, outWidth, kernelHeight, kernelWidth, strideH, strideW, padH, padW, dilationH, dilationW },
  }
}

/** The tiles, with blocks of few columns, and with one image at a time. */
const tiles = direct.tiles('wasm').flatMap((tile) => [tile, { ...tile, blockBytes: 0 }, { ...tile, blockBytes: 4096, leastColumns: 1 }])

const runs = Number(process.env['TENSORFX_FUZZ'] ?? 16)

/** Whole numbers, whose sums are exact: rounding tells nothing. */
const whole = (): number => random(17) - 8

const positive = (values: ArrayLike<number | bigint>): readonly number[] => Array.from(values, (x) => Number(x) + 0)

describe('direct convolutions', () => {
  test.each([false, true])('are plain sums, for every tile and on both engines, transposed: %s', (transposed) => {
    for (let i = 0; i < runs; i++) {
      const sizes = drawn(transposed)
      if (sizes === null) continue
      const { problem, args, expected } = caseOf(sizes, transposed, whole, pick([1, 1, 2, 3]))
      for (const tile of tiles) {
        const kernel = direct.build(direct.spec(problem), tile)
        verifyKernel(kernel)
        const what = JSON.stringify({ ...sizes, transposed, image: problem.image, weight: problem.weight })
        const wasm = withStrict(random(2) === 1, () => emitKernel(kernel))
        expect(positive(runWasm(kernel, args, wasm)['out'] ?? []), what).toEqual(positive(expected))
        // The interpreter takes a second for a large one.
        if (sizes.channels * sizes.features * sizes.outHeight * sizes.outWidth * sizes.batch < 200)
          expect(positive(runOracle(kernel, args)['out'] ?? []), what).toEqual(positive(expected))
      }
    }
  })

  test.each([false, true])('have the bits of sums in the order channel, y, x in strict code, transposed: %s', (transposed) => {
    for (let i = 0; i < runs / 2; i++) {
      const sizes = drawn(transposed)
      if (sizes === null) continue
      const { problem, args, expected } = caseOf(sizes, transposed, number, pick([1, 3]))
      for (const tile of tiles) {
        const kernel = direct.build(direct.spec(problem), tile)
        const result =
          runWasm(
            kernel,
            args,
            withStrict(true, () => emitKernel(kernel)),
          )['out'] ?? []
        expect(positive(result), JSON.stringify({ ...sizes, transposed })).toEqual(positive(expected))
      }
    }
  })

  test('are 0 where no window reads a pixel of the gradient', () => {
    const one = { batch: 1, channels: 2, features: 4, height: 1, width: 1, outHeight: 1, outWidth: 1, padH: 1, padW: 1 }
    const window = { kernelHeight: 2, kernelWidth: 2, dilationH: 2, dilationW: 2, strideH: 4, strideW: 1 }
    for (let i = 0; i < 8; i++) {
      const { problem, args, expected } = caseOf({ ...one, ...window }, true, whole)
      for (const tile of tiles) {
        const kernel = direct.build(direct.spec(problem), tile)
        verifyKernel(kernel)
        expect(positive(runWasm(kernel, args)['out'] ?? [])).toEqual(positive(expected))
      }
    }
  })

  test('need at most 8 KB of code for usual windows, and 13 KB for any', () => {
    const bytesOf = (sizes: ConvolutionSizes, transposed: boolean): number => {
      const { problem } = caseOf(sizes, transposed, number)
      return direct.match(problem) ? Math.max(...direct.tiles('wasm').map((tile) => emitKernel(direct.build(problem, tile)).length)) : 0
    }
    for (const transposed of [false, true]) {
      for (const kernel of [1, 3, 7])
        for (const stride of [1, 2]) {
          const small = Math.floor((14 + 2 * Math.floor(kernel / 2) - kernel) / stride) + 1
          const [size, outSize] = transposed ? [small, 14] : [14, small]
          const window = { kernelHeight: kernel, kernelWidth: kernel, strideH: stride, strideW: stride, dilationH: 1, dilationW: 1 }
          const planes = {
            height: size,
            width: size,
            outHeight: outSize,
            outWidth: outSize,
            padH: Math.floor(kernel / 2),
            padW: Math.floor(kernel / 2),
          }
          const sizes = { batch: 2, channels: 16, features: 32, ...window, ...planes }
          expect(bytesOf(sizes, transposed), JSON.stringify({ ...sizes, transposed })).toBeLessThan(8192)
        }
      for (let i = 0; i < 2; i++) {
        const sizes = drawn(transposed)
        if (sizes !== null) expect(bytesOf({ ...sizes, features: 23 }, transposed), JSON.stringify(sizes)).toBeLessThan(13_312)
      }
    }
  })
})
