// log(e^x + e^y).
import { each, ints, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const reference = (a: number, b: number): number => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))))

export default {
  'torch.logaddexp': [
    { args: [sample([3, 1, 4], 1), sample([2, 1], 2)], gives: each(reference) },
    { args: [t([1000, -1000, 80, 0]), t([1000, -1001, -80, 0])], gives: each(reference) },
    { args: [t([Infinity, -Infinity, -Infinity, 1]), t([Infinity, -Infinity, 2, NaN])], gives: each(reference), noGradient: 'infinite' },
    {
      args: [ints([0, 1, -3]), ints([0, 2, 4])],
      gives: t(
        [0, 1, -3].map((a, i) => reference(a, [0, 2, 4][i] ?? 0)),
        'float32',
      ),
    },
  ],
} satisfies ValueCases
