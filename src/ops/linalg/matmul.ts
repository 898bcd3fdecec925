// The broadcasting products, composed of mm and bmm: matmul, mv, dot, outer.
import { ShapeError } from '../../errors/index.ts'
import { promoteTypes } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { broadcastShapes, formatShape, hasNoElements, sameShape, sizeEq, sizeProduct } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { accumulatedIn } from '../eager/promotion.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { reshape, squeeze, unsqueeze } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'
import { bmm, mm, sameDType } from './mm.ts'

function matmulMeta(self: Tensor, other: Tensor): TensorSpec<Size> {
  if (self.ndim === 0 || other.ndim === 0) {
    throw new ShapeError(
      `torch.matmul: both arguments need at least 1 dimension, got shapes ${formatShape(self.symSizes)} and ${formatShape(other.symSizes)}. Use torch.mul for scalars.`,
    )
  }
  const a = self.ndim === 1 ? [1, ...self.symSizes] : self.symSizes
  const b = other.ndim === 1 ? [...other.symSizes, 1] : other.symSizes
  const k = sizeAt(a, -1)
  const k2 = sizeAt(b, -2)
  if (!sizeEq(k, k2)) {
    throw new ShapeError(
      `torch.matmul: self has ${k.toString()} elements in its last dimension (shape ${formatShape(self.symSizes)}) but other has ${k2.toString()} in its ${other.ndim === 1 ? 'only' : 'second to last'} ` +
        `(shape ${formatShape(other.symSizes)}); they must be equal.${other.ndim > 1 && sizeEq(other.symSizes.at(-1), k) ? ' Transpose it: x.matmul(y.transpose(-2, -1)).' : ''}`,
    )
  }
  const batch = broadcastShapes('torch.matmul (batch dimensions)', a.slice(0, -2), b.slice(0, -2))
  const shape = [...batch, ...(self.ndim === 1 ? [] : [sizeAt(a, -2)]), ...(other.ndim === 1 ? [] : [sizeAt(b, -1)])]
  sameDType('torch.matmul', 'self', self, 'other', other)
  return { shape, dtype: self.dtype }
}

function batched(self: Tensor, other: Tensor): Tensor {
  const m = sizeAt(self.symSizes, -2)
  const k = sizeAt(self.symSizes, -1)
  const n = sizeAt(other.symSizes, -1)
  const batch = broadcastShapes('torch.matmul (batch dimensions)', self.symSizes.slice(0, -2), other.symSizes.slice(0, -2))
  const count = sizeProduct(batch)
  const flatten = (t: Tensor, rows: Size, cols: Size): Tensor => {
    const full = [...batch, rows, cols]
    const expanded = sameShape(t.symSizes, full) ? t : expand(t, full)
    return expanded.ndim === 3 ? expanded : reshape(expanded, [count, rows, cols])
  }
  const product = bmm(flatten(self, m, k), flatten(other, k, n))
  return batch.length === 1 ? product : reshape(product, [...batch, m, n])
}

/** The sum of products, which is rounded once; of integers, in their own dtype. */
function innerProduct(self: Tensor, other: Tensor): Tensor {
  const dtype = accumulatedIn(self.dtype)
  return to(sum(mul(to(self, dtype), to(other, dtype))), self.dtype)
}

/**
 * The matrix product by PyTorch's rules: vectors are rows or columns, and leading dimensions are batches, which broadcast. PyTorch's `torch.matmul`.
 *
 * Shapes: [.., m, k] times [.., k, n] gives [.., m, n]; the 1 that a vector [k] is padded with does not appear in the result.
 *
 * @throws ShapeError if the sizes do not fit, or a tensor has no dimensions.
 * @throws DTypeError unless the dtypes are equal and numeric.
 * @example
 * torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10])).toArray() // [21, 43]
 * torch.matmul(torch.ones([5, 2, 3]), torch.ones([3, 4])).shape // [5, 2, 4]
 */
