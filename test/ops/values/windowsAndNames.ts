// Windows of signal processing, logarithmic ranges, feature dropout, and gradients that are refused.
import { Plain, build, sample, sumOf, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const waves = (size: number, last: number, a0: number, a1: number, a2 = 0): Plain =>
  build([size], (n) => a0 - a1 * Math.cos((2 * Math.PI * n) / last) + a2 * Math.cos((4 * Math.PI * n) / last))
/** I0 by its power series. */
const bessel = (x: number): number => {
  let [term, k] = [1, 0]
  return sumOf(60, () => {
    const own = term
    k++
    term *= (x / 2 / k) ** 2
    return own
  })
}
const image = sample([2, 3, 2], 1)

export default {
  'torch.logspace': [
    { args: [0, 2, 5], gives: build([5], (i) => 10 ** (i / 2)) },
    { args: [1, -2, 4, { base: 2 }], gives: t([2, 1, 0.5, 0.25]) },
    { args: [3, 5, 1], gives: t([1000]) },
  ],
  'torch.hann_window': [
    { args: [5], gives: waves(5, 5, 0.5, 0.5) },
    { args: [5, false], gives: waves(5, 4, 0.5, 0.5) },
    { args: [1], gives: t([1]) },
    { args: [0], gives: build([0], () => 0) },
  ],
  'torch.hamming_window': [
    { args: [5], gives: waves(5, 5, 0.54, 0.46) },
    { args: [4, { periodic: false, alpha: 0.6, beta: 0.3 }], gives: waves(4, 3, 0.6, 0.3) },
  ],
  'torch.blackman_window': [{ args: [6, { periodic: false }], gives: waves(6, 5, 0.42, 0.5, 0.08) }],
  'torch.bartlett_window': [
    { args: [4], gives: t([0, 0.5, 1, 0.5]) },
    { args: [5, false], gives: t([0, 0.5, 1, 0.5, 0]) },
  ],
  'torch.kaiser_window': [
    { args: [6, true, 3], gives: build([6], (n) => bessel(3 * Math.sqrt(1 - (n / 3 - 1) ** 2)) / bessel(3)) },
    { args: [4, false], gives: build([4], (n) => bessel(12 * Math.sqrt(1 - ((2 * n) / 3 - 1) ** 2)) / bessel(12)), tolerance: 2e-5 },
  ],
  'torch.nn.functional.upsample': [{ args: [image, { scaleFactor: 2 }], gives: (x: Plain) => build([2, 3, 4], (n, c, i) => x.at(n, c, i >> 1)) }],
  'torch.nn.functional.dropout1d': [
    { args: [image, { training: false }], gives: image },
    { args: [image, { p: 1 }], gives: image.map(() => 0) },
  ],
  'torch.nn.functional.dropout2d': [{ args: [image, { p: 0 }], gives: image }],
  'torch.nn.functional.dropout3d': [{ args: [sample([1, 1, 2, 1, 2], 2), { p: 1 }], gives: build([1, 1, 2, 1, 2], () => 0) }],
  'torch.nn.functional.alpha_dropout': [
    { args: [image], gives: image },
    { args: [image, { p: 1, training: true }], gives: image.map(() => 0) },
  ],
  'torch.nn.functional.feature_alpha_dropout': [{ args: [image, { p: 0, training: true }], gives: image }],
  'torch.ops.tensorfx.refused_gradient': [{ args: [build([0, 2], () => 0), 'no gradient'], gives: build([0, 2], () => 0) }],
} satisfies ValueCases
