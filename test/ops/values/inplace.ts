// In-place operators, and the functional forms of copies and fills.
import { build, each, ints, sample, t } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const row = sample([3], 3)

export default {
  'torch.relu_': [{ args: [x], gives: each((a) => Math.max(a, 0)) }],
  'torch.ops.tensorfx.copy': [
    { args: [x, row], gives: each((_, b) => b) },
    { args: [ints([1, 2]), t([1.7, -1.7])], gives: ints([1, -1]) },
  ],
  'torch.Tensor.copy_': [
    { args: [x, row], gives: each((_, b) => b) },
    { args: [ints([1, 2]), t([1.7, -1.7])], gives: ints([1, -1]) },
  ],
  'torch.ops.tensorfx.fill': [{ args: [x, 2.5], gives: each(() => 2.5) }],
  'torch.Tensor.fill_': [
    { args: [x, 2.5], gives: each(() => 2.5) },
    { args: [t([true, false]), 1], gives: t([true, true]) },
  ],
  'torch.Tensor.fill_diagonal_': [
    { args: [x, 7], gives: (a: Plain) => build(a.shape, (i, j) => (i === j ? 7 : a.at(i, j))) },
    // The diagonal begins again a row after it ended: rows 0 to 1, and 3 to 4.
    { args: [sample([5, 2], 4), 7, true], gives: (a: Plain) => build(a.shape, (i, j) => (i % 3 === j ? 7 : a.at(i, j))) },
    { args: [sample([5, 2], 4), 7], gives: (a: Plain) => build(a.shape, (i, j) => (i === j ? 7 : a.at(i, j))) },
    { args: [sample([2, 5], 4), 7, { wrap: true }], gives: (a: Plain) => build(a.shape, (i, j) => (i === j ? 7 : a.at(i, j))) },
    { args: [sample([3, 3, 3], 5), -1], gives: (a: Plain) => build(a.shape, (i, j, k) => (i === j && j === k ? -1 : a.at(i, j, k))) },
  ],
  'torch.Tensor.zero_': [{ args: [x], gives: each(() => 0) }],
  'torch.ops.tensorfx.uniform_': [
    { args: [x, 3, 3], gives: (a: Plain) => a.map(() => 3), noGradient: 'random' },
    { args: [x, { from: -1, to: -1 }], gives: (a: Plain) => a.map(() => -1), noGradient: 'random' },
  ],
  'torch.ops.tensorfx.normal_': [{ args: [x, 3, 0], gives: (a: Plain) => a.map(() => 3), noGradient: 'random' }],
} satisfies ValueCases
