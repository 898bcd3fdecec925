// The Cholesky decomposition, with an error or with a number for matrices that have none.
import { tensorFromValues } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { tril } from './triangular.ts'
import { adjointOf, checkMatrix, failure, matricesOf, tensorOf, squareSpec } from './batches.ts'
import { adjoint } from './dense.ts'
import type { Dense } from './dense.ts'
import { choleskyOf } from './elimination.ts'
import { matmul } from './matmul.ts'
import { solveTriangular } from './solve.ts'

/** Half of the Hermitian matrix of which the lower triangle is given; its diagonal stays as it is, also where it is not real, as in PyTorch. */
const halfHermitian = (t: Tensor): Tensor => mul(add(tril(t), adjointOf(tril(t, -1))), 0.5)

/** The factors of a batch, lower or upper ones, and the order of the first leading minor of each that is not positive. */
function factorsOf(self: Tensor, upper: boolean): { readonly factors: readonly Dense[]; readonly infos: readonly number[] } {
  const all = matricesOf(self).map((a) => choleskyOf(upper ? adjoint(a) : a))
  return { factors: all.map(({ factor }) => (upper ? adjoint(factor) : factor)), infos: all.map(({ info }) => info) }
}

function gradientOf(g: Tensor, out: Tensor, upper: boolean): Tensor {
  const [factor, grad] = upper ? [adjointOf(out), adjointOf(g)] : [out, g]
  const inner = halfHermitian(matmul(adjointOf(factor), grad))
  const left = solveTriangular(adjointOf(factor), inner, { upper: true })
  return adjointOf(solveTriangular(adjointOf(factor), adjointOf(left), { upper: true }))
}

const notPositive = (op: string, infos: readonly number[]): Error | null => {
  const batch = infos.findIndex((info) => info > 0)
  return batch < 0 ? null : failure(op, batch, `is not positive-definite: its leading minor of order ${infos[batch]} is not positive`)
}

/**
 * The lower triangular L with L L^H = `self`, for positive-definite matrices, Hermitian if complex; with `upper`, its conjugate transpose. PyTorch's `torch.linalg.cholesky`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError if one of them is not positive-definite.
 * @example torch.linalg.cholesky(torch.tensor([[4, 2], [2, 5]])).toArray() // [[2, 0], [1, 2]]
 */
export const cholesky: Op['cholesky'] = defineOp({
  schema: 'cholesky(Tensor self, *, bool upper=False) -> Tensor',
  namespace: 'torch.linalg',
  tags: ['rejectsData'],
  matrices: ['self'],
  autocast: 'float32',
  meta: squareSpec('torch.linalg.cholesky'),
  kernel: (self, upper) => {
    checkMatrix('torch.linalg.cholesky', self, true)
    const { factors, infos } = factorsOf(self, upper)
    const error = notPositive('torch.linalg.cholesky', infos)
    if (error !== null) throw error
    return tensorOf(factors, self.sizes, self.dtype)
  },
  derivative: ([g], { args: [, upper], outputs: [out] }) => [gradientOf(g, out, upper), null],
})

/**
 * {@link cholesky} without an error for matrices that are not positive-definite: [L, info]. `info` is 0, or the order of the first leading minor that is not positive; the factor is
 * then not complete. PyTorch's `torch.linalg.cholesky_ex`.
 *
 * Shapes: [.., n, n] gives [.., n, n] and [..]. The info is int32.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError with `checkErrors`, if one of them is not positive-definite.
 * @example torch.linalg.choleskyEx(torch.tensor([[4, 2], [2, 5]])).map((t) => t.toArray()) // [[[2, 0], [1, 2]], 0]
 */
export const choleskyEx: Op['choleskyEx'] = defineOp({
  schema: 'cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor, Tensor)',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'float32',
  meta: (self) => {
    checkMatrix('torch.linalg.cholesky_ex', self, true)
    return [
      { shape: self.symSizes, dtype: self.dtype },
      { shape: self.symSizes.slice(0, -2), dtype: 'int32' },
    ]
  },
  kernel: (self, upper, checkErrors): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.cholesky_ex', self, true)
    const { factors, infos } = factorsOf(self, upper)
    const error = checkErrors ? notPositive('torch.linalg.cholesky_ex', infos) : null
    if (error !== null) throw error
    return [tensorOf(factors, self.sizes, self.dtype), tensorFromValues(infos, self.sizes.slice(0, -2), 'int32')]
  },
  derivative: ([g], { args: [, upper], outputs: [out] }) => [g === null ? null : gradientOf(g, out, upper), null, null],
})
