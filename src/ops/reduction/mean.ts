// Means and variances.
import { call } from '../../kernels/index.ts'
import type { DType, Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { abs, div, mul, pow, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { ne } from '../pointwise/comparison.ts'
import { sqrt, square } from '../pointwise/unary.ts'
import { amax, amin } from './extremes.ts'
import { spread, sum } from './sum.ts'
import type { ReductionOptions } from './sum.ts'

type Dims = number | readonly number[] | null

const floating = (dtype: DType): DType => (dtype === 'float64' ? 'float64' : 'float32')

/** How many elements each result combines. */
export function reducedCount(x: Tensor, dim: Dims): number {
  const list = dim === null ? [] : typeof dim === 'number' ? [dim] : dim
  return list.length === 0 ? x.numel : list.reduce((n, d) => n * (x.shape[d < 0 ? d + x.ndim : d] as number), 1)
}

/** Mean over `dim` (all dimensions by default). PyTorch's `torch.mean`. */
export const mean: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'mean.dim(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'add', dtype: floating, finish: (acc: Expr, count: Expr) => call('div', acc, count) },
  derivative: ([g], { args: [x, dim, keepdim] }) => [
    div(spread(g as Tensor, x as Tensor, dim as Dims, keepdim as boolean), reducedCount(x as Tensor, dim as Dims)),
    null,
    null,
  ],
})

/** Variance over `dim`; `correction` 1 divides by n - 1. PyTorch's `torch.var`. */
export const variance: OpFunction<
  (
    self: Tensor,
    dim?: Dims | (ReductionOptions & { readonly correction?: number }),
    options?: { readonly correction?: number; readonly keepdim?: boolean },
  ) => Tensor
> = defineOp({
  schema: 'var.correction(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: Dims, correction: number, keepdim: boolean): Tensor => {
    const centred = sub(self, mean(self, dim, true))
    return div(sum(square(centred), dim, keepdim), Math.max(0, reducedCount(self, dim) - correction))
  },
})

/** Standard deviation over `dim`. PyTorch's `torch.std`. */
export const std: OpFunction<
  (
    self: Tensor,
    dim?: Dims | (ReductionOptions & { readonly correction?: number }),
    options?: { readonly correction?: number; readonly keepdim?: boolean },
  ) => Tensor
> = defineOp({
  schema: 'std.correction(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: Dims, correction: number, keepdim: boolean): Tensor => sqrt(variance(self, dim, { correction, keepdim })),
})

interface MomentOptions extends ReductionOptions {
  readonly correction?: number
}

/** Variance and mean: [var, mean]. PyTorch's `torch.var_mean`. */
export const varMean: OpFunction<(self: Tensor, dim?: Dims | MomentOptions, options?: MomentOptions) => readonly Tensor[]> = defineOp({
  schema: 'var_mean.correction(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> (Tensor, Tensor)',
  decompose: (self: Tensor, dim: Dims, correction: number, keepdim: boolean): readonly Tensor[] => [
    variance(self, dim, { correction, keepdim }),
    mean(self, dim, keepdim),
  ],
})

/** Standard deviation and mean: [std, mean]. PyTorch's `torch.std_mean`. */
export const stdMean: OpFunction<(self: Tensor, dim?: Dims | MomentOptions, options?: MomentOptions) => readonly Tensor[]> = defineOp({
  schema: 'std_mean.correction(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> (Tensor, Tensor)',
  decompose: (self: Tensor, dim: Dims, correction: number, keepdim: boolean): readonly Tensor[] => [
    std(self, dim, { correction, keepdim }),
    mean(self, dim, keepdim),
  ],
})

export interface NormOptions extends ReductionOptions {
  readonly p?: number
}

/** The p-norm over `dim`: 2 the Euclidean length, 1 the sum of absolute values, Infinity the greatest, 0 the count of non-zeros. PyTorch's `torch.norm`. */
export const norm: OpFunction<(self: Tensor, p?: number | NormOptions, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'norm.ScalarOpt_dim(Tensor self, Scalar p=2, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, p: number, dim: Dims, keepdim: boolean): Tensor => {
    if (p === 2) return sqrt(sum(mul(self, self), dim, keepdim))
    if (p === 1) return sum(abs(self), dim, keepdim)
    if (p === 0) return sum(to(ne(self, 0), self.dtype), dim, keepdim)
    if (p === Infinity) return amax(abs(self), dim, keepdim)
    if (p === -Infinity) return amin(abs(self), dim, keepdim)
    return pow(sum(pow(abs(self), p), dim, keepdim), 1 / p)
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    mean(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    var(dim?: number | readonly number[] | null | (ReductionOptions & { readonly correction?: number })): Tensor
    std(dim?: number | readonly number[] | null | (ReductionOptions & { readonly correction?: number })): Tensor
    norm(p?: number | NormOptions, dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
  }
}
