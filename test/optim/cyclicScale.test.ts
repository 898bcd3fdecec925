// CyclicLR with a height of the program's own: PyTorch's scale_fn and scale_mode.
import { expect, it } from 'vitest'
import { nn } from 'tensorfx'
import { CyclicLR, SGD } from 'tensorfx/optim'
import type { CyclicOptions } from 'tensorfx/optim'

/** The rates and momenta of the first steps, with 2 steps up and 2 down. */
function ratesOf(options: CyclicOptions): readonly (readonly [number, number])[] {
  const optimizer = new SGD(new nn.Linear(1, 1).parameters(), { lr: 0.1, momentum: 0.9 })
  const schedule = new CyclicLR(optimizer, 1, 3, { stepSizeUp: 2, baseMomentum: 0.5, maxMomentum: 0.9, ...options })
  return Array.from({ length: 8 }, () => {
    const group = optimizer.paramGroups[0]
    const rates = [Number(group?.lr), Number(group?.momentum)] as const
    optimizer.step()
    schedule.step()
    return rates
  })
}

/** Up and down between 0 and 1. */
const triangle = [0, 0.5, 1, 0.5, 0, 0.5, 1, 0.5]
const expected = (height: (step: number) => number): readonly (readonly [number, number])[] =>
  triangle.map((scale, step) => [1 + 2 * scale * height(step), 0.9 - 0.4 * scale * height(step)])

const close = (got: readonly (readonly [number, number])[], want: readonly (readonly [number, number])[]): void =>
  got.forEach((pair, i) => pair.forEach((value, k) => expect(value).toBeCloseTo(want[i]?.[k] ?? NaN, 10)))

it('takes a function of the cycle, which is the default, instead of the mode', () => {
  close(
    ratesOf({ mode: 'exp_range', gamma: 0.1, scaleFn: (cycle) => 1 / cycle }),
    expected((step) => (step < 4 ? 1 : 1 / 2)),
  )
})

it('takes a function of the steps', () => {
  close(
    ratesOf({ scaleFn: (steps) => 0.5 ** steps, scaleMode: 'iterations' }),
    expected((step) => 0.5 ** step),
  )
})

it('refuses what is no function, and other modes', () => {
  expect(() => ratesOf({ scaleFn: 2 as never })).toThrow('scaleFn')
  expect(() => ratesOf({ scaleMode: 'steps' as never })).toThrow("scaleMode must be 'cycle' or 'iterations', got 'steps'")
})
