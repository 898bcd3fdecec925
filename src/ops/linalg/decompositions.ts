// Decompositions of matrices: QR, eigenvalues of symmetric matrices, singular values.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isComplexDType, realDType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { tensorFromValues, sizeMin } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { cat } from '../join/join.ts'
import { add, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { reciprocal } from '../pointwise/unary.ts'
import { refusedGradient } from '../pointwise/refusedGradient.ts'
import { sizeAt } from '../shared/shapes.ts'
import { tril } from './triangular.ts'
import { diagonal } from '../view/diagonal.ts'
import { squeeze, unsqueeze } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { adjointOf, checkMatrix, matricesOf, realPart, tensorOf, smaller } from './batches.ts'
import { adjoint, corner, mirrored } from './dense.ts'
import { diagEmbed } from './diagonals.ts'
import { matmul } from './matmul.ts'
import { eighOf, qrOf, svdOf } from './orthogonal.ts'
import { solveTriangular } from './solve.ts'

/** The Hermitian part. */
const symmetric = (t: Tensor): Tensor => mul(add(t, adjointOf(t)), 0.5)
const lead = (t: Tensor): readonly number[] => t.sizes.slice(0, -2)
const spec = (self: Tensor, ...shape: readonly Size[]): TensorSpec<Size> => ({ shape: [...self.symSizes.slice(0, -2), ...shape], dtype: self.dtype })

/**
 * The decomposition into a matrix with orthonormal columns and an upper triangular one: [Q, R]. Mode 'reduced' gives as many columns as the smaller size, 'complete' a square Q,
 * 'r' an empty Q. PyTorch's `torch.linalg.qr`.
 *
 * Shapes: [.., m, n] gives [.., m, k] and [.., k, n], k being the smaller size, or m in mode 'complete'.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws ArgumentError for an unknown `mode`.
 * @example torch.linalg.qr(torch.tensor([[3, 0], [4, 5]]))[1].toArray() // [[-5, -4], [0, 3]]
 */
export const qr: OpFunction<
  (self: Tensor, mode?: 'reduced' | 'complete' | 'r' | { readonly mode?: 'reduced' | 'complete' | 'r' }) => readonly [Tensor, Tensor]
> = defineOp({
  schema: "qr(Tensor self, str mode='reduced') -> (Tensor, Tensor)",
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'float32',
  meta: (self, mode) => {
    checkMatrix('torch.linalg.qr', self)
    if (mode !== 'reduced' && mode !== 'complete' && mode !== 'r')
      throw new ArgumentError(`torch.linalg.qr: mode must be 'reduced', 'complete' or 'r', got ${valueText(mode)}.`)
    const [m, n] = [sizeAt(self.symSizes, -2), sizeAt(self.symSizes, -1)]
    const k = mode === 'complete' ? m : sizeMin(m, n)
    return [mode === 'r' ? { shape: [0], dtype: self.dtype } : spec(self, m, k), spec(self, k, n)]
  },
  kernel: (self, mode): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.qr', self)
    const [m, n] = [sizeAt(self.sizes, -2), sizeAt(self.sizes, -1)]
    const k = mode === 'complete' ? m : Math.min(m, n)
    const all = matricesOf(self).map(qrOf)
    const q = all.map((one) => corner(one.q, m, k))
    const r = all.map((one) => corner(one.r, k, n))
    return [
      mode === 'r' ? tensorOf([], [0], self.dtype) : tensorOf(q, [...lead(self), m, k], self.dtype),
      tensorOf(r, [...lead(self), k, n], self.dtype),
    ]
  },
  derivative: ([gq, gr], { args: [self, mode], outputs: [q, r] }) => {
    const [m, n] = [sizeAt(self.sizes, -2), sizeAt(self.sizes, -1)]
    if (mode === 'r' || (mode === 'complete' && m > n))
      return [
        refusedGradient(
          self,
          `torch.linalg.qr: there is no gradient in mode '${mode}' for matrices of ${m} rows and ${n} columns; use mode 'reduced'.`,
        ),
        null,
      ]
    const [square, rest] = n > m ? [narrow(r, -1, 0, m), narrow(r, -1, m, n - m)] : [r, null]
    // The right part of a wide R is Q^T times the columns of the matrix there.
    const grest = rest === null || gr === null ? null : narrow(gr, -1, m, n - m)
    const gsquare = gr === null ? null : rest === null ? gr : narrow(gr, -1, 0, m)
    const tail = rest === null ? null : narrow(self, -1, m, n - m)
    const gall = grest === null || tail === null ? gq : add(gq ?? mul(q, 0), matmul(tail, adjointOf(grest)))
    const left = gsquare === null ? null : matmul(square, adjointOf(gsquare))
    const right = gall === null ? null : matmul(adjointOf(gall), q)
    const middle = left === null ? neg(right ?? mul(square, 0)) : right === null ? left : sub(left, right)
    const strict = tril(middle, -1)
    // The diagonal of R is real.
    const both = add(add(strict, adjointOf(strict)), diagEmbed(realPart(diagonal(middle, 0, -2, -1))))
    const numerator = gall === null ? matmul(q, both) : add(gall, matmul(q, both))
    const gleft = adjointOf(solveTriangular(square, adjointOf(numerator), { upper: true }))
    return [grest === null ? (rest === null ? gleft : catColumns(gleft, mul(rest, 0), m)) : catColumns(gleft, matmul(q, grest), m), null]
  },
})

