// Arguments of operators that PyTorch has overloads for: limits and values as tensors, lists of dimensions, names of norms, decimals.
import { Plain, build, each, ints, longs, reduce, sample, sumOf, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([3, 4], 1)
const [low, high] = [sample([4], 2, -0.9, 0), sample([3, 1], 3, 0.1, 0.9)]
const limited = each((a, b, c) => Math.min(Math.max(a, b), c))
const even = (v: number): number => {
  const r = Math.round(v)
  return Math.abs(v % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r
}
const squares = (values: readonly number[]): number => total(values.map((v) => v * v))
const spread = (line: readonly number[], correction: number): number => {
  const mean = total(line) / line.length
  return total(line.map((v) => (v - mean) ** 2)) / (line.length - correction)
}
/** The singular values of a matrix of two columns, from the roots of its characteristic polynomial. */
function nuclear(a: Plain): number {
  const [p, q, r] = [squares([a.at(0, 0), a.at(1, 0)]), squares([a.at(0, 1), a.at(1, 1)]), a.at(0, 0) * a.at(0, 1) + a.at(1, 0) * a.at(1, 1)]
  const root = Math.sqrt(((p - q) / 2) ** 2 + r * r)
  return Math.sqrt((p + q) / 2 + root) + Math.sqrt((p + q) / 2 - root)
}
const [queries, keys, values] = [sample([4, 2, 3], 4), sample([2, 3, 3], 5), sample([2, 3, 2], 6)]
const attended = (q: Plain, k: Plain, v: Plain): Plain =>
  build([4, 2, 2], (h, i, e) => {
    const head = Math.floor(h / 2)
    const scores = [0, 1, 2].map((j) => Math.exp(sumOf(3, (d) => q.at(h, i, d) * k.at(head, j, d)) / Math.sqrt(3)))
    return sumOf(3, (j) => ((scores[j] ?? 0) / total(scores)) * v.at(head, j, e))
  })
const [first, second] = [t([1.5, 2.5]), t([4, 5, 6])]

export default {
  'torch.clamp': [
    { args: [x, low, high], gives: limited },
    { args: [x, { min: low }], gives: (a: Plain) => each((v, w) => Math.max(v, w))(a, low), constants: [1] },
    { args: [x, -0.2, high], gives: limited },
    { args: [x, high, low], gives: (a: Plain, b: Plain, c: Plain) => each((u, v, w) => Math.min(Math.max(u, v), w))(a, b, c) },
    { args: [ints([1, 5, 9]), ints([2, 2, 2]), ints([8, 4, 8])], gives: ints([2, 4, 8]) },
  ],
  'torch.clip': [{ args: [x, low, high], gives: limited }],
  'torch.clamp_min': [{ args: [x, low], gives: each(Math.max) }],
  'torch.clamp_max': [{ args: [x, high], gives: each(Math.min) }],
  'torch.masked_fill': [{ args: [t([1, 2, 3]), t([true, false, true]), t(7)], gives: t([7, 2, 7]) }],
  'torch.round': [
    { args: [t([1.234, -5.678]), { decimals: 1 }], gives: t([1.2, -5.7]) },
    { args: [sample([3], 7, -300, 300), { decimals: -2 }], gives: each((v) => even(v / 100) * 100) },
    { args: [ints([12, -7]), { decimals: 1 }], gives: ints([12, -7]) },
  ],
  'torch.squeeze': [
    { args: [sample([1, 3, 1], 8), [0, 2]], gives: (a: Plain) => a.reshape(3) },
    { args: [sample([1, 3, 1], 8), [-1, 1]], gives: (a: Plain) => a.reshape(1, 3) },
    { args: [sample([1, 1], 8), []], gives: (a: Plain) => a },
  ],
  'torch.norm': [
    { args: [x, 'fro'], gives: (a: Plain) => t(Math.sqrt(squares(a.data))) },
    { args: [sample([2, 2], 9), 'nuc'], gives: (a: Plain) => t(nuclear(a)), tolerance: 1e-5 },
    { args: [t([0, 3, -2]), 0], gives: t(2), noGradient: 'at 0 it jumps' },
  ],
  'torch.linalg.vector_norm': [{ args: [t([0, 3, NaN]), 0], gives: t(2), noGradient: 'NaN' }],
  'torch.var': [{ args: [x, 1, { unbiased: false }], gives: (a: Plain) => reduce(a, [1], false, (line) => spread(line, 0)) }],
  'torch.std': [{ args: [x, { unbiased: true }], gives: (a: Plain) => t(Math.sqrt(spread(a.data, 1))) }],
  'torch.linalg.det': [
    {
      args: [
        t([
          [1, 2],
          [2, 4],
        ]),
      ],
      gives: t(0),
      noGradient: 'that of a singular matrix is 0, as in PyTorch',
    },
    {
      args: [sample([2, 2, 2], 10)],
      gives: (a: Plain) => build([2], (n) => a.at(n, 0, 0) * a.at(n, 1, 1) - a.at(n, 0, 1) * a.at(n, 1, 0)),
      tolerance: 1e-5,
    },
  ],
  'torch.repeat_interleave': [{ args: [longs([2, 0, 1])], readsValues: true, gives: longs([0, 0, 2]) }],
  'torch.meshgrid': [
    { args: [first, second], gives: (a: Plain, b: Plain) => [build([2, 3], (i) => a.at(i)), build([2, 3], (_, j) => b.at(j))] },
    { args: [first, second, { indexing: 'xy' }], gives: (a: Plain, b: Plain) => [build([3, 2], (_, j) => a.at(j)), build([3, 2], (i) => b.at(i))] },
  ],
  'torch.mode': [{ args: [t([[NaN, 1, 0, 1]]), 1], gives: [t([1]), longs([3])], noGradient: 'NaN' }],
  'torch.median': [{ args: [t([3, NaN, 1])], gives: t(NaN), noGradient: 'NaN' }],
  'torch.nanmedian': [{ args: [t([3, NaN, 1, 1])], gives: t(1), noGradient: 'NaN' }],
  'torch.nn.functional.scaled_dot_product_attention': [{ args: [queries, keys, values, { enableGqa: true }], gives: attended, halfTolerance: 16 }],
} satisfies ValueCases
