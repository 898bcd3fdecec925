// Running sums along a dimension.
import {
  accumulate,
  bufferParam,
  cast,
  compileKernel,
  declare,
  forLoop,
  identityOf,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Index } from '../../kernels/index.ts'
import { Tensor, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { launch } from '../eager/launch.ts'
import { add, sub } from '../pointwise/arithmetic.ts'
import { contiguous } from '../view/index.ts'
import { sum } from './sum.ts'

const resultType = (dtype: DType): DType => (dtype === 'bool' ? 'int32' : dtype)
const kernels = new Map<DType, CompiledKernel>()

/** Walks [outer, n, inner] of a contiguous tensor. */
function kernelFor(dtype: DType): CompiledKernel {
  let kernel = kernels.get(dtype)
  if (kernel !== undefined) return kernel
  const [outer, n, inner, line] = [sizeParam('outer'), sizeParam('n'), sizeParam('inner'), sizeParam('line')]
  const [o, k, i] = [loopVar('o', outer), loopVar('k', n), loopVar('i', inner)]
  const result = resultType(dtype)
  const out = bufferParam('out', result, 'write')
  const a = bufferParam('a', dtype)
  const total = local('total', result)
  const index: Index = {
    base: 0,
    terms: [
      { loop: o, stride: line },
      { loop: k, stride: inner },
      { loop: i, stride: 1 },
    ],
    dynamic: [],
  }
  const step = [accumulate(total, 'add', cast(load(a, index), result)), store(out, index, read(total))]
  kernel = compileKernel({
    name: 'cumsum',
    params: [out, a, outer, n, inner, line],
    body: [forLoop(o, 'serial', [forLoop(i, 'simd', [declare(total, identityOf('add', result)), forLoop(k, 'serial', step)])])],
  })
  kernels.set(dtype, kernel)
  return kernel
}

/** Sums of the elements up to each position of a dimension; of bools in int32. PyTorch's `torch.cumsum`. */
export const cumsum: OpFunction<(self: Tensor, dim: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'cumsum(Tensor self, int dim) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number): TensorSpec => {
    wrapDim('torch.cumsum', dim, self.ndim)
    return { shape: self.shape, dtype: resultType(self.dtype) }
  },
  kernel: (self: Tensor, dim: number): Tensor => {
    const at = wrapDim('torch.cumsum', dim, self.ndim)
    const out = Tensor.empty(self.shape, resultType(self.dtype))
    if (out.numel === 0) return out
    const n = self.shape[at] ?? 1
    const inner = self.shape.slice(at + 1).reduce((a, b) => a * b, 1)
    launch(kernelFor(self.dtype), [out, contiguous(self)], [out.numel / (n * inner), n, inner, n * inner])
    return out
  },
  // The sum of the gradients from each position on.
  derivative: ([g], { args: [, dim] }) => [add(sub(sum(g as Tensor, dim as number, true), cumsum(g as Tensor, dim as number)), g as Tensor), null],
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    cumsum(dim: number | { readonly dim: number }): Tensor
  }
}
