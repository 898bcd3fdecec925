// Eigenvalues and eigenvectors of square matrices, which are complex numbers.
import { complexDType, isComplexDType } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { conj, real } from '../complex/construct.ts'
import { toComplex } from '../complex/parts.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul, sub } from '../pointwise/arithmetic.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { reciprocal } from '../pointwise/unary.ts'
import { sizeAt } from '../shared/shapes.ts'
import { diagonal } from '../view/diagonal.ts'
import { unsqueeze } from '../view/reshape.ts'
import { adjointOf, checkMatrix, matricesOf, tensorOf, tensorOfScalars } from './batches.ts'
import { diagEmbed } from './diagonals.ts'
import { eigOf } from './eigenvalues.ts'
import { matmul } from './matmul.ts'
import { solveMatrix } from './solve.ts'
import { eye } from '../create/creation.ts'

/** 1 / (x_j - x_i) off the diagonal, and 0 on it. */
function inverseGaps(values: Tensor): Tensor {
  const n = sizeAt(values.sizes, -1)
  const gaps = sub(unsqueeze(values, -2), unsqueeze(values, -1))
  const onDiagonal = eq(eye(n), 1)
  const one = toComplex(eye(n), complexDType(values.dtype))
  return where(onDiagonal, toComplex(mul(eye(n), 0), complexDType(values.dtype)), reciprocal(where(onDiagonal, one, gaps)))
}

/**
 * Eigenvalues and eigenvectors, as columns of length 1, of square matrices: [values, vectors], complex numbers in no particular order. Vectors are fixed up to a factor of absolute
 * value 1, so that only what does not depend on it has a gradient. PyTorch's `torch.linalg.eig`.
 *
 * Shapes: [.., n, n] gives [.., n] and [.., n, n].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating or complex.
 * @example torch.linalg.eig(torch.tensor([[0, 1], [-1, 0]]))[0].toArray() // [{ re: 0, im: 1 }, { re: 0, im: -1 }]
 */
export const eig: Op['eig'] = defineOp({
  schema: 'eig(Tensor self) -> (Tensor, Tensor)',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'float32',
  meta: (self) => {
    checkMatrix('torch.linalg.eig', self, true)
    const dtype = complexDType(self.dtype)
    return [
      { shape: self.symSizes.slice(0, -1), dtype },
      { shape: self.symSizes, dtype },
    ]
  },
  kernel: (self): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.eig', self, true)
    const all = matricesOf(self).map(eigOf)
    const dtype = complexDType(self.dtype)
    return [
      tensorOfScalars(
        all.flatMap(({ values }) => values),
        self.sizes.slice(0, -1),
        dtype,
      ),
      tensorOf(
        all.map(({ vectors }) => vectors),
        self.sizes,
        dtype,
      ),
    ]
  },
  derivative: ([gvalues, gvectors], { args: [self], outputs: [values, vectors] }) => {
    const turned = adjointOf(vectors)
    let inner = gvalues === null ? null : diagEmbed(gvalues)
    if (gvectors !== null) {
      const along = matmul(turned, gvectors)
      // The length of a vector is fixed.
      const free = sub(along, matmul(turned, mul(vectors, unsqueeze(real(diagonal(along, 0, -2, -1)), -2))))
      const off = mul(free, conj(inverseGaps(values)))
      inner = inner === null ? off : add(inner, off)
    }
    if (inner === null) return [null]
    const gradient = solveMatrix(turned, matmul(inner, turned))
    return [isComplexDType(self.dtype) ? gradient : real(gradient)]
  },
})

/**
 * Eigenvalues of square matrices: complex numbers in no particular order. PyTorch's `torch.linalg.eigvals`.
 *
 * Shape: [.., n, n] gives [.., n].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating or complex.
 * @example torch.linalg.eigvals(torch.tensor([[0, 1], [-1, 0]])).toArray() // [{ re: 0, im: 1 }, { re: 0, im: -1 }]
 */
export const eigvals: Op['eigvals'] = defineOp({
  schema: 'eigvals(Tensor self) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self) => eig(self)[0],
})
