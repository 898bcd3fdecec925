// Small reductions: both extremes, the number of non-zero elements, the distance of tensors, and limits of norms.
import { wrapDim } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { gt, ne } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { reciprocal } from '../pointwise/unary.ts'
import { amax, amin } from './extremes.ts'
import { pNorm } from './mean.ts'
import { sum } from './sum.ts'

/**
 * The least and the greatest element, of all or along `dim`: [min, max]. PyTorch's `torch.aminmax`.
 *
 * Shapes: twice [], or that of `self` without `dim`; with `keepdim` it stays, with size 1.
 *
 * @throws ShapeError if `dim` is out of range.
 * @throws ArgumentError if there are no elements.
 * @example torch.aminmax(torch.tensor([3, 1, 2])).map((t) => t.item()) // [1, 3]
 */
export const aminmax: Op['aminmax'] = defineOp({
  schema: 'aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor, Tensor)',
  method: true,
  decompose: (self, dim, keepdim) => {
    const dims = dim === null ? null : [dim]
    return [amin(self, dims, keepdim), amax(self, dims, keepdim)]
  },
})

/**
 * The number of elements that are not 0, of all or over `dim`. PyTorch's `torch.count_nonzero`.
 *
 * Shape: that of `self` without the reduced dimensions. The result is int64.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.countNonzero(torch.tensor([3, 0, 2])).item() // 2
 */
export const countNonzero: Op['countNonzero'] = defineOp({
  schema: 'count_nonzero(Tensor self, int[]? dim=None) -> Tensor',
  method: true,
  decompose: (self, dim) => sum(to(ne(self, 0), 'int64'), dim),
})

/**
 * The p-norm of the difference of two tensors. PyTorch's `torch.dist`.
 *
 * Shapes: `self` and `other` broadcast; the result is a scalar.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.dist(torch.tensor([3, 4]), torch.tensor([0, 0])).item() // 5
 */
export const dist: Op['dist'] = defineOp({
  schema: 'dist(Tensor self, Tensor other, Scalar p=2) -> Tensor',
  method: true,
  decompose: (self, other, p) => pNorm('torch.dist', sub(self, other), p, null, false),
})

/**
 * The slices along `dim` whose p-norm exceeds `maxnorm`, scaled down to it. PyTorch's `torch.renorm`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.renorm(torch.tensor([[3, 4], [0.3, 0.4]]), 2, 0, 1).toArray() // [[0.6, 0.8], [0.3, 0.4]]
 */
export const renorm: Op['renorm'] = defineOp({
  schema: 'renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, p, dim, maxnorm) => {
    const at = wrapDim('torch.renorm', dim, self.ndim)
    const others = self.symSizes.map((_, d) => d).filter((d) => d !== at)
    const length = pNorm('torch.renorm', self, p, others, true)
    return mul(self, where(gt(length, maxnorm), mul(reciprocal(add(length, 1e-7)), maxnorm), 1))
  },
})
