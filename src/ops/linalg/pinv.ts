// Pseudo-inverses, and the limits below which singular values count as 0.
import { ArgumentError } from '../../errors/index.ts'
import { realDType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor, exactElements, sizeNumbers } from '../../tensor/index.ts'
import { fullLike } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { abs, add, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { gt, logicalAnd } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { amax } from '../reduction/extremes.ts'
import { sizeAt } from '../shared/shapes.ts'
import { contiguous, unsqueeze } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'
import { adjointOf, checkMatrix, matricesOf, tensorOf } from './batches.ts'
import { eigh, svdvals } from './decompositions.ts'
import { mirrored } from './dense.ts'
import { matmul } from './matmul.ts'
import { pinvOf } from './orthogonal.ts'

/** A tolerance: one number, or one for each matrix of a batch. */
export type Tolerance = number | Tensor | null

export function toleranceOf(op: string, name: string, value: unknown): Tolerance {
  if (value === null || typeof value === 'number' || value instanceof Tensor) return value
  throw new ArgumentError(`${op}: argument '${name}' must be a number or a Tensor with a number for each matrix, got ${valueText(value)}.`)
}

/** The limit of `rtol` for matrices of that shape: no matter what, if `atol` is given and positive. */
function relativeLimit(self: Tensor, atol: Tolerance, rtol: Tolerance): number | Tensor {
  const usual = Math.max(...sizeNumbers(self.symSizes.slice(-2))) * (realDType(self.dtype) === 'float64' ? 2 ** -52 : 2 ** -23)
  if (rtol !== null) return rtol
  if (atol instanceof Tensor) return where(gt(atol, 0), 0, fullLike(atol, usual, { dtype: realDType(self.dtype) }))
  return atol !== null && atol > 0 ? 0 : usual
}

/** Which of the singular values [.., k] of `self` count: those above `atol`, and above `rtol` times the greatest. */
export function counting(self: Tensor, values: Tensor, atol: Tolerance, rtol: Tolerance): Tensor {
  const perMatrix = (limit: number | Tensor): number | Tensor => (limit instanceof Tensor ? unsqueeze(limit, -1) : limit)
  const relative = mul(amax(values, [-1], true), perMatrix(relativeLimit(self, atol, rtol)))
  return atol === null ? gt(values, relative) : logicalAnd(gt(values, relative), gt(values, perMatrix(atol)))
}

/** One number for each matrix of a batch. */
function numbersFor(batch: readonly number[], limit: number | Tensor): (matrix: number) => number {
  if (typeof limit === 'number') return () => limit
  const numbers = exactElements(contiguous(expand(limit.detach(), batch)))
  return (matrix) => Number(numbers[matrix])
}

/**
 * The pseudo-inverse of matrices, by their singular values; with `hermitian` only their lower triangles count. Internal; what torch.linalg.pinv computes; PyTorch has no such operator.
 *
 * Shape: [.., m, n] gives [.., n, m].
 *
 * @throws ShapeError unless `self` holds matrices, square ones with `hermitian`.
 * @throws DTypeError unless it is floating.
 * @example torch.ops.tensorfx.pseudoInverse(torch.tensor([[2], [0]]), null, null, false).toArray() // [[0.5, 0]]
 */
export const pseudoInverse: OpFunction<(self: Tensor, atol: Tolerance, rtol: Tolerance, hermitian: boolean) => Tensor> = defineOp({
  schema: 'pseudo_inverse(Tensor self, any? atol, any? rtol, bool hermitian) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  matrices: ['self'],
  autocast: 'as is',
  meta: (self, _atol, _rtol, hermitian) => {
    checkMatrix('torch.linalg.pinv', self, hermitian)
    return { shape: [...self.symSizes.slice(0, -2), sizeAt(self.symSizes, -1), sizeAt(self.symSizes, -2)], dtype: self.dtype }
  },
  kernel: (self, givenAtol, givenRtol, hermitian) => {
    const op = 'torch.linalg.pinv'
    checkMatrix(op, self, hermitian)
    const [atol, rtol] = [toleranceOf(op, 'atol', givenAtol), toleranceOf(op, 'rtol', givenRtol)]
    const batch = self.sizes.slice(0, -2)
    const [absolute, relative] = [numbersFor(batch, atol ?? 0), numbersFor(batch, relativeLimit(self, atol, rtol))]
    return tensorOf(
      matricesOf(self).map((a, b) => pinvOf(hermitian ? mirrored(a, true) : a, (greatest) => Math.max(absolute(b), relative(b) * greatest))),
      [...batch, sizeAt(self.sizes, -1), sizeAt(self.sizes, -2)],
      self.dtype,
    )
  },
  // Golub and Pereyra's formula for matrices of constant rank, which PyTorch takes of the whole matrix, symmetric or not.
  derivative: ([g], { args: [a], outputs: [p] }) => {
    const gradient = adjointOf(g)
    const pt = adjointOf(p)
    const direct = neg(adjointOf(matmul(matmul(p, gradient), p)))
    const left = matmul(sub(gradient, matmul(matmul(a, p), gradient)), matmul(p, pt))
    const right = matmul(matmul(pt, p), sub(gradient, matmul(matmul(gradient, p), a)))
    return [add(add(direct, left), right), null, null, null]
  },
})

/** The options of {@link pinv}. */
export interface PinvOptions {
  readonly atol?: Tolerance
  readonly rtol?: Tolerance
  /** Whether the matrices are symmetric: only their lower triangles count then. */
  readonly hermitian?: boolean
}

/**
 * The pseudo-inverse, for which singular values up to `atol`, or up to `rtol` times the greatest, count as 0. PyTorch's `torch.linalg.pinv`.
 *
 * Shape: [.., m, n] gives [.., n, m]. The limits are numbers, or tensors [..].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless it is floating.
 * @example torch.linalg.pinv(torch.tensor([[2], [0]])).toArray() // [[0.5, 0]]
 */
export const pinv: OpFunction<(self: Tensor, options?: PinvOptions) => Tensor> = defineOp({
  schema: 'pinv(Tensor self, *, any? atol=None, any? rtol=None, bool hermitian=False) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (self, givenAtol, givenRtol, hermitian) => {
    const op = 'torch.linalg.pinv'
    checkMatrix(op, self, hermitian)
    const [atol, rtol] = [toleranceOf(op, 'atol', givenAtol), toleranceOf(op, 'rtol', givenRtol)]
    return pseudoInverse(self, atol, rtol, hermitian)
  },
})

/** The absolute values of the eigenvalues of symmetric matrices, which are their singular values, or the singular values of others. */
export const singularValues = (self: Tensor, hermitian: boolean): Tensor => (hermitian ? abs(eigh(self, 'L')[0]) : svdvals(self))
