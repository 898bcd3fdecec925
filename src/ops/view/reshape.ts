// Reshaping and copying: a view where the layout allows it, a copy otherwise.
import type { Expr } from '../../kernels/index.ts'
import { sameShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { inferShape, view, viewStrides } from './views.ts'

/** A contiguous copy. PyTorch's `torch.clone`. */
export const clone: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'clone(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (x: Expr) => x },
  derivative: ([g]) => [g as Tensor],
})

/** self if it is contiguous, else a contiguous copy. PyTorch's `Tensor.contiguous`. */
export const contiguous: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'contiguous(Tensor self) -> Tensor',
  method: true,
  decompose: (self: Tensor): Tensor => (self.contiguousLayout ? self : clone(self)),
})

/** The same elements in another shape; -1 stands for what is left. A view if possible. PyTorch's `torch.reshape`. */
export const reshape: OpFunction<(self: Tensor, ...shape: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'reshape(Tensor self, int[] shape) -> Tensor',
  method: true,
  decompose: (self: Tensor, shape: readonly number[]): Tensor => {
    const target = inferShape('torch.reshape', self, shape)
    if (sameShape(self.shape, target)) return self
    return view(viewStrides(self, target) === null ? clone(self) : self, target)
  },
})

/** Dimensions startDim to endDim as one. PyTorch's `torch.flatten`. */
export const flatten: OpFunction<(self: Tensor, startDim?: number, endDim?: number) => Tensor> = defineOp({
  schema: 'flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor',
  method: true,
  decompose: (self: Tensor, startDim: number, endDim: number): Tensor => {
    const from = wrapDim('torch.flatten', startDim, self.ndim)
    const to = wrapDim('torch.flatten', endDim, self.ndim)
    if (self.ndim === 0) return reshape(self, [1])
    const middle = self.shape.slice(from, to + 1).reduce((a, b) => a * b, 1)
    return reshape(self, [...self.shape.slice(0, from), middle, ...self.shape.slice(to + 1)])
  },
})


declare module '../../tensor/tensor.ts' {
  interface Tensor {
    clone(): Tensor
    contiguous(): Tensor
    reshape(...shape: readonly (number | readonly number[])[]): Tensor
    flatten(startDim?: number, endDim?: number): Tensor
  }
}