/** The columns of two matrices with `m` rows, side by side. */
const catColumns = (a: Tensor, b: Tensor, m: number): Tensor => cat([a, narrow(b, -2, 0, m)], -1)

/** 1 / (x_j - x_i), and 0 where they are equal. */
function inverseGaps(values: Tensor): Tensor {
  const gaps = sub(unsqueeze(values, -2), unsqueeze(values, -1))
  const same = eq(gaps, 0)
  return where(same, 0, reciprocal(where(same, 1, gaps)))
}

/**
 * Eigenvalues in ascending order and eigenvectors, as columns, of symmetric matrices: [values, vectors]. Only one triangle counts, the lower one unless `UPLO` is 'U'.
 * PyTorch's `torch.linalg.eigh`.
 *
 * Shapes: [.., n, n] gives [.., n] and [.., n, n].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError unless `UPLO` is 'L' or 'U'.
 * @example torch.linalg.eigh(torch.tensor([[2, 1], [1, 2]]))[0].toArray() // [1, 3]
 */
export const eigh: OpFunction<(self: Tensor, UPLO?: 'L' | 'U' | { readonly UPLO?: 'L' | 'U' }) => readonly [Tensor, Tensor]> = defineOp({
  schema: "eigh(Tensor self, str UPLO='L') -> (Tensor, Tensor)",
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'float32',
  meta: (self, triangle) => {
    checkMatrix('torch.linalg.eigh', self, true)
    if (triangle !== 'L' && triangle !== 'U') throw new ArgumentError(`torch.linalg.eigh: UPLO must be 'L' or 'U', got ${valueText(triangle)}.`)
    return [{ shape: self.symSizes.slice(0, -1), dtype: realDType(self.dtype) }, spec(self, sizeAt(self.symSizes, -1), sizeAt(self.symSizes, -1))]
  },
  kernel: (self, triangle): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.eigh', self, true)
    const all = matricesOf(self).map((a) => eighOf(mirrored(a, triangle === 'L')))
    return [
      tensorFromValues(
        all.flatMap(({ values }) => values),
        self.sizes.slice(0, -1),
        realDType(self.dtype),
      ),
      tensorOf(
        all.map(({ vectors }) => vectors),
        self.sizes,
        self.dtype,
      ),
    ]
  },
  derivative: ([gvalues, gvectors], { outputs: [values, vectors] }) => {
    const turning = gvectors === null ? null : mul(matmul(adjointOf(vectors), gvectors), inverseGaps(values))
    const stretching = gvalues === null ? null : to(diagEmbed(gvalues), vectors.dtype)
    const inner = turning === null ? stretching : stretching === null ? turning : add(turning, stretching)
    return [inner === null ? null : symmetric(matmul(matmul(vectors, inner), adjointOf(vectors))), null]
  },
})

/**
 * Eigenvalues of symmetric matrices in ascending order. PyTorch's `torch.linalg.eigvalsh`.
 *
 * Shape: [.., n, n] gives [.., n].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError unless `UPLO` is 'L' or 'U'.
 * @example torch.linalg.eigvalsh(torch.tensor([[2, 1], [1, 2]])).toArray() // [1, 3]
 */
export const eigvalsh: OpFunction<(self: Tensor, UPLO?: 'L' | 'U' | { readonly UPLO?: 'L' | 'U' }) => Tensor> = defineOp({
  schema: "eigvalsh(Tensor self, str UPLO='L') -> Tensor",
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self, triangle) => eigh(self, triangle === 'U' ? 'U' : 'L')[0],
})

