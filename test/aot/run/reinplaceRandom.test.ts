// reinplace on random functional programs with views: what comes out is what went in computes. TENSORFX_FUZZ=2000 runs that many.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx, reinplace } from 'tensorfx/aot'
import type { GraphModule } from 'tensorfx/fx'

/** All values have the shape [2, 3]. */
const steps: readonly ((a: Tensor, b: Tensor) => Tensor)[] = [
  (a) => a.clone(),
  (a) => a.add(1),
  (a, b) => a.mul(b),
  (a, b) => a.sub(b),
  (a) => torch.relu(a),
  (a) => a.neg(),
  (a) => a.reshape([6]).reshape([2, 3]),
  (a) => a.t().t(),
  (a) => a.reshape([3, 2]).add(1).reshape([2, 3]),
  (a) => a.t().mul(2).t(),
]

test('random programs keep their results, and their inputs', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(steps.length - 1), fc.nat(99), fc.nat(99)), { minLength: 1, maxLength: 14 }),
      fc.array(fc.nat(99), { minLength: 1, maxLength: 3 }),
      (program, returned) => {
        const run = (x: Tensor): readonly Tensor[] => {
          const values = [x]
          for (const [step, i, j] of program)
            values.push((steps[step] as (a: Tensor, b: Tensor) => Tensor)(values[i % values.length] as Tensor, values[j % values.length] as Tensor))
          return returned.map((i) => values[i % values.length] as Tensor)
        }
        const input = (): Tensor =>
          torch.tensor([
            [1, -2, 3],
            [-0.5, 0.25, 2],
          ])
        const numbers = (ts: readonly Tensor[]): number[] => ts.flatMap((t) => Array.from(t.contiguous().toTypedArray(), Number))
        const gm = reinplace(makeFx(run)(input()) as GraphModule, input())
        const given = input()
        expect(numbers(gm.call(given) as readonly Tensor[])).toEqual(numbers(run(input())))
        expect(numbers([given])).toEqual(numbers([input()]))
      },
    ),
    { numRuns: Number(process.env['TENSORFX_FUZZ'] ?? 100) },
  )
})
