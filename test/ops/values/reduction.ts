// Reductions, extremes, running sums and order.
import { Plain, build, ints, longs, reduce, sample, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const cube = sample([2, 3, 4], 2)
const some = ints([
  [1, 5, 2],
  [7, 0, 7],
])
const flags = t([
  [true, false, true],
  [false, false, false],
])

type Fold = (line: readonly number[]) => number
/** The usual ways to call a reduction. */
const ways = (fold: Fold) => [
  { args: [x], gives: (a: Plain) => reduce(a, [], false, fold) },
  { args: [x, 1], gives: (a: Plain) => reduce(a, [1], false, fold) },
  { args: [x, [-2], true], gives: (a: Plain) => reduce(a, [0], true, fold) },
  { args: [cube, [0, 2]], gives: (a: Plain) => reduce(a, [0, 2], false, fold) },
  { args: [cube, { dim: 1, keepdim: true }], gives: (a: Plain) => reduce(a, [1], true, fold) },
  { args: [cube, []], gives: (a: Plain) => reduce(a, [], false, fold) },
  { args: [t(3), 0], gives: t(fold([3])) },
]
const mean: Fold = (line) => total(line) / line.length
const variance = (line: readonly number[], correction = 1): number => {
  const mu = mean(line)
  return total(line.map((v) => (v - mu) ** 2)) / Math.max(0, line.length - correction)
}
const deviation = (line: readonly number[], correction = 1): number => Math.sqrt(variance(line, correction))
const argMax = (line: readonly number[]): number => line.indexOf(Math.max(...line))
const argMin = (line: readonly number[]): number => line.indexOf(Math.min(...line))
const pNorm =
  (p: number): Fold =>
  (line) =>
    total(line.map((v) => Math.abs(v) ** p)) ** (1 / p)

/** Sorts the lines along a dimension; NaN counts as the greatest. */
function sorted(a: Plain, dim: number, descending: boolean, count = a.shape[dim] ?? 1): readonly [Plain, Plain] {
  const order = (line: readonly number[]): number[] =>
    line
      .map((value, i) => ({ value, i }))
      .sort((p, q) => {
        const [first, second] = descending ? [q, p] : [p, q]
        const byNaN = Number(Number.isNaN(first.value)) - Number(Number.isNaN(second.value))
        return byNaN !== 0 ? byNaN : first.value === second.value ? p.i - q.i : first.value - second.value || 0
      })
      .map(({ i }) => i)
  const shape = a.shape.map((size, d) => (d === dim ? count : size))
  const rank = (...index: readonly number[]): number => {
    const line = Array.from({ length: a.shape[dim] ?? 1 }, (_, k) => a.at(...index.map((v, d) => (d === dim ? k : v))))
    return order(line)[index[dim] ?? 0] ?? NaN
  }
  const indices = build(shape, rank, 'int64')
  return [build(shape, (...index) => a.at(...index.map((v, d) => (d === dim ? rank(...index) : v)))), indices]
}
const tied = t([3, NaN, 1, 3, 2])

export default {
  'torch.sum': [
    ...ways(total),
    { args: [some, 0], gives: longs([8, 5, 9]) },
    { args: [flags, 1], gives: longs([2, 0]) },
    { args: [sample([0, 2], 1), 0], gives: t([0, 0]) },
  ],
  'torch.ops.tensorfx.prod_backward': [
    // Both ways: two zeros in a line leave no gradient, one leaves that of its own element.
    {
      args: [
        t([2, 3]),
        t([
          [2, 3, 4],
          [0, 5, 6],
        ]),
        [1],
        false,
      ],
      gives: t([
        [24, 16, 12],
        [90, 0, 0],
      ]),
    },
    { args: [t([1]), t([0, 5, 0]), [0], true], gives: t([0, 0, 0]) },
    {
      args: [
        t(2),
        t([
          [2, 3],
          [4, 5],
        ]),
      ],
      gives: t([
        [120, 80],
        [60, 48],
      ]),
    },
    {
      args: [
        t([2, 3]),
        t([
          [0, 3],
          [4, 0],
        ]),
        [-2],
        false,
      ],
      gives: t([
        [8, 0],
        [0, 9],
      ]),
    },
  ],
  'torch.prod': [
    ...ways((line) => line.reduce((a, b) => a * b, 1)),
    { args: [some, 1], gives: longs([10, 0]) },
    {
      args: [
        t([
          [0, 2, 3],
          [0, 0, 5],
          [1, 2, 3],
        ]),
        1,
      ],
      gives: t([0, 0, 6]),
    },
    { args: [sample([0, 2], 1), 0], gives: t([1, 1]) },
  ],
  'torch.mean': ways(mean),
  'torch.var': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, (line) => variance(line)) },
    { args: [x, 1, { correction: 0 }], gives: (a: Plain) => reduce(a, [1], false, (line) => variance(line, 0)) },
    { args: [x, { dim: 0, keepdim: true }], gives: (a: Plain) => reduce(a, [0], true, (line) => variance(line)) },
    { args: [t([5])], gives: t(NaN), noGradient: 'one element has no variance' },
  ],
  'torch.std': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, (line) => deviation(line)) },
    { args: [x, [-1], { correction: 2, keepdim: true }], gives: (a: Plain) => reduce(a, [1], true, (line) => deviation(line, 2)) },
  ],
  'torch.var_mean': [
    {
      args: [x, 1, { keepdim: true }],
      gives: (a: Plain) => [reduce(a, [1], true, (line) => variance(line)), reduce(a, [1], true, mean)],
    },
  ],
  'torch.std_mean': [{ args: [x, 0], gives: (a: Plain) => [reduce(a, [0], false, (line) => deviation(line)), reduce(a, [0], false, mean)] }],
  'torch.norm': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, pNorm(2)) },
    { args: [x, 1, 1], gives: (a: Plain) => reduce(a, [1], false, pNorm(1)) },
    { args: [x, 3, [0], true], gives: (a: Plain) => reduce(a, [0], true, pNorm(3)) },
    { args: [x, { p: Infinity, dim: 0 }], gives: (a: Plain) => reduce(a, [0], false, (line) => Math.max(...line.map(Math.abs))) },
    { args: [x, -Infinity], gives: (a: Plain) => reduce(a, [], false, (line) => Math.min(...line.map(Math.abs))) },
    { args: [t([0, 3, 0, 4]), 0], gives: t(2), noGradient: 'a count' },
  ],
  'torch.Tensor.sum_to_size': [
    { args: [x, [1, 3]], gives: (a: Plain) => reduce(a, [0], true, total) },
    { args: [cube, [3, 1]], gives: (a: Plain) => reduce(a, [0, 2], false, total).reshape(3, 1) },
    { args: [x, [2, 3]], gives: (a: Plain) => a },
    { args: [x, []], gives: (a: Plain) => reduce(a, [], false, total) },
  ],
  'torch.amax': [
    ...ways((line) => Math.max(...line)),
    { args: [some, 1], gives: ints([5, 7]) },
    {
      args: [
        t([
          [1, NaN],
          [2, 3],
        ]),
        1,
      ],
      gives: t([NaN, 3]),
      noGradient: 'NaN',
    },
  ],
  'torch.amin': [...ways((line) => Math.min(...line)), { args: [some, 1], gives: ints([1, 0]) }],
  'torch.any': [
    { args: [new Plain([0, 2], []), 0], gives: t([false, false]) },
    { args: [t([])], gives: t(false) },
    { args: [flags, 1], gives: t([true, false]) },
    {
      args: [
        t([
          [0, 0],
          [0, 0.5],
        ]),
      ],
      gives: t(true),
    },
    { args: [flags, 0, true], gives: t([[true, false, true]]) },
  ],
  'torch.all': [
    { args: [new Plain([0, 2], []), 0], gives: t([true, true]) },
    { args: [t([])], gives: t(true) },
    { args: [flags, 1], gives: t([false, false]) },
    {
      args: [
        t([
          [1, 2],
          [3, 0.5],
        ]),
      ],
      gives: t(true),
    },
    {
      args: [
        t([
          [true, false],
          [true, true],
        ]),
        { dim: 0, keepdim: true },
      ],
      gives: t([[true, false]]),
    },
  ],
  'torch.argmax': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, argMax, 'int64') },
    { args: [cube, 1], gives: (a: Plain) => reduce(a, [1], false, argMax, 'int64') },
    { args: [cube, -1, true], gives: (a: Plain) => reduce(a, [2], true, argMax, 'int64') },
    { args: [x, { keepdim: true }], gives: (a: Plain) => reduce(a, [], true, argMax, 'int64') },
    { args: [some, 1], gives: longs([1, 0]) },
    { args: [tied], gives: longs(1) },
    { args: [t([false, true, true])], gives: longs(1) },
  ],
  'torch.argmin': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, argMin, 'int64') },
    { args: [cube, 0], gives: (a: Plain) => reduce(a, [0], false, argMin, 'int64') },
    { args: [t(5)], gives: longs(0) },
  ],
  'torch.max': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, (line) => Math.max(...line)) },
    {
      args: [cube, 1],
      gives: (a: Plain) => [reduce(a, [1], false, (line) => Math.max(...line)), reduce(a, [1], false, argMax, 'int64')],
    },
    {
      args: [x, { dim: -1, keepdim: true }],
      gives: (a: Plain) => [reduce(a, [1], true, (line) => Math.max(...line)), reduce(a, [1], true, argMax, 'int64')],
    },
    { args: [t([1, 5]), t([3, 2])], gives: t([3, 5]) },
    { args: [t(5), 0], gives: [t(5), longs(0)] },
  ],
  'torch.min': [
    { args: [x], gives: (a: Plain) => reduce(a, [], false, (line) => Math.min(...line)) },
    {
      args: [x, 0],
      gives: (a: Plain) => [reduce(a, [0], false, (line) => Math.min(...line)), reduce(a, [0], false, argMin, 'int64')],
    },
    { args: [t([1, 5]), t([3, 2])], gives: t([1, 2]) },
  ],
  'torch.cumsum': [
    { args: [x, 1], gives: (a: Plain) => build(a.shape, (r, c) => total(Array.from({ length: c + 1 }, (_, k) => a.at(r, k)))) },
    { args: [cube, -2], gives: (a: Plain) => build(a.shape, (i, j, k) => total(Array.from({ length: j + 1 }, (_, m) => a.at(i, m, k)))) },
    {
      args: [some, { dim: 0 }],
      gives: longs([
        [1, 5, 2],
        [8, 5, 9],
      ]),
    },
    { args: [t([true, true, false]), 0], gives: longs([1, 2, 2]) },
  ],
  'torch.topk': [
    { args: [x, 2], gives: (a: Plain) => sorted(a, 1, true, 2) },
    { args: [cube, 2, { dim: 1, largest: false }], gives: (a: Plain) => sorted(a, 1, false, 2) },
    { args: [some, 1, 0], gives: [ints([[7, 5, 7]]), longs([[1, 0, 1]])] },
    { args: [t(5), 1], gives: [t(5), longs(0)] },
    { args: [x, 0], gives: [build([2, 0], () => 0), build([2, 0], () => 0, 'int64')] },
  ],
  'torch.sort': [
    { args: [x], gives: (a: Plain) => sorted(a, 1, false) },
    { args: [cube, 1, true], gives: (a: Plain) => sorted(a, 1, true) },
    { args: [tied], gives: [t([1, 2, 3, 3, NaN]), longs([2, 4, 0, 3, 1])], noGradient: 'NaN' },
    { args: [tied, { descending: true }], gives: [t([NaN, 3, 3, 2, 1]), longs([1, 0, 3, 4, 2])], noGradient: 'NaN' },
  ],
  'torch.argsort': [
    { args: [x], gives: (a: Plain) => sorted(a, 1, false)[1] },
    { args: [x, { dim: 0, descending: true }], gives: (a: Plain) => sorted(a, 0, true)[1] },
  ],
} satisfies ValueCases
