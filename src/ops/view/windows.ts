// Views that repeat, cut loose or freely address the storage: expand, detach, asStrided.
import { ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { viewSpec } from './strides.ts'

/** Repeats dimensions of size 1 without copying; -1 keeps a size. PyTorch's `Tensor.expand`. */
export const expand: OpFunction<(self: Tensor, ...size: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'expand(Tensor self, int[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, size: readonly number[]): TensorSpec => {
    const lead = size.length - self.ndim
    const shape = size.map((s, i) => (s === -1 && i >= lead ? (self.shape[i - lead] as number) : s))
    const strides = shape.map((s, i) => {
      const own = i < lead ? 1 : (self.shape[i - lead] as number)
      if (lead < 0 || (own !== s && own !== 1))
        throw new ShapeError(
          `torch.Tensor.expand: shape ${formatShape(self.shape)} does not expand to ${formatShape(size)}: only dimensions of size 1 can grow.`,
        )
      return i < lead || own === 1 ? (s === 1 && i >= lead ? (self.strides[i - lead] as number) : 0) : (self.strides[i - lead] as number)
    })
    if (lead < 0) throw new ShapeError(`torch.Tensor.expand: shape ${formatShape(self.shape)} has more dimensions than ${formatShape(size)}.`)
    return viewSpec(self, shape, strides)
  },
  // Autograd sums a gradient over the dimensions that were broadcast.
  derivative: ([g]) => [g as Tensor, null],
})

/** Any window on the storage: shape, strides and offset in elements. No derivative. PyTorch's `torch.as_strided`. */
export const asStrided: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], storageOffset?: number | null) => Tensor> =
  defineOp({
    schema: 'as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor',
    method: true,
    tags: ['view'],
    meta: (self: Tensor, size: readonly number[], stride: readonly number[], offset: number | null): TensorSpec =>
      viewSpec(self, size, stride, offset ?? self.offset),
  })

/** The same data outside of autograd. PyTorch's `Tensor.detach`. */
export const detach: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'detach(Tensor self) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor): TensorSpec => viewSpec(self, self.shape, self.strides),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    expand(...size: readonly (number | readonly number[])[]): Tensor
    asStrided(size: readonly number[], stride: readonly number[], storageOffset?: number | null): Tensor
    detach(): Tensor
  }
}
