// Softmax, its logarithm, and the logarithm of a sum of exponentials.
import { isStrict } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { sizeEq, wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { checkAdmits } from '../eager/admittedTypes.ts'
import { accumulatedIn, asFloating } from '../eager/promotion.ts'
import { abs, add, div, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { exp, log, reciprocal } from '../pointwise/unary.ts'
import { reshape } from '../view/reshape.ts'
import { detach } from '../view/windows.ts'
import { all, amax } from './extremes.ts'
import { softmaxOfLines } from './softmaxKernels.ts'
import { castFirst, sum } from './sum.ts'
import type { ReductionOptions } from './sum.ts'

function spec(op: string, self: Tensor, dim: number): TensorSpec<Size> {
  wrapDim(op, dim, self.ndim)
  checkAdmits(op, 'floating', self.dtype)
  return { shape: self.symSizes, dtype: self.dtype }
}

/** The options of softmax. */
export interface SoftmaxDim {
  readonly dim: number
  /** The values are cast to this dtype first. */
  readonly dtype?: DType | null
}

function softmaxGradient(g: Tensor, out: Tensor, dim: number): Tensor {
  const weighted = mul(g, out)
  return sub(weighted, mul(out, sum(weighted, dim, true)))
}

/** The values in the dtype in which they are combined, so that the result rounds once. */
const widened = (self: Tensor): Tensor => to(self, accumulatedIn(self.dtype))

/**
 * exp(x), scaled to sum 1 along `dim`. PyTorch's `torch.softmax`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self`, or `dtype`, is floating.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.softmax(torch.tensor([0, 0, 0, 0]), 0).toArray() // [0.25, 0.25, 0.25, 0.25]
 */
export const softmax: OpFunction<(self: Tensor, dim: number | SoftmaxDim, options?: { readonly dtype?: DType | null }) => Tensor> = defineOp({
  schema: 'softmax.int(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: 'softmax',
  prepare: castFirst,
  meta: (self, dim) => spec('torch.softmax', self, dim),
  halvesInFloat32: true,
  kernel: (self, dim) => {
    spec('torch.softmax', self, dim)
    return softmaxOfLines('softmax', self, dim)
  },
  decompose: (self, dim) => {
    checkAdmits('torch.softmax', 'floating', self.dtype)
    if (sizeEq(self.symNumel, 0)) return mul(self, 1)
    const x = widened(self)
    const e = exp(sub(x, amax(x, dim, true)))
    const total = sum(e, dim, true)
    // As in the kernel: one division for a line.
    return to(e.dtype === 'float32' && !isStrict() ? mul(e, reciprocal(total)) : div(e, total), self.dtype)
  },
  derivative: ([g], { args: [, dim], outputs: [out] }) => [softmaxGradient(g, out, dim), null, null],
})

/**
 * {@link softmax}, where lines that are -Infinity everywhere become 0 and not NaN: attention to nothing. PyTorch's `aten._safe_softmax`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self`, or `dtype`, is floating.
 * @throws ShapeError if `dim` is out of range.
 * @example torch._safeSoftmax(torch.tensor([[0, 0], [-Infinity, -Infinity]]), -1).toArray() // [[0.5, 0.5], [0, 0]]
 */
export const safeSoftmax: OpFunction<(self: Tensor, dim: number | SoftmaxDim, dtype?: DType | null) => Tensor> = defineOp({
  schema: '_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor',
  prepare: castFirst,
  meta: (self, dim) => spec('torch._safe_softmax', self, dim),
  decompose: (self, dim) => where(all(eq(self, -Infinity), dim, true), 0, softmax(self, dim)),
  derivative: ([g], { args: [, dim], outputs: [out] }) => [softmaxGradient(g, out, dim), null, null],
})

/**
 * log(softmax(x)), computed without overflow. PyTorch's `torch.log_softmax`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self`, or `dtype`, is floating.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.logSoftmax(torch.tensor([0, 0]), 0).toArray() // [-0.693147, -0.693147]
 */
export const logSoftmax: OpFunction<(self: Tensor, dim: number | SoftmaxDim, options?: { readonly dtype?: DType | null }) => Tensor> = defineOp({
  schema: 'log_softmax.int(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: 'logSoftmax',
  prepare: castFirst,
  meta: (self, dim) => spec('torch.log_softmax', self, dim),
  halvesInFloat32: true,
  kernel: (self, dim) => {
    spec('torch.log_softmax', self, dim)
    return softmaxOfLines('log_softmax', self, dim)
  },
  decompose: (self, dim) => {
    checkAdmits('torch.log_softmax', 'floating', self.dtype)
    if (sizeEq(self.symNumel, 0)) return mul(self, 1)
    const x = widened(self)
    const shifted = sub(x, amax(x, dim, true))
    return to(sub(shifted, log(sum(exp(shifted), dim, true))), self.dtype)
  },
  derivative: ([g], { args: [, dim], outputs: [out] }) => [sub(g, mul(exp(out), sum(g, dim, true))), null, null],
})

/**
 * The logarithm of the sum of exponentials over `dim`, computed without overflow. PyTorch's `torch.logsumexp`.
 *
 * Shape: that of `self` without the reduced dimensions; with `keepdim` they stay, with size 1.
 *
 * @throws ShapeError if a dimension is out of range or named twice.
 * @example torch.logsumexp(torch.tensor([1000, 1000]), 0).item() // 1000.69
 */
export const logsumexp: OpFunction<(self: Tensor, dim: number | readonly number[], options?: ReductionOptions) => Tensor> = defineOp({
  schema: 'logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self, dim, keepdim) => {
    const x = widened(to(self, asFloating(self.dtype)))
    // Nothing has the sum 0.
    if (sizeEq(x.symNumel, 0)) return to(log(sum(exp(x), dim, keepdim)), asFloating(self.dtype))
    const peak = detach(amax(x, dim, true))
    // Subtracting an infinite peak from infinite values would give NaN.
    const top = where(eq(abs(peak), Infinity), 0, peak)
    const total = log(sum(exp(sub(x, top)), dim, keepdim))
    return to(add(total, keepdim ? top : reshape(top, total.symSizes)), asFloating(self.dtype))
  },
})
