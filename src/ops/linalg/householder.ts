// Householder's reflections: QR in the form that LAPACK has, and products with the matrices that the reflections make.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import { isComplexDType } from '../../kernels/index.ts'
import { formatShape, sameShape, sizeEq, sizeLess, sizeNumber, sizeSub } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { conj } from '../complex/construct.ts'
import { eye } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { cat } from '../join/join.ts'
import { mul, sub } from '../pointwise/arithmetic.ts'
import { sizeAt } from '../shared/shapes.ts'
import { unsqueeze } from '../view/reshape.ts'
import { narrow, select } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { adjointOf, checkMatrix, matricesOf, tensorOf, tensorOfScalars, smaller } from './batches.ts'
import { matmul } from './matmul.ts'
import { geqrfOf } from './orthogonal.ts'

/** Throws unless `self` holds the vectors, and `tau` the factors, of at most as many reflections as there are columns. */
function checkReflections(op: string, self: Tensor, tau: Tensor): void {
  checkMatrix(op, self)
  if (tau.dtype !== self.dtype) throw new DTypeError(`${op}: tau must have the dtype of self, ${self.dtype}, got ${tau.dtype}.`)
  if (
    tau.ndim !== self.ndim - 1 ||
    !sameShape(tau.symSizes.slice(0, -1), self.symSizes.slice(0, -2)) ||
    sizeLess(sizeAt(self.symSizes, -1), sizeAt(tau.symSizes, -1))
  )
    throw new ShapeError(
      `${op}: tau must have the batches of self and at most one number for each of its columns; got shape ${formatShape(tau.symSizes)} for self of shape ${formatShape(self.symSizes)}.`,
    )
}

/** The reflections I - tau v v^H of x: the last one first, which makes Q x, or else the adjoint ones, the first one first, which makes Q^H x. */
function reflected(x: Tensor, self: Tensor, tau: Tensor, lastFirst: boolean): Tensor {
  const m = sizeAt(self.symSizes, -2)
  // Each reflection is a step of the program.
  const count = sizeNumber(sizeAt(tau.symSizes, -1))
  const factors = lastFirst || !isComplexDType(tau.dtype) ? tau : conj(tau)
  const unit = eye(m, { dtype: self.dtype })
  let out = x
  for (let step = 0; step < count; step++) {
    const k = lastFirst ? count - 1 - step : step
    const below = narrow(narrow(self, -1, k, 1), -2, k + 1, sizeSub(m, k + 1))
    const top = expand(narrow(narrow(unit, -1, k, 1), -2, 0, k + 1), [...self.symSizes.slice(0, -2), k + 1, 1])
    const v = cat([top, below], -2)
    const factor = unsqueeze(unsqueeze(select(factors, -1, k), -1), -1)
    out = sub(out, mul(factor, matmul(v, matmul(adjointOf(v), out))))
  }
  return out
}

/**
 * The first columns of a product of Householder's reflections I - tau v v^H, whose vectors are the columns of `self` below the diagonal, where they are 1. PyTorch's
 * `torch.linalg.householder_product`.
 *
 * Shapes: `self` [.., m, n] with m >= n and `tau` [.., k] with k <= n give [.., m, n].
 *
 * @throws ShapeError unless `self` holds matrices that are not wide, and `tau` fits them.
 * @throws DTypeError unless both are floating, of the same dtype.
 * @example torch.linalg.householderProduct(torch.tensor([[5], [1]]), torch.tensor([1])).toArray() // [[0], [-1]]
 */
export const householderProduct: Op['householderProduct'] = defineOp({
  schema: 'householder_product(Tensor self, Tensor tau) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self, tau) => {
    const op = 'torch.linalg.householder_product'
    checkReflections(op, self, tau)
    const [m, n] = [sizeAt(self.symSizes, -2), sizeAt(self.symSizes, -1)]
    if (sizeLess(m, n)) throw new ShapeError(`${op}: self must not have more columns than rows, got shape ${formatShape(self.symSizes)}.`)
    return reflected(expand(narrow(eye(m, { dtype: self.dtype }), -1, 0, n), self.symSizes), self, tau, true)
  },
})

/**
 * QR as reflections: [a, tau]. R is the upper triangle of `a`; below it are the vectors of Householder's reflections, whose first elements are 1, and `tau` has their factors:
 * `torch.linalg.householderProduct(a, tau)` is Q. PyTorch's `torch.geqrf`, which has no gradient either.
 *
 * Shapes: [.., m, n] gives [.., m, n] and [.., min(m, n)].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless it is floating.
 * @example torch.geqrf(torch.tensor([[3, 0], [4, 5]])).map((t) => t.toArray()) // [[[-5, -4], [0.5, 3]], [1.6, 0]]
 */
export const geqrf: Op['geqrf'] = defineOp({
  schema: 'geqrf(Tensor self) -> (Tensor, Tensor)',
  method: true,
  matrices: ['self'],
  autocast: 'float32',
  meta: (self) => {
    checkMatrix('torch.geqrf', self)
    const count = smaller(self.symSizes)
    return [
      { shape: self.symSizes, dtype: self.dtype },
      { shape: [...self.symSizes.slice(0, -2), count], dtype: self.dtype },
    ]
  },
  kernel: (self): readonly [Tensor, Tensor] => {
    checkMatrix('torch.geqrf', self)
    const count = smaller(self.sizes)
    const all = matricesOf(self).map(geqrfOf)
    return [
      tensorOf(
        all.map(({ a }) => a),
        self.sizes,
        self.dtype,
      ),
      tensorOfScalars(
        all.flatMap(({ tau }) => tau),
        [...self.sizes.slice(0, -2), count],
        self.dtype,
      ),
    ]
  },
})

/**
 * The product of `other` with the square Q that Householder's reflections make: Q X, or X Q for `left: false`; with `transpose`, the conjugate transpose in the place of Q. PyTorch's `torch.ormqr`.
 *
 * Shapes: `self` [.., r, n] and `tau` [.., k] are reflections of r elements; `other` [.., r, c], or [.., c, r] for `left: false`, gives the shape of `other`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless all are floating, of the same dtype.
 * @example torch.ormqr(torch.tensor([[0], [1]]), torch.tensor([1]), torch.tensor([[1], [2]])).toArray() // [[-2], [-1]]
 */
export const ormqr: Op['ormqr'] = defineOp({
  schema: 'ormqr(Tensor self, Tensor tau, Tensor other, bool left=True, bool transpose=False) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (self, tau, other, left, transposing) => {
    const op = 'torch.ormqr'
    checkReflections(op, self, tau)
    checkMatrix(op, other)
    if (other.dtype !== self.dtype) throw new DTypeError(`${op}: other must have the dtype of self, ${self.dtype}, got ${other.dtype}.`)
    const rows = sizeAt(other.symSizes, left ? -2 : -1)
    if (
      other.ndim !== self.ndim ||
      !sameShape(other.symSizes.slice(0, -2), self.symSizes.slice(0, -2)) ||
      !sizeEq(rows, sizeAt(self.symSizes, -2)) ||
      sizeLess(rows, sizeAt(tau.symSizes, -1))
    )
      throw new ShapeError(
        `${op}: other must have the batches of self, and as many ${left ? 'rows' : 'columns'} as self has rows; got shapes ${formatShape(other.symSizes)} and ${formatShape(self.symSizes)}.`,
      )
    // X Q is the adjoint of Q^H X^H.
    return left ? reflected(other, self, tau, !transposing) : adjointOf(reflected(adjointOf(other), self, tau, transposing))
  },
})
