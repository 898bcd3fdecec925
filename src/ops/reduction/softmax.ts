// Softmax, its logarithm, and the logarithm of a sum of exponentials.
import { dtypeInfo } from '../../kernels/index.ts'
import { wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { abs, add, div, mul, sub } from '../pointwise/arithmetic.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { exp, log } from '../pointwise/unary.ts'
import { reshape } from '../view/reshape.ts'
import { detach } from '../view/windows.ts'
import { amax } from './extremes.ts'
import { sum } from './sum.ts'
import type { ReductionOptions } from './sum.ts'

function spec(op: string, self: Tensor, dim: number): TensorSpec {
  wrapDim(op, dim, self.ndim)
  return { shape: self.shape, dtype: dtypeInfo[self.dtype].floating ? self.dtype : 'float32' }
}

/**
 * exp(x), scaled to sum 1 along `dim`. PyTorch's `torch.softmax`.
 *
 * Shape: that of `self`; integers become float32.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.softmax(torch.tensor([0, 0, 0, 0]), 0).toArray() // [0.25, 0.25, 0.25, 0.25]
 */
export const softmax: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'softmax.int(Tensor self, int dim) -> Tensor',
  method: true,
  meta: (self, dim) => spec('torch.softmax', self, dim),
  decompose: (self, dim) => {
    const e = exp(sub(self, amax(self, dim, true)))
    return div(e, sum(e, dim, true))
  },
  derivative: ([g], { args: [, dim], outputs: [out] }) => {
    const weighted = mul(g, out)
    return [sub(weighted, mul(out, sum(weighted, dim, true))), null]
  },
})

/**
 * log(softmax(x)), computed without overflow. PyTorch's `torch.log_softmax`.
 *
 * Shape: that of `self`; integers become float32.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.logSoftmax(torch.tensor([0, 0]), 0).toArray() // [-0.693147, -0.693147]
 */
export const logSoftmax: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'log_softmax.int(Tensor self, int dim) -> Tensor',
  method: true,
  meta: (self, dim) => spec('torch.log_softmax', self, dim),
  decompose: (self, dim) => {
    const shifted = sub(self, amax(self, dim, true))
    return sub(shifted, log(sum(exp(shifted), dim, true)))
  },
  derivative: ([g], { args: [, dim], outputs: [out] }) => [sub(g, mul(exp(out), sum(g, dim, true))), null],
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
    const peak = detach(amax(self, dim, true))
    // Subtracting an infinite peak from infinite values would give NaN.
    const top = where(eq(abs(peak), Infinity), 0, peak)
    const total = log(sum(exp(sub(self, top)), dim, keepdim))
    return add(total, keepdim ? top : reshape(top, total.shape))
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link softmax} */
    softmax(dim: number | { readonly dim: number }): Tensor
    /** {@link logSoftmax} */
    logSoftmax(dim: number | { readonly dim: number }): Tensor
    /** {@link logsumexp} */
    logsumexp(dim: number | readonly number[], options?: ReductionOptions): Tensor
  }
}
