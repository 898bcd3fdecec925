// Running products and extremes, values by rank, covariances, and small reductions.
import { Plain, build, each, ints, longs, reduce, sample, sumOf, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const [x, y] = [sample([2, 5], 1), sample([2, 5], 2)]
const positive = sample([2, 5], 3, 0.3, 2)
const cube = sample([2, 3, 4], 4)
const gaps = t([
  [1.25, NaN, -0.5, 2],
  [NaN, NaN, 0.75, 3],
])
/** The running value along dimension 1 of a matrix. */
const running =
  (fn: (line: readonly number[]) => number, kind?: Plain['kind']) =>
  (a: Plain): Plain =>
    build(a.shape, (i, j) => fn(Array.from({ length: j + 1 }, (_, k) => a.at(i, k))), kind ?? a.kind)
const product = (line: readonly number[]): number => line.reduce((a, b) => a * b, 1)
const most = (line: readonly number[]): number => Math.max(...line)
const least = (line: readonly number[]): number => Math.min(...line)
const ascending = (line: readonly number[]): number[] => [...line].sort((a, b) => a - b)
const kth =
  (k: number) =>
  (line: readonly number[]): number =>
    ascending(line)[k - 1] ?? NaN
const indexOf = (fn: (line: readonly number[]) => number) => (line: readonly number[]) => line.indexOf(fn(line))
const present = (line: readonly number[]): number[] => line.filter((v) => !Number.isNaN(v))
const both = (a: Plain, dim: number, keepdim: boolean, fn: (line: readonly number[]) => number): readonly Plain[] => [
  reduce(a, [dim], keepdim, fn),
  reduce(a, [dim], keepdim, indexOf(fn), 'int64'),
]
const quantile =
  (q: number, blend: (low: number, high: number, part: number) => number = (low, high, part) => low + (high - low) * part) =>
  (line: readonly number[]): number => {
    const sorted = ascending(line)
    const rank = q * (line.length - 1)
    return blend(sorted[Math.floor(rank)] ?? NaN, sorted[Math.ceil(rank)] ?? NaN, rank - Math.floor(rank))
  }
const covariance = (a: Plain, correction = 1): Plain => {
  const [rows = 0, n = 0] = a.shape
  const mean = (i: number): number => sumOf(n, (k) => a.at(i, k)) / n
  return build([rows, rows], (i, j) => sumOf(n, (k) => (a.at(i, k) - mean(i)) * (a.at(j, k) - mean(j))) / (n - correction))
}
const UNIT = 'sums of products that cancel'
const TIES = 'not differentiable at equal values'

export default {
  'torch.cumprod': [
    { args: [x, 1], gives: running(product) },
    { args: [t([[1.5, 0, 2, 0, 3]]), 1], gives: running(product) },
    { args: [ints([[1, 2, 3]]), 1], gives: longs([[1, 2, 6]]) },
    { args: [t(2.5), 0], gives: t(2.5) },
  ],
  'torch.logcumsumexp': [{ args: [x, 1], gives: running((line) => Math.log(total(line.map(Math.exp)))) }],
  'torch.cummax': [{ args: [x, 1], gives: (a: Plain) => [running(most)(a), running(indexOf(most), 'int64')(a)], differentiable: 1 }],
  'torch.cummin': [
    { args: [x, { dim: 1 }], gives: (a: Plain) => [running(least)(a), running(indexOf(least), 'int64')(a)], differentiable: 1 },
    { args: [t([2, 1, NaN, 0]), 0], gives: [t([2, 1, NaN, NaN]), longs([0, 1, 2, 2])], noGradient: 'NaN' },
  ],
  'torch.diff': [
    { args: [x], gives: (a: Plain) => build([2, 4], (i, j) => a.at(i, j + 1) - a.at(i, j)) },
    { args: [x, 2], gives: (a: Plain) => build([2, 3], (i, j) => a.at(i, j + 2) - 2 * a.at(i, j + 1) + a.at(i, j)) },
    {
      args: [x, { dim: 0, append: sample([1, 5], 8) }],
      gives: (a: Plain) => build([2, 5], (i, j) => (i === 0 ? a.at(1, j) : sample([1, 5], 8).at(0, j)) - a.at(i, j)),
      notInHalf: 'the reference does not round',
    },
    { args: [t([true, true, false])], gives: t([false, true]) },
  ],
  'torch.trapezoid': [
    { args: [x], gives: (a: Plain) => build([2], (i) => sumOf(4, (j) => (a.at(i, j) + a.at(i, j + 1)) / 2)) },
    { args: [x, { dx: 0.5, dim: 0 }], gives: (a: Plain) => build([5], (j) => ((a.at(0, j) + a.at(1, j)) / 2) * 0.5) },
    {
      args: [x, sample([5], 5)],
      gives: (a: Plain, p: Plain) => build([2], (i) => sumOf(4, (j) => ((a.at(i, j) + a.at(i, j + 1)) / 2) * (p.at(j + 1) - p.at(j)))),
    },
  ],
  'torch.cumulative_trapezoid': [{ args: [x], gives: (a: Plain) => build([2, 4], (i, n) => sumOf(n + 1, (j) => (a.at(i, j) + a.at(i, j + 1)) / 2)) }],
  'torch.cov': [
    { args: [x], gives: (a: Plain) => covariance(a), notInHalf: UNIT },
    { args: [x, { correction: 0 }], gives: (a: Plain) => covariance(a, 0), notInHalf: UNIT },
    {
      args: [x, { fweights: longs([1, 2, 1, 0, 1]) }],
      gives: (a: Plain) => covariance(build([2, 5], (i, j) => a.at(i, [0, 1, 1, 2, 4][j] ?? 0))),
      notInHalf: UNIT,
    },
    { args: [x, { aweights: t([0.5, 0.5, 0.5, 0.5, 0.5]) }], gives: (a: Plain) => covariance(a), notInHalf: UNIT },
  ],
  'torch.corrcoef': [
    {
      args: [x],
      gives: (a: Plain) => build([2, 2], (i, j) => covariance(a).at(i, j) / Math.sqrt(covariance(a).at(i, i) * covariance(a).at(j, j))),
      notInHalf: UNIT,
      noGradient: 'limited to 1, which the diagonal is',
    },
  ],
  'torch.kthvalue': [
    { args: [x, 2], gives: (a: Plain) => both(a, 1, false, kth(2)), differentiable: 1 },
    { args: [x, 1, 0, true], gives: (a: Plain) => both(a, 0, true, kth(1)), differentiable: 1 },
  ],
  'torch.median': [
    { args: [x], gives: (a: Plain) => t(kth(5)(a.data)) },
    { args: [x, 1], gives: (a: Plain) => both(a, 1, false, kth(3)), differentiable: 1 },
    { args: [x, { dim: 0, keepdim: true }], gives: (a: Plain) => both(a, 0, true, kth(1)), differentiable: 1 },
    { args: [gaps, 1], gives: [t([NaN, NaN]), longs([1, 0])], noGradient: 'NaN' },
    { args: [ints([3, 1, 2])], gives: ints(2) },
  ],
  'torch.nanmedian': [
    { args: [gaps, 1], gives: [t([1.25, 0.75]), longs([0, 2])], noGradient: 'NaN' },
    { args: [x], gives: (a: Plain) => t(kth(5)(a.data)) },
  ],
  'torch.mode': [
    { args: [ints([[3, 1, 3, 2, 1]]), 1], gives: [ints([1]), longs([4])] },
    { args: [t([2.5, 1.5, 2.5])], gives: [t(2.5), longs(2)], noGradient: TIES },
    { args: [x, 1, true], gives: (a: Plain) => both(a, 1, true, least), differentiable: 1 },
  ],
  'torch.quantile': [
    { args: [x, 0.4], gives: (a: Plain) => t(quantile(0.4)(a.data)), notInHalf: 'ranks are rounded' },
    { args: [x, 0.3, 1, true], gives: (a: Plain) => reduce(a, [1], true, quantile(0.3)), notInHalf: 'ranks are rounded' },
    {
      args: [x, t([0.25, 0.9]), { dim: 1 }],
      gives: (a: Plain, q: Plain) => build([2, 2], (k, i) => quantile(q.at(k))(Array.from({ length: 5 }, (_, j) => a.at(i, j)))),
      constants: [1],
      notInHalf: 'ranks are rounded',
    },
    { args: [x, 0.3, { interpolation: 'lower' }], gives: (a: Plain) => t(quantile(0.3, (low) => low)(a.data)) },
    { args: [x, 0.3, { interpolation: 'higher' }], gives: (a: Plain) => t(quantile(0.3, (_, high) => high)(a.data)) },
    { args: [x, 0.3, { interpolation: 'midpoint' }], gives: (a: Plain) => t(quantile(0.3, (low, high) => (low + high) / 2)(a.data)) },
    { args: [x, 0.3, { interpolation: 'nearest' }], gives: (a: Plain) => t(quantile(0.3, (low, high, part) => (part > 0.5 ? high : low))(a.data)) },
    { args: [gaps, 0.5], gives: t(NaN), noGradient: 'NaN' },
  ],
  'torch.nanquantile': [
    { args: [gaps, 0.5, 1], gives: (a: Plain) => reduce(a, [1], false, (line) => quantile(0.5)(present(line))), noGradient: 'NaN' },
    { args: [x, 0.4], gives: (a: Plain) => t(quantile(0.4)(a.data)), notInHalf: 'ranks are rounded' },
  ],
  'torch.nansum': [
    { args: [gaps, 1], gives: (a: Plain) => reduce(a, [1], false, (line) => total(present(line))), noGradient: 'NaN' },
    { args: [x], gives: (a: Plain) => t(total(a.data)) },
    { args: [ints([1, 2])], gives: longs(3) },
  ],
  'torch.nanmean': [
    { args: [gaps, 1, true], gives: (a: Plain) => reduce(a, [1], true, (line) => total(present(line)) / present(line).length), noGradient: 'NaN' },
    { args: [x], gives: (a: Plain) => t(total(a.data) / 10) },
  ],
  'torch.aminmax': [
    { args: [x], gives: (a: Plain) => [t(least(a.data)), t(most(a.data))] },
    { args: [x, { dim: 1, keepdim: true }], gives: (a: Plain) => [reduce(a, [1], true, least), reduce(a, [1], true, most)] },
  ],
  'torch.count_nonzero': [
    {
      args: [
        ints([
          [1, 0, 2],
          [0, 0, 3],
        ]),
      ],
      gives: longs(3),
    },
    {
      args: [
        t([
          [1, 0, 2],
          [0, 0, 3],
        ]),
        1,
      ],
      gives: longs([2, 1]),
    },
  ],
  'torch.dist': [
    { args: [x, y], gives: (a: Plain, b: Plain) => t(Math.sqrt(total(each((p, q) => (p - q) ** 2)(a, b).data))) },
    { args: [x, y, 1], gives: (a: Plain, b: Plain) => t(total(each((p, q) => Math.abs(p - q))(a, b).data)) },
  ],
  'torch.renorm': [
    {
      args: [x, 2, 0, 0.7],
      gives: (a: Plain) => build(a.shape, (i, j) => a.at(i, j) * Math.min(1, 0.7 / (Math.sqrt(sumOf(5, (k) => a.at(i, k) ** 2)) + 1e-7))),
    },
  ],
  'torch.msort': [{ args: [cube], gives: (a: Plain) => build(a.shape, (i, j, k) => ascending([a.at(0, j, k), a.at(1, j, k)])[i] ?? NaN) }],
  'torch.ops.tensorfx.places': [
    { args: [ints([1, 3, 3, 5]), ints([3, 6]), false, true], gives: longs([3, 4]) },
    {
      args: [
        t([
          [1, 2],
          [3, 4],
        ]),
        t([[1.5], [3.5]]),
        true,
        false,
      ],
      gives: t([[1], [1]], 'int32'),
    },
  ],
  'torch.searchsorted': [
    {
      args: [
        t([1, 3, 3, 5]),
        t([
          [3, 6],
          [0, 4],
        ]),
      ],
      gives: longs([
        [1, 4],
        [0, 3],
      ]),
    },
    { args: [ints([1, 3, 3, 5]), ints([3]), { side: 'right' }], gives: longs([3]) },
    { args: [t([5, 1, 3]), 4, { sorter: longs([1, 2, 0]) }], gives: longs(2) },
  ],
  'torch.bucketize': [
    { args: [t([0, 2, 3]), t([1, 3])], gives: longs([0, 1, 1]) },
    { args: [ints([1, 2, 3]), ints([1, 3]), { right: true, outInt32: true }], gives: t([1, 1, 2], 'int32') },
  ],
  'torch.isin': [
    {
      args: [
        ints([
          [1, 2],
          [3, 4],
        ]),
        ints([4, 1]),
      ],
      gives: t([
        [true, false],
        [false, true],
      ]),
    },
    { args: [t([1, 2]), t([2]), { invert: true }], gives: t([true, false]) },
  ],
  'torch.histc': [
    { args: [t([1, 2, 1, 4, 9]), 4, 0, 4], gives: t([0, 2, 1, 1]), noGradient: 'counts' },
    { args: [t([1, 2, 3]), { bins: 2 }], gives: t([1, 2]), noGradient: 'counts' },
  ],
  'torch.histogram': [
    { args: [t([1, 2, 1, 4]), 4, { range: [0, 4] }], gives: [t([0, 2, 1, 1]), t([0, 1, 2, 3, 4])], noGradient: 'counts' },
    { args: [t([1, 2, 1, 4, 9]), t([0, 2, 4])], gives: [t([2, 2]), t([0, 2, 4])], noGradient: 'counts' },
    { args: [t([1, 3]), 2, { range: [0, 4], weight: t([1, 3]), density: true }], gives: [t([0.125, 0.375]), t([0, 2, 4])], noGradient: 'counts' },
  ],
  'torch.bincount': [
    { args: [ints([1, 3, 1])], gives: longs([0, 2, 0, 1]), readsValues: true },
    {
      args: [ints([1, 0]), { weights: t([0.5, 2]), minlength: 3 }],
      gives: t([2, 0.5, 0]),
      readsValues: true,
      notInHalf: 'halves are added in float64',
    },
  ],
  'torch.unique': [
    {
      args: [
        ints([
          [3, 1],
          [3, 2],
        ]),
      ],
      gives: ints([1, 2, 3]),
      readsValues: true,
    },
    {
      args: [t([3, 1, 3]), { returnInverse: true, returnCounts: true }],
      gives: [t([1, 3]), longs([1, 0, 1]), longs([1, 2])],
      readsValues: true,
      noGradient: 'no gradient',
    },
    {
      args: [
        ints([
          [3, 1],
          [1, 2],
          [3, 1],
        ]),
        { dim: 0, returnCounts: true },
      ],
      gives: [
        ints([
          [1, 2],
          [3, 1],
        ]),
        longs([1, 2]),
      ],
      readsValues: true,
    },
  ],
  'torch.unique_consecutive': [
    { args: [ints([3, 3, 1, 3]), { returnInverse: true }], gives: [ints([3, 1, 3]), longs([0, 0, 1, 2])], readsValues: true },
    {
      args: [
        ints([
          [1, 1, 2],
          [2, 2, 1],
        ]),
        { dim: 1 },
      ],
      gives: ints([
        [1, 2],
        [2, 1],
      ]),
      readsValues: true,
    },
  ],
  'torch.diag_embed': [
    { args: [x, 1], gives: (a: Plain) => build([2, 6, 6], (i, j, k) => (k === j + 1 ? a.at(i, j) : 0)) },
    { args: [x, { dim1: 0, dim2: 2 }], gives: (a: Plain) => build([5, 2, 5], (j, i, k) => (k === j ? a.at(i, j) : 0)) },
  ],
  'torch.diag': [
    { args: [sample([3], 1), -1], gives: (a: Plain) => build([4, 4], (i, j) => (i === j + 1 ? a.at(j) : 0)) },
    { args: [x], gives: (a: Plain) => build([2], (i) => a.at(i, i)) },
  ],
  'torch.diagflat': [{ args: [sample([1, 2], 1)], gives: (a: Plain) => build([2, 2], (i, j) => (i === j ? a.at(0, j) : 0)) }],
  'torch.trace': [
    { args: [x], gives: (a: Plain) => t(a.at(0, 0) + a.at(1, 1)) },
    {
      args: [
        ints([
          [1, 2],
          [3, 4],
        ]),
      ],
      gives: longs(5),
    },
  ],
  'torch.tril_indices': [
    {
      args: [2, 3, 1],
      gives: longs([
        [0, 0, 1, 1, 1],
        [0, 1, 0, 1, 2],
      ]),
    },
  ],
  'torch.triu_indices': [
    {
      args: [2, 3, { offset: 1 }],
      gives: longs([
        [0, 0, 1],
        [1, 2, 2],
      ]),
    },
  ],
  'torch.addmv': [
    {
      args: [sample([2], 7), x, sample([5], 8), { beta: 0.5, alpha: 2 }],
      gives: (s: Plain, a: Plain, v: Plain) => build([2], (i) => 0.5 * s.at(i) + 2 * sumOf(5, (k) => a.at(i, k) * v.at(k))),
    },
  ],
  'torch.addr': [
    {
      args: [x, sample([2], 7), sample([5], 8), { beta: 0.5 }],
      gives: (s: Plain, a: Plain, b: Plain) => build([2, 5], (i, j) => 0.5 * s.at(i, j) + a.at(i) * b.at(j)),
    },
  ],
  'torch.addbmm': [
    {
      args: [sample([3, 2], 7), cube, sample([2, 4, 2], 8)],
      gives: (s: Plain, a: Plain, b: Plain) => build([3, 2], (i, j) => s.at(i, j) + sumOf(2, (n) => sumOf(4, (k) => a.at(n, i, k) * b.at(n, k, j)))),
    },
  ],
  'torch.vdot': [{ args: [sample([5], 7), sample([5], 8)], gives: (a: Plain, b: Plain) => t(sumOf(5, (k) => a.at(k) * b.at(k))) }],
  'torch.inner': [
    { args: [x, sample([3, 5], 8)], gives: (a: Plain, b: Plain) => build([2, 3], (i, j) => sumOf(5, (k) => a.at(i, k) * b.at(j, k))) },
    { args: [t(2), positive], gives: each((a, b) => a * b) },
  ],
  'torch.tensordot': [
    { args: [cube, sample([4, 2], 8), 1], gives: (a: Plain, b: Plain) => build([2, 3, 2], (i, j, m) => sumOf(4, (k) => a.at(i, j, k) * b.at(k, m))) },
    {
      args: [
        cube,
        cube,
        {
          dims: [
            [0, 2],
            [0, 2],
          ],
        },
      ],
      gives: (a: Plain, b: Plain) => build([3, 3], (i, j) => sumOf(2, (n) => sumOf(4, (k) => a.at(n, i, k) * b.at(n, j, k)))),
    },
  ],
  'torch.kron': [{ args: [x, sample([3], 8)], gives: (a: Plain, b: Plain) => build([2, 15], (i, j) => a.at(i, Math.floor(j / 3)) * b.at(j % 3)) }],
  'torch.chain_matmul': [
    {
      args: [[x, sample([5, 2], 8), sample([2, 3], 9)]],
      gives: ([a = x, b = x, c = x]: Plain[]) => build([2, 3], (i, j) => sumOf(5, (k) => sumOf(2, (m) => a.at(i, k) * b.at(k, m) * c.at(m, j)))),
    },
  ],
} satisfies ValueCases
