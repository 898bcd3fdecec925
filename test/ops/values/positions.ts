// Reading and writing at positions.
import { Plain, build, longs, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const cube = sample([2, 3, 4], 2)
const source = sample([2, 2], 3)
const line = sample([4], 4)
const mask = t([
  [true, false, true],
  [false, true, false],
])
const at = longs([2, 0])
const slots = longs([
  [0, 2],
  [1, 1],
])

/** A scatter along dimension 1, by a function of the old value and the new one. */
const scattered = (a: Plain, index: Plain, src: Plain, fn: (old: number, value: number) => number): Plain => {
  const data = [...a.data]
  index.data.forEach((column, k) => {
    const flat = Math.floor(k / 2) * 3 + column
    data[flat] = fn(data[flat] ?? NaN, src.data[k] ?? NaN)
  })
  return new Plain(a.shape, data, a.kind)
}
const set = (_: number, value: number): number => value

export default {
  'torch.ops.tensorfx.scatter_values': [
    {
      args: [
        x,
        1,
        longs([
          [0, 2],
          [1, 0],
        ]),
        source,
        'set',
      ],
      gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, set),
    },
    { args: [x, 1, slots, source, 'mul'], gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, (p, q) => p * q) },
    { args: [x, 1, slots, source, 'max'], gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, Math.max) },
    { args: [x, 1, slots, source, 'min'], gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, Math.min) },
  ],
  'torch.scatter': [
    {
      args: [
        x,
        1,
        longs([
          [0, 2],
          [1, 0],
        ]),
        source,
      ],
      gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, set),
    },
    { args: [x, 1, slots, 7], gives: (a: Plain, _: number, i: Plain) => scattered(a, i, i, () => 7) },
    { args: [x, 1, slots, source, { reduce: 'add' }], gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, (p, q) => p + q) },
    { args: [x, 1, slots, source, { reduce: 'multiply' }], gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, (p, q) => p * q) },
  ],
  'torch.scatter_reduce': [
    { args: [x, 1, slots, source, 'sum'], gives: (a: Plain, _: number, i: Plain, s: Plain) => scattered(a, i, s, (p, q) => p + q) },
    { args: [t([1, 2]), 0, longs([0, 0]), t([3, 5]), 'mean'], gives: t([3, 2]) },
    { args: [t([1, 2]), 0, longs([0, 0]), t([3, 5]), 'mean', { includeSelf: false }], gives: t([4, 2]) },
    { args: [t([9, 2]), 0, longs([0, 0]), t([3, 5]), 'amax', { includeSelf: false }], gives: t([5, 2]) },
    { args: [t([9, 2]), 0, longs([0, 0]), t([3, 5]), 'amin'], gives: t([3, 2]) },
    { args: [t([9, 2]), 0, longs([0, 0]), t([3, 5]), 'prod', { includeSelf: false }], gives: t([15, 2]) },
    // One factor that is 0 leaves that factor a gradient, and two leave none.
    { args: [t([9, 2]), 0, longs([0, 0, 1, 1]), t([3, 0, 0, 0]), 'prod'], gives: t([0, 0]) },
  ],
  'torch.index_add': [
    {
      args: [x, 1, at, source, { alpha: 2 }],
      gives: (a: Plain, _: number, i: Plain, s: Plain) =>
        build([2, 3], (r, c) => a.at(r, c) + (i.data.includes(c) ? 2 * s.at(r, i.data.indexOf(c)) : 0)),
    },
  ],
  'torch.index_copy': [
    {
      args: [x, 1, at, source],
      gives: (a: Plain, _: number, i: Plain, s: Plain) => build([2, 3], (r, c) => (i.data.includes(c) ? s.at(r, i.data.indexOf(c)) : a.at(r, c))),
    },
  ],
  'torch.index_fill': [
    { args: [x, 1, at, 5], gives: (a: Plain, _: number, i: Plain) => build([2, 3], (r, c) => (i.data.includes(c) ? 5 : a.at(r, c))) },
    // Filled twice is filled once, in the gradient of the value too.
    {
      args: [x, 1, longs([2, 2]), t(5)],
      gives: (a: Plain, _: number, i: Plain, value: Plain) => build([2, 3], (r, c) => (i.data.includes(c) ? (value.data[0] ?? NaN) : a.at(r, c))),
    },
  ],
  'torch.index_reduce': [{ args: [t([1, 2]), 0, longs([0, 0]), t([3, 5]), 'amax', { includeSelf: false }], gives: t([5, 2]) }],
  'torch.take': [
    {
      args: [
        x,
        longs([
          [5, -6],
          [1, 1],
        ]),
      ],
      gives: (a: Plain) =>
        new Plain(
          [2, 2],
          [5, 0, 1, 1].map((i) => a.data[i] ?? NaN),
        ),
    },
  ],
  'torch.put': [
    { args: [t([1, 2, 3]), longs([2, -3]), t([5, 7])], gives: t([7, 2, 5]) },
    { args: [t([1, 2, 3]), longs([2, 2]), t([5, 7]), true], gives: t([1, 2, 15]) },
  ],
  'torch.take_along_dim': [
    { args: [x, longs([[2], [0]]), 1], gives: (a: Plain) => build([2, 1], (i) => a.at(i, i === 0 ? 2 : 0)) },
    { args: [x, longs([[1, 0, 1]]), { dim: 0 }], gives: (a: Plain) => build([1, 3], (_, j) => a.at([1, 0, 1][j] ?? 0, j)) },
    { args: [x, longs([4])], gives: (a: Plain) => new Plain([1], [a.data[4] ?? NaN]) },
  ],
  'torch.ops.tensorfx.nonzero_rows': [{ args: [t([0, 3, 0, 4])], gives: longs([[1], [3]]), readsValues: true, noGradient: 'positions are integers' }],
  'torch.nonzero': [
    {
      args: [mask],
      gives: longs([
        [0, 0],
        [0, 2],
        [1, 1],
      ]),
      readsValues: true,
    },
    { args: [mask, { asTuple: true }], gives: [longs([0, 0, 1]), longs([0, 2, 1])], readsValues: true },
  ],
  'torch.argwhere': [
    {
      args: [mask],
      gives: longs([
        [0, 0],
        [0, 2],
        [1, 1],
      ]),
      readsValues: true,
    },
  ],
  'torch.masked_select': [{ args: [x, mask], gives: (a: Plain) => new Plain([3], [a.at(0, 0), a.at(0, 2), a.at(1, 1)]), readsValues: true }],
  'torch.masked_scatter': [
    {
      args: [x, mask, line],
      gives: (a: Plain, m: Plain, s: Plain) =>
        new Plain(
          [2, 3],
          a.data.map((v, i) => (m.data[i] === 0 ? v : (s.data[[0, 4, 2].includes(i) ? [0, 2, 4].indexOf(i) : 0] ?? NaN))),
        ),
      readsValues: true,
    },
  ],
  'torch.index': [
    { args: [x, [longs([1, -2]), longs([2, 0])]], gives: (a: Plain) => new Plain([2], [a.at(1, 2), a.at(0, 0)]) },
    {
      args: [cube, [null, longs([[2], [0]]), longs([3, 1])]],
      gives: (a: Plain) => build([2, 2, 2], (n, i, j) => a.at(n, i === 0 ? 2 : 0, j === 0 ? 3 : 1)),
    },
    { args: [cube, [longs([1, 0]), null, longs([3, 1])]], gives: (a: Plain) => build([2, 3], (k, i) => (k === 0 ? a.at(1, i, 3) : a.at(0, i, 1))) },
    { args: [x, [null, at]], gives: (a: Plain) => build([2, 2], (i, j) => a.at(i, j === 0 ? 2 : 0)) },
    { args: [x, [mask]], gives: (a: Plain) => new Plain([3], [a.at(0, 0), a.at(0, 2), a.at(1, 1)]), readsValues: true },
  ],
  'torch._unsafe_masked_index': [
    { args: [t([1, 2, 3]), t([true, true, false]), [longs([2, -1, 99])], 7], gives: t([3, 3, 7]) },
    { args: [t([]), t([false, false]), [longs([0, 1])], 7], gives: t([7, 7]) },
    {
      args: [
        t([
          [1, 2],
          [3, 4],
        ]),
        t([[true], [false]]),
        [longs([[1], [-9]]), longs([[0, 1]])],
        -1,
      ],
      gives: t([
        [3, 4],
        [-1, -1],
      ]),
    },
  ],
  'torch._unsafe_masked_index_put_accumulate': [
    { args: [t([1, 2, 3]), t([true, true, false]), [longs([2, -1, 99])], t([5, 7, 9])], gives: t([1, 2, 15]) },
    { args: [t([]), t([false]), [longs([0])], t([1])], gives: t([]) },
  ],
  'torch.index_put': [
    { args: [t([1, 2, 3]), [longs([2, -3])], t([5, 7])], gives: t([7, 2, 5]) },
    { args: [t([1, 2, 3]), [longs([2, 2])], t([5, 7]), true], gives: t([1, 2, 15]) },
    {
      args: [
        t([
          [1, 2],
          [3, 4],
        ]),
        [null, longs([1])],
        t(9),
      ],
      gives: t([
        [1, 9],
        [3, 9],
      ]),
    },
    {
      args: [
        t([
          [1, 2],
          [3, 4],
        ]),
        [longs([0, 1]), longs([1, 0])],
        t([8, 9]),
      ],
      gives: t([
        [1, 8],
        [9, 4],
      ]),
    },
  ],
} satisfies ValueCases
