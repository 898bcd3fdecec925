// How much code the emitter writes. Code that computes the same with more instructions is right and slow: nothing else fails by it.
import { expect, test } from 'vitest'
import { hashOf, randomFrom } from '../../../scripts/fuzz/random.mjs'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { pointwiseKernel } from '../../../src/kernels/schedules/pointwise.ts'
import { runBoth } from '../harness.ts'
import { drawLoops, joined } from '../problems/loops.ts'
import { drawNest } from '../problems/nests.ts'
import { RandomKernel } from '../problems/randomKernel.ts'
import { expectNoMore, recordedBytes } from '../recordedBytes.ts'

const KINDS: Readonly<Record<string, (random: Random, seed: number) => Kernel>> = {
  'what schedules write': (_, seed) => new RandomKernel(seed).kernel(),
  'nests in lanes': (random) => pointwiseKernel(drawNest(random).nest, false),
  'loops after each other': (random) => joined(drawLoops(random), drawLoops(random)).kernel,
}
/** Kernels whose bytes are one number of the record. */
const TOGETHER = 8

test.each(Object.entries(KINDS))('random kernels take no more bytes than is recorded: %s', (name, draw) => {
  const found = Array.from({ length: 12 }, (_, group) =>
    Array.from({ length: TOGETHER }, (_kernel, i) => {
      const seed = 1 + group * TOGETHER + i
      const kernel = draw(randomFrom(hashOf(`${name} ${seed}`)), seed)
      // Strict code is the same on every engine.
      return withStrict(true, () => emitKernel(kernel)).length
    }).reduce((sum, bytes) => sum + bytes, 0),
  )
  expectNoMore(found, recordedBytes(name, found), name)
})

test('a loop takes no more code beside another one, of whatever dtypes both are, than it takes alone', () => {
  for (let seed = 0; seed < 150; seed++) {
    const random = randomFrom(seed)
    const [first, second] = [drawLoops(random), drawLoops(random)]
    const both = joined(first, second)
    const bytes = (kernel: Kernel): number => emitKernel(kernel).length
    // The number of a local takes two bytes from 128 on.
    expect(bytes(both.kernel), `seed ${seed}`).toBeLessThanOrEqual(1.02 * (bytes(first.kernel) + bytes(second.kernel)))
    const { wasm, oracle } = runBoth(both.kernel, both.args)
    expect(wasm, `seed ${seed}`).toEqual(oracle)
  }
})
