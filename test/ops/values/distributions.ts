// Random operators of other distributions. test/ops/distributions.test.ts looks at many of their numbers.
import { Plain, longs, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const CHANCE = 'it draws numbers'

/** Adds up probabilities until they reach u. */
function quantile(rate: number, u: number): number {
  let [k, term, sum] = [0, Math.exp(-rate), Math.exp(-rate)]
  while (sum < u) {
    k++
    term *= rate / k
    sum += term
  }
  return k
}

export default {
  'torch.multinomial': [
    { args: [t([0, 3, 0]), 3, true], gives: longs([1, 1, 1]), noGradient: CHANCE },
    {
      args: [
        t([
          [0, 3],
          [2, 0],
        ]),
        1,
      ],
      gives: longs([[1], [0]]),
      noGradient: CHANCE,
    },
  ],
  'torch.poisson': [{ args: [t([[0, 0]])], gives: t([[0, 0]]) }],
  'torch.ops.tensorfx.poisson_quantiles': [
    {
      args: [t([0, 0.5, 3, 3, 20, 90]), t([0.5, 0.75, 0.125, 0.9375, 0.5, 0.25])],
      gives: (rates: Plain, u: Plain) => rates.map((rate, i) => quantile(rate, u.at(i))),
      noGradient: 'it jumps',
    },
  ],
  'torch.ops.tensorfx.bernoulli_': [
    { args: [t([3, 4]), 1], gives: t([1, 1]), noGradient: CHANCE },
    { args: [t([3, 4]), { p: 0 }], gives: t([0, 0]), noGradient: CHANCE },
    { args: [t([3, 4]), t([1, 0])], gives: t([1, 0]), noGradient: CHANCE },
  ],
  'torch.ops.tensorfx.exponential_': [{ args: [t([3, 4]), Infinity], gives: t([0, 0]), noGradient: CHANCE }],
  'torch.normal': [
    { args: [3, 0, [2, 1]], gives: t([[3], [3]], 'float32') },
    { args: [2, t([0, 0])], gives: t([2, 2]), noGradient: CHANCE },
    {
      args: [t([[1], [2]]), t([0, 0])],
      gives: t([
        [1, 1],
        [2, 2],
      ]),
      noGradient: CHANCE,
    },
    { args: [t([1, 2]), 0], gives: t([1, 2]) },
  ],
} satisfies ValueCases
