// Convolutions by Winograd's algorithm, for every tile, against the reference interpreter and against plain sums: sizes around tiles, layouts, padding, epilogues, and what infinities reach.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { withStrict } from '../../src/kernels/engine.ts'
import { at, bufferParam, call, cast, constant, iota, load, loopVar, store } from '../../src/kernels/loopIr.ts'
import type { ConvolutionProblem, ConvolutionSizes } from '../../src/kernels/schedules/convolution.ts'
import { takesWinograd, winograd } from '../../src/kernels/schedules/winograd.ts'
import { emitKernel } from '../../src/kernels/wasm/emit.ts'
import { verifyKernel } from '../../src/kernels/verify.ts'
import { sizesOf } from './convolutionSizes.ts'
import { runOracle, runWasm } from './harness.ts'
import type { Args } from './harness.ts'

const { int: random, pick } = randomFrom(11)

interface Case {
  readonly problem: ConvolutionProblem
  readonly args: Args
  readonly expected: readonly number[]
}

/** out[n, o, y, x] = max(sum + bias[o], pixel - 40), of images in one of three layouts and of a plain or turned weight. `value` draws the elements. */
function caseOf(sizes: ConvolutionSizes, value: () => number): Case {
  const { batch, channels, features, height, width, outHeight, outWidth, padH, padW } = sizes
  const [out, image, weight, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('image', 'float32'),
    bufferParam('weight', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const plane = outHeight * outWidth
  const [images, rows, pixels] = [loopVar('n', batch), loopVar('o', features), loopVar('p', plane)]
  const [gap, isTurned] = [random(3), random(2) === 1]
  const place = pick([
    { outer: channels * height * width, channel: height * width, row: width, col: 1 },
    { outer: channels * height * width, channel: 1, row: width * channels, col: channels },
    { outer: channels * height * (width + gap), channel: height * (width + gap), row: width + gap, col: 1 },
  ])
  const weights = isTurned
    ? { start: 8, outer: 9, channel: 9 * features, row: -3, col: -1 }
    : { start: 0, outer: 9 * channels, channel: 9, row: 3, col: 1 }
  const problem: ConvolutionProblem = {
    ...{ name: 'winograd', sizes, images, features: rows, pixels },
    image: { buffer: image, start: 0, ...place },
    weight: { buffer: weight, ...weights },
    epilogue: (sum) => [
      store(
        out,
        at([images, features * plane], [rows, plane], [pixels, 1]),
        call('max', call('add', sum, load(bias, at([rows, 1]))), cast(call('sub', iota(pixels), constant('int32', 40)), 'float32')),
      ),
    ],
    params: [out, image, weight, bias],
  }
  const data = (count: number): Float32Array => Float32Array.from({ length: count }, value)
  const [X, W, B] = [data(batch * channels * height * (width + gap)), data(9 * channels * features), data(features)]
  const expected: number[] = []
  for (let n = 0; n < batch; n++)
    for (let o = 0; o < features; o++)
      for (let p = 0; p < plane; p++) {
        let sum = 0
        for (let c = 0; c < channels; c++)
          for (let ky = 0; ky < 3; ky++)
            for (let kx = 0; kx < 3; kx++) {
              const [y, x] = [Math.floor(p / outWidth) + ky - padH, (p % outWidth) + kx - padW]
              if (y < 0 || y >= height || x < 0 || x >= width) continue
              const at = weights.start + o * weights.outer + c * weights.channel + ky * weights.row + kx * weights.col
              sum += (X[n * place.outer + c * place.channel + y * place.row + x * place.col] ?? NaN) * (W[at] ?? NaN)
            }
        expected.push(Math.max(sum + (B[o] ?? NaN), p - 40))
      }
  return { problem, args: { out: new Float32Array(batch * features * plane), image: X, weight: W, bias: B }, expected }
}

/** Multiples of 4: with them the transforms are exact. */
const whole = (): number => 4 * (random(9) - 4)

/** The tiles, with few features in a group, with blocks of rows, and with blocks of one row. */
const tiles = winograd
  .tiles('wasm')
  .flatMap((tile) => [tile, { ...tile, weightBytes: 1 }, { ...tile, windowBytes: 0 }, { ...tile, windowBytes: 0, blockBytes: 1 }])

const runs = Number(process.env['TENSORFX_FUZZ'] ?? 8)

describe('convolutions by F(2,3)', () => {
  test('are those of plain sums, for every tile and on both engines', () => {
    for (let i = 0; i < runs; i++) {
      const sizes = sizesOf({
        batch: pick([1, 1, 2, 0]),
        channels: pick([1, 3, 4, 5, 8, 9, 16, 19]),
        features: pick([1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 32]),
        height: 1 + random(11),
        width: 1 + random(13),
        padH: 1 + random(3),
        padW: 1 + random(3),
      })
      const { problem, args, expected } = caseOf(sizes, whole)
      for (const tile of tiles) {
        const kernel = winograd.build(winograd.spec(problem), tile)
        verifyKernel(kernel)
        const wasm = withStrict(random(2) === 1, () => emitKernel(kernel))
        const what = JSON.stringify(sizes)
        expect(
          Array.from(runWasm(kernel, args, wasm)['out'] as Float32Array, (x) => x + 0),
          what,
        ).toEqual(expected.map((x) => x + 0))
        // The interpreter takes a second for a large one.
        if (sizes.channels * sizes.features * sizes.height * sizes.width < 1500)
          expect(Array.from(runOracle(kernel, args)['out'] ?? [], Number), what).toEqual(expected)
      }
    }
  })

  test('leave results finite whose tile no infinity and no NaN reaches (difference: nan-in-tiles)', () => {
    const sizes = sizesOf({ height: 9, width: 10 })
    const { problem, args } = caseOf(sizes, whole)
    const [image] = [args['image'] as Float32Array]
    const { outer, channel, row, col } = problem.image
    for (const [y, x] of [
      [0, 0],
      [4, 5],
      [8, 9],
    ] as const) {
      for (const odd of [NaN, Infinity, -Infinity]) {
        const data = image.slice()
        data[3 * channel + y * row + x * col] = odd
        expect(outer).toBeGreaterThan(0)
        for (const tile of tiles) {
          const result = runWasm(winograd.build(winograd.spec(problem), tile), { ...args, image: data })['out'] as Float32Array
          for (let p = 0; p < 90; p++) {
            const [oy, ox] = [Math.floor(p / 10), p % 10]
            const isNear = Math.abs(oy - y) <= 1 && Math.abs(ox - x) <= 1
            // The window of a tile has 4x4 pixels, from one before the tile on.
            const isReached = y >= oy - (oy % 2) - 1 && y <= oy - (oy % 2) + 2 && x >= ox - (ox % 2) - 1 && x <= ox - (ox % 2) + 2
            if (isNear) expect(isReached).toBe(true)
            if (!isReached) expect(Number.isFinite(result[p])).toBe(true)
            if (isNear && Number.isNaN(odd)) expect(result[p]).toBeNaN()
          }
        }
      }
    }
  })

  test('differ from float64 by no more than sums in the order of the direct convolution do', () => {
    const sizes = sizesOf({ channels: 64, features: 16, height: 12, width: 12 })
    const normal = (): number => Math.sqrt(-2 * Math.log((random(1e6) + 1) / 1e6)) * Math.cos((2 * Math.PI * random(1e6)) / 1e6)
    const { problem, args, expected } = caseOf(sizes, normal)
    const [X, W, B] = ['image', 'weight', 'bias'].map((name) => args[name] as Float32Array)
    const [image, weight] = [problem.image, problem.weight]
    const error = (values: ArrayLike<number>): number => Math.max(...expected.map((value, i) => Math.abs(value - (values[i] ?? NaN))))
    const direct = expected.map((_, i) => {
      const [o, p] = [Math.floor(i / 144), i % 144]
      let sum = 0
      for (let c = 0; c < 64; c++)
        for (let k = 0; k < 9; k++) {
          const [ky, kx] = [Math.floor(k / 3), k % 3]
          const [y, x] = [Math.floor(p / 12) + ky - 1, (p % 12) + kx - 1]
          if (y < 0 || y >= 12 || x < 0 || x >= 12) continue
          const at = weight.start + o * weight.outer + c * weight.channel + ky * weight.row + kx * weight.col
          sum = Math.fround(sum + Math.fround((X?.[c * image.channel + y * image.row + x * image.col] ?? NaN) * (W?.[at] ?? NaN)))
        }
      return Math.max(Math.fround(sum + (B?.[o] ?? NaN)), p - 40)
    })
    for (const tile of tiles) {
      const result = runWasm(winograd.build(winograd.spec(problem), tile), args)['out'] ?? []
      expect(error(Array.from(result, Number))).toBeLessThan(1.5 * error(direct))
    }
  })

  test('take windows of 3x3 that move by 1, 16 channels or more on both sides, planes from 4x4 on and eight tiles', () => {
    expect(takesWinograd(sizesOf({}))).toBe(true)
    const others: readonly Partial<ConvolutionSizes>[] = [
      ...[{ kernelHeight: 2 }, { kernelWidth: 5 }, { strideH: 2 }, { strideW: 2 }, { dilationH: 2 }, { dilationW: 3 }],
      ...[{ channels: 15 }, { features: 15 }, { outHeight: 3 }, { outWidth: 3 }, { outHeight: 4, outWidth: 6 }],
    ]
    expect(takesWinograd(sizesOf({ outHeight: 4, outWidth: 6, batch: 2 }))).toBe(true)
    for (const other of others) expect(takesWinograd(sizesOf(other)), JSON.stringify(other)).toBe(false)
  })

  test('need at most 8 KB of code', () => {
    for (const sizes of [
      {},
      { channels: 17, features: 21, height: 13, width: 15, batch: 3 },
      { height: 57, width: 57, channels: 64, features: 64 },
    ]) {
      const { problem } = caseOf(sizesOf(sizes), whole)
      for (const tile of tiles.slice(0, 3)) expect(emitKernel(winograd.build(winograd.spec(problem), tile)).length).toBeLessThan(8192)
    }
  })
})
