// In-place operators, and the functional forms of copies and fills.
import { build, each, ints, sample, t } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const row = sample([3], 3)

const IN_PLACE = 'a leaf that requires grad cannot be modified in place'
const turned = (a: Plain): Plain => build([3, 2], (i, j) => a.at(j, i))

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
  'torch.Tensor.transpose_': [
    { args: [x, 0, 1], gives: turned, noGradient: IN_PLACE },
    { args: [x, 1, 1], gives: (a: Plain) => a, noGradient: IN_PLACE },
  ],
  'torch.Tensor.swapaxes_': [{ args: [x, 0, -1], gives: turned, noGradient: IN_PLACE }],
  'torch.Tensor.swapdims_': [{ args: [x, -1, -2], gives: turned, noGradient: IN_PLACE }],
  'torch.Tensor.t_': [
    { args: [x], gives: turned, noGradient: IN_PLACE },
    { args: [t([1, 2])], gives: (a: Plain) => a, noGradient: IN_PLACE },
  ],
  'torch.Tensor.squeeze_': [
    { args: [sample([1, 3, 1], 1)], gives: (a: Plain) => a.reshape(3), noGradient: IN_PLACE },
    { args: [sample([1, 3, 1], 1), -1], gives: (a: Plain) => a.reshape(1, 3), noGradient: IN_PLACE },
    { args: [sample([1, 3, 1], 1), [0, 1]], gives: (a: Plain) => a.reshape(3, 1), noGradient: IN_PLACE },
  ],
  'torch.Tensor.unsqueeze_': [
    { args: [x, 0], gives: (a: Plain) => a.reshape(1, 2, 3), noGradient: IN_PLACE },
    { args: [x, -1], gives: (a: Plain) => a.reshape(2, 3, 1), noGradient: IN_PLACE },
  ],
  'torch.as_strided_': [
    { args: [x, [2, 2], [1, 2], 1], gives: (a: Plain) => build([2, 2], (i, j) => a.data[1 + i + 2 * j] ?? NaN), noGradient: IN_PLACE },
  ],
  'torch.Tensor.resize_': [{ args: [x, [2, 2]], gives: (a: Plain) => build([2, 2], (i, j) => a.data[2 * i + j] ?? NaN), noGradient: IN_PLACE }],
  'torch.resize_as_': [{ args: [x, row], gives: (a: Plain) => build([3], (i) => a.data[i] ?? NaN), noGradient: IN_PLACE }],
  'torch.Tensor.set_': [
    { args: [x, row], gives: (_: Plain, b: Plain) => b, noGradient: IN_PLACE },
    { args: [x, row, 1, [2], [1]], gives: (_: Plain, b: Plain) => build([2], (i) => b.data[1 + i] ?? NaN), noGradient: IN_PLACE },
  ],
  'torch.Tensor.zero_': [{ args: [x], gives: each(() => 0) }],
  'torch.ops.tensorfx.uniform_': [
    { args: [x, 3, 3], gives: (a: Plain) => a.map(() => 3), noGradient: 'random' },
    { args: [x, { from: -1, to: -1 }], gives: (a: Plain) => a.map(() => -1), noGradient: 'random' },
  ],
  'torch.ops.tensorfx.normal_': [{ args: [x, 3, 0], gives: (a: Plain) => a.map(() => 3), noGradient: 'random' }],
} satisfies ValueCases
