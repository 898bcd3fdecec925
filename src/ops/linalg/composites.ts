// Functions of linear algebra that follow from products, solutions and decompositions.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, sizeEq, sizeLess, wrapDim, sizeProduct, sizeNumber } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { valueText } from '../../protocol/index.ts'
import { arange, eye, zeros } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { mul, pow, sub } from '../pointwise/arithmetic.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { square } from '../pointwise/unary.ts'
import { amin } from '../reduction/extremes.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { movedim } from '../view/arrange.ts'
import { diagonal } from '../view/diagonal.ts'
import { flip, roll } from '../view/repeat.ts'
import { reshape, squeeze, unsqueeze } from '../view/reshape.ts'
import { adjointOf, checkMatrix } from './batches.ts'
import { svdvals } from './decompositions.ts'
import { matmul } from './matmul.ts'
import { matrixRank } from './norms.ts'
import { chained } from './products.ts'
import { pinv } from './pinv.ts'
import { inv, linalgSolve, solveTriangular } from './solve.ts'

function power(op: string, self: Tensor, n: number): Tensor {
  checkMatrix(op, self, true)
  if (n === 0) {
    const one = eye(sizeAt(self.symSizes, -1), { dtype: self.dtype })
    // It has the gradient 0, and not none.
    return where(eq(one, one), one, self)
  }
  let factor = n < 0 ? inv(self) : self
  let out: Tensor | null = null
  for (let rest = Math.abs(n); rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) out = out === null ? factor : matmul(out, factor)
    if (rest > 1) factor = matmul(factor, factor)
  }
  return out ?? factor
}

/**
 * Square matrices to an integer power; negative ones are powers of the inverse. PyTorch's `torch.linalg.matrix_power`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError for a negative power of a singular matrix.
 * @example torch.linalg.matrixPower(torch.tensor([[2, 0], [0, 3]]), 2).toArray() // [[4, 0], [0, 9]]
 */
export const linalgMatrixPower: Op['linalgMatrixPower'] = defineOp({
  schema: 'matrix_power(Tensor self, int n) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (self, n) => power('torch.linalg.matrix_power', self, n),
})

/**
 * Square matrices to an integer power: `torch.linalg.matrix_power`. PyTorch's `torch.matrix_power`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError for a negative power of a singular matrix.
 * @example torch.matrixPower(torch.tensor([[2, 0], [0, 3]]), 2).toArray() // [[4, 0], [0, 9]]
 */
export const matrixPower: Op['matrixPower'] = defineOp({
  schema: 'matrix_power(Tensor self, int n) -> Tensor',
  method: true,
  decompose: (self, n) => power('torch.matrix_power', self, n),
})

/**
 * The product of a chain of matrices, in the order that needs the fewest multiplications; vectors may stand at the ends. PyTorch's `torch.linalg.multi_dot`.
 *
 * Shapes: [n, m], [m, p], … give [n, ..].
 *
 * @throws ShapeError if the matrices cannot be multiplied.
 * @throws ArgumentError if there are none.
 * @example torch.linalg.multiDot([torch.tensor([[1, 2]]), torch.tensor([[3], [4]])]).toArray() // [[11]]
 */
export const multiDot: Op['multiDot'] = defineOp({
  schema: 'multi_dot(Tensor[] tensors) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (tensors) => chained('torch.linalg.multi_dot', tensors),
})

/**
 * Dot products along a dimension. PyTorch's `torch.linalg.vecdot`.
 *
 * Shapes: `x` and `y` broadcast; the result lacks the dimension.
 *
 * @throws ShapeError if the shapes do not broadcast, or `dim` is out of range.
 * @example torch.linalg.vecdot(torch.tensor([[1, 2]]), torch.tensor([[3, 4]])).toArray() // [11]
 */
export const vecdot: Op['vecdot'] = defineOp({
  schema: 'vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'half',
  decompose: (x, y, dim) => sum(mul(x, y), [dim]),
})

function crossOf(op: string, self: Tensor, other: Tensor, dim: number): Tensor {
  const at = wrapDim(op, dim, self.ndim)
  if (self.ndim !== other.ndim || !sizeEq(sizeAt(self.symSizes, at), 3) || !sizeEq(sizeAt(other.symSizes, at), 3))
    throw new ShapeError(
      `${op}: dimension ${dim} must have size 3 in both tensors, got shapes ${formatShape(self.symSizes)} and ${formatShape(other.symSizes)}.`,
    )
  const shifted = (t: Tensor, by: number): Tensor => roll(t, by, at)
  return sub(mul(shifted(self, -1), shifted(other, -2)), mul(shifted(self, -2), shifted(other, -1)))
}

/**
 * The cross product of vectors of 3 elements. PyTorch's `torch.linalg.cross`.
 *
 * Shapes: `self` and `other` broadcast, with size 3 in `dim`.
 *
 * @throws ShapeError unless the dimension has size 3.
 * @example torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0])).toArray() // [0, 0, 1]
 */
