// Shapes and orders of elements, joins and splits.
import { Plain, build, longs, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const cube = sample([2, 3, 4], 2)
const line = sample([3], 3)
const transposed = build([3, 2], (i, j) => x.at(j, i))

export default {
  'torch.movedim': [
    { args: [cube, 0, -1], gives: (a: Plain) => build([3, 4, 2], (i, j, k) => a.at(k, i, j)) },
    { args: [cube, [0, 1], [2, 0]], gives: (a: Plain) => build([3, 4, 2], (i, j, k) => a.at(k, i, j)) },
  ],
  'torch.moveaxis': [{ args: [cube, 2, 0], gives: (a: Plain) => build([4, 2, 3], (i, j, k) => a.at(j, k, i)) }],
  'torch.swapaxes': [{ args: [x, 0, 1], gives: (a: Plain) => build([3, 2], (i, j) => a.at(j, i)) }],
  'torch.swapdims': [{ args: [x, 1, 0], gives: (a: Plain) => build([3, 2], (i, j) => a.at(j, i)) }],
  'torch.adjoint': [{ args: [x], gives: (a: Plain) => build([3, 2], (i, j) => a.at(j, i)) }],
  'torch.unflatten': [{ args: [cube, 2, [2, -1]], gives: (a: Plain) => a.reshape(2, 3, 2, 2) }],
  'torch.ravel': [{ args: [x], gives: (a: Plain) => a.reshape(6) }],
  'torch.Tensor.view_as': [{ args: [x, transposed], constants: [1], gives: (a: Plain) => a.reshape(3, 2) }],
  'torch.Tensor.reshape_as': [{ args: [x, transposed], constants: [1], gives: (a: Plain) => a.reshape(3, 2) }],
  'torch.Tensor.expand_as': [{ args: [line, x], constants: [1], gives: (a: Plain) => build([2, 3], (_, j) => a.at(j)) }],
  'torch.broadcast_to': [{ args: [line, [2, 3]], gives: (a: Plain) => build([2, 3], (_, j) => a.at(j)) }],
  'torch.fliplr': [{ args: [x], gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, 2 - j)) }],
  'torch.flipud': [{ args: [x], gives: (a: Plain) => build([2, 3], (i, j) => a.at(1 - i, j)) }],
  'torch.rot90': [
    { args: [x], gives: (a: Plain) => build([3, 2], (i, j) => a.at(j, 2 - i)) },
    { args: [x, 2], gives: (a: Plain) => build([2, 3], (i, j) => a.at(1 - i, 2 - j)) },
    { args: [x, -1], gives: (a: Plain) => build([3, 2], (i, j) => a.at(1 - j, i)) },
    { args: [cube, 4, [1, 2]], gives: (a: Plain) => a },
  ],
  'torch.tile': [
    { args: [x, [2]], gives: (a: Plain) => build([2, 6], (i, j) => a.at(i, j % 3)) },
    { args: [line, [2, 1]], gives: (a: Plain) => build([2, 3], (_, j) => a.at(j)) },
  ],
  'torch.Tensor.unfold': [{ args: [sample([2, 5], 4), 1, 3, 2], gives: (a: Plain) => build([2, 2, 3], (i, w, k) => a.at(i, 2 * w + k)) }],
  'torch.repeat_interleave': [
    { args: [x, 2], gives: (a: Plain) => build([12], (i) => a.data[Math.floor(i / 2)] ?? NaN) },
    { args: [x, 3, { dim: 1 }], gives: (a: Plain) => build([2, 9], (i, j) => a.at(i, Math.floor(j / 3))) },
    { args: [x, longs([2, 0, 1]), 1], readsValues: true, gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, j < 2 ? 0 : 2)) },
  ],
  'torch.atleast_1d': [{ args: [t(2)], gives: (a: Plain) => a.reshape(1) }],
  'torch.atleast_2d': [{ args: [line], gives: (a: Plain) => a.reshape(1, 3) }],
  'torch.atleast_3d': [
    { args: [line], gives: (a: Plain) => a.reshape(1, 3, 1) },
    { args: [x], gives: (a: Plain) => a.reshape(2, 3, 1) },
  ],
  'torch.hstack': [
    { args: [[x, x]], gives: ([a]: [Plain]) => build([2, 6], (i, j) => a.at(i, j % 3)) },
    { args: [[line, t(4)]], gives: ([a]: [Plain]) => new Plain([4], [...a.data, 4]) },
  ],
  'torch.vstack': [{ args: [[line, x]], gives: ([a, b]: [Plain, Plain]) => new Plain([3, 3], [...a.data, ...b.data]) }],
  'torch.dstack': [{ args: [[x, x]], gives: ([a]: [Plain]) => build([2, 3, 2], (i, j) => a.at(i, j)) }],
  'torch.column_stack': [
    { args: [[line, transposed.reshape(3, 2)]], gives: ([a, b]: [Plain, Plain]) => build([3, 3], (i, j) => (j === 0 ? a.at(i) : b.at(i, j - 1))) },
  ],
  'torch.tensor_split': [
    { args: [sample([5], 5), 2], gives: (a: Plain) => [new Plain([3], a.data.slice(0, 3)), new Plain([2], a.data.slice(3))] },
    { args: [x, [1], { dim: 1 }], gives: (a: Plain) => [build([2, 1], (i) => a.at(i, 0)), build([2, 2], (i, j) => a.at(i, j + 1))] },
  ],
  'torch.hsplit': [{ args: [line, [1]], gives: (a: Plain) => [new Plain([1], a.data.slice(0, 1)), new Plain([2], a.data.slice(1))] }],
  'torch.vsplit': [{ args: [x, 2], gives: (a: Plain) => [build([1, 3], (_, j) => a.at(0, j)), build([1, 3], (_, j) => a.at(1, j))] }],
  'torch.dsplit': [
    { args: [cube, 2], gives: (a: Plain) => [build([2, 3, 2], (i, j, k) => a.at(i, j, k)), build([2, 3, 2], (i, j, k) => a.at(i, j, k + 2))] },
  ],
  'torch.meshgrid': [
    { args: [[line, t([4, 5])]], gives: ([a, b]: [Plain, Plain]) => [build([3, 2], (i) => a.at(i)), build([3, 2], (_, j) => b.at(j))] },
    {
      args: [[line, t([4, 5])], { indexing: 'xy' }],
      gives: ([a, b]: [Plain, Plain]) => [build([2, 3], (_, j) => a.at(j)), build([2, 3], (i) => b.at(i))],
    },
  ],
  'torch.cartesian_prod': [
    { args: [[line, t([4, 5])]], gives: ([a, b]: [Plain, Plain]) => build([6, 2], (i, j) => (j === 0 ? a.at(Math.floor(i / 2)) : b.at(i % 2))) },
    { args: [[line]], gives: ([a]: [Plain]) => a },
  ],
  'torch.combinations': [
    {
      args: [t([1, 2, 3])],
      gives: t([
        [1, 2],
        [1, 3],
        [2, 3],
      ]),
    },
    {
      args: [t([1, 2]), 2, true],
      gives: t([
        [1, 1],
        [1, 2],
        [2, 2],
      ]),
    },
  ],
  'torch.block_diag': [
    { args: [[x, line]], gives: ([a, b]: [Plain, Plain]) => build([3, 6], (i, j) => (i < 2 ? (j < 3 ? a.at(i, j) : 0) : j < 3 ? 0 : b.at(j - 3))) },
  ],
  'torch.broadcast_tensors': [{ args: [[line, x]], gives: ([a, b]: [Plain, Plain]) => [build([2, 3], (_, j) => a.at(j)), b] }],
  'torch.nn.functional.pixel_shuffle': [
    {
      args: [sample([2, 4, 1, 2], 6), 2],
      gives: (a: Plain) => build([2, 1, 2, 4], (n, _, i, j) => a.at(n, (i % 2) * 2 + (j % 2), Math.floor(i / 2), Math.floor(j / 2))),
    },
  ],
  'torch.nn.functional.pixel_unshuffle': [
    { args: [sample([1, 2, 4], 7), 2], gives: (a: Plain) => build([4, 1, 2], (c, _, j) => a.at(0, Math.floor(c / 2), 2 * j + (c % 2))) },
  ],
  'torch.nn.functional.channel_shuffle': [
    { args: [sample([1, 6, 2], 8), 3], gives: (a: Plain) => build([1, 6, 2], (n, c, k) => a.at(n, (c % 3) * 2 + Math.floor(c / 3), k)) },
  ],
} satisfies ValueCases