export const matmul: Op['matmul'] = defineOp({
  schema: 'matmul(Tensor self, Tensor other) -> Tensor',
  method: true,
  autocast: 'half',
  meta: matmulMeta,
  decompose: (self, other) => {
    matmulMeta(self, other)
    if (self.ndim === 2 && other.ndim === 2) return mm(self, other)
    if (self.ndim === 1 && other.ndim === 1) return innerProduct(self, other)
    if (self.ndim === 1) return squeeze(matmul(unsqueeze(self, 0), other), -2)
    if (other.ndim === 1) return squeeze(matmul(self, unsqueeze(other, 1)), -1)
    // Many rows times one matrix is one tall product, not a batch.
    if (other.ndim === 2 && !hasNoElements(self.symSizes) && !hasNoElements(other.symSizes)) {
      const [k, rows] = [sizeAt(self.symSizes, -1), self.symSizes.slice(0, -1)]
      return reshape(mm(reshape(self, [sizeProduct(rows), k]), other), [...rows, sizeAt(other.symSizes, 1)])
    }
    return batched(self, other)
  },
})

/**
 * A matrix times a vector. PyTorch's `torch.mv`.
 *
 * Shapes: [m, n] times [n] gives [m].
 *
 * @throws ShapeError if the sizes do not fit.
 * @throws DTypeError unless the dtypes are equal and numeric.
 * @example torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10])).toArray() // [21, 43]
 */
export const mv: Op['mv'] = defineOp({
  schema: 'mv(Tensor self, Tensor vec) -> Tensor',
  autocast: 'untouched',
  method: true,
  meta: (self, vec) => mvSpec(self, vec),
  decompose: (self, vec) => {
    mvSpec(self, vec)
    return squeeze(mm(self, unsqueeze(vec, 1)), 1)
  },
})

function mvSpec(self: Tensor, vec: Tensor): TensorSpec<Size> {
  if (self.ndim !== 2 || vec.ndim !== 1 || !sizeEq(self.symSizes[1], vec.symSizes[0])) {
    throw new ShapeError(
      `torch.mv: expected a matrix [m, n] and a vector [n], got shapes ${formatShape(self.symSizes)} and ${formatShape(vec.symSizes)}.`,
    )
  }
  return { shape: self.symSizes.slice(0, 1), dtype: self.dtype }
}

/**
 * The inner product of two vectors. PyTorch's `torch.dot`.
 *
 * Shapes: [n] times [n] gives a scalar.
 *
 * @throws ShapeError unless both are vectors of the same length.
 * @throws DTypeError unless the dtypes are equal and numeric.
 * @example torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4])).item() // 11
 */
export const dot: Op['dot'] = defineOp({
  schema: 'dot(Tensor self, Tensor tensor) -> Tensor',
  method: true,
  meta: (self) => ({ shape: [], dtype: self.dtype }),
  decompose: (self, tensor) => {
    if (self.ndim !== 1 || tensor.ndim !== 1 || !sizeEq(self.symNumel, tensor.symNumel)) {
      throw new ShapeError(
        `torch.dot: expected two vectors of the same length, got shapes ${formatShape(self.symSizes)} and ${formatShape(tensor.symSizes)}.`,
      )
    }
    sameDType('torch.dot', 'self', self, 'tensor', tensor)
    return innerProduct(self, tensor)
  },
})

/**
 * The outer product of two vectors. PyTorch's `torch.outer`.
 *
 * Shapes: [n] and [m] give [n, m].
 *
 * @throws ShapeError unless both are vectors.
 * @example torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4])).toArray() // [[3, 4], [6, 8]]
 */
export const outer: Op['outer'] = defineOp({
  schema: 'outer(Tensor self, Tensor vec2) -> Tensor',
  method: true,
  meta: (self, vec2) => ({ shape: [self.symNumel, vec2.symNumel], dtype: promoteTypes(self.dtype, vec2.dtype) }),
  decompose: (self, vec2) => {
    if (self.ndim !== 1 || vec2.ndim !== 1) {
      throw new ShapeError(`torch.outer: expected two vectors, got shapes ${formatShape(self.symSizes)} and ${formatShape(vec2.symSizes)}.`)
    }
    return mul(unsqueeze(self, 1), unsqueeze(vec2, 0))
  },
})