export const linalgCross: Op['linalgCross'] = defineOp({
  schema: 'cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (self, other, dim) => crossOf('torch.linalg.cross', self, other, dim),
})

/**
 * The cross product of vectors of 3 elements; without `dim`, along the first dimension of size 3. PyTorch's `torch.cross`.
 *
 * Shapes: `self` and `other` broadcast, with size 3 in `dim`.
 *
 * @throws ShapeError unless the dimension has size 3.
 * @example torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0])).toArray() // [0, 0, 1]
 */
export const cross: Op['cross'] = defineOp({
  schema: 'cross(Tensor self, Tensor other, int? dim=None) -> Tensor',
  method: true,
  decompose: (self, other, dim) =>
    crossOf(
      'torch.cross',
      self,
      other,
      dim ??
        Math.max(
          0,
          self.symSizes.findIndex((size) => sizeEq(size, 3)),
        ),
    ),
})

/**
 * A diagonal of matrices; a view. PyTorch's `torch.linalg.diagonal`.
 *
 * Shape: [.., n, m] gives [.., k], with k the length of the diagonal.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]])).toArray() // [1, 4]
 */
export const linalgDiagonal: Op['linalgDiagonal'] = defineOp({
  schema: 'diagonal(Tensor self, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (self, offset, dim1, dim2) => diagonal(self, offset, dim1, dim2),
})

const powersOf = (x: Tensor, n: number): Tensor => pow(unsqueeze(x, -1), arange(n, { dtype: 'int64' }))

/**
 * The powers 0, 1, … of each element. PyTorch's `torch.linalg.vander`.
 *
 * Shape: [.., n] gives [.., n, N]; N is n by default. A scalar counts as [1].
 *
 * @throws ArgumentError if `N` is less than 1.
 * @example torch.linalg.vander(torch.tensor([2, 3]), { N: 3 }).toArray() // [[1, 2, 4], [1, 3, 9]]
 */
export const linalgVander: Op['linalgVander'] = defineOp({
  schema: 'vander(Tensor x, *, int? N=None) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (x, n) => {
    if (n !== null && n < 1) throw new ArgumentError(`torch.linalg.vander: N must be at least 1, got ${n}.`)
    const line = x.ndim === 0 ? reshape(x, [1]) : x
    return powersOf(line, n ?? sizeNumber(sizeAt(line.symSizes, -1)))
  },
})

/**
 * The powers of the elements of a vector, from N - 1 down to 0; with `increasing` from 0 up. PyTorch's `torch.vander`.
 *
 * Shape: [n] gives [n, N]; N is n by default.
 *
 * @throws ArgumentError if `N` is negative.
 * @example torch.vander(torch.tensor([2, 3]), 3).toArray() // [[4, 2, 1], [9, 3, 1]]
 */
export const vander: Op['vander'] = defineOp({
  schema: 'vander(Tensor x, int? N=None, bool increasing=False) -> Tensor',
  decompose: (x, n, increasing) => {
    if (x.ndim !== 1) throw new ArgumentError(`torch.vander: x must be a vector, got shape ${formatShape(x.symSizes)}.`)
    if (n !== null && n < 0) throw new ArgumentError(`torch.vander: N must not be negative, got ${n}.`)
    const powers = powersOf(x, n ?? sizeNumber(sizeAt(x.symSizes, -1)))
    return increasing ? powers : flip(powers, -1)
  },
})

/**
 * The inverse of the linear map that a tensor is, whose first `ind` dimensions are those of the result. PyTorch's `torch.linalg.tensorinv`.
 *
 * Shape: the dimensions from `ind` on, then the first `ind` ones; both have as many elements.
 *
 * @throws ArgumentError unless `ind` is positive.
 * @throws ShapeError unless both parts have as many elements.
 * @example torch.linalg.tensorinv(torch.tensor([[2, 0], [0, 4]]), { ind: 1 }).toArray() // [[0.5, 0], [0, 0.25]]
 */
export const tensorinv: Op['tensorinv'] = defineOp({
  schema: 'tensorinv(Tensor self, int ind=2) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self, ind) => {
    if (ind < 1) throw new ArgumentError(`torch.linalg.tensorinv: ind must be positive, got ${ind}.`)
    const [outer, rest] = [self.symSizes.slice(0, ind), self.symSizes.slice(ind)]
    const count = sizeProduct(rest)
    if (!sizeEq(sizeProduct(outer), count))
      throw new ShapeError(
        `torch.linalg.tensorinv: the first ${ind} dimensions of ${formatShape(self.symSizes)} must have as many elements as the others.`,
      )
    return reshape(inv(reshape(self, [count, count])), [...rest, ...outer])
  },
})

/**
 * x with tensordot(A, x) = B. PyTorch's `torch.linalg.tensorsolve`.
 *
 * Shapes: the first dimensions of `A` are those of `B`, and the others those of the result, after `dims` have been moved to the end.
 *
 * @throws ShapeError unless both parts of `A` have as many elements.
 * @throws ArgumentError if the system is singular.
 * @example torch.linalg.tensorsolve(torch.tensor([[2, 0], [0, 4]]), torch.tensor([2, 8])).toArray() // [1, 2]
 */
