// Linear algebra: decompositions, solutions, determinants, norms of matrices, and what follows from them.
import { Plain, build, longs, reduce, sample, sumOf, t, total } from '../plain.ts'
import { LOOSE, cholesky, diagonal, exactly, int32s, mm, reflections, size, turned } from '../matrices.ts'
import type { ValueCases } from '../valueCases.ts'

const rotation = (angle: number): Plain =>
  t([
    [Math.cos(angle), -Math.sin(angle)],
    [Math.sin(angle), Math.cos(angle)],
  ])
const negative = (a: Plain): Plain => a.map((v) => -v)
/** A matrix that is far from singular. */
const regular = (n: number, seed: number): Plain => build([n, n], (i, j) => sample([n, n], seed, -1, 1).at(i, j) + (i === j ? 3 : 0))
const [a3, b3] = [regular(3, 1), sample([3, 2], 2)]
const [p, q] = [rotation(0.4), rotation(1.1)]
const symmetric = mm(mm(p, diagonal(1, 3)), turned(p))
const general = mm(mm(p, diagonal(3, 1)), turned(q))
const positive = mm(a3, turned(a3))

/** The determinant, by cofactors of the first row. */
function det(a: Plain): number {
  const n = size(a)
  if (n === 0) return 1
  return sumOf(n, (c) => (c % 2 === 0 ? 1 : -1) * a.at(0, c) * det(minor(a, 0, c)))
}
const minor = (a: Plain, row: number, column: number): Plain =>
  build([size(a) - 1, size(a) - 1], (i, j) => a.at(i < row ? i : i + 1, j < column ? j : j + 1))
/** The inverse, by Cramer's rule. */
const inverse = (a: Plain): Plain => build(a.shape, (i, j) => (((i + j) % 2 === 0 ? 1 : -1) * det(minor(a, j, i))) / det(a))
const solved = (a: Plain, b: Plain): Plain => mm(inverse(a), b)
const lower = (a: Plain): Plain => a.map((v, k) => (k % size(a) <= Math.floor(k / size(a)) ? v : 0))
const unitLower = (a: Plain): Plain => lower(a).map((v, k) => (k % size(a) === Math.floor(k / size(a)) ? 1 : v))
const exponential = (a: Plain): Plain => {
  let [term, sum] = [diagonal(...Array.from({ length: size(a) }, () => 1)), diagonal(...Array.from({ length: size(a) }, () => 1))]
  for (let k = 1; k < 60; k++) {
    term = mm(term, a).map((v) => v / k)
    sum = sum.map((v, i) => v + (term.data[i] ?? NaN))
  }
  return sum
}
const [v1, v2] = [sample([2, 3], 4), sample([2, 3], 5)]

/** A matrix whose rows are exchanged, and its factors. */
const pivoted = t([
  [1, 2],
  [4, 3],
])
const pivotedFactors = t([
  [4, 3],
  [0.25, 1.25],
])

