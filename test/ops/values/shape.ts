// Views, reshapes, and copies in another arrangement.
import { Plain, build, ints, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const cube = sample([2, 3, 4], 2)
const same = (a: Plain): Plain => a
const into =
  (...shape: number[]) =>
  (a: Plain): Plain =>
    a.reshape(...shape)

export default {
  'torch.clone': [
    { args: [cube], gives: same },
    { args: [ints([1, 2])], gives: same },
  ],
  'torch.Tensor.contiguous': [{ args: [cube], gives: same }],
  'torch.detach': [{ args: [x], gives: same, noGradient: 'it stops gradients' }],
  'torch.Tensor.view': [
    { args: [cube, [4, 6]], gives: into(4, 6) },
    { args: [cube, -1], gives: into(24) },
    { args: [x, [3, -1]], gives: into(3, 2) },
    { args: [sample([0, 3], 1), [3, 0]], gives: into(3, 0) },
  ],
  'torch.reshape': [
    { args: [cube, [6, -1]], gives: into(6, 4) },
    { args: [cube, 2, 12], gives: into(2, 12) },
    { args: [t(5), [1, 1]], gives: into(1, 1) },
  ],
  'torch.flatten': [
    { args: [cube], gives: into(24) },
    { args: [cube, 1], gives: into(2, 12) },
    { args: [cube, { startDim: -3, endDim: -2 }], gives: into(6, 4) },
    { args: [t(5)], gives: into(1) },
  ],
  'torch.unsqueeze': [
    { args: [x, 0], gives: into(1, 2, 3) },
    { args: [x, -1], gives: into(2, 3, 1) },
    { args: [t(5), 0], gives: into(1) },
  ],
  'torch.squeeze': [
    { args: [sample([1, 3, 1], 1)], gives: into(3) },
    { args: [sample([1, 3, 1], 1), 0], gives: into(3, 1) },
    { args: [sample([1, 3, 1], 1), -1], gives: into(1, 3) },
    { args: [x, 0], gives: same },
  ],
  'torch.permute': [
    { args: [cube, [2, 0, 1]], gives: (a: Plain) => build([4, 2, 3], (i, j, k) => a.at(j, k, i)) },
    { args: [cube, -1, 1, 0], gives: (a: Plain) => build([4, 3, 2], (i, j, k) => a.at(k, j, i)) },
  ],
  'torch.transpose': [
    { args: [cube, 0, 2], gives: (a: Plain) => build([4, 3, 2], (i, j, k) => a.at(k, j, i)) },
    { args: [cube, -1, 1], gives: (a: Plain) => build([2, 4, 3], (i, j, k) => a.at(i, k, j)) },
    { args: [x, 1, 1], gives: same },
  ],
  'torch.t': [
    { args: [x], gives: (a: Plain) => build([3, 2], (i, j) => a.at(j, i)) },
    { args: [t([1, 2])], gives: same },
    { args: [t(3)], gives: same },
  ],
  'torch.Tensor.expand': [
    { args: [sample([2, 1], 3), [2, 3]], gives: (a: Plain) => build([2, 3], (i) => a.at(i, 0)) },
    { args: [sample([3], 3), 2, -1], gives: (a: Plain) => build([2, 3], (_, j) => a.at(j)) },
    { args: [t(2), [2]], gives: t([2, 2]) },
  ],
  'torch.as_strided': [
    { args: [x, [2, 2], [1, 2]], gives: (a: Plain) => build([2, 2], (i, j) => a.data[i + 2 * j] ?? NaN) },
    { args: [x, [3, 2], [1, 1]], gives: (a: Plain) => build([3, 2], (i, j) => a.data[i + j] ?? NaN) },
    { args: [x, [3], [2], 1], gives: (a: Plain) => build([3], (i) => a.data[1 + 2 * i] ?? NaN) },
  ],
  'torch.select': [
    { args: [cube, 1, 2], gives: (a: Plain) => build([2, 4], (i, k) => a.at(i, 2, k)) },
    { args: [cube, -1, -4], gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, j, 0)) },
  ],
  'torch.Tensor.slice': [
    { args: [cube, 1, 1], gives: (a: Plain) => build([2, 2, 4], (i, j, k) => a.at(i, j + 1, k)) },
    { args: [cube, -1, 0, 4, 3], gives: (a: Plain) => build([2, 3, 2], (i, j, k) => a.at(i, j, 3 * k)) },
    { args: [x, 1, -2, -1], gives: (a: Plain) => build([2, 1], (i) => a.at(i, 1)) },
    { args: [x], gives: same },
    { args: [x, 1, 2, 1], gives: build([2, 0], () => 0) },
    { args: [x, 1, -9, 9], gives: same },
  ],
  'torch.narrow': [
    { args: [x, 1, 1, 2], gives: (a: Plain) => build([2, 2], (i, j) => a.at(i, j + 1)) },
    { args: [x, -2, 0, 1], gives: (a: Plain) => build([1, 3], (i, j) => a.at(i, j)) },
  ],
  'torch.diagonal': [
    { args: [x], gives: (a: Plain) => build([2], (i) => a.at(i, i)) },
    { args: [x, 1], gives: (a: Plain) => build([2], (i) => a.at(i, i + 1)) },
    { args: [x, { offset: -1 }], gives: (a: Plain) => build([1], () => a.at(1, 0)) },
    { args: [cube, 0, 2, -2], gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, j, j)) },
    { args: [x, 5], gives: build([0], () => 0), noGradient: 'it is empty' },
  ],
  'torch.diagonal_scatter': [
    { args: [x, sample([2], 7)], gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (i === j ? b.at(i) : a.at(i, j))) },
    { args: [x, sample([1], 7), -1], gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (i === 1 && j === 0 ? b.at(0) : a.at(i, j))) },
    {
      args: [cube, sample([3, 2], 7), 1, 0, { dim2: 2 }],
      gives: (a: Plain, b: Plain) => build([2, 3, 4], (i, j, k) => (k === i + 1 ? b.at(j, i) : a.at(i, j, k))),
    },
  ],
  'torch.select_scatter': [
    { args: [x, sample([3], 7), 0, 1], gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (i === 1 ? b.at(j) : a.at(i, j))) },
    { args: [x, sample([2], 7), -1, -3], gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (j === 0 ? b.at(i) : a.at(i, j))) },
    { args: [ints([1, 2]), ints(5), 0, 0], gives: ints([5, 2]) },
  ],
  'torch.slice_scatter': [
    {
      args: [x, sample([2, 2], 7), 1, 0, 3, 2],
      gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (j === 1 ? a.at(i, j) : b.at(i, j / 2))),
    },
    { args: [x, sample([1, 3], 7), 0, -1], gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (i === 1 ? b.at(0, j) : a.at(i, j))) },
    { args: [x, sample([2, 3], 7)], gives: (_: Plain, b: Plain) => b },
    { args: [x, sample([0, 3], 7), 0, 2], gives: same },
  ],
  'torch.as_strided_scatter': [
    {
      args: [x, sample([2, 2], 7), [2, 2], [1, 2]],
      gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => (3 * i + j < 4 ? b.at((3 * i + j) % 2, Math.floor((3 * i + j) / 2)) : a.at(i, j))),
    },
    {
      args: [x, sample([3], 7), [3], [2], { storageOffset: 1 }],
      gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => ((3 * i + j) % 2 === 1 ? b.at((3 * i + j - 1) / 2) : a.at(i, j))),
    },
  ],
  'torch.ops.tensorfx.select_backward': [
    { args: [sample([3], 3), [2, 3], 0, 1], gives: (g: Plain) => build([2, 3], (i, j) => (i === 1 ? g.at(j) : 0)) },
    { args: [sample([2], 3), [2, 3], -1, -3], gives: (g: Plain) => build([2, 3], (i, j) => (j === 0 ? g.at(i) : 0)) },
  ],
  'torch.ops.tensorfx.slice_backward': [
    { args: [sample([2, 2], 3), [2, 3], 1, 0, 3, 2], gives: (g: Plain) => build([2, 3], (i, j) => (j % 2 === 0 ? g.at(i, j / 2) : 0)) },
    { args: [sample([1, 3], 3), [2, 3], 0, 1, null, 1], gives: (g: Plain) => build([2, 3], (i, j) => (i === 1 ? g.at(0, j) : 0)) },
  ],
  'torch.Tensor.repeat': [
    { args: [x, [2, 1]], gives: (a: Plain) => build([4, 3], (i, j) => a.at(i % 2, j)) },
    { args: [t([1, 2]), 3, 2], gives: (a: Plain) => build([3, 4], (_, j) => a.at(j % 2)) },
    { args: [x, 0, 1], gives: build([0, 3], () => 0) },
  ],
  'torch.flip': [
    { args: [x, [1]], gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, 2 - j)) },
    { args: [cube, [0, -1]], gives: (a: Plain) => build([2, 3, 4], (i, j, k) => a.at(1 - i, j, 3 - k)) },
    { args: [x, []], gives: same },
    { args: [sample([0, 2], 1), [0]], gives: same },
  ],
  'torch.roll': [
    { args: [x, 1, 1], gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, (j + 2) % 3)) },
    { args: [x, [-1, 4], [0, 1]], gives: (a: Plain) => build([2, 3], (i, j) => a.at((i + 1) % 2, (j + 2) % 3)) },
    { args: [x, 2], gives: (a: Plain) => a.map((_, i) => a.data[(i + 4) % 6] ?? NaN) },
    { args: [x, 3, 1], gives: same },
    { args: [sample([0], 1), 1], gives: same },
  ],
  'torch.tril': [
    { args: [sample([3, 3], 1)], gives: (a: Plain) => build([3, 3], (i, j) => (j <= i ? a.at(i, j) : 0)) },
    { args: [cube, 1], gives: (a: Plain) => build([2, 3, 4], (b, i, j) => (j <= i + 1 ? a.at(b, i, j) : 0)) },
    { args: [x, { diagonal: -1 }], gives: (a: Plain) => build([2, 3], (i, j) => (j <= i - 1 ? a.at(i, j) : 0)) },
  ],
  'torch.triu': [
    { args: [sample([3, 3], 1)], gives: (a: Plain) => build([3, 3], (i, j) => (j >= i ? a.at(i, j) : 0)) },
    { args: [cube, -1], gives: (a: Plain) => build([2, 3, 4], (b, i, j) => (j >= i - 1 ? a.at(b, i, j) : 0)) },
  ],
} satisfies ValueCases
