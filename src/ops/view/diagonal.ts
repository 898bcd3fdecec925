// Diagonals of matrices: the view, its scatter and its gradient.
import { ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, sizeAdd, sizeEq, sizeMax, sizeMin, sizeMul, sizeSub, wrapDim, sizeLess } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { zeros } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { copy_, fill_ } from '../pointwise/fill.ts'
import { maskedFill } from '../pointwise/select.ts'
import { sizeAt } from '../shared/shapes.ts'
import { scatterInto, scatterSpec } from './scatterWindow.ts'
import { narrow } from './slicing.ts'
import { viewSpec } from './strides.ts'

function diagonalSpec(self: Tensor, offset: number, dim1: number, dim2: number): TensorSpec<Size> {
  const [sizes, steps] = [self.symSizes, self.symSteps]
  const [a, b] = [wrapDim('torch.diagonal', dim1, self.ndim), wrapDim('torch.diagonal', dim2, self.ndim)]
  if (a === b || self.ndim < 2)
    throw new ShapeError(`torch.diagonal: dim1 and dim2 must be two dimensions of self, got ${dim1} and ${dim2} (shape ${formatShape(sizes)}).`)
  const [down, right] = [Math.max(0, -offset), Math.max(0, offset)]
  const length = sizeMax(0, sizeMin(sizeSub(sizeAt(sizes, a), down), sizeSub(sizeAt(sizes, b), right)))
  const [strideA, strideB] = [sizeAt(steps, a), sizeAt(steps, b)]
  const others = (_: Size, i: number): boolean => i !== a && i !== b
  const start = sizeEq(length, 0) ? 0 : sizeAdd(sizeMul(down, strideA), sizeMul(right, strideB))
  return viewSpec(self, [...sizes.filter(others), length], [...steps.filter(others), sizeAdd(strideA, strideB)], sizeAdd(self.symOffset, start))
}

/**
 * A copy of `self` with `src` on a diagonal. PyTorch's `torch.diagonal_scatter`.
 *
 * Shapes: `src` has the shape of `torch.diagonal(self, offset, dim1, dim2)`. The result has the shape of `self`.
 *
 * @throws ShapeError if the shape of `src` does not fit, or `dim1` and `dim2` are not two dimensions of `self`. DTypeError if the dtypes differ.
 * @example torch.diagonalScatter(torch.zeros([2, 2]), torch.tensor([5, 6])).toArray() // [[5, 0], [0, 6]]
 */
export const diagonalScatter: Op['diagonalScatter'] = defineOp({
  schema: 'diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: { writeTo: 'self', view: 'torch.diagonal', part: 'src' },
  autocast: 'as is',
  meta: (self, src, offset, dim1, dim2) => scatterSpec('torch.diagonal_scatter', self, src, diagonalSpec(self, offset, dim1, dim2)),
  kernel: (self, src, offset, dim1, dim2) => scatterInto('torch.diagonal_scatter', self, src, (whole) => diagonalSpec(whole, offset, dim1, dim2)),
  derivative: ([g], { args: [, src, offset, dim1, dim2], needs }) => [
    needs[0] ? diagonalScatter(g, zeros(src.symSizes, { dtype: g.dtype }), offset, dim1, dim2) : null,
    needs[1] ? diagonal(g, offset, dim1, dim2) : null,
    null,
    null,
    null,
  ],
})

/**
 * A diagonal of the matrices that the dimensions `dim1` and `dim2` form, `offset` places above the main one (below it if negative); a view. PyTorch's `torch.diagonal`.
 *
 * Shape: that of `self` without `dim1` and `dim2`, and at the end the length of the diagonal.
 *
 * @throws ShapeError unless `dim1` and `dim2` are two dimensions of `self`.
 * @example torch.diagonal(torch.tensor([[1, 2], [3, 4]])).toArray() // [1, 4]
 */
export const diagonal: Op['diagonal'] = defineOp({
  schema: 'diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: 'dimensions',
  onnx: 'positions',
  autocast: 'as is',
  meta: diagonalSpec,
  derivative: ([g], { args: [self, offset, dim1, dim2] }) => [
    diagonalScatter(zeros(self.symSizes, { dtype: g.dtype }), g, offset, dim1, dim2),
    null,
    null,
    null,
  ],
  scatter: (value, self, offset, dim1, dim2) => diagonalScatter(self, value, offset, dim1, dim2),
})

/**
 * Sets the elements whose indices are equal in all dimensions to a value. With `wrap`, the diagonal of a matrix of more rows than columns starts again, a row after it
 * ended. PyTorch's `Tensor.fill_diagonal_`.
 *
 * Shape: at least 2 dimensions; if more, all of one size. Returns `self`.
 *
 * @throws ShapeError for other shapes.
 * @example torch.zeros([2, 2]).fillDiagonal_(5).toArray() // [[5, 0], [0, 5]]
 */
export const fillDiagonal_: Op['fillDiagonal_'] = defineOp({
  schema: 'fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, value, wrap) => {
    if (self.ndim < 2 || (self.ndim > 2 && self.symSizes.some((size) => !sizeEq(size, self.symSizes[0]))))
      throw new ShapeError(`fillDiagonal_: expected a matrix, or more dimensions of one size, got shape ${formatShape(self.symSizes)}.`)
    // Through a mask, since a write to a view has no gradient.
    const mask = zeros(self.symSizes, { dtype: 'bool' })
    const [rows, columns] = [sizeAt(self.symSizes, 0), sizeAt(self.symSizes, 1)]
    const end = wrap && self.ndim === 2 ? sizeMax(1, rows) : 1
    for (let start: Size = 0; sizeLess(start, end); start = sizeAdd(start, sizeAdd(columns, 1))) {
      let line = narrow(mask, 0, start, sizeSub(rows, start))
      while (line.ndim > 1) line = diagonal(line, 0, 0, -1)
      fill_(line, 1)
    }
    return copy_(self, maskedFill(self, mask, value))
  },
})
