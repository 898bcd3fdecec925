// Functions of torch that torch.nn.functional and torch.linalg have with other arguments, slopes of samples, and flat positions.
import { Plain, build, longs, reduce, sample, sumOf, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const NOT_HALF = { notInHalf: 'the reference does not round as the algorithm does' }
const LOOSE = { ...NOT_HALF, tolerance: 2e-5 }

const product = (a: Plain, b: Plain): Plain =>
  build([a.shape[0] ?? 0, b.shape[1] ?? 0], (i, j) => sumOf(a.shape[1] ?? 0, (k) => a.at(i, k) * b.at(k, j)))
const turned = (a: Plain): Plain => build([a.shape[1] ?? 0, a.shape[0] ?? 0], (i, j) => a.at(j, i))
const lower = t([
  [2, 0, 0],
  [1, 3, 0],
  [-1, 0.5, 1.5],
])
const positive = product(lower, turned(lower))
const upper = turned(lower)
const [c, s] = [Math.cos(0.4), Math.sin(0.4)]
const rotation = t([
  [c, -s],
  [s, c],
])

/** Slopes along `dim` at the coordinates `x`: the derivative of the parabola through three neighbours, at the ends of the line through two. */
function slopes(f: Plain, dim: number, x: readonly number[], edgeOrder = 1): Plain {
  const last = x.length - 1
  const parabola = (values: readonly number[], [i, j, k]: readonly [number, number, number], at: number): number => {
    const [a = NaN, b = NaN, c = NaN] = [x[i], x[j], x[k]]
    const [p = NaN, q = NaN, r = NaN] = [values[i], values[j], values[k]]
    const v = x[at] ?? NaN
    return (p * (2 * v - b - c)) / ((a - b) * (a - c)) + (q * (2 * v - a - c)) / ((b - a) * (b - c)) + (r * (2 * v - a - b)) / ((c - a) * (c - b))
  }
  const line = (values: readonly number[], i: number): number => ((values[i + 1] ?? NaN) - (values[i] ?? NaN)) / ((x[i + 1] ?? NaN) - (x[i] ?? NaN))
  return build(f.shape, (...index) => {
    const values = x.map((_, k) => f.at(...index.map((own, d) => (d === dim ? k : own))))
    const at = index[dim] ?? 0
    if (at > 0 && at < last) return parabola(values, [at - 1, at, at + 1], at)
    if (edgeOrder === 1) return line(values, at === 0 ? 0 : last - 1)
    return at === 0 ? parabola(values, [0, 1, 2], 0) : parabola(values, [last - 2, last - 1, last], last)
  })
}
const [f, g] = [sample([3, 4], 1), sample([5], 2)]
const places = t([0, 0.5, 2, 2.25, 4])
const steps = (count: number, by = 1): readonly number[] => Array.from({ length: count }, (_, i) => i * by)

const batch = sample([3, 2], 4)
const [weight, bias, mean, variance] = [t([0.5, 2]), t([1, -1]), t([0.1, 0.2]), t([0.5, 2])]
const images = sample([2, 2, 3], 5)
const average = (line: readonly number[]): number => total(line) / line.length
const spread = (line: readonly number[]): number => average(line.map((v) => (v - average(line)) ** 2))

export default {
  'torch.cholesky': [
    { args: [positive], gives: lower, noGradient: 'the matrix must stay symmetric; linalg.cholesky has the check', ...LOOSE },
    { args: [positive, true], gives: upper, noGradient: 'as above', ...LOOSE },
    { args: [positive, { upper: true }], gives: upper, noGradient: 'as above', ...LOOSE },
  ],
  'torch.qr': [
    {
      args: [
        t([
          [3, 0],
          [4, 5],
        ]),
      ],
      gives: [
        t([
          [-0.6, 0.8],
          [-0.8, -0.6],
        ]).map((v, i) => (i % 2 === 0 ? v : -v)),
        t([
          [-5, -4],
          [0, 3],
        ]),
      ],
      ...LOOSE,
    },
    {
      args: [t([[3], [4]]), false],
      gives: [
        t([
          [-0.6, -0.8],
          [-0.8, 0.6],
        ]),
        t([[-5], [0]]),
      ],
      noGradient: 'a complete Q of more rows than columns has none',
      ...LOOSE,
    },
  ],
  'torch.svd': [
    {
      args: [
        product(
          rotation,
          t([
            [3, 0],
            [0, 1],
          ]),
        ),
        true,
        false,
      ],
      gives: [
        t([
          [0, 0],
          [0, 0],
        ]),
        t([3, 1]),
        t([
          [0, 0],
          [0, 0],
        ]),
      ],
      noGradient: 'zeros have none, and linalg.svd has the check',
      ...LOOSE,
    },
    {
      args: [t([[0, 2, 0]]).map(Math.abs), { some: true }],
      gives: [t([[1]]), t([2]), t([[0], [1], [0]])],
      noGradient: 'signs of singular vectors; linalg.svd has the check',
      ...LOOSE,
    },
  ],
  'torch.pinverse': [
    {
      args: [lower],
      gives: t([
        [0.5, 0, 0],
        [-1 / 6, 1 / 3, 0],
        [7 / 18, -1 / 9, 2 / 3],
      ]),
      ...LOOSE,
    },
    // The second singular value counts as 0.
    {
      args: [
        t([
          [4, 0],
          [0, 1],
        ]),
        0.5,
      ],
      gives: t([
        [0.25, 0],
        [0, 0],
      ]),
      noGradient: 'at a jump',
      ...LOOSE,
    },
  ],
  'torch.triangular_solve': [
    {
      args: [product(upper, sample([3, 2], 6)), upper],
      gives: [sample([3, 2], 6), upper],
      noGradient: 'linalg.solve_triangular has the check',
      ...LOOSE,
    },
    { args: [product(lower, sample([3, 2], 6)), lower, false], gives: [sample([3, 2], 6), lower], noGradient: 'as above', ...LOOSE },
    { args: [product(lower, sample([3, 2], 6)), upper, true, true], gives: [sample([3, 2], 6), upper], noGradient: 'as above', ...LOOSE },
  ],
  'torch.batch_norm': [
    {
      args: [batch, weight, bias, mean, variance, false, 0.1, 1e-5, false],
      gives: (x: Plain, w: Plain, b: Plain, mu: Plain, v: Plain) =>
        build(x.shape, (i, j) => ((x.at(i, j) - mu.at(j)) / Math.sqrt(v.at(j) + 1e-5)) * w.at(j) + b.at(j)),
      constants: [3, 4],
      halfTolerance: 16,
    },
  ],
  'torch.instance_norm': [
    {
      args: [images, weight, bias, null, null, true, 0.1, 1e-5],
      gives: (x: Plain, w: Plain, b: Plain) => {
        const [mu, v] = [reduce(x, [2], true, average), reduce(x, [2], true, spread)]
        return build(x.shape, (n, k, i) => ((x.at(n, k, i) - mu.at(n, k, 0)) / Math.sqrt(v.at(n, k, 0) + 1e-5)) * w.at(k) + b.at(k))
      },
      ...LOOSE,
    },
  ],
  'torch.embedding': [
    { args: [batch, longs([2, 0, 2])], gives: (table: Plain) => build([3, 2], (i, j) => table.at([2, 0, 2][i] ?? 0, j)) },
    { args: [batch, longs([[1]]), -1, true, false], gives: (table: Plain) => build([1, 1, 2], (_, __, j) => table.at(1, j)) },
  ],
  'torch.feature_dropout': [
    { args: [images, 0.5, false], gives: images },
    { args: [images, 1, true], gives: images.map(() => 0) },
  ],
  'torch.adaptive_max_pool1d': [
    { args: [t([[1, 3, 2, 4]]), 2], gives: [t([[3, 4]]), longs([[1, 3]])], differentiable: 1 },
    { args: [t([[[5, 3, 2]]]), [2]], gives: [t([[[5, 3]]]), longs([[[0, 1]]])], differentiable: 1 },
  ],
  'torch.max_pool1d_with_indices': [
    { args: [t([[1, 3, 2, 4]]), 2], gives: [t([[3, 4]]), longs([[1, 3]])], differentiable: 1 },
    { args: [t([[1, 3, 2, 5, 4]]), [3], 1, 1], gives: [t([[3, 3, 5, 5, 5]]), longs([[1, 1, 3, 3, 3]])], differentiable: 1 },
  ],
  'torch.nonzero_static': [
    {
      args: [
        t([
          [0, 2],
          [3, 0],
        ]),
        { size: 3 },
      ],
      gives: longs([
        [0, 1],
        [1, 0],
        [-1, -1],
      ]),
      noGradient: 'positions have none',
    },
    { args: [t([0, 1, 1], 'bool'), { size: 1, fillValue: 7 }], gives: longs([[1]]) },
  ],
  'torch.gradient': [
    { args: [f], gives: (v: Plain) => [slopes(v, 0, steps(3)), slopes(v, 1, steps(4))] },
    {
      args: [f, { spacing: [0.5, 2], dim: [1, 0], edgeOrder: 2 }],
      gives: (v: Plain) => [slopes(v, 1, steps(4, 0.5), 2), slopes(v, 0, steps(3, 2), 2)],
    },
    { args: [f, { spacing: 3, dim: -1 }], gives: (v: Plain) => [slopes(v, 1, steps(4, 3))] },
    { args: [g, { spacing: [places] }], gives: (v: Plain) => [slopes(v, 0, places.data)], halfTolerance: 32 },
    { args: [g, { spacing: [places], edgeOrder: 2 }], gives: (v: Plain) => [slopes(v, 0, places.data, 2)], halfTolerance: 64 },
    { args: [t([1, 4]), { dim: 0 }], gives: [t([3, 3])] },
  ],
  'torch.unravel_index': [
    {
      args: [
        longs([
          [7, 0],
          [5, 11],
        ]),
        [2, 2, 3],
      ],
      gives: [
        longs([
          [0 + 1, 0],
          [0, 1],
        ]),
        longs([
          [0, 0],
          [1, 1],
        ]),
        longs([
          [1, 0],
          [2, 2],
        ]),
      ],
    },
    { args: [t([3, 1], 'int32'), 4], gives: [longs([3, 1])] },
  ],
  'torch.narrow_copy': [{ args: [f, 1, 1, 2], gives: (v: Plain) => build([3, 2], (i, j) => v.at(i, j + 1)) }],
  'torch.Tensor.polygamma': [{ args: [t([1, 2]), 1], gives: t([Math.PI ** 2 / 6, Math.PI ** 2 / 6 - 1]), tolerance: 2e-5 }],
} satisfies ValueCases
