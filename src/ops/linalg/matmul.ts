// The broadcasting products, composed of mm and bmm: matmul, mv, dot, outer.
import { ShapeError } from '../../errors/index.ts'
import { promoteTypes } from '../../kernels/index.ts'
import { broadcastShapes, formatShape, numelOf, sameShape } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { sum } from '../reduction/sum.ts'
import { expand, reshape, squeeze, unsqueeze } from '../view/index.ts'
import { bmm, mm } from './mm.ts'

function matmulMeta(self: Tensor, other: Tensor): TensorSpec {
  if (self.ndim === 0 || other.ndim === 0) {
    throw new ShapeError(
      `torch.matmul: both arguments need at least 1 dimension, got shapes ${formatShape(self.shape)} and ${formatShape(other.shape)}. Use torch.mul for scalars.`,
    )
  }
  const a = self.ndim === 1 ? [1, ...self.shape] : self.shape
  const b = other.ndim === 1 ? [...other.shape, 1] : other.shape
  const k = a[a.length - 1] as number
  const k2 = b[b.length - 2] as number
  if (k !== k2) {
    throw new ShapeError(
      `torch.matmul: self has ${k} elements in its last dimension (shape ${formatShape(self.shape)}) but other has ${k2} in its ${other.ndim === 1 ? 'only' : 'second to last'} ` +
        `(shape ${formatShape(other.shape)}); they must be equal.`,
    )
  }
  const batch = broadcastShapes('torch.matmul (batch dimensions)', a.slice(0, -2), b.slice(0, -2))
  const shape = [...batch, ...(self.ndim === 1 ? [] : [a[a.length - 2] as number]), ...(other.ndim === 1 ? [] : [b[b.length - 1] as number])]
  return { shape, dtype: promoteTypes(self.dtype, other.dtype) }
}

function batched(self: Tensor, other: Tensor): Tensor {
  const m = self.shape[self.ndim - 2] as number
  const k = self.shape[self.ndim - 1] as number
  const n = other.shape[other.ndim - 1] as number
  const batch = broadcastShapes('torch.matmul (batch dimensions)', self.shape.slice(0, -2), other.shape.slice(0, -2))
  const count = numelOf(batch)
  const flatten = (t: Tensor, rows: number, cols: number): Tensor => {
    const full = [...batch, rows, cols]
    const expanded = sameShape(t.shape, full) ? t : expand(t, full)
    return expanded.ndim === 3 ? expanded : reshape(expanded, [count, rows, cols])
  }
  const product = bmm(flatten(self, m, k), flatten(other, k, n))
  return batch.length === 1 ? product : reshape(product, [...batch, m, n])
}

/** The matrix product with PyTorch's rules: vectors are rows or columns, leading dimensions are batches and broadcast. PyTorch's `torch.matmul`. */
export const matmul: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'matmul(Tensor self, Tensor other) -> Tensor',
  method: true,
  meta: matmulMeta,
  decompose: (self: Tensor, other: Tensor): Tensor => {
    matmulMeta(self, other)
    if (self.ndim === 2 && other.ndim === 2) return mm(self, other)
    if (self.ndim === 1 && other.ndim === 1) return sum(mul(self, other))
    if (self.ndim === 1) return squeeze(matmul(unsqueeze(self, 0), other), -2)
    if (other.ndim === 1) return squeeze(matmul(self, unsqueeze(other, 1)), -1)
    // Many rows by one matrix is one tall product, not a batch.
    if (other.ndim === 2 && self.numel > 0 && other.numel > 0) {
      const k = self.shape[self.ndim - 1] as number
      return reshape(mm(reshape(self, [self.numel / k, k]), other), [...self.shape.slice(0, -1), other.shape[1] as number])
    }
    return batched(self, other)
  },
})

/** Matrix times vector. PyTorch's `torch.mv`. */
export const mv: OpFunction<(self: Tensor, vec: Tensor) => Tensor> = defineOp({
  schema: 'mv(Tensor self, Tensor vec) -> Tensor',
  method: true,
  meta: (self: Tensor, vec: Tensor): TensorSpec => mvCheck(self, vec),
  decompose: (self: Tensor, vec: Tensor): Tensor => {
    mvCheck(self, vec)
    return squeeze(mm(self, unsqueeze(vec, 1)), 1)
  },
})

function mvCheck(self: Tensor, vec: Tensor): TensorSpec {
  if (self.ndim !== 2 || vec.ndim !== 1 || self.shape[1] !== vec.shape[0]) {
    throw new ShapeError(`torch.mv: expected a matrix [m, n] and a vector [n], got shapes ${formatShape(self.shape)} and ${formatShape(vec.shape)}.`)
  }
  return { shape: [self.shape[0] as number], dtype: self.dtype }
}

/** The inner product of two vectors of equal length. PyTorch's `torch.dot`. */
export const dot: OpFunction<(self: Tensor, tensor: Tensor) => Tensor> = defineOp({
  schema: 'dot(Tensor self, Tensor tensor) -> Tensor',
  method: true,
  meta: (self: Tensor): TensorSpec => ({ shape: [], dtype: self.dtype }),
  decompose: (self: Tensor, tensor: Tensor): Tensor => {
    if (self.ndim !== 1 || tensor.ndim !== 1 || self.numel !== tensor.numel) {
      throw new ShapeError(
        `torch.dot: expected two vectors of the same length, got shapes ${formatShape(self.shape)} and ${formatShape(tensor.shape)}.`,
      )
    }
    return sum(mul(self, tensor))
  },
})

/** The outer product of two vectors: [n] and [m] give [n, m]. PyTorch's `torch.outer`. */
export const outer: OpFunction<(self: Tensor, vec2: Tensor) => Tensor> = defineOp({
  schema: 'outer(Tensor self, Tensor vec2) -> Tensor',
  method: true,
  meta: (self: Tensor, vec2: Tensor): TensorSpec => ({ shape: [self.numel, vec2.numel], dtype: promoteTypes(self.dtype, vec2.dtype) }),
  decompose: (self: Tensor, vec2: Tensor): Tensor => {
    if (self.ndim !== 1 || vec2.ndim !== 1) {
      throw new ShapeError(`torch.outer: expected two vectors, got shapes ${formatShape(self.shape)} and ${formatShape(vec2.shape)}.`)
    }
    return mul(unsqueeze(self, 1), unsqueeze(vec2, 0))
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link matmul} */
    matmul(other: Tensor): Tensor
    /** {@link mv} */
    mv(vec: Tensor): Tensor
    /** {@link dot} */
    dot(tensor: Tensor): Tensor
    /** {@link outer} */
    outer(vec2: Tensor): Tensor
  }
}
