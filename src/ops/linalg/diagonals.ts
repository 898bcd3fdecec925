// Matrices from diagonals, their traces, and the positions of triangles.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { formatShape, tensorFromValues, wrapDim, sizeAdd } from '../../tensor/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { diagonal, diagonalScatter } from '../view/diagonal.ts'
import { reshape } from '../view/reshape.ts'

export interface DiagonalOptions {
  readonly offset?: number
  readonly dim1?: number
  readonly dim2?: number
}

/**
 * Matrices of zeros with the last dimension as a diagonal, in dimensions `dim1` and `dim2` of the result. PyTorch's `torch.diag_embed`.
 *
 * Shape: [.., n] gives [.., n + |offset|, n + |offset|], with the two dimensions where `dim1` and `dim2` say.
 *
 * @throws ShapeError if a dimension is out of range, or both are the same.
 * @example torch.diagEmbed(torch.tensor([1, 2])).toArray() // [[1, 0], [0, 2]]
 */
export const diagEmbed: OpFunction<(self: Tensor, offset?: number | DiagonalOptions, dim1?: number, dim2?: number) => Tensor> = defineOp({
  schema: 'diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor',
  method: true,
  decompose: (self, offset, dim1, dim2) => {
    const rank = self.ndim + 1
    const [a, b] = [wrapDim('torch.diag_embed', dim1, rank), wrapDim('torch.diag_embed', dim2, rank)]
    if (a === b) throw new ShapeError(`torch.diag_embed: dim1 and dim2 must be different dimensions, got ${dim1} and ${dim2}.`)
    const size = sizeAdd(sizeAt(self.symSizes, -1), Math.abs(offset))
    const rest = [...self.symSizes.slice(0, -1)]
    const shape = Array.from({ length: rank }, (_, d) => (d === a || d === b ? size : (rest.shift() ?? 1)))
    return diagonalScatter(zeros(shape, { dtype: self.dtype }), self, offset, a, b)
  },
})

/**
 * The diagonal of a matrix, or the matrix of zeros with this diagonal. PyTorch's `torch.diag`.
 *
 * Shapes: [n, m] gives the diagonal; [n] gives [n + |diagonal|, n + |diagonal|].
 *
 * @throws ShapeError unless `self` has 1 or 2 dimensions.
 * @example
 * torch.diag(torch.tensor([1, 2])).toArray() // [[1, 0], [0, 2]]
 * torch.diag(torch.tensor([[1, 2], [3, 4]]), 1).toArray() // [2]
 */
export const diag: Op['diag'] = defineOp({
  schema: 'diag(Tensor self, int diagonal=0) -> Tensor',
  method: true,
  decompose: (self, offset) => {
    if (self.ndim !== 1 && self.ndim !== 2) throw new ShapeError(`torch.diag: expected 1 or 2 dimensions, got shape ${formatShape(self.symSizes)}.`)
    return self.ndim === 1 ? diagEmbed(self, offset) : diagonal(self, offset)
  },
})

/**
 * The matrix of zeros with all elements, in a row, as a diagonal. PyTorch's `torch.diagflat`.
 *
 * Shape: [n + |offset|, n + |offset|] for n elements.
 *
 * @throws ArgumentError if `offset` is not an integer.
 * @example torch.diagflat(torch.tensor([[1], [2]])).toArray() // [[1, 0], [0, 2]]
 */
export const diagflat: Op['diagflat'] = defineOp({
  schema: 'diagflat(Tensor self, int offset=0) -> Tensor',
  method: true,
  decompose: (self, offset) => diagEmbed(reshape(self, [-1]), offset),
})

/**
 * The sum of the diagonal of a matrix; of integers it is int64. PyTorch's `torch.trace`.
 *
 * Shape: [n, m] gives [].
 *
 * @throws ShapeError unless `self` has 2 dimensions.
 * @example torch.trace(torch.tensor([[1, 2], [3, 4]])).item() // 5
 */
export const trace: Op['trace'] = defineOp({
  schema: 'trace(Tensor self) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (self) => {
    if (self.ndim !== 2) throw new ShapeError(`torch.trace: expected a matrix, got shape ${formatShape(self.symSizes)}.`)
    return sum(diagonal(self))
  },
})

const LARGEST_TRIANGLE = 2 ** 26

function triangle(rows: number, columns: number, dtype: DType | null, holds: (row: number, column: number) => boolean): Tensor {
  if (rows < 0 || columns < 0 || !(rows * columns <= LARGEST_TRIANGLE))
    throw new ArgumentError(
      `torch.tril_indices and triu_indices: a matrix of at most ${LARGEST_TRIANGLE} elements is expected, got [${rows}, ${columns}].`,
    )
  let count = 0
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) if (holds(i, j)) count++
  const values = new Int32Array(2 * count)
  let next = 0
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) {
      if (!holds(i, j)) continue
      values[next] = i
      values[count + next++] = j
    }
  return withoutModes(() => tensorFromValues(values, [2, count], dtype ?? 'int64'))
}

/**
 * The rows and the columns of the lower triangle of a matrix, up to diagonal number `offset`. PyTorch's `torch.tril_indices`.
 *
 * Shape: [2, n], int64.
 *
 * @throws ArgumentError if a size is not an integer.
 * @example torch.trilIndices(2, 2).toArray() // [[0, 1, 1], [0, 0, 1]]
 */
export const trilIndices: Op['trilIndices'] = defineOp({
  schema: 'tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None) -> Tensor',
  tags: ['creation'],
  decompose: (row, col, offset, dtype) => triangle(row, col, dtype, (i, j) => j - i <= offset),
})

/**
 * The rows and the columns of the upper triangle of a matrix, from diagonal number `offset` on. PyTorch's `torch.triu_indices`.
 *
 * Shape: [2, n], int64.
 *
 * @throws ArgumentError if a size is not an integer.
 * @example torch.triuIndices(2, 2).toArray() // [[0, 0, 1], [0, 1, 1]]
 */
export const triuIndices: Op['triuIndices'] = defineOp({
  schema: 'triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None) -> Tensor',
  tags: ['creation'],
  decompose: (row, col, offset, dtype) => triangle(row, col, dtype, (i, j) => j - i >= offset),
})
