// Systems of linear equations, inverses, determinants, and the matrix exponential.
import type { Size } from '../../protocol/index.ts'
import { ShapeError } from '../../errors/index.ts'
import { isComplexDType, realDType } from '../../kernels/index.ts'
import { broadcastShapes, formatShape, sameShape, sizeEq, tensorFromValues, numbersOf } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { complex, conj, imag } from '../complex/construct.ts'
import { eye, fullLike, zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { cat } from '../join/join.ts'
import { add, mul, neg } from '../pointwise/arithmetic.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { log } from '../pointwise/unary.ts'
import { sizeAt } from '../shared/shapes.ts'
import { tril, triu } from './triangular.ts'
import { transpose } from '../view/permute.ts'
import { squeeze, unsqueeze } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { adjointOf, checkAlike, checkMatrix, failure, matricesOf, tensorOf, tensorOfScalars, squareSpec } from './batches.ts'
import { get, identityLike, isZero, over, scalar, sizeOf, times } from './dense.ts'
import type { Dense, Scalar } from './dense.ts'
import { luOf, solveOf, solveTriangularOf } from './elimination.ts'
import { matmul } from './matmul.ts'
import { expOf } from './orthogonal.ts'

const turned = (t: Tensor): Tensor => transpose(t, -2, -1)

/** A system a x = b whose batches have been brought to the same shape. */
function systemSpec(op: string, a: Tensor, b: Tensor): TensorSpec<Size> {
  checkMatrix(op, a, true)
  checkMatrix(op, b)
  checkAlike(op, a, b)
  if (!sizeEq(sizeAt(a.symSizes, -1), sizeAt(b.symSizes, -2)) || !sameShape(a.symSizes.slice(0, -2), b.symSizes.slice(0, -2)))
    throw new ShapeError(`${op}: matrices of shape ${formatShape(a.symSizes)} do not fit right sides of shape ${formatShape(b.symSizes)}.`)
  return { shape: b.symSizes, dtype: b.dtype }
}

const solved = (a: Tensor, b: Tensor, fn: (a: Dense, b: Dense, batch: number) => Dense): Tensor => {
  const sides = matricesOf(b)
  return tensorOf(
    matricesOf(a).map((matrix, batch) => fn(matrix, sides[batch] ?? matrix, batch)),
    b.sizes,
    b.dtype,
  )
}

/** Both with the batch dimensions that they broadcast to. */
function aligned(op: string, a: Tensor, b: Tensor): readonly [Tensor, Tensor] {
  const batch = broadcastShapes(op, a.symSizes.slice(0, -2), b.symSizes.slice(0, -2))
  return [expand(a, [...batch, ...a.symSizes.slice(-2)]), expand(b, [...batch, ...b.symSizes.slice(-2)])]
}

/**
 * x with A x = B for square matrices. Internal; what torch.linalg.solve computes; PyTorch's `aten.linalg_solve_ex`.
 *
 * Shapes: [.., n, n] and [.., n, k] with the same batches give [.., n, k].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if a matrix is singular.
 * @example torch.ops.tensorfx.solveMatrix(torch.tensor([[2]]), torch.tensor([[6]])).toArray() // [[3]]
 */
export const solveMatrix: OpFunction<(a: Tensor, b: Tensor) => Tensor> = defineOp({
  schema: 'solve_matrix(Tensor A, Tensor B) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['rejectsData'],
  matrices: ['A', 'B'],
  autocast: 'as is',
  meta: (a, b) => systemSpec('torch.linalg.solve', a, b),
  kernel: (a, b) => {
    systemSpec('torch.linalg.solve', a, b)
    return solved(a, b, (matrix, side, batch) => {
      const x = solveOf(matrix, side)
      if (x === null) throw failure('torch.linalg.solve', batch, 'is singular')
      return x
    })
  },
  derivative: ([g], { args: [a], outputs: [x] }) => {
    const side = solveMatrix(adjointOf(a), g)
    return [neg(matmul(side, adjointOf(x))), side]
  },
})

/**
 * x with A x = B, or x A = B for `left: false`. PyTorch's `torch.linalg.solve`.
 *
 * Shapes: `A` [.., n, n] and `B` [.., n, k], or [.., n] with the batches of `A`; the result has the shape of `B`. Other batches broadcast.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if a matrix is singular.
 * @example torch.linalg.solve(torch.tensor([[2, 0], [0, 4]]), torch.tensor([2, 8])).toArray() // [1, 2]
 */
export const linalgSolve: Op['linalgSolve'] = defineOp({
  schema: 'solve(Tensor A, Tensor B, *, bool left=True) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (a, b, left) => {
    const isVector = b.ndim === 1 || (a.ndim - 1 === b.ndim && sameShape(b.symSizes, a.symSizes.slice(0, -1)))
    const side = isVector ? unsqueeze(b, -1) : left ? b : turned(b)
    const x = solveMatrix(...aligned('torch.linalg.solve', left ? a : turned(a), side))
    return isVector ? squeeze(x, -1) : left ? x : turned(x)
  },
})

