// Convolutions by Winograd's algorithm: what infinities reach, rounding errors, which convolutions are such, their code. What they compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import type { ConvolutionSizes } from '../../../src/kernels/schedules/convolution.ts'
import { fastWinograd, packedWinograd, winograd } from '../../../src/kernels/schedules/winograd.ts'
import { takesFastWinograd, takesWinograd } from '../../../src/kernels/schedules/winogradSpec.ts'
import { keptWeightBytes } from '../../../src/kernels/schedules/winogradWeights.ts'
import type { WinogradSchedule } from '../../../src/kernels/schedules/winogradSpec.ts'
import { F23, F43 } from '../../../src/kernels/schedules/winogradTransforms.ts'
import type { WinogradAlgorithm } from '../../../src/kernels/schedules/winogradTransforms.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { third } from '../../helpers/rotation.ts'
import { runWasm } from '../harness.ts'
import { sizesOf } from '../problems/convolutionSizes.ts'
import { convolutionCase, smallGroups } from '../problems/convolutions.ts'
import type { ConvolutionCase } from '../problems/convolutions.ts'

const random = randomFrom(11)
const { int } = random
const caseOf = (sizes: ConvolutionSizes, value: () => number): ConvolutionCase =>
  convolutionCase(random, { sizes, image: value, weight: value, isPlain: true })

/** Multiples of 4: with them the transforms are exact. */
const whole = (): number => 4 * (int(9) - 4)

/** The algorithms, and how many times the error of direct sums their largest error may be. */
const algorithms: readonly (readonly [string, WinogradSchedule, WinogradAlgorithm, number])[] = [
  ['F(2,3)', winograd, F23, 1.5],
  ['F(4,3)', fastWinograd, F43, 8],
]

describe.each(algorithms)('convolutions by %s', (_, schedule, { side, window }, errors) => {
  /** The tiles, with few features in a group, with blocks of rows, and with blocks of one row. */
  const tiles = schedule.tiles('wasm').flatMap((tile) => [tile, ...smallGroups(tile)])

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
          const result = runWasm(schedule.build(schedule.spec(problem), tile), { ...args, image: data })['out'] as Float32Array
          const wrong = Array.from({ length: 90 }, (__, p) => p).filter((p) => {
            const [oy, ox] = [Math.floor(p / 10), p % 10]
            const isNear = Math.abs(oy - y) <= 1 && Math.abs(ox - x) <= 1
            // The window of a tile begins one pixel before the tile.
            const [top, left] = [oy - (oy % side) - 1, ox - (ox % side) - 1]
            const isReached = y >= top && y < top + window && x >= left && x < left + window
            return (isNear && !isReached) || (!isReached && !Number.isFinite(result[p])) || (isNear && Number.isNaN(odd) && !Number.isNaN(result[p]))
          })
          expect(wrong, `pixels beside ${odd} at ${y}, ${x}`).toEqual([])
        }
      }
    }
  })

  test(`differ from float64 by less than ${errors} times what sums in the order of the direct convolution do`, () => {
    const sizes = sizesOf({ channels: 64, features: 16, height: 12, width: 12 })
    const normal = (): number => Math.sqrt(-2 * Math.log((int(1e6) + 1) / 1e6)) * Math.cos((2 * Math.PI * int(1e6)) / 1e6)
    const { problem, args, results } = caseOf(sizes, normal)
    const [expected, direct] = [results((x) => x), results(Math.fround)]
    const error = (values: ArrayLike<number>): number => Math.max(...expected.map((value, i) => Math.abs(value - (values[i] ?? NaN))))
    for (const tile of tiles) {
      const result = runWasm(schedule.build(schedule.spec(problem), tile), args)['out'] ?? []
      expect(error(Array.from(result, Number))).toBeLessThan(errors * error(direct))
    }
  })

  test('have the same bits with weights that were transformed before, which take no more than is said', () => {
    for (const sizes of [
      {},
      { channels: 17, features: 21, height: 13, width: 15, batch: 3 },
      { channels: 32, features: 48, height: 17, width: 16 },
    ]) {
      const { problem, args } = caseOf(sizesOf(sizes), () => int(1e6) / 1e6 - 0.5)
      for (const tile of third(tiles)) {
        const { pack, scratchAt, convolution } = packedWinograd(schedule.spec(problem), tile)
        const scratch = scratchBytes(pack, () => NaN)
        expect(scratchAt + scratch).toBeLessThanOrEqual(keptWeightBytes(schedule, problem.sizes) ?? 0)
        const { packed } = runWasm(pack, { ...args, packed: new Float32Array(scratchAt / 4) })
        const { out } = runWasm(convolution, { ...args, weight: packed ?? 0 })
        expect(out).toEqual(runWasm(schedule.build(schedule.spec(problem), tile), args)['out'])
      }
    }
  })

  test('need at most 8 KB of code', () => {
    for (const sizes of [
      {},
      { channels: 17, features: 21, height: 13, width: 15, batch: 3 },
      { height: 57, width: 57, channels: 64, features: 64 },
    ]) {
      const { problem } = caseOf(sizesOf(sizes), whole)
      for (const tile of tiles.slice(0, 3)) expect(emitKernel(schedule.build(schedule.spec(problem), tile)).length).toBeLessThan(8192)
    }
  })
})

describe('convolutions by Winograd’s algorithms', () => {
  test('take windows of 3x3 that move by 1, 16 channels or more on both sides, planes from 4x4 on and eight tiles', () => {
    expect(takesWinograd(sizesOf({}))).toBe(true)
    const others: readonly Partial<ConvolutionSizes>[] = [
      ...[{ kernelHeight: 2 }, { kernelWidth: 5 }, { strideH: 2 }, { strideW: 2 }, { dilationH: 2 }, { dilationW: 3 }],
      ...[{ channels: 15 }, { features: 15 }, { outHeight: 3 }, { outWidth: 3 }, { outHeight: 4, outWidth: 6 }],
    ]
    expect(takesWinograd(sizesOf({ outHeight: 4, outWidth: 6, batch: 2 }))).toBe(true)
    for (const other of others) expect(takesWinograd(sizesOf(other)), JSON.stringify(other)).toBe(false)
  })

  test('take tiles of 4x4 pixels where there are eight, which have at most three quarters of the products', () => {
    const planes = (height: number, width: number, batch = 1): ConvolutionSizes => sizesOf({ height, width, batch })
    for (const sizes of [planes(16, 16), planes(13, 14), planes(8, 16), planes(8, 8, 2), planes(7, 7, 2), planes(4, 4, 8)])
      expect(takesFastWinograd(sizes), JSON.stringify(sizes)).toBe(true)
    const large = planes(16, 16)
    for (const sizes of [planes(8, 8), planes(9, 9), planes(5, 5, 8), planes(6, 18), { ...large, strideH: 2 }, { ...large, channels: 15 }])
      expect(takesFastWinograd(sizes), JSON.stringify(sizes)).toBe(false)
  })
})