export default {
  'torch.linalg.cholesky': [
    exactly([positive], (a = positive) => cholesky(a), { noGradient: 'one triangle counts' }),
    exactly([positive, { upper: true }], (a = positive) => turned(cholesky(a)), { noGradient: 'one triangle counts' }),
  ],
  'torch.linalg.qr': [
    // The reflection turns the first column to the positive axis, as its first element is negative.
    exactly(
      [
        mm(
          p,
          t([
            [-2, 1],
            [0, 3],
          ]),
        ),
      ],
      () => [
        mm(p, diagonal(-1, 1)),
        t([
          [2, -1],
          [0, 3],
        ]),
      ],
    ),
    exactly(
      [
        mm(
          p,
          t([
            [-2, 1, 0.5],
            [0, 3, 1],
          ]),
        ),
      ],
      () => [
        mm(p, diagonal(-1, 1)),
        t([
          [2, -1, -0.5],
          [0, 3, 1],
        ]),
      ],
    ),
    exactly(
      [t([[3], [4]]), 'complete'],
      () => [
        t([
          [-0.6, -0.8],
          [-0.8, 0.6],
        ]),
        t([[-5], [0]]),
      ],
      { noGradient: 'none in this mode' },
    ),
    exactly([t([[3], [4]]), { mode: 'r' }], () => [new Plain([0], []), t([[-5]])], { noGradient: 'none in this mode' }),
    exactly([t([[3], [4]])], () => [t([[-0.6], [-0.8]]), t([[-5]])]),
  ],
  'torch.linalg.eigh': [
    exactly([symmetric], () => [t([1, 3]), p], { noGradient: 'one triangle counts' }),
    exactly([symmetric, 'U'], () => [t([1, 3]), p], { noGradient: 'one triangle counts' }),
  ],
  'torch.linalg.eigvalsh': [exactly([symmetric], () => t([1, 3]), { noGradient: 'one triangle counts' })],
  'torch.linalg.svd': [
    // The sign of a pair of vectors is free: this is that of the rotations.
    exactly([general], () => [mm(p, diagonal(1, -1)), t([3, 1]), turned(mm(q, diagonal(1, -1)))]),
    exactly([turned(general), { fullMatrices: false }], () => [q, t([3, 1]), turned(p)]),
    exactly(
      [t([[0, 2]]), true],
      () => [
        t([[1]]),
        t([2]),
        t([
          [0, 1],
          [1, 0],
        ]),
      ],
      { noGradient: 'the completed vectors are not unique' },
    ),
    exactly([t([[3, 4]]), false], () => [t([[1]]), t([5]), t([[0.6, 0.8]])]),
  ],
  'torch.linalg.svdvals': [exactly([general], () => t([3, 1]))],
  'torch.linalg.lu_factor_ex': [
    exactly([pivoted], () => [pivotedFactors, int32s([2, 2]), int32s(0)], { differentiable: 1 }),
    exactly(
      [pivoted, { pivot: false }],
      () => [
        t([
          [1, 2],
          [4, -5],
        ]),
        int32s([1, 2]),
        int32s(0),
      ],
      { differentiable: 1 },
    ),
    exactly(
      [
        t([
          [1, 2],
          [4, 3],
          [2, 5],
        ]),
      ],
      () => [
        t([
          [4, 3],
          [0.5, 3.5],
          [0.25, 1.25 / 3.5],
        ]),
        int32s([2, 3]),
        int32s(0),
      ],
      { differentiable: 1 },
    ),
    exactly(
      [
        t([
          [1, 2, 3],
          [4, 3, 1],
        ]),
      ],
      () => [
        t([
          [4, 3, 1],
          [0.25, 1.25, 2.75],
        ]),
        int32s([2, 2]),
        int32s(0),
      ],
      { differentiable: 1 },
    ),
    exactly(
      [
        t([
          [0, 0],
          [0, 0],
        ]),
      ],
      () => [
        t([
          [0, 0],
          [0, 0],
        ]),
        int32s([1, 2]),
        int32s(1),
      ],
      { noGradient: 'it is singular' },
    ),
  ],
  'torch.linalg.lu_factor': [exactly([pivoted], () => [pivotedFactors, int32s([2, 2])], { differentiable: 1 })],
  'torch.lu': [
    exactly([pivoted], () => [pivotedFactors, int32s([2, 2])], { differentiable: 1 }),
    exactly([pivoted, true, true], () => [pivotedFactors, int32s([2, 2]), int32s(0)], { differentiable: 1 }),
  ],
  'torch.lu_unpack': [
    exactly(
      [pivotedFactors, int32s([2, 2])],
      () => [
        t([
          [0, 1],
          [1, 0],
        ]),
        t([
          [1, 0],
          [0.25, 1],
        ]),
        t([
          [4, 3],
          [0, 1.25],
        ]),
      ],
      { noGradient: 'P has none' },
    ),
    exactly(
      [pivotedFactors, int32s([2, 2]), { unpackPivots: false }],
      () => [
        new Plain([0], []),
        t([
          [1, 0],
          [0.25, 1],
        ]),
        t([
          [4, 3],
          [0, 1.25],
        ]),
      ],
      {
        noGradient: 'P has none',
      },
    ),
  ],
  'torch.linalg.lu_solve': [
    exactly([pivotedFactors, int32s([2, 2]), v1], (_, __, b = v1) => solved(pivoted, b)),
    exactly([pivotedFactors, int32s([2, 2]), v1, { adjoint: true }], (_, __, b = v1) => solved(turned(pivoted), b)),
    exactly([pivotedFactors, int32s([2, 2]), turned(v1), { left: false }], (_, __, b = v1) => turned(solved(turned(pivoted), turned(b)))),
  ],
  'torch.lu_solve': [exactly([v1, pivotedFactors, int32s([2, 2])], (b = v1) => solved(pivoted, b))],
  'torch.linalg.solve_ex': [
    exactly([pivoted, v1], (a = pivoted, b = v1) => [solved(a, b), int32s(0)], { differentiable: 1 }),
    exactly([pivoted, t([1, 2])], () => [t([0.2, 0.4]), int32s(0)], { differentiable: 1 }),
  ],
  'torch.linalg.inv_ex': [exactly([pivoted], (a = pivoted) => [inverse(a), int32s(0)], { differentiable: 1 })],
  'torch.ops.tensorfx.row_order': [exactly([int32s([3, 3, 3]), 3], () => longs([2, 0, 1]))],
  'torch.linalg.lu': [
    exactly(
      [
        t([
          [1, 2],
          [4, 3],
        ]),
      ],
      () => [
        t([
          [0, 1],
          [1, 0],
        ]),
        t([
          [1, 0],
          [0.25, 1],
        ]),
        t([
          [4, 3],
          [0, 1.25],
        ]),
      ],
      { noGradient: 'the permutation has none' },
    ),
  ],
  'torch.ops.tensorfx.solve_matrix': [exactly([a3, b3], (a = a3, b = b3) => solved(a, b))],
  'torch.linalg.solve': [
    exactly([a3, b3], (a = a3, b = b3) => solved(a, b)),
    exactly([a3, sample([3], 6)], (a = a3, b = b3) => solved(a, b.reshape(3, 1)).reshape(3)),
    exactly([a3, sample([2, 3], 6), { left: false }], (a = a3, b = b3) => mm(b, inverse(a))),
  ],
  'torch.ops.tensorfx.triangular_solve': [
    exactly([a3, b3, false, false], (a = a3, b = b3) => solved(lower(a), b)),
    exactly([a3, b3, false, true], (a = a3, b = b3) => solved(unitLower(a), b)),
  ],
  'torch.linalg.solve_triangular': [
    exactly([a3, b3, { upper: true }], (a = a3, b = b3) => solved(turned(lower(turned(a))), b)),
    exactly([a3, sample([2, 3], 6), { upper: false, left: false }], (a = a3, b = b3) => mm(b, inverse(lower(a)))),
    exactly([a3, b3, { upper: true, unitriangular: true }], (a = a3, b = b3) => solved(turned(unitLower(turned(a))), b)),
  ],
  'torch.linalg.inv': [exactly([a3], (a = a3) => inverse(a))],
  'torch.inverse': [exactly([a3], (a = a3) => inverse(a))],
  'torch.linalg.slogdet': [exactly([a3], (a = a3) => [t(Math.sign(det(a))), t(Math.log(Math.abs(det(a))))])],
  'torch.slogdet': [exactly([negative(a3)], (a = a3) => [t(Math.sign(det(a))), t(Math.log(Math.abs(det(a))))])],
  'torch.linalg.det': [exactly([a3], (a = a3) => t(det(a)))],
  'torch.det': [exactly([negative(a3)], (a = a3) => t(det(a)))],
  'torch.logdet': [exactly([a3], (a = a3) => t(Math.log(det(a))))],
  'torch.linalg.matrix_exp': [exactly([sample([3, 3], 3)], (a = a3) => exponential(a))],
  'torch.matrix_exp': [exactly([sample([2, 2], 3, -4, 4)], (a = a3) => exponential(a), { tolerance: 1e-4 })],
  'torch.linalg.pinv': [
    exactly([sample([3, 2], 3)], (a = a3) => mm(inverse(mm(turned(a), a)), turned(a))),
    exactly([sample([2, 3], 3)], (a = a3) => mm(turned(a), inverse(mm(a, turned(a))))),
    exactly([diagonal(2, 0.001), { atol: 0.01 }], () => diagonal(0.5, 0), { noGradient: 'another rank' }),
  ],
  'torch.ops.tensorfx.pseudo_inverse': [
    exactly([sample([3, 2], 3), null, null, false], (a = a3) => mm(inverse(mm(turned(a), a)), turned(a))),
    exactly([diagonal(2, 0.001), 0.01, null, false], () => diagonal(0.5, 0), { noGradient: 'another rank' }),
    exactly([diagonal(2, 0.001), null, t(0.01), true], () => diagonal(0.5, 0), { noGradient: 'another rank' }),
  ],
  'torch.linalg.vector_norm': [
    exactly([v1], (a = v1) => t(Math.sqrt(total(a.data.map((v) => v * v))))),
    exactly([v1, 3, [1], true], (a = v1) => reduce(a, [1], true, (line) => total(line.map((v) => Math.abs(v) ** 3)) ** (1 / 3))),
  ],
  'torch.linalg.matrix_norm': [
    exactly([general], () => t(Math.sqrt(10))),
    exactly([general, 'nuc'], () => t(4)),
    exactly([general, 2], () => t(3)),
    exactly([general, -2], () => t(1)),
    exactly([v1, 1], (a = v1) => t(Math.max(...reduce(a, [0], false, (line) => total(line.map(Math.abs))).data))),
    exactly([v1, -Infinity], (a = v1) => t(Math.min(...reduce(a, [1], false, (line) => total(line.map(Math.abs))).data))),
  ],
  'torch.linalg.norm': [
    exactly([v1], (a = v1) => t(Math.sqrt(total(a.data.map((v) => v * v))))),
    exactly([general, 'nuc'], () => t(4)),
    exactly([v1, 1, { dim: 1 }], (a = v1) => reduce(a, [1], false, (line) => total(line.map(Math.abs)))),
  ],
  'torch.linalg.cond': [
    exactly([general], () => t(3)),
    exactly([a3, 1], (a = a3) => {
      const norm = (m: Plain): number => Math.max(...reduce(m, [0], false, (line) => total(line.map(Math.abs))).data)
      return t(norm(a) * norm(inverse(a)))
    }),
  ],
  'torch.linalg.matrix_rank': [exactly([general], () => longs(2)), exactly([diagonal(2, 0.001), { atol: 0.01 }], () => longs(1))],
  'torch.linalg.matrix_power': [
    exactly([a3, 3], (a = a3) => mm(mm(a, a), a)),
    exactly([a3, -1], (a = a3) => inverse(a)),
    exactly([a3, 0], () => diagonal(1, 1, 1), { noGradient: 'constant' }),
  ],
  'torch.matrix_power': [exactly([a3, 2], (a = a3) => mm(a, a))],
  'torch.linalg.multi_dot': [
    {
      args: [[a3, b3, sample([2, 4], 6)]],
      gives: ([a = a3, b = a3, c = a3]: Plain[]) => mm(mm(a, b), c),
      ...LOOSE,
    },
  ],
  'torch.linalg.vecdot': [exactly([v1, v2], (a = v1, b = v2) => build([2], (i) => sumOf(3, (k) => a.at(i, k) * b.at(i, k))))],
  'torch.linalg.cross': [
    exactly([v1, v2], (a = v1, b = v2) =>
      build([2, 3], (i, k) => a.at(i, (k + 1) % 3) * b.at(i, (k + 2) % 3) - a.at(i, (k + 2) % 3) * b.at(i, (k + 1) % 3)),
    ),
  ],
  'torch.cross': [
    exactly([v1, v2], (a = v1, b = v2) =>
      build([2, 3], (i, k) => a.at(i, (k + 1) % 3) * b.at(i, (k + 2) % 3) - a.at(i, (k + 2) % 3) * b.at(i, (k + 1) % 3)),
    ),
  ],
  'torch.linalg.diagonal': [exactly([v1, { offset: 1 }], (a = v1) => t([a.at(0, 1), a.at(1, 2)]))],
  'torch.linalg.vander': [exactly([sample([3], 1), { N: 4 }], (a = v1) => build([3, 4], (i, k) => a.at(i) ** k))],
  'torch.vander': [
    exactly([sample([3], 1)], (a = v1) => build([3, 3], (i, k) => a.at(i) ** (2 - k))),
    exactly([sample([3], 1), 2, true], (a = v1) => build([3, 2], (i, k) => a.at(i) ** k)),
  ],
  'torch.linalg.tensorinv': [exactly([regular(4, 1).reshape(2, 2, 4)], (a = v1) => inverse(a.reshape(4, 4)).reshape(4, 2, 2))],
  'torch.linalg.tensorsolve': [
    exactly([regular(4, 1).reshape(2, 2, 4), sample([2, 2], 6)], (a = v1, b = v2) => solved(a.reshape(4, 4), b.reshape(4, 1)).reshape(4)),
  ],
  'torch.linalg.householder_product': [
    exactly([sample([3, 2], 1), sample([2], 2)], (a = v1, tau = v2) => {
      const full = reflections(a, tau)
      return build([3, 2], (i, j) => full.at(i, j))
    }),
  ],
  'torch.linalg.lstsq': [
    exactly(
      [sample([4, 2], 3), sample([4, 1], 4)],
      (a = v1, b = v2) => [mm(mm(inverse(mm(turned(a), a)), turned(a)), b), new Plain([0], []), new Plain([], [2], 'int64'), new Plain([0], [])],
      { differentiable: 1 },
    ),
  ],
  'torch.cholesky_solve': [
    exactly([b3, a3], (b = b3, a = a3) => solved(mm(lower(a), turned(lower(a))), b)),
    exactly([b3, a3, true], (b = b3, a = a3) => solved(mm(lower(turned(a)), turned(lower(turned(a)))), b)),
  ],
  'torch.cholesky_inverse': [exactly([a3], (a = a3) => inverse(mm(lower(a), turned(lower(a)))))],
} satisfies ValueCases