/**
 * X with A X = B for a triangular A, of which only the triangle counts. Internal; PyTorch's `aten.linalg_solve_triangular`.
 *
 * Shapes: [.., n, n] and [.., n, k] with the same batches give [.., n, k].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless the tensors are floating.
 * @example torch.ops.tensorfx.triangularSolve(torch.tensor([[2]]), torch.tensor([[6]]), true, false).toArray() // [[3]]
 */
export const triangularSolve: OpFunction<(a: Tensor, b: Tensor, upper: boolean, unitriangular: boolean) => Tensor> = defineOp({
  schema: 'triangular_solve(Tensor A, Tensor B, bool upper, bool unitriangular) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  matrices: ['A', 'B'],
  autocast: 'as is',
  meta: (a, b) => systemSpec('torch.linalg.solve_triangular', a, b),
  kernel: (a, b, upper, unit) => {
    systemSpec('torch.linalg.solve_triangular', a, b)
    return solved(a, b, (matrix, side) => solveTriangularOf(matrix, side, upper, unit))
  },
  derivative: ([g], { args: [a, , upper, unit], outputs: [x] }) => {
    const side = triangularSolve(adjointOf(a), g, !upper, unit)
    const full = neg(matmul(side, adjointOf(x)))
    return [upper ? triu(full, unit ? 1 : 0) : tril(full, unit ? -1 : 0), side, null, null]
  },
})

export interface TriangularOptions {
  readonly upper: boolean
  /** False for X A = B. */
  readonly left?: boolean
  /** Whether the diagonal counts as ones. */
  readonly unitriangular?: boolean
}

/**
 * X with A X = B for a triangular A, of which only the triangle counts; X A = B for `left: false`. PyTorch's `torch.linalg.solve_triangular`.
 *
 * Shapes: `A` [.., n, n] and `B` [.., n, k] give [.., n, k]; batches broadcast.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless the tensors are floating.
 * @example torch.linalg.solveTriangular(torch.tensor([[2, 0], [1, 4]]), torch.tensor([[2], [9]]), { upper: false }).toArray() // [[1], [2]]
 */
export const solveTriangular: OpFunction<(A: Tensor, B: Tensor, options: TriangularOptions) => Tensor> = defineOp({
  schema: 'solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor',
  namespace: 'torch.linalg',
  decompose: (a, b, upper, left, unit) => {
    const [matrix, side] = aligned('torch.linalg.solve_triangular', left ? a : turned(a), left ? b : turned(b))
    const x = triangularSolve(matrix, side, left ? upper : !upper, unit)
    return left ? x : turned(x)
  },
})

/**
 * The inverse of square matrices. PyTorch's `torch.linalg.inv`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError if one of them is singular.
 * @example torch.linalg.inv(torch.tensor([[2, 0], [0, 4]])).toArray() // [[0.5, 0], [0, 0.25]]
 */
