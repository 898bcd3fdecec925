// The gradient of a convolution's weight by Winograd's algorithm, against the reference interpreter and against plain sums: sizes around tiles, layouts, padding, epilogues.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { withStrict } from '../../src/kernels/engine.ts'
import { at, bufferParam, call, cast, constant, iota, load, loopVar, store } from '../../src/kernels/loopIr.ts'
import type { ConvolutionSizes } from '../../src/kernels/schedules/convolution.ts'
import { takesWinogradWeight, winogradWeight } from '../../src/kernels/schedules/winogradWeight.ts'
import type { WeightGradientProblem } from '../../src/kernels/schedules/winogradWeight.ts'
import { emitKernel } from '../../src/kernels/wasm/emit.ts'
import { verifyKernel } from '../../src/kernels/verify.ts'
import { sizesOf } from './convolutionSizes.ts'
import { runOracle, runWasm } from './harness.ts'
import type { Args } from './harness.ts'

const { int: random, pick } = randomFrom(5)
/** Multiples of 4: with them the transforms are exact. */
const whole = (): number => 4 * (random(7) - 3)

interface Case {
  readonly problem: WeightGradientProblem
  readonly args: Args
  readonly expected: readonly number[]
}

/** out[o, e] = max(sum + bias[o], e - 20); images and gradients lie channel by channel with gaps, or channels last. */
function caseOf(sizes: ConvolutionSizes, value: () => number): Case {
  const { batch, channels, features, height, width, outHeight, outWidth, padH, padW } = sizes
  const [out, image, gradient, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('image', 'float32'),
    bufferParam('gradient', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const [rows, elements] = [loopVar('o', features), loopVar('e', 9 * channels)]
  const placeOf = (count: number, h: number, w: number) => {
    const gap = random(3)
    return random(2) === 0
      ? { start: 0, outer: count * h * (w + gap), channel: h * (w + gap), row: w + gap, col: 1, all: batch * count * h * (w + gap) }
      : { start: 0, outer: count * h * w, channel: 1, row: w * count, col: count, all: batch * count * h * w }
  }
  const [x, g] = [placeOf(channels, height, width), placeOf(features, outHeight, outWidth)]
  const problem: WeightGradientProblem = {
    ...{ name: 'weights', sizes, features: rows, elements },
    image: { buffer: image, ...x },
    gradient: { buffer: gradient, ...g },
    epilogue: (sum) => [
      store(
        out,
        at([rows, 9 * channels], [elements, 1]),
        call('max', call('add', sum, load(bias, at([rows, 1]))), cast(call('sub', iota(elements), constant('int32', 20)), 'float32')),
      ),
    ],
    params: [out, image, gradient, bias],
  }
  const data = (count: number): Float32Array => Float32Array.from({ length: count }, value)
  const [X, G, B] = [data(x.all), data(g.all), data(features)]
  const expected: number[] = []
  for (let o = 0; o < features; o++)
    for (let e = 0; e < 9 * channels; e++) {
      const [c, ky, kx] = [Math.floor(e / 9), Math.floor((e % 9) / 3), e % 3]
      let sum = 0
      for (let n = 0; n < batch; n++)
        for (let oy = 0; oy < outHeight; oy++)
          for (let ox = 0; ox < outWidth; ox++) {
            const [iy, ix] = [oy + ky - padH, ox + kx - padW]
            if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue
            sum +=
              (X[n * x.outer + c * x.channel + iy * x.row + ix * x.col] ?? NaN) * (G[n * g.outer + o * g.channel + oy * g.row + ox * g.col] ?? NaN)
          }
      expected.push(Math.max(sum + (B[o] ?? NaN), e - 20))
    }
  return { problem, args: { out: new Float32Array(9 * features * channels), image: X, gradient: G, bias: B }, expected }
}

/** The tiles, and the same with blocks of one row. */
const tiles = winogradWeight.tiles('wasm').flatMap((tile) => [tile, { ...tile, blockBytes: 1 }])
const runs = Number(process.env['TENSORFX_FUZZ'] ?? 10)

describe("the gradient of a convolution's weight by F(2,3)", () => {
  test('is that of plain sums, for every tile and on both engines', () => {
    for (let i = 0; i < runs; i++) {
      const sizes = sizesOf({
        batch: pick([1, 1, 2, 3, 0]),
        channels: pick([1, 3, 4, 5, 8, 9, 16, 19]),
        features: pick([1, 3, 4, 7, 8, 9, 15, 16, 17]),
        height: 1 + random(11),
        width: 1 + random(13),
        padH: 1 + random(2),
        padW: 1 + random(2),
      })
      const { problem, args, expected } = caseOf(sizes, whole)
      for (const tile of tiles) {
        const kernel = winogradWeight.build(winogradWeight.spec(problem), tile)
        verifyKernel(kernel)
        const wasm = withStrict(random(2) === 1, () => emitKernel(kernel))
        expect(wasm.length).toBeLessThan(8192)
        const what = JSON.stringify(sizes)
        const plus = (x: number): number => x + 0
        expect(Array.from(runWasm(kernel, args, wasm)['out'] as Float32Array, plus), what).toEqual(expected.map(plus))
        // The interpreter takes a second for a large one.
        if (sizes.batch * sizes.channels * sizes.features * sizes.height * sizes.width < 1500)
          expect(Array.from(runOracle(kernel, args)['out'] ?? [], Number), what).toEqual(expected)
      }
    }
  })

  test('is taken where the convolution is, of weights whose sums stay in the cache', () => {
    expect(takesWinogradWeight(sizesOf({}))).toBe(true)
    expect(takesWinogradWeight(sizesOf({ channels: 256, features: 256 }))).toBe(true)
    for (const other of [{ channels: 257, features: 256 }, { strideH: 2 }, { channels: 15 }])
      expect(takesWinogradWeight(sizesOf(other)), JSON.stringify(other)).toBe(false)
  })
})
