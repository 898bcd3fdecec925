// Direct convolutions and transposed ones: the bits of their sums in strict code, windows that read nothing, and their code. What they compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import type { ConvolutionSizes } from '../../../src/kernels/schedules/convolution.ts'
import { direct } from '../../../src/kernels/schedules/direct.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { verifyKernel } from '../../../src/kernels/ir/verify.ts'
import { runWasm } from '../harness.ts'
import { convolutionCase, drawnWindow, smallBlocks } from '../problems/convolutions.ts'
import type { ConvolutionCase } from '../problems/convolutions.ts'

const random = randomFrom(5)
const { int, pick } = random

/** The tiles, with blocks of few columns, and with one image at a time. */
const tiles = direct.tiles('wasm').flatMap((tile) => [tile, ...smallBlocks(tile)])

const runs = Number(process.env['TENSORFX_FUZZ'] ?? 8)

const whole = (): number => int(17) - 8
const number = (): number => Math.fround((int(2 ** 24) / 2 ** 24 - 0.5) * 4)
const caseOf = (sizes: ConvolutionSizes, transposed: boolean, value: () => number, groups: number = 1): ConvolutionCase =>
  convolutionCase(random, { sizes, transposed, groups, image: value, weight: value })

const positive = (values: ArrayLike<number | bigint>): readonly number[] => Array.from(values, (x) => Number(x) + 0)

describe('direct convolutions', () => {
  test.each([false, true])('have the bits of sums in the order channel, y, x in strict code, transposed: %s', (transposed) => {
    for (let i = 0; i < runs; i++) {
      const sizes = drawnWindow(random, transposed)
      if (sizes === null) continue
      const { problem, args, results } = caseOf(sizes, transposed, number, pick([1, 3]))
      const expected = results(Math.fround)
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
      const { problem, args, results } = caseOf({ ...one, ...window }, true, whole)
      for (const tile of tiles) {
        const kernel = direct.build(direct.spec(problem), tile)
        verifyKernel(kernel)
        expect(positive(runWasm(kernel, args)['out'] ?? [])).toEqual(positive(results(Math.fround)))
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
        const sizes = drawnWindow(random, transposed)
        if (sizes !== null) expect(bytesOf({ ...sizes, features: 23 }, transposed), JSON.stringify(sizes)).toBeLessThan(13_312)
      }
    }
  })
})
