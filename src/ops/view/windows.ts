// Views that repeat elements, cut off history, or address the storage freely: expand, detach, asStrided.
import { ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { viewSpec } from './strides.ts'

/**
 * Repeats dimensions of size 1 without copying, and adds dimensions in front; -1 keeps a size. A view. PyTorch's `Tensor.expand`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a dimension of another size would have to grow, or `size` has too few dimensions.
 * @example torch.tensor([[1], [2]]).expand(2, 3).toArray() // [[1, 1, 1], [2, 2, 2]]
 */
export const expand: OpFunction<(self: Tensor, ...size: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'expand(Tensor self, int[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  meta: (self, size) => {
    const lead = size.length - self.ndim
    if (lead < 0) throw new ShapeError(`torch.Tensor.expand: shape ${formatShape(self.shape)} has more dimensions than ${formatShape(size)}.`)
    const shape = size.map((s, i) => (s === -1 ? (self.shape[i - lead] ?? s) : s))
    const strides = shape.map((s, i) => {
      const [own = 1, stride = 0] = [self.shape[i - lead], self.strides[i - lead]]
      if (s < 0 || (own !== s && own !== 1))
        throw new ShapeError(
          `torch.Tensor.expand: shape ${formatShape(self.shape)} does not expand to ${formatShape(size)}: only dimensions of size 1 can grow.`,
        )
      return own === s ? stride : 0
    })
    return viewSpec(self, shape, strides)
  },
  // Autograd sums a gradient over the dimensions that were broadcast.
  derivative: ([g]) => [g, null],
})

/**
 * Any window on the storage: `size`, `stride` and `storageOffset` in elements. It has no derivative. PyTorch's `torch.as_strided`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if `size` or `stride` is not a list of integers.
 * @example torch.asStrided(torch.tensor([1, 2, 3, 4]), [2, 2], [1, 2]).toArray() // [[1, 3], [2, 4]]
 */
export const asStrided: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], storageOffset?: number | null) => Tensor> =
  defineOp({
    schema: 'as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor',
    method: true,
    tags: ['view'],
    meta: (self, size, stride, offset) => viewSpec(self, size, stride, offset ?? self.offset),
  })

/**
 * The same data without history: gradients stop here. A view. PyTorch's `Tensor.detach`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.detach(torch.tensor([1], { requiresGrad: true }).mul(2)).requiresGrad // false
 */
export const detach: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'detach(Tensor self) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self) => viewSpec(self, self.shape, self.strides),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link expand} */
    expand(...size: readonly (number | readonly number[])[]): Tensor
    /** {@link asStrided} */
    asStrided(size: readonly number[], stride: readonly number[], storageOffset?: number | null): Tensor
    /** {@link detach} */
    detach(): Tensor
  }
}
