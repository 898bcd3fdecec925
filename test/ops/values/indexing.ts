// Indexing by tensors, embeddings and one-hot encodings.
import { Plain, build, ints, longs, sample, sumOf, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const cube = sample([2, 3, 2], 2)
const table = sample([4, 2], 3)
const index = ints([
  [0, 2, 1, 0],
  [1, 1, 0, 2],
])
const few = ints([[2, 0]])

/** Adds `src` to `self` at the index along dimension 0 of matrices. */
const scatterRows = (self: Plain, _dim: number, at: Plain, src: Plain): Plain =>
  build(self.shape, (i, j) => self.at(i, j) + sumOf(at.shape[0] ?? 0, (k) => (j < (at.shape[1] ?? 0) && at.at(k, j) === i ? src.at(k, j) : 0)))
const scatterColumns = (self: Plain, _dim: number, at: Plain, src: Plain): Plain =>
  build(self.shape, (i, j) => self.at(i, j) + sumOf(at.shape[1] ?? 0, (k) => (i < (at.shape[0] ?? 0) && at.at(i, k) === j ? src.at(i, k) : 0)))

export default {
  'torch.gather': [
    { args: [x, 1, index], gives: (a: Plain, _: number, at: Plain) => build([2, 4], (i, k) => a.at(i, at.at(i, k))) },
    { args: [x, -2, ints([[1, 0, 1]])], gives: (a: Plain, _: number, at: Plain) => build([1, 3], (i, j) => a.at(at.at(i, j), j)) },
    { args: [x, 1, few], gives: (a: Plain, _: number, at: Plain) => build([1, 2], (i, k) => a.at(i, at.at(i, k))) },
    {
      args: [cube, 1, ints([[[2, 0]], [[1, 1]]])],
      gives: (a: Plain, _: number, at: Plain) => build([2, 1, 2], (i, j, k) => a.at(i, at.at(i, j, k), k)),
    },
    { args: [ints([5, 6, 7]), 0, ints([2, 2])], gives: ints([7, 7]) },
    { args: [t(5), 0, ints(0)], gives: t(5) },
  ],
  'torch.scatter_add': [
    { args: [sample([2, 3], 1), 1, index, sample([2, 4], 2)], gives: scatterColumns },
    {
      args: [
        sample([3, 3], 1),
        0,
        ints([
          [2, 0, 2],
          [2, 1, 0],
        ]),
        sample([3, 3], 2),
      ],
      gives: scatterRows,
    },
    { args: [sample([3, 3], 1), 0, ints([[2, 0]]), sample([2, 3], 2)], gives: scatterRows },
    { args: [ints([1, 1]), 0, ints([1, 1, 1]), ints([1, 2, 3])], gives: ints([1, 7]) },
  ],
  'torch.index_select': [
    { args: [cube, 1, ints([2, 0, 2, 1])], gives: (a: Plain, _: number, at: Plain) => build([2, 4, 2], (i, j, k) => a.at(i, at.at(j), k)) },
    { args: [x, -1, ints([1])], gives: (a: Plain) => build([2, 1], (i) => a.at(i, 1)) },
    { args: [x, 0, ints([])], gives: build([0, 3], () => 0) },
  ],
  'torch.nn.functional.embedding': [
    {
      args: [
        ints([
          [3, 0],
          [0, 1],
        ]),
        table,
      ],
      gives: (at: Plain, w: Plain) => build([2, 2, 2], (i, j, d) => w.at(at.at(i, j), d)),
    },
    { args: [ints([2, 1]), table], gives: (at: Plain, w: Plain) => build([2, 2], (i, d) => w.at(at.at(i), d)) },
    {
      args: [ints([2, 1]), table, { paddingIdx: 2 }],
      gives: (at: Plain, w: Plain) => build([2, 2], (i, d) => w.at(at.at(i), d)),
      // The padding row gets none.
      gradient: (_: Plain, w: Plain) => build(w.shape, (row) => Number(row === 1)),
    },
  ],
  'torch.ops.tensorfx.embedding_backward': [
    // The row of the padding gets nothing, a NaN or an infinity neither.
    {
      args: [
        t([
          [Number.NaN, -1],
          [1, 2],
          [Infinity, 3],
        ]),
        ints([1, 0, 1]),
        2,
        1,
      ],
      gives: t([
        [1, 2],
        [0, 0],
      ]),
      noGradient: 'NaN',
    },
    {
      args: [sample([3, 2], 1), ints([2, 0, 2]), 4, -1],
      gives: (g: Plain, at: Plain) => build([4, 2], (r, d) => sumOf(3, (i) => (at.at(i) === r ? g.at(i, d) : 0))),
    },
    {
      args: [
        sample([2, 2, 2], 1),
        ints([
          [2, 0],
          [2, 1],
        ]),
        3,
        2,
      ],
      gives: (g: Plain, at: Plain) => build([3, 2], (r, d) => (r === 2 ? 0 : sumOf(4, (i) => (at.data[i] === r ? (g.data[i * 2 + d] ?? NaN) : 0)))),
    },
  ],
  'torch.nn.functional.one_hot': [
    {
      readsValues: true as const,
      args: [ints([0, 2, 1])],
      gives: longs([
        [1, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
      ]),
    },
    { args: [ints([[1], [0]]), 2], gives: longs([[[0, 1]], [[1, 0]]]) },
    { args: [ints([1]), { numClasses: 4 }], gives: longs([[0, 1, 0, 0]]) },
  ],
  'torch.ops.tensorfx.checked_indices': [
    { args: [ints([2, 0, 1]), 3, null, 'f', 'index'], gives: ints([2, 0, 1]) },
    { args: [ints([[0, -100]]), 1, -100, 'f', 'index'], gives: ints([[0, -100]]) },
  ],
} satisfies ValueCases
