// Views that repeat elements, or cut off history: expand, detach.
import { ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, sizeEq, sizeLess } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { reshape } from './reshape.ts'
import { viewSpec } from './strides.ts'

/**
 * Repeats dimensions of size 1 without copying, and adds dimensions in front; -1 keeps a size. A view. PyTorch's `Tensor.expand`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a dimension of another size would have to grow, or `size` has too few dimensions.
 * @example torch.tensor([[1], [2]]).expand(2, 3).toArray() // [[1, 1, 1], [2, 2, 2]]
 */
export const expand: OpFunction<(self: Tensor, ...size: readonly (Size | readonly Size[])[]) => Tensor> = defineOp({
  schema: 'expand(Tensor self, SymInt[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  vmap: 'sizes',
  onnx: 'expand',
  autocast: 'as is',
  meta: (self, size) => {
    const lead = size.length - self.ndim
    const sizes = self.symSizes
    const steps = self.symSteps
    if (lead < 0) throw new ShapeError(`torch.Tensor.expand: shape ${formatShape(sizes)} has more dimensions than ${formatShape(size)}.`)
    const shape = size.map((s, i) => (s === -1 ? (sizes[i - lead] ?? s) : s))
    const strides = shape.map((s, i) => {
      const [own = 1, stride = 0] = [sizes[i - lead], steps[i - lead]]
      const isSame = sizeEq(own, s)
      if (sizeLess(s, 0) || (!isSame && !sizeEq(own, 1)))
        throw new ShapeError(
          `torch.Tensor.expand: shape ${formatShape(sizes)} does not expand to ${formatShape(size)}: only dimensions of size 1 can grow.`,
        )
      return isSame ? stride : 0
    })
    return viewSpec(self, shape, strides)
  },
  // Autograd sums a gradient over the dimensions that were broadcast.
  derivative: ([g]) => [g, null],
  scatter: (value, self) => reshape(value, self.symSizes),
})

/**
 * The same data without history: gradients stop here. A view. PyTorch's `Tensor.detach`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.detach(torch.tensor([1], { requiresGrad: true }).mul(2)).requiresGrad // false
 */
export const detach: Op['detach'] = defineOp({
  schema: 'detach(Tensor self) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: { leading: ['self'] },
  onnx: 'identity',
  autocast: 'as is',
  meta: (self) => viewSpec(self, self.symSizes, self.symSteps),
  scatter: (value) => value,
})