export const tensorsolve: Op['tensorsolve'] = defineOp({
  schema: 'tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (given, b, dims) => {
    const a =
      dims === null
        ? given
        : movedim(
            given,
            dims,
            dims.map((_, i) => given.ndim - dims.length + i),
          )
    const rest = a.symSizes.slice(b.ndim)
    if (!sizeEq(sizeProduct(rest), b.symNumel))
      throw new ShapeError(
        `torch.linalg.tensorsolve: A of shape ${formatShape(a.symSizes)} does not map ${b.symNumel.toString()} numbers to ${formatShape(b.symSizes)}.`,
      )
    return reshape(linalgSolve(reshape(a, [b.symNumel, b.symNumel]), reshape(b, [-1])), rest)
  },
})

const DRIVERS: readonly string[] = ['gels', 'gelsy', 'gelsd', 'gelss']

/**
 * The least-squares solutions of A X = B, of the least norm: [solution, residuals, rank, singular values]. What PyTorch's `driver` (default 'gelsy') does not compute is empty:
 * 'gels' gives no rank, only 'gelsd' and 'gelss' give singular values, and residuals, the squared errors, need more rows than columns, full rank, and another driver than
 * 'gelsy'. Singular values up to `rcond` times the greatest count as 0. PyTorch's `torch.linalg.lstsq`.
 *
 * Shapes: `A` [.., m, n] and `B` [.., m, k] give [.., n, k]; residuals [.., k], rank [..], singular values [.., min(m, n)].
 *
 * @throws ShapeError unless `A` holds matrices.
 * @throws ArgumentError for an unknown `driver`.
 * @throws DTypeError unless the tensors are floating.
 * @example torch.linalg.lstsq(torch.tensor([[1], [1]]), torch.tensor([[2], [4]]))[0].toArray() // [[3]]
 */
export const lstsq: Op['lstsq'] = defineOp({
  schema: 'lstsq(Tensor A, Tensor B, float? rcond=None, *, str? driver=None) -> (Tensor, Tensor, Tensor, Tensor)',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (a, b, rcond, driver) => {
    checkMatrix('torch.linalg.lstsq', a)
    const how = driver ?? 'gelsy'
    if (!DRIVERS.includes(how)) throw new ArgumentError(`torch.linalg.lstsq: driver must be one of ${DRIVERS.join(', ')}, got ${valueText(driver)}.`)
    const side = b.ndim === a.ndim - 1 ? unsqueeze(b, -1) : b
    const x = matmul(pinv(a, { rtol: rcond }), side)
    const solution = side === b ? x : squeeze(x, -1)
    const [m, n] = [sizeAt(a.symSizes, -2), sizeAt(a.symSizes, -1)]
    const none = zeros([0], { dtype: a.dtype })
    const values = how === 'gels' || how === 'gelsy' ? none : svdvals(a.detach())
    const rank = how === 'gels' ? zeros([0], { dtype: 'int64' }) : matrixRank(a.detach(), { rtol: rcond })
    const isFull = (): boolean =>
      how === 'gels' || rank.isFake || sizeEq(rank.symNumel, 0) || sizeEq(Number(amin(rank).item()), sizeAt(a.symSizes, -1))
    const residuals = sizeLess(n, m) && how !== 'gelsy' && isFull() ? sum(square(sub(matmul(a, x), side)), [-2]) : none
    return [solution, residuals, rank, values]
  },
})

/**
 * X with A X = B, from the Cholesky factor of A: the lower one, or with `upper` the upper one. PyTorch's `torch.cholesky_solve`.
 *
 * Shapes: `B` [.., n, k] and `L` [.., n, n] give [.., n, k].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless the tensors are floating.
 * @example torch.choleskySolve(torch.tensor([[8]]), torch.tensor([[2]])).toArray() // [[2]]
 */
export const choleskySolve: Op['choleskySolve'] = defineOp({
  schema: 'cholesky_solve(Tensor B, Tensor L, bool upper=False) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (b, factor, upper) => {
    const lower = upper ? adjointOf(factor) : factor
    return solveTriangular(adjointOf(lower), solveTriangular(lower, b, { upper: false }), { upper: true })
  },
})

/**
 * The inverse of A, from its Cholesky factor: the lower one, or with `upper` the upper one. PyTorch's `torch.cholesky_inverse`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the factor is square.
 * @throws DTypeError unless it is floating.
 * @example torch.choleskyInverse(torch.tensor([[2]])).toArray() // [[0.25]]
 */
export const choleskyInverse: Op['choleskyInverse'] = defineOp({
  schema: 'cholesky_inverse(Tensor L, bool upper=False) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (factor, upper) => {
    checkMatrix('torch.cholesky_inverse', factor, true)
    return choleskySolve(eye(sizeAt(factor.symSizes, -1), { dtype: factor.dtype }), factor, upper)
  },
})