export const inv: Op['inv'] = defineOp({
  schema: 'inv(Tensor self) -> Tensor',
  namespace: 'torch.linalg',
  tags: ['rejectsData'],
  matrices: ['self'],
  autocast: 'float32',
  meta: squareSpec('torch.linalg.inv'),
  kernel: (self) => {
    checkMatrix('torch.linalg.inv', self, true)
    return solved(self, self, (matrix, _, batch) => {
      const x = solveOf(matrix, identityLike(matrix, matrix.rows))
      if (x === null) throw failure('torch.linalg.inv', batch, 'is singular')
      return x
    })
  },
  derivative: ([g], { outputs: [out] }) => [neg(matmul(matmul(adjointOf(out), g), adjointOf(out)))],
})

/**
 * The inverse of square matrices: `torch.linalg.inv`. PyTorch's `torch.inverse`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError if one of them is singular.
 * @example torch.inverse(torch.tensor([[2, 0], [0, 4]])).toArray() // [[0.5, 0], [0, 0.25]]
 */
export const inverse: Op['inverse'] = defineOp({
  schema: 'inverse(Tensor self) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (self) => inv(self),
})

const scalars = (self: Tensor): TensorSpec<Size> => ({ shape: self.symSizes.slice(0, -2), dtype: self.dtype })
const pivotsOf = (lu: Dense): Scalar[] => Array.from({ length: lu.rows }, (_, i) => get(lu, i, i))
/** The number of absolute value 1 in the direction of another; 0 of 0. */
const directionOf = (x: Scalar): Scalar => (isZero(x) ? x : x.im === 0 ? scalar(Math.sign(x.re)) : over(x, scalar(sizeOf(x))))
/** One number for each matrix, as a factor of it. */
const perMatrix = (t: Tensor): Tensor => unsqueeze(unsqueeze(t, -1), -1)

/**
 * The sign and the logarithm of the absolute value of the determinant: [sign, logabsdet]. PyTorch's `torch.linalg.slogdet`.
 *
 * Shapes: [.., n, n] gives twice [..].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.linalg.slogdet(torch.tensor([[0, 1], [2, 0]])).map((t) => t.item()) // [-1, 0.693147]
 */
export const linalgSlogdet: Op['linalgSlogdet'] = defineOp({
  schema: 'slogdet(Tensor self) -> (Tensor, Tensor)',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'as is',
  meta: (self) => {
    checkMatrix('torch.linalg.slogdet', self, true)
    return [scalars(self), { ...scalars(self), dtype: realDType(self.dtype) }]
  },
  kernel: (self): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.slogdet', self, true)
    const all = matricesOf(self).map(luOf)
    const { shape } = numbersOf(scalars(self))
    return [
      tensorOfScalars(
        all.map(({ lu, sign }) => pivotsOf(lu).map(directionOf).reduce(times, scalar(sign))),
        shape,
        self.dtype,
      ),
      tensorFromValues(
        all.map(({ lu }) => pivotsOf(lu).reduce((total, pivot) => total + Math.log(sizeOf(pivot)), 0)),
        shape,
        realDType(self.dtype),
      ),
    ]
  },
  derivative: ([gsign, glogs], { args: [self], outputs: [sign] }) => {
    // The sign of a complex determinant has an angle, whose gradient is the part of that of the sign that is perpendicular to it.
    const turning = gsign === null || !isComplexDType(self.dtype) ? null : complex(fullLike(glogs ?? imag(sign), 0), imag(mul(gsign, conj(sign))))
    const along = turning === null ? glogs : glogs === null ? turning : add(turning, glogs)
    return [along === null ? null : mul(perMatrix(along), adjointOf(inv(self)))]
  },
})

/**
 * The determinant of square matrices. PyTorch's `torch.linalg.det`.
 *
 * Shape: [.., n, n] gives [..].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.linalg.det(torch.tensor([[1, 2], [3, 4]])).item() // -2
 */
