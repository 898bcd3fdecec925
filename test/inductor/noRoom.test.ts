// Products that have no room for their scratch memory run as a loop over their elements, eager and compiled.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { OutOfMemoryError, withFailingAllocation } from 'tensorfx/kernels'
import { withStrict } from '../../src/kernels/engine/computing.ts'
import { turn } from '../helpers/rotation.ts'

/** Larger than the smallest scratch memory, so that leaving it out helps. */
const [M, K, N] = [70, 130, 150]

const shapes: Readonly<Record<string, { readonly run: (a: Tensor, b: Tensor) => Tensor; readonly inputs: () => readonly [Tensor, Tensor] }>> = {
  mm: { run: (a, b) => a.matmul(b).relu(), inputs: () => [torch.randn([M, K]), torch.randn([K, N])] },
  linear: { run: (a, b) => torch.nn.functional.linear(a, b), inputs: () => [torch.randn([M, K]), torch.randn([N, K])] },
}

/** Bytes of all scratch memory. */
const scratch = (): number => torch.memory.stats().scratch.allocated

describe.each(turn(Object.keys(shapes)))('a product without room for scratch memory: %s', (name) => {
  test.each(['eager', 'compiled'])('is the same up to rounding, and in strict code the same bits: %s', (mode) => {
    const { run, inputs } = shapes[name] ?? { run: (a: Tensor) => a, inputs: () => [torch.zeros([]), torch.zeros([])] }
    for (const strict of [false, true])
      withStrict(strict, () => {
        const f = mode === 'eager' ? run : compile(run, { options: { strict } })
        const [a, b] = inputs()
        const usual = f(a, b)
        const judge = run(a.double(), b.double())
        torch.memory.emptyCache()
        f(a, b)
        const needed = scratch()
        const fellBack: number[] = []
        for (let nth = 1; ; nth++) {
          torch.memory.emptyCache()
          const { failed, outcome } = withFailingAllocation(nth, () => f(a, b))
          if (!failed) break
          const left = scratch()
          // Neither a call without room nor what it left changes the next one.
          expect(f(a, b).equal(usual)).toBe(true)
          if ('threw' in outcome) {
            expect(outcome.threw).toBeInstanceOf(OutOfMemoryError)
            continue
          }
          if (left >= needed) continue
          fellBack.push(nth)
          if (strict) expect(outcome.returned.equal(usual)).toBe(true)
          expect(outcome.returned.double().sub(judge).abs().max().item()).toBeLessThan(2e-4)
        }
        expect(fellBack).toHaveLength(1)
      })
  })
})
