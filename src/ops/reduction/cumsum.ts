// Running sums along a dimension.
import {
  accumulate,
  accumulationType,
  at,
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
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { Tensor, wrapDim } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { add, sub } from '../pointwise/arithmetic.ts'
import { linesOf } from '../shared/shapes.ts'
import { contiguous } from '../view/reshape.ts'
import { castFirst, sum, summedType } from './sum.ts'

/** Walks [outer, n, inner] of a contiguous tensor. */
const kernelOf = kernelCache((dtype: DType): CompiledKernel => {
  const [outer, n, inner, line] = [sizeParam('outer'), sizeParam('n'), sizeParam('inner'), sizeParam('line')]
  const [o, k, i] = [loopVar('o', outer), loopVar('k', n), loopVar('i', inner)]
  const result = summedType(dtype)
  const accumulator = accumulationType(dtype)
  const out = bufferParam('out', result, 'write')
  const a = bufferParam('a', dtype)
  const total = local('total', accumulator)
  const index = at([o, line], [k, inner], [i, 1])
  const step = [accumulate(total, 'add', cast(load(a, index), accumulator)), store(out, index, cast(read(total), result))]
  return compileKernel({
    name: 'cumsum',
    params: [out, a, outer, n, inner, line],
    body: [forLoop(o, 'serial', [forLoop(i, 'simd', [declare(total, identityOf('add', accumulator)), forLoop(k, 'serial', step)])])],
  })
})

/** The options of cumsum and cumprod. */
export interface CastAlongDim {
  readonly dim: number
  /** The values are cast to this dtype first. */
  readonly dtype?: DType | null
}

/**
 * Sums of the elements up to each position of a dimension; sums of integers and bools are int64. PyTorch's `torch.cumsum`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.cumsum(torch.tensor([1, 2, 3]), 0).toArray() // [1, 3, 6]
 */
export const cumsum: OpFunction<(self: Tensor, dim: number | CastAlongDim, options?: { readonly dtype?: DType | null }) => Tensor> = defineOp({
  schema: 'cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: 'cumsum',
  autocast: 'as is',
  prepare: castFirst,
  inPlace: 'method',
  meta: (self, dim) => {
    wrapDim('torch.cumsum', dim, self.ndim)
    return { shape: self.symSizes, dtype: summedType(self.dtype) }
  },
  kernel: (self, dim) => {
    const out = Tensor.empty(self.sizes, summedType(self.dtype))
    const [outer, n, inner] = linesOf(self.sizes, wrapDim('torch.cumsum', dim, self.ndim))
    if (out.numel > 0) launch(kernelOf(self.dtype), [out, contiguous(self)], [outer, n, inner, n * inner])
    return out
  },
  // The sum of the gradients from each position on.
  derivative: ([g], { args: [, dim] }) => [add(sub(sum(g, dim, true), cumsum(g, dim)), g), null, null],
})
