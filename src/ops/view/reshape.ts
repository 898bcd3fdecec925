// Other shapes for the same elements: a view where the layout allows it, a copy otherwise.
import { ShapeError } from '../../errors/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { formatShape, sameShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { inferShape, viewSpec, viewStrides } from './strides.ts'

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
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self: Tensor): Tensor => (self.contiguousLayout ? self : clone(self)),
})

/** The same elements in another shape; -1 stands for what is left. Throws ShapeError where the layout needs a copy: use reshape. PyTorch's `Tensor.view`. */
export const view: OpFunction<(self: Tensor, ...shape: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'view(Tensor self, int[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, size: readonly number[]): TensorSpec => {
    const shape = inferShape('torch.Tensor.view', self, size)
    const strides = viewStrides(self, shape)
    if (strides === null)
      throw new ShapeError(
        `torch.Tensor.view: self of shape ${formatShape(self.shape)} and strides ${formatShape(self.strides)} cannot be seen as ${formatShape(shape)} without a copy; use reshape.`,
      )
    return viewSpec(self, shape, strides)
  },
  derivative: ([g], { args: [x] }) => [reshape(g as Tensor, (x as Tensor).shape), null],
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

/** A new dimension of size 1. PyTorch's `torch.unsqueeze`. */
export const unsqueeze: OpFunction<(self: Tensor, dim: number) => Tensor> = defineOp({
  schema: 'unsqueeze(Tensor self, int dim) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dim: number): TensorSpec => {
    const at = wrapDim('torch.unsqueeze', dim, self.ndim + 1)
    const stride = at < self.ndim ? (self.shape[at] as number) * (self.strides[at] as number) : 1
    return viewSpec(self, self.shape.toSpliced(at, 0, 1), self.strides.toSpliced(at, 0, stride))
  },
  derivative: ([g], { args: [, dim] }) => [squeeze(g as Tensor, dim as number), null],
})

/** Without dimensions of size 1: `dim` alone, or all. PyTorch's `torch.squeeze`. */
export const squeeze: OpFunction<(self: Tensor, dim?: number | null) => Tensor> = defineOp({
  schema: 'squeeze(Tensor self, int? dim=None) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dim: number | null): TensorSpec => {
    const at = dim === null ? -1 : wrapDim('torch.squeeze', dim, self.ndim)
    const keep = self.shape.flatMap((s, i) => (s === 1 && (dim === null || i === at) ? [] : [i]))
    return viewSpec(
      self,
      keep.map((i) => self.shape[i] as number),
      keep.map((i) => self.strides[i] as number),
    )
  },
  derivative: ([g], { args: [x] }) => [reshape(g as Tensor, (x as Tensor).shape), null],
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    clone(): Tensor
    contiguous(): Tensor
    view(...shape: readonly (number | readonly number[])[]): Tensor
    reshape(...shape: readonly (number | readonly number[])[]): Tensor
    flatten(startDim?: number, endDim?: number): Tensor
    unsqueeze(dim: number): Tensor
    squeeze(dim?: number | null): Tensor
  }
}
