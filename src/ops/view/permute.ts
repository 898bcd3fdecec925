// Dimensions in another order.
import { ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { sizeAt } from '../shared/shapes.ts'
import { viewSpec } from './strides.ts'

const orderHint = (ndim: number): string =>
  ndim < 2 ? '' : ` Such an order is [${Array.from({ length: ndim }, (_, i) => ndim - 1 - i).join(', ')}].`

/**
 * The dimensions in another order; a view. PyTorch's `torch.permute`.
 *
 * Shape: dimension i of the result is dimension `dims[i]` of `self`.
 *
 * @throws ShapeError unless `dims` names each dimension once.
 * @example torch.permute(torch.zeros([2, 3, 4]), [2, 0, 1]).shape // [4, 2, 3]
 */
export const permute: OpFunction<(self: Tensor, ...dims: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'permute(Tensor self, int[] dims) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: 'permute',
  onnx: 'permute',
  autocast: 'as is',
  meta: (self, dims) => {
    const order = dims.map((d) => wrapDim('torch.permute', d, self.ndim))
    if (order.length !== self.ndim || new Set(order).size !== self.ndim)
      throw new ShapeError(
        `torch.permute: dims ${formatShape(dims)} must name each of the ${self.ndim} dimensions of self once.${orderHint(self.ndim)}`,
      )
    return viewSpec(
      self,
      order.map((d) => sizeAt(self.symSizes, d)),
      order.map((d) => sizeAt(self.symSteps, d)),
    )
  },
  derivative: ([g], { args: [, dims] }) => [unpermuted(g, dims), null],
  scatter: (value, _self, dims) => unpermuted(value, dims),
})

/** Undoes {@link permute}. */
function unpermuted(value: Tensor, dims: readonly number[]): Tensor {
  const order = dims.map((d) => (d < 0 ? d + value.ndim : d))
  return permute(
    value,
    order.map((_, i) => order.indexOf(i)),
  )
}

/**
 * Two dimensions swapped; a view. PyTorch's `torch.transpose`.
 *
 * Shape: that of `self` with the two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.transpose(torch.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1).toArray() // [[1, 4], [2, 5], [3, 6]]
 */
export const transpose: Op['transpose'] = defineOp({
  schema: 'transpose.int(Tensor self, int dim0, int dim1) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: 'dimensions',
  onnx: 'transpose',
  autocast: 'as is',
  meta: (self, dim0, dim1) => {
    const a = wrapDim('torch.transpose', dim0, self.ndim)
    const b = wrapDim('torch.transpose', dim1, self.ndim)
    const swap = (list: readonly Size[]): Size[] => list.map((v, i) => (i === a ? (list[b] ?? v) : i === b ? (list[a] ?? v) : v))
    return viewSpec(self, swap(self.symSizes), swap(self.symSteps))
  },
  derivative: ([g], { args: [, dim0, dim1] }) => [transpose(g, dim0, dim1), null, null],
  scatter: (value, _self, dim0, dim1) => transpose(value, dim0, dim1),
})

/**
 * A matrix with rows and columns swapped; vectors and scalars as they are. A view. PyTorch's `torch.t`.
 *
 * Shape: [m, n] becomes [n, m].
 *
 * @throws ShapeError for more than 2 dimensions.
 * @example torch.t(torch.tensor([[1, 2], [3, 4]])).toArray() // [[1, 3], [2, 4]]
 */
export const t: Op['t'] = defineOp({
  schema: 't(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => {
    if (self.ndim > 2)
      throw new ShapeError(`torch.t: expected at most 2 dimensions, got shape ${formatShape(self.symSizes)}; use transpose or permute.`)
    return self.ndim < 2 ? self : transpose(self, 0, 1)
  },
})
