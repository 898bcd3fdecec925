// Approximations of low rank by random projections, after Halko, Martinsson and Tropp (2009), as PyTorch has them.
import { ArgumentError } from '../../errors/index.ts'
import { formatShape, sizeLess, sizeNumbers } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { sub } from '../pointwise/arithmetic.ts'
import { randn } from '../random/random.ts'
import { mean } from '../reduction/mean.ts'
import { sizeAt } from '../shared/shapes.ts'
import { expand } from '../view/windows.ts'
import { adjointOf, checkMatrix } from './batches.ts'
import { qr, svd } from './decompositions.ts'
import { matmul } from './matmul.ts'

function checkCount(op: string, name: string, value: number, most: number): void {
  if (!Number.isInteger(value) || value < 0 || value > most)
    throw new ArgumentError(`${op}: ${name} must be an integer from 0${most === Infinity ? '' : ` to the smaller size, ${most}`}, got ${value}.`)
}

/** An orthonormal basis of `q` columns that nearly spans the columns of a tall `a`. */
function basisOf(a: Tensor, q: number, niter: number): Tensor {
  let basis = qr(matmul(a, randn([sizeAt(a.symSizes, -1), q], { dtype: a.dtype })))[0]
  for (let i = 0; i < niter; i++) basis = qr(matmul(a, qr(matmul(adjointOf(a), basis))[0]))[0]
  return basis
}

function approximated(op: string, a: Tensor, q: number, niter: number): readonly [Tensor, Tensor, Tensor] {
  const [m, n] = [sizeAt(a.symSizes, -2), sizeAt(a.symSizes, -1)]
  checkCount(op, 'q', q, Infinity)
  checkCount(op, 'niter', niter, Infinity)
  const isWide = sizeLess(m, n)
  const tall = isWide ? adjointOf(a) : a
  const basis = basisOf(tall, q, niter)
  const [u, s, vh] = svd(matmul(adjointOf(basis), tall), { fullMatrices: false })
  const [left, right] = [matmul(basis, u), adjointOf(vh)]
  return isWide ? [right, s, left] : [left, s, right]
}

/**
 * The singular values and vectors of an approximation of A of rank `q`, or of A - M: [U, S, V], so that U diag(S) V^T is near A. It draws random numbers. `niter` subspace iterations
 * make it better. PyTorch's `torch.svd_lowrank`.
 *
 * Shapes: A and M [.., m, n] give [.., m, k], [.., k] and [.., n, k], k being `q` or the smaller size, if that is less.
 *
 * @throws ShapeError unless `A` holds matrices, and `M` broadcasts to its shape.
 * @throws DTypeError unless `A` is floating.
 * @throws ArgumentError if `q` or `niter` is negative.
 * @example torch.svdLowrank(torch.tensor([[3, 0], [0, 4]]), 2)[1].toArray() // [4, 3]
 */
export const svdLowrank: Op['svdLowrank'] = defineOp({
  schema: 'svd_lowrank(Tensor A, int? q=6, int niter=2, Tensor? M=None) -> (Tensor, Tensor, Tensor)',
  tags: ['random'],
  decompose: (a, q, niter, given): readonly [Tensor, Tensor, Tensor] => {
    const op = 'torch.svd_lowrank'
    checkMatrix(op, a)
    return approximated(op, given === null ? a : sub(a, expand(given, a.symSizes)), q ?? 6, niter)
  },
})

/**
 * {@link svdLowrank} of the rows of A less their mean, unless `center` is false: the principal components are the columns of V. `q` is 6 by default, or the smaller size if that is less.
 * PyTorch's `torch.pca_lowrank`.
 *
 * Shapes: A [.., m, n] gives [.., m, q], [.., q] and [.., n, q].
 *
 * @throws ShapeError unless `A` holds matrices.
 * @throws DTypeError unless `A` is floating.
 * @throws ArgumentError if `q` is greater than the smaller size, or `niter` negative.
 * @example torch.pcaLowrank(torch.tensor([[1, 0], [-1, 0], [4, 2]]), 2, false).map((t) => t.shape) // [[3, 2], [2], [2, 2]]
 */
export const pcaLowrank: Op['pcaLowrank'] = defineOp({
  schema: 'pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, Tensor, Tensor)',
  tags: ['random'],
  decompose: (a, q, center, niter): readonly [Tensor, Tensor, Tensor] => {
    const op = 'torch.pca_lowrank'
    checkMatrix(op, a)
    // How many columns are tried is a number.
    const most = Math.min(...sizeNumbers(a.symSizes.slice(-2)))
    if (most === 0) throw new ArgumentError(`${op}: A must not be empty, got shape ${formatShape(a.symSizes)}.`)
    if (q !== null) checkCount(op, 'q', q, most)
    return approximated(op, center ? sub(a, mean(a, [-2], true)) : a, q ?? Math.min(6, most), niter)
  },
})
