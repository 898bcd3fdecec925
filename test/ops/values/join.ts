// Joining, splitting and padding.
import { Plain, build, ints, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const [x, y] = [sample([2, 3], 1), sample([2, 3], 2)]
const part = (from: number, size: number) => (a: Plain) => build([2, size], (i, j) => a.at(i, from + j))
const parts =
  (...sizes: number[]) =>
  (a: Plain): Plain[] =>
    sizes.map((size, k) =>
      part(
        sizes.slice(0, k).reduce((n, s) => n + s, 0),
        size,
      )(a),
    )
const padded = (a: Plain, [left = 0, right = 0, top = 0, bottom = 0]: readonly number[], value: number): Plain => {
  const [rows = 0, columns = 0] = a.shape
  return build([rows + top + bottom, columns + left + right], (i, j) => {
    const [r, c] = [i - top, j - left]
    return r >= 0 && r < rows && c >= 0 && c < columns ? a.at(r, c) : value
  })
}

export default {
  'torch._chunk_cat': [
    {
      args: [[t([1, 2, 3]), t([4])], 0, 2],
      gives: t([
        [1, 2, 4],
        [3, 0, 0],
      ]),
    },
    {
      args: [
        [
          t([
            [1, 2],
            [3, 4],
          ]),
          t([[5], [6]]),
        ],
        -1,
        1,
      ],
      gives: t([[[1, 2, 5]], [[3, 4, 6]]]),
    },
    {
      args: [
        [
          t([
            [1, 2],
            [3, 4],
            [5, 6],
          ]),
          t([7]),
        ],
        0,
        2,
      ],
      gives: t([
        [1, 2, 3, 4, 7],
        [5, 6, 0, 0, 0],
      ]),
    },
  ],
  'torch.cat': [
    { args: [[t([]), t([[1, 2]]), t([])], 1], gives: t([[1, 2]]) },
    { args: [[x, sample([1, 3], 4)]], gives: ([a, b]: [Plain, Plain]) => build([3, 3], (i, j) => (i < 2 ? a.at(i, j) : b.at(0, j))) },
    { args: [[x, y, x], { dim: -1 }], gives: ([a, b]: [Plain, Plain]) => build([2, 9], (i, j) => (Math.floor(j / 3) === 1 ? b : a).at(i, j % 3)) },
    { args: [[x]], gives: ([a]: [Plain]) => a },
    { args: [[ints([1]), t([0.5], 'float32')]], gives: t([1, 0.5], 'float32') },
    { args: [[x, sample([0, 3], 1)]], gives: ([a]: [Plain]) => a },
  ],
  'torch.stack': [
    { args: [[x, y]], gives: ([a, b]: [Plain, Plain]) => build([2, 2, 3], (n, i, j) => (n === 0 ? a : b).at(i, j)) },
    { args: [[x, y], -1], gives: ([a, b]: [Plain, Plain]) => build([2, 3, 2], (i, j, n) => (n === 0 ? a : b).at(i, j)) },
    { args: [[x, y], { dim: 1 }], gives: ([a, b]: [Plain, Plain]) => build([2, 2, 3], (i, n, j) => (n === 0 ? a : b).at(i, j)) },
  ],
  'torch.split': [
    { args: [x, 2, 1], gives: parts(2, 1) },
    { args: [x, [1, 2], { dim: -1 }], gives: parts(1, 2) },
    { args: [x, 5, 1], gives: parts(3) },
  ],
  'torch.chunk': [
    { args: [x, 2, 1], gives: parts(2, 1) },
    { args: [x, 3, { dim: 1 }], gives: parts(1, 1, 1) },
    { args: [x, 7, 1], gives: parts(1, 1, 1) },
  ],
  'torch.unbind': [
    { args: [x], gives: (a: Plain) => [0, 1].map((i) => build([3], (j) => a.at(i, j))) },
    { args: [x, { dim: -1 }], gives: (a: Plain) => [0, 1, 2].map((j) => build([2], (i) => a.at(i, j))) },
  ],
  'torch.constant_pad_nd': [
    { args: [x, [1, 2, 0, 1], 0.5], gives: (a: Plain, pad: number[], value: number) => padded(a, pad, value) },
    { args: [x, [-1, 1]], gives: (a: Plain, pad: number[]) => padded(a, pad, 0) },
    { args: [ints([1, 2]), [2, -1], 9], gives: ints([9, 9, 1]) },
  ],
  'torch.nn.functional.pad': [
    { args: [x, [1, 2, 3, 0], { value: 0.5 }], gives: (a: Plain, pad: number[]) => padded(a, pad, 0.5) },
    { args: [x, [0, -2], { mode: 'constant' }], gives: (a: Plain, pad: number[]) => padded(a, pad, 0) },
  ],
} satisfies ValueCases