/**
 * Singular values in descending order, with the left vectors as columns and the right ones as rows: [U, S, Vh], so that U diag(S) Vh is `self`. With `fullMatrices` (the
 * default) U and Vh are square. PyTorch's `torch.linalg.svd`.
 *
 * Shapes: [.., m, n] gives [.., m, k], [.., k] and [.., k, n], k being the smaller size; the full ones are [.., m, m] and [.., n, n].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless it is floating.
 * @example torch.linalg.svd(torch.tensor([[3, 0], [0, 4]]))[1].toArray() // [4, 3]
 */
export const svd: Op['svd'] = defineOp({
  schema: 'svd(Tensor self, bool full_matrices=True) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'float32',
  meta: (self, full) => {
    checkMatrix('torch.linalg.svd', self)
    const [m, n, k] = [sizeAt(self.symSizes, -2), sizeAt(self.symSizes, -1), smaller(self.symSizes)]
    return [spec(self, m, full ? m : k), { shape: [...self.symSizes.slice(0, -2), k], dtype: realDType(self.dtype) }, spec(self, full ? n : k, n)]
  },
  kernel: (self, full): readonly [Tensor, Tensor, Tensor] => {
    checkMatrix('torch.linalg.svd', self)
    const [m, n, k] = [sizeAt(self.sizes, -2), sizeAt(self.sizes, -1), smaller(self.sizes)]
    const all = matricesOf(self).map((a) => svdOf(a, full))
    return [
      tensorOf(
        all.map(({ u }) => u),
        [...lead(self), m, full ? m : k],
        self.dtype,
      ),
      tensorFromValues(
        all.flatMap(({ values }) => values),
        [...lead(self), k],
        realDType(self.dtype),
      ),
      tensorOf(
        all.map(({ v }) => adjoint(v)),
        [...lead(self), full ? n : k, n],
        self.dtype,
      ),
    ]
  },
  derivative: ([gu, gs, gvh], { args: [self], outputs: [fullU, s, fullVh] }) => {
    const k = smaller(self.sizes)
    const [u, vh] = [narrow(fullU, -1, 0, k), narrow(fullVh, -2, 0, k)]
    const v = adjointOf(vh)
    const gaps = mul(inverseGaps(s), inverseSums(s))
    const skew = (t: Tensor): Tensor => sub(t, adjointOf(t))
    const scale = unsqueeze(s, -2)
    const inverse = where(eq(scale, 0), 0, reciprocal(where(eq(scale, 0), 1, scale)))
    let inner = to(diagEmbed(gs ?? mul(s, 0)), u.dtype)
    let outside: Tensor | null = null
    if (gu !== null) {
      const g = narrow(gu, -1, 0, k)
      const turning = skew(matmul(adjointOf(u), g))
      inner = add(inner, mul(mul(turning, gaps), scale))
      // The phases of singular vectors, which only the product of both fixes.
      if (isComplexDType(self.dtype)) inner = add(inner, diagEmbed(mul(diagonal(turning, 0, -2, -1), mul(squeeze(inverse, -2), 0.5))))
      if (sizeAt(u.sizes, -2) > k) outside = matmul(sub(mul(g, inverse), matmul(u, matmul(adjointOf(u), mul(g, inverse)))), vh)
    }
    if (gvh !== null) {
      const g = adjointOf(narrow(gvh, -2, 0, k))
      inner = add(inner, mul(unsqueeze(s, -1), mul(skew(matmul(adjointOf(v), g)), gaps)))
      if (sizeAt(v.sizes, -2) > k) {
        const extra = matmul(u, adjointOf(sub(mul(g, inverse), matmul(v, matmul(adjointOf(v), mul(g, inverse))))))
        outside = outside === null ? extra : add(outside, extra)
      }
    }
    const core = matmul(matmul(u, inner), vh)
    return [outside === null ? core : add(core, outside), null]
  },
})

/** 1 / (x_j + x_i), and 0 where the sum is 0. */
function inverseSums(values: Tensor): Tensor {
  const sums = add(unsqueeze(values, -2), unsqueeze(values, -1))
  const none = eq(sums, 0)
  return where(none, 0, reciprocal(where(none, 1, sums)))
}

/**
 * Singular values in descending order. PyTorch's `torch.linalg.svdvals`.
 *
 * Shape: [.., m, n] gives [.., k], k being the smaller size.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless it is floating.
 * @example torch.linalg.svdvals(torch.tensor([[3, 0], [0, 4]])).toArray() // [4, 3]
 */
export const svdvals: Op['svdvals'] = defineOp({
  schema: 'svdvals(Tensor self) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self) => svd(self, false)[1],
})
