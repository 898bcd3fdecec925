// Softmax and its logarithm along one dimension.
import { dtypeInfo } from '../../kernels/index.ts'
import { wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { abs, add, div, mul, sub } from '../pointwise/arithmetic.ts'
import { eq } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { exp, log } from '../pointwise/unary.ts'
import { amax } from './extremes.ts'
import { detach, reshape } from '../view/index.ts'
import { sum } from './sum.ts'
import type { ReductionOptions } from './sum.ts'

function spec(op: string, self: Tensor, dim: number): TensorSpec {
  wrapDim(op, dim, self.ndim)
  return { shape: self.shape, dtype: dtypeInfo[self.dtype].floating ? self.dtype : 'float32' }
}

/** exp(x) normalized to sum 1 along `dim`. PyTorch's `torch.softmax`. */
export const softmax: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'softmax.int(Tensor self, int dim) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number) => spec('torch.softmax', self, dim),
  decompose: (self: Tensor, dim: number): Tensor => {
    const e = exp(sub(self, amax(self, dim, true)))
    return div(e, sum(e, dim, true))
  },
  derivative: ([g], { args: [, dim], outputs: [out] }) => {
    const weighted = mul(g as Tensor, out as Tensor)
    return [sub(weighted, mul(out as Tensor, sum(weighted, dim as number, true))), null]
  },
})

/** log(softmax(x)), computed without overflow. PyTorch's `torch.log_softmax`. */
export const logSoftmax: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'log_softmax.int(Tensor self, int dim) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number) => spec('torch.log_softmax', self, dim),
  decompose: (self: Tensor, dim: number): Tensor => {
    const shifted = sub(self, amax(self, dim, true))
    return sub(shifted, log(sum(exp(shifted), dim, true)))
  },
  derivative: ([g], { args: [, dim], outputs: [out] }) => [sub(g as Tensor, mul(exp(out as Tensor), sum(g as Tensor, dim as number, true))), null],
})

/** log of the sum of exponentials over `dim`. PyTorch's `torch.logsumexp`. */
export const logsumexp: OpFunction<(self: Tensor, dim: number | readonly number[], options?: ReductionOptions) => Tensor> = defineOp({
  schema: 'logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: readonly number[], keepdim: boolean): Tensor => {
    const peak = detach(amax(self, dim, true))
    // Where all values are infinite, subtracting the peak would give NaN.
    const top = where(eq(abs(peak), Infinity), 0, peak)
    const total = log(sum(exp(sub(self, top)), dim, keepdim))
    return add(total, keepdim ? top : reshape(top, total.shape))
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    softmax(dim: number | { readonly dim: number }): Tensor
    logSoftmax(dim: number | { readonly dim: number }): Tensor
    logsumexp(dim: number | readonly number[], options?: ReductionOptions): Tensor
  }
}
