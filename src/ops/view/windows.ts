// Views that repeat elements, cut off history, or address the storage freely: expand, detach, asStrided.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { formatShape, reachOf } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { viewSpec } from './strides.ts'

const AS_STRIDED = 'torch.as_strided'

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

/** How many elements the storage of a tensor holds, as far as is known: that of a fake tensor is as large as the tensor it is a view of needs. */
function storedElementsOf(self: Tensor): number {
  const base = self.viewBase ?? self
  const storage = self.storage ?? base.storage
  if (storage !== null) return Math.floor(storage.block.nbytes / dtypeInfo[self.dtype].size)
  return (reachOf(base.shape, base.strides, base.offset)?.[1] ?? -1) + 1
}

/** The layout of a window on the storage of `self`. Throws ShapeError unless it lies inside. Strides may be negative. */
export function windowSpec(self: Tensor, size: readonly number[], stride: readonly number[], offset: number): TensorSpec {
  if (size.length !== stride.length)
    throw new ShapeError(`${AS_STRIDED}: size ${formatShape(size)} and stride ${formatShape(stride)} must have the same length.`)
  if (size.some((s) => !Number.isSafeInteger(s) || s < 0))
    throw new ShapeError(`${AS_STRIDED}: argument 'size' must hold integers of at least 0, got ${formatShape(size)}.`)
  const [lowest, highest] = reachOf(size, stride, offset) ?? [0, -1]
  const stored = storedElementsOf(self)
  if (!(lowest >= 0 && highest < stored && offset >= 0))
    throw new ShapeError(
      `${AS_STRIDED}: size ${formatShape(size)}, stride ${formatShape(stride)} and storageOffset ${offset} reach from element ${lowest} to ${highest}, ` +
        `but the storage of self (shape ${formatShape(self.shape)}) has ${stored} elements.`,
    )
  return viewSpec(self, size, stride, offset)
}

/**
 * Any window on the storage: `size`, `stride` and `storageOffset` in elements. It has no derivative. PyTorch's `torch.as_strided`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if `size` or `stride` is not a list of integers, or a stride is negative.
 * @throws ShapeError if the window reaches outside the storage, or `size` and `stride` have different lengths.
 * @example torch.asStrided(torch.tensor([1, 2, 3, 4]), [2, 2], [1, 2]).toArray() // [[1, 3], [2, 4]]
 */
export const asStrided: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], storageOffset?: number | null) => Tensor> =
  defineOp({
    schema: 'as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor',
    method: true,
    tags: ['view'],
    meta: (self, size, stride, offset) => {
      if (stride.some((s) => s < 0))
        throw new ArgumentError(`${AS_STRIDED}: argument 'stride' must hold integers of at least 0, got ${formatShape(stride)}.`)
      return windowSpec(self, size, stride, offset ?? self.offset)
    },
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