export const linalgDet: Op['linalgDet'] = defineOp({
  schema: 'det(Tensor self) -> Tensor',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'as is',
  meta: (self) => {
    checkMatrix('torch.linalg.det', self, true)
    return scalars(self)
  },
  kernel: (self) => {
    checkMatrix('torch.linalg.det', self, true)
    const values = matricesOf(self)
      .map(luOf)
      .map(({ lu, sign }) => pivotsOf(lu).reduce(times, scalar(sign)))
    return tensorOfScalars(values, self.sizes.slice(0, -2), self.dtype)
  },
  // Where the determinant is 0 so is the gradient, as in PyTorch.
  derivative: ([g], { args: [self], outputs: [out] }) => {
    const regular = where(perMatrix(eq(out, 0)), eye(sizeAt(self.symSizes, -1), { dtype: self.dtype }), self)
    return [mul(perMatrix(mul(g, isComplexDType(out.dtype) ? conj(out) : out)), adjointOf(inv(regular)))]
  },
})

/**
 * The determinant of square matrices: `torch.linalg.det`. PyTorch's `torch.det`.
 *
 * Shape: [.., n, n] gives [..].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.det(torch.tensor([[1, 2], [3, 4]])).item() // -2
 */
export const det: Op['det'] = defineOp({
  schema: 'det(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => linalgDet(self),
})

/**
 * The sign and the logarithm of the absolute value of the determinant: `torch.linalg.slogdet`. PyTorch's `torch.slogdet`.
 *
 * Shapes: [.., n, n] gives twice [..].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.slogdet(torch.tensor([[0, 1], [2, 0]])).map((t) => t.item()) // [-1, 0.693147]
 */
export const slogdet: Op['slogdet'] = defineOp({
  schema: 'slogdet(Tensor self) -> (Tensor, Tensor)',
  method: true,
  decompose: (self) => linalgSlogdet(self),
})

/**
 * The logarithm of the determinant; NaN if that is negative. PyTorch's `torch.logdet`.
 *
 * Shape: [.., n, n] gives [..].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.logdet(torch.tensor([[2, 0], [0, 3]])).item() // 1.791759
 */
export const logdet: Op['logdet'] = defineOp({
  schema: 'logdet(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => {
    const [sign, logs] = linalgSlogdet(self)
    return add(log(sign), logs)
  },
})

/**
 * The exponential of square matrices: the sum of A^k / k!. PyTorch's `torch.linalg.matrix_exp`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.linalg.matrixExp(torch.tensor([[0, 1], [0, 0]])).toArray() // [[1, 1], [0, 1]]
 */
export const linalgMatrixExp: Op['linalgMatrixExp'] = defineOp({
  schema: 'matrix_exp(Tensor self) -> Tensor',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'as is',
  meta: squareSpec('torch.linalg.matrix_exp'),
  kernel: (self) => {
    checkMatrix('torch.linalg.matrix_exp', self, true)
    return tensorOf(matricesOf(self).map(expOf), self.sizes, self.dtype)
  },
  // The upper right block of the exponential of [[A^H, G], [0, A^H]].
  derivative: ([g], { args: [self] }) => {
    const n = sizeAt(self.sizes, -1)
    const a = adjointOf(self)
    const block = cat([cat([a, g], -1), cat([zeros(a.sizes, { dtype: a.dtype }), a], -1)], -2)
    return [narrow(narrow(linalgMatrixExp(block), -2, 0, n), -1, n, n)]
  },
})

/**
 * The exponential of square matrices: `torch.linalg.matrix_exp`. PyTorch's `torch.matrix_exp`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @example torch.matrixExp(torch.tensor([[0, 1], [0, 0]])).toArray() // [[1, 1], [0, 1]]
 */
export const matrixExp: Op['matrixExp'] = defineOp({
  schema: 'matrix_exp(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => linalgMatrixExp(self),
})
