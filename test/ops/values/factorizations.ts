// Factors in the forms that LAPACK has, and approximations of low rank.
import { diagonal, cholesky, exactly, int32s, mm, reflections, turned } from '../matrices.ts'
import { Plain, build, sample, t } from '../plain.ts'
import { withoutGradients } from '../valueCases.ts'
import type { ValueCases } from '../valueCases.ts'

const [a3, v1, v2] = [sample([3, 3], 1), sample([3, 2], 4), sample([2], 5)]
const regular = build([3, 3], (i, j) => a3.at(i, j) + (i === j ? 3 : 0))
const positive = mm(regular, turned(regular))

export default {
  'torch.linalg.cholesky_ex': [
    exactly([positive], (a = positive) => [cholesky(a), int32s(0)], { noGradient: 'one triangle counts' }),
    exactly([positive, { upper: true }], (a = positive) => [turned(cholesky(a)), int32s(0)], { noGradient: 'one triangle counts' }),
    exactly(
      [
        t([
          [4, 2, 0],
          [2, 1, 0],
          [0, 0, 9],
        ]),
      ],
      () => [
        t([
          [2, 0, 0],
          [1, 0, 0],
          [0, 0, 0],
        ]),
        int32s(2),
      ],
      { noGradient: 'there is no factor' },
    ),
  ],
  'torch.geqrf': withoutGradients('PyTorch has none', [
    exactly(
      [
        t([
          [3, 0],
          [4, 5],
        ]),
      ],
      () => [
        t([
          [-5, -4],
          [0.5, 3],
        ]),
        t([1.6, 0]),
      ],
    ),
    // Columns that are 0 below the diagonal stay, with their signs.
    exactly([diagonal(2, -3, 1)], () => [diagonal(2, -3, 1), t([0, 0, 0])]),
    exactly([t([[2, 7]])], () => [t([[2, 7]]), t([0])]),
  ]),
  'torch.ormqr': [
    exactly([sample([3, 2], 1), sample([2], 2), sample([3, 2], 3)], (a = v1, tau = v2, x = v1) => mm(reflections(a, tau), x)),
    exactly([sample([3, 2], 1), sample([2], 2), sample([3, 2], 3), true, true], (a = v1, tau = v2, x = v1) => mm(turned(reflections(a, tau)), x)),
    exactly([sample([3, 2], 1), sample([2], 2), sample([2, 3], 3), false], (a = v1, tau = v2, x = v1) => mm(x, reflections(a, tau))),
    exactly([sample([3, 2], 1), sample([2], 2), sample([2, 3], 3), { left: false, transpose: true }], (a = v1, tau = v2, x = v1) =>
      mm(x, turned(reflections(a, tau))),
    ),
  ],
  'torch.linalg.ldl_factor_ex': [
    exactly(
      [
        t([
          [4, 9],
          [2, 3],
        ]),
      ],
      () => [
        t([
          [4, 0],
          [0.5, 2],
        ]),
        int32s([1, 2]),
        int32s(0),
      ],
      { noGradient: 'it has none' },
    ),
    exactly(
      [
        t([
          [0, 1],
          [1, 0],
        ]),
      ],
      () => [
        t([
          [0, 0],
          [1, 0],
        ]),
        int32s([-2, -2]),
        int32s(0),
      ],
      { noGradient: 'it has none' },
    ),
    exactly([diagonal(0, 0)], () => [diagonal(0, 0), int32s([1, 2]), int32s(1)], { noGradient: 'it has none' }),
  ],
  'torch.linalg.ldl_factor': [
    exactly(
      [
        t([
          [4, 9],
          [2, 3],
        ]),
      ],
      () => [
        t([
          [4, 0],
          [0.5, 2],
        ]),
        int32s([1, 2]),
      ],
      { noGradient: 'it has none' },
    ),
  ],
  'torch.linalg.ldl_solve': [
    exactly(
      [
        t([
          [4, 0],
          [0.5, 2],
        ]),
        int32s([1, 2]),
        t([[8], [8]]),
      ],
      () => t([[1], [2]]),
      { noGradient: 'it has none' },
    ),
    exactly(
      [
        t([
          [0, 0],
          [1, 0],
        ]),
        int32s([-2, -2]),
        t([
          [3, 5],
          [4, 6],
        ]),
      ],
      () =>
        t([
          [4, 6],
          [3, 5],
        ]),
      { noGradient: 'it has none' },
    ),
  ],
  // The singular vectors of nothing; linalgForms.test.ts has those of other matrices, whose signs are free.
  'torch.svd_lowrank': [exactly([new Plain([0, 3], []), 2], () => [new Plain([0, 0], []), t([]), new Plain([3, 0], [])], { noGradient: 'random' })],
  'torch.pca_lowrank': [exactly([t([[1, 2]]), 0, false], () => [new Plain([1, 0], []), t([]), new Plain([2, 0], [])], { noGradient: 'random' })],
} satisfies ValueCases
