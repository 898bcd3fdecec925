// Parts of floating-point numbers.
import { Plain, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

function parts(x: Plain): readonly [Plain, Plain] {
  const exponents = x.map((v) => (v === 0 || !Number.isFinite(v) ? 0 : Math.floor(Math.log2(Math.abs(v))) + 1), 'int32')
  return [x.map((v, i) => v / 2 ** (exponents.data[i] ?? 0)), exponents]
}

export default {
  'torch.frexp': [
    { args: [sample([3, 4], 1, -200, 200)], gives: parts, differentiable: 1, noGradient: 'mantissas jump' },
    {
      args: [t([1, -2, 0.5, 0, 1024, 0.75])],
      gives: [t([0.5, -0.5, 0.5, 0, 0.5, 0.75]), t([1, 2, 0, 0, 11, 0], 'int32')],
      noGradient: 'mantissas jump',
    },
    { args: [t([Infinity, -Infinity, NaN])], gives: [t([Infinity, -Infinity, NaN]), t([0, 0, 0], 'int32')], noGradient: 'infinite' },
  ],
  // Each dtype has other neighbours; test/ops/nextafter.test.ts has those of each.
  'torch.nextafter': [
    // The neighbours of 1.5 and 2 are within the tolerance of these.
    { args: [t([1.5, 2]), t([3, 1])], gives: t([1.5, 2]) },
    { args: [t([1.5, 2, NaN, 1]), t([1.5, NaN, 1, 1])], gives: t([1.5, NaN, NaN, 1]), noGradient: 'there is none' },
    {
      args: [
        t([[2], [Infinity]]),
        t([
          [2, 2],
          [Infinity, Infinity],
        ]),
      ],
      gives: t([
        [2, 2],
        [Infinity, Infinity],
      ]),
      noGradient: 'there is none',
    },
  ],
} satisfies ValueCases
