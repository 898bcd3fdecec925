// Norms of vectors and matrices, and numbers that follow from singular values.
import { ArgumentError } from '../../errors/index.ts'
import { isComplexDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { sizeEq, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { abs, div, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { amax, amin } from '../reduction/extremes.ts'
import { pNorm } from '../reduction/mean.ts'
import { castFirst, sum } from '../reduction/sum.ts'
import type { Dims, ReductionOptions } from '../reduction/sum.ts'
import { movedim } from '../view/arrange.ts'
import { reshape } from '../view/reshape.ts'
import { select } from '../view/slicing.ts'
import { checkMatrix } from './batches.ts'
import { svdvals } from './decompositions.ts'
import { counting, singularValues, toleranceOf } from './pinv.ts'
import type { PinvOptions } from './pinv.ts'
import { inv } from './solve.ts'

interface NormSizes {
  readonly dim?: Dims
  readonly keepdim?: boolean
  /** The values are cast to this dtype first. */
  readonly dtype?: DType | null
}

/**
 * The p-norm of vectors, p being `ord`, over the dimensions `dim` or all. PyTorch's `torch.linalg.vector_norm`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.linalg.vectorNorm(torch.tensor([3, 4])).item() // 5
 */
export const vectorNorm: OpFunction<
  (self: Tensor, ord?: number | (NormSizes & { readonly ord?: number }), dim?: Dims | NormSizes, keepdim?: boolean) => Tensor
> = defineOp({
  schema: 'vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  namespace: 'torch.linalg',
  prepare: castFirst,
  decompose: (self, ord, dim, keepdim) => pNorm('torch.linalg.vector_norm', self, ord, dim, keepdim),
})

/** What the norm of a vector is computed of: absolute values in the place of complex numbers. */
const lengths = (self: Tensor): Tensor => (isComplexDType(self.dtype) ? abs(self) : self)

function matrixNormOf(op: string, self: Tensor, ord: unknown, dims: readonly number[], keepdim: boolean): Tensor {
  const [a, b] = dims.map((d) => wrapDim(op, d, self.ndim))
  if (a === undefined || b === undefined || dims.length !== 2 || a === b)
    throw new ArgumentError(`${op}: dim must name two different dimensions, got [${dims.join(', ')}].`)
  const kept = self.symSizes.map((size, d) => (d === a || d === b ? 1 : size))
  const shaped = (values: Tensor): Tensor => (keepdim ? reshape(values, kept) : values)
  if (ord === 'fro') return pNorm(op, lengths(self), 2, [a, b], keepdim)
  if (ord === 'nuc' || ord === 2 || ord === -2) {
    const values = svdvals(movedim(self, [a, b], [-2, -1]))
    return shaped(ord === 'nuc' ? sum(values, [-1]) : select(values, -1, ord === 2 ? 0 : -1))
  }
  if (ord === 1 || ord === -1 || ord === Infinity || ord === -Infinity) {
    const [summed, compared] = Math.abs(ord) === 1 ? [a, b] : [b, a]
    const sums = sum(abs(self), [summed], true)
    return shaped(
      reshape(
        ord > 0 ? amax(sums, [compared], true) : amin(sums, [compared], true),
        keepdim ? kept : self.symSizes.filter((_, d) => d !== a && d !== b),
      ),
    )
  }
  throw new ArgumentError(`${op}: ord must be 'fro', 'nuc', 1, -1, 2, -2, Infinity or -Infinity, got ${valueText(ord)}.`)
}

type MatrixOrder = 'fro' | 'nuc' | number

/**
 * A norm of matrices: 'fro', 'nuc' (the sum of the singular values), 2 and -2 (the greatest and the least of them), 1 and -1 (of sums of columns), Infinity and -Infinity (of
 * sums of rows). PyTorch's `torch.linalg.matrix_norm`.
 *
 * Shape: that of `self` without the dimensions `dim`; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range.
 * @throws ArgumentError for an unknown `ord`, and unless `dim` names two dimensions.
 * @example torch.linalg.matrixNorm(torch.tensor([[3, 0], [0, 4]]), 'nuc').item() // 7
 */
export const matrixNorm: OpFunction<
  (
    self: Tensor,
    ord?: MatrixOrder | { readonly ord?: MatrixOrder; readonly dim?: readonly number[]; readonly keepdim?: boolean; readonly dtype?: DType | null },
    dim?: readonly number[] | { readonly dim?: readonly number[]; readonly keepdim?: boolean },
    keepdim?: boolean,
  ) => Tensor
> = defineOp({
  schema: "matrix_norm(Tensor self, any ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  namespace: 'torch.linalg',
  prepare: castFirst,
  decompose: (self, ord, dim, keepdim) => matrixNormOf('torch.linalg.matrix_norm', self, ord, dim, keepdim),
})

/**
 * The norm of a vector or a matrix: without `ord` the Euclidean length of all elements; over one dimension that of vectors, over two that of matrices. PyTorch's `torch.linalg.norm`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range.
 * @throws ArgumentError for an unknown `ord`.
 * @example torch.linalg.norm(torch.tensor([[3, 0], [0, 4]])).item() // 5
 */
export const linalgNorm: OpFunction<
  (self: Tensor, ord?: MatrixOrder | null | (NormSizes & { readonly ord?: MatrixOrder | null }), dim?: Dims | NormSizes, keepdim?: boolean) => Tensor
> = defineOp({
  schema: 'norm(Tensor self, any ord=None, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
  namespace: 'torch.linalg',
  prepare: castFirst,
  decompose: (self, ord, dim, keepdim) => {
    const dims = dim ?? (ord !== null && self.ndim === 2 ? [0, 1] : null)
    if (dims?.length === 2 && ord !== null) return matrixNormOf('torch.linalg.norm', self, ord, dims, keepdim)
    if (ord !== null && typeof ord !== 'number')
      throw new ArgumentError(`torch.linalg.norm: ord must be a number for vectors, got ${valueText(ord)}.`)
    return pNorm('torch.linalg.norm', lengths(self), ord ?? 2, dims, keepdim)
  },
})

/**
 * The condition number: the norm of a matrix times that of its inverse; without `p` the greatest singular value divided by the least. PyTorch's `torch.linalg.cond`.
 *
 * Shape: [.., n, n] gives [..]; without `p`, the matrices need not be square.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws ArgumentError for an unknown `p`.
 * @example torch.linalg.cond(torch.tensor([[2, 0], [0, 4]])).item() // 2
 */
export const cond: OpFunction<(self: Tensor, p?: MatrixOrder | null | { readonly p?: MatrixOrder | null }) => Tensor> = defineOp({
  schema: 'cond(Tensor self, any p=None) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self, p) => {
    checkMatrix('torch.linalg.cond', self)
    if (p !== null && p !== 2 && p !== -2)
      return mul(matrixNormOf('torch.linalg.cond', self, p, [-2, -1], false), matrixNormOf('torch.linalg.cond', inv(self), p, [-2, -1], false))
    const values = svdvals(self)
    const [greatest, least] = [select(values, -1, 0), select(values, -1, -1)]
    return p === -2 ? div(least, greatest) : div(greatest, least)
  },
})

/**
 * The number of singular values above a tolerance: `atol`, or `rtol` times the greatest. With `hermitian`, the matrices are symmetric, and only their lower triangles count.
 * PyTorch's `torch.linalg.matrix_rank`.
 *
 * Shape: [.., m, n] gives [..]. The result is int64. The limits are numbers, or tensors [..].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless it is floating.
 * @example torch.linalg.matrixRank(torch.tensor([[1, 2], [2, 4]])).item() // 1
 */
export const matrixRank: OpFunction<(self: Tensor, options?: PinvOptions) => Tensor> = defineOp({
  schema: 'matrix_rank(Tensor self, *, any? atol=None, any? rtol=None, bool hermitian=False) -> Tensor',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self, atol, rtol, hermitian) => {
    const op = 'torch.linalg.matrix_rank'
    checkMatrix(op, self, hermitian)
    if (sizeEq(self.symNumel, 0)) return zeros(self.symSizes.slice(0, -2), { dtype: 'int64' })
    const values = singularValues(self.detach(), hermitian)
    return sum(to(counting(self, values, toleranceOf(op, 'atol', atol), toleranceOf(op, 'rtol', rtol)), 'int64'), [-1])
  },
})

export interface NormOptions extends ReductionOptions {
  readonly p?: number | 'fro' | 'nuc'
  /** The values are cast to this dtype first. */
  readonly dtype?: DType | null
}

/**
 * The p-norm over `dim`, or over all dimensions: 2 is the Euclidean length, 1 the sum of absolute values, Infinity the greatest of them, -Infinity the
 * least, 0 the number of non-zero elements, 'fro' is 2, and 'nuc' the sum of the singular values of matrices. PyTorch's `torch.norm`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError for an unknown `p`.
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example
 * torch.norm(torch.tensor([3, -4])).item() // 5
 * torch.norm(torch.tensor([3, -4]), 1).item() // 7
 */
export const norm: OpFunction<(self: Tensor, p?: number | 'fro' | 'nuc' | NormOptions, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> =
  defineOp({
    schema: 'norm.ScalarOpt_dim(Tensor self, any p=2, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
    method: true,
    prepare: castFirst,
    decompose: (self, p, dim, keepdim) => {
      if (p === 'nuc') return matrixNormOf('torch.norm', self, p, dim ?? [-2, -1], keepdim)
      const order = p === 'fro' ? 2 : p
      if (typeof order !== 'number') throw new ArgumentError(`torch.norm: argument 'p' must be a number, 'fro' or 'nuc', got ${valueText(p)}.`)
      return pNorm('torch.norm', self, order, dim, keepdim)
    },
  })
