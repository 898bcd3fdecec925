// Rules of linear algebra: its kernels and derivatives take complex matrices as they are, and the other operators are composed of those.
import { forAll } from './rule.ts'
import type { ComplexRules } from './rule.ts'

export const linalgRules: ComplexRules = {
  ...forAll('qr eigh svd eig cholesky cholesky_ex inv slogdet det matrix_exp lu_factor_ex', 'as is', 'torch.linalg'),
  ...forAll('solve_matrix triangular_solve pseudo_inverse', 'as is', 'torch.ops.tensorfx'),
  ...forAll('geqrf', 'as is'),
  ...forAll(
    'eigvals eigvalsh svdvals solve solve_ex solve_triangular inv_ex lu lu_factor lu_solve matrix_power pinv matrix_rank cond norm matrix_norm tensorinv tensorsolve ' +
      'householder_product multi_dot diagonal cross vander',
    'decomposed',
    'torch.linalg',
  ),
  ...forAll(
    'inverse det slogdet logdet matrix_exp matrix_power lu lu_unpack lu_solve cholesky cholesky_solve cholesky_inverse qr svd pinverse ormqr orgqr pca_lowrank svd_lowrank triangular_solve',
    'decomposed',
  ),
}
