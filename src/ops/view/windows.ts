// Views that repeat elements, or cut off history: expand, detach.
import { ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
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
export const expand: OpFunction<(self: Tensor, ...size: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'expand(Tensor self, SymInt[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  vmap: 'sizes',
  onnx: 'expand',
  autocast: 'as is',
  meta: (self, size) => {
    const lead = size.length - self.ndim
    if (lead < 0) throw new ShapeError(`torch.Tensor.expand: shape ${formatShape(self.sizes)} has more dimensions than ${formatShape(size)}.`)
    const shape = size.map((s, i) => (s === -1 ? (self.sizes[i - lead] ?? s) : s))
    const strides = shape.map((s, i) => {
      const [own = 1, stride = 0] = [self.sizes[i - lead], self.steps[i - lead]]
      if (s < 0 || (own !== s && own !== 1))
        throw new ShapeError(
          `torch.Tensor.expand: shape ${formatShape(self.sizes)} does not expand to ${formatShape(size)}: only dimensions of size 1 can grow.`,
        )
      return own === s ? stride : 0
    })
    return viewSpec(self, shape, strides)
  },
  // Autograd sums a gradient over the dimensions that were broadcast.
  derivative: ([g]) => [g, null],
  scatter: (value, self) => reshape(value, self.sizes),
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
  meta: (self) => viewSpec(self, self.sizes, self.steps),
  scatter: (value) => value,
})
