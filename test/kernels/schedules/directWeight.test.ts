// The order of sums of gradients of weights over pixels, which strict code keeps to the bit, and the size of their kernels. What they compute otherwise: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import { directWeight, takesDirectWeight } from '../../../src/kernels/schedules/directWeight.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { runWasm } from '../harness.ts'
import { drawnWindow } from '../problems/convolutions.ts'
import { sizesOf } from '../problems/convolutionSizes.ts'
import { drawnOrder, otherBlocks, weightCase } from '../problems/weightGradients.ts'

const random = randomFrom(11)
const { int, pick } = random
const number = (): number => Math.fround((int(2 ** 24) / 2 ** 24 - 0.5) * 4)
const runs = Number(process.env['TENSORFX_FUZZ'] ?? 16)
const tiles = directWeight.tiles('wasm').flatMap((tile) => [tile, ...otherBlocks(tile)])

describe("the gradient of a convolution's weight over pixels", () => {
  test('has the bits of sums in the order that the problem says, in strict code, and needs at most 8 KB of code', () => {
    for (let i = 0; i < runs; i++) {
      const window = drawnWindow(random, false)
      if (window === null) continue
      const sizes = { ...window, channels: pick([1, 2, 3, 5, 7, 8, 9, 16, 19]) }
      const [groups, order] = [pick([1, 1, 3]), drawnOrder(random, sizes) ?? ({ images: 1, lanes: 1 } as const)]
      const { problem, args, expected } = weightCase(random, { sizes, groups, order, value: number, isPlain: true })
      const what = JSON.stringify({ ...sizes, groups, order })
      for (const tile of tiles) {
        const kernel = directWeight.build(directWeight.spec({ ...problem, groups, order }), tile)
        const wasm = withStrict(true, () => emitKernel(kernel))
        expect(wasm.length, what).toBeLessThan(8192)
        expect(Array.from(runWasm(kernel, args, wasm)['out'] as Float32Array), what).toEqual(expected)
      }
    }
  })

  test('is not taken where a size is 0', () => {
    expect(takesDirectWeight(sizesOf({}))).toBe(true)
    for (const none of [{ batch: 0 }, { channels: 0 }, { features: 0 }, { outWidth: 0 }])
      expect(takesDirectWeight(sizesOf(none)), JSON.stringify(none)).toBe(false)
  })
})
