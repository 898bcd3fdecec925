// Random operators of other distributions. test/ops/random/distributions.test.ts looks at many of their numbers.
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
  // PyTorch's formulas in numbers of 40 digits. test/distributions compares them with the slopes of distribution functions, and with what PyTorch computed.
  'torch.ops.tensorfx.gamma_slope': [
    {
      args: [t([0.3, 3, 20]), t([0.5, 1, 30])],
      gives: t([1.9920919270579527, 0.5787725001151918, 1.2265978621587854]),
      noGradient: 'PyTorch has none',
    },
  ],
  'torch.ops.tensorfx.beta_slope': [
    {
      args: [t([0.02, 0.99, 0.6, 0.9]), t([0.1, 3, 5, 50]), t([0.3, 3.4, 10, 60])],
      gives: t([1.4031987157969075, 0.3650520422591003, 0.117203840174723, 0.0174695206537181]),
      noGradient: 'PyTorch has none',
    },
  ],
  'torch.ops.tensorfx.gamma_samples': [
    {
      // The middle proposal is accepted, and the last one is not: the exponential number whose distribution function is the middle of the 2^-24 that 0.5 stands for.
      args: [t([3, 1.5, 1]), t([0, 0.5, -5]), t([0.5, 0.1, 0.9]), t([0.5, 0.5, 0.5]), t([0, 0, 0])],
      gives: t([8 / 3, (7 / 6) * (1 + 0.5 / Math.sqrt(10.5)) ** 3, -Math.log(0.5 - 2 ** -25)]),
      noGradient: 'it is implicit, not the slope at fixed random numbers',
    },
  ],
  'torch.ops.tensorfx.dirichlet_samples': [
    {
      args: [t([[1, 2]]), t([[1, 3]])],
      gives: t([[0.25, 0.75]]),
      noGradient: 'it is implicit, not the slope at fixed random numbers',
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
