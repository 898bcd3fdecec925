// Dimensions in another order.
import { ShapeError } from '../../errors/index.ts'
import { formatShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { viewSpec } from './strides.ts'

/** Dimensions in another order. PyTorch's `torch.permute`. */
export const permute: OpFunction<(self: Tensor, ...dims: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'permute(Tensor self, int[] dims) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dims: readonly number[]): TensorSpec => {
    const order = dims.map((d) => wrapDim('torch.permute', d, self.ndim))
    if (order.length !== self.ndim || new Set(order).size !== self.ndim)
      throw new ShapeError(`torch.permute: dims ${formatShape(dims)} must name each of the ${self.ndim} dimensions of self once.`)
    return viewSpec(
      self,
      order.map((d) => self.shape[d] as number),
      order.map((d) => self.strides[d] as number),
    )
  },
  derivative: ([g], { args: [x, dims] }) => {
    const order = (dims as readonly number[]).map((d) => (d < 0 ? d + (x as Tensor).ndim : d))
    return [
      permute(
        g as Tensor,
        order.map((_, i) => order.indexOf(i)),
      ),
      null,
    ]
  },
})

/** Two dimensions swapped. PyTorch's `torch.transpose`. */
export const transpose: OpFunction<(self: Tensor, dim0: number, dim1: number) => Tensor> = defineOp({
  schema: 'transpose.int(Tensor self, int dim0, int dim1) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dim0: number, dim1: number): TensorSpec => {
    const a = wrapDim('torch.transpose', dim0, self.ndim)
    const b = wrapDim('torch.transpose', dim1, self.ndim)
    const swap = (list: readonly number[]): number[] => list.map((v, i) => (i === a ? (list[b] ?? v) : i === b ? (list[a] ?? v) : v))
    return viewSpec(self, swap(self.shape), swap(self.strides))
  },
  derivative: ([g], { args: [, a, b] }) => [transpose(g as Tensor, a as number, b as number), null, null],
})

/** A matrix with rows and columns swapped. PyTorch's `torch.t`. */
export const t: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 't(Tensor self) -> Tensor',
  method: true,
  decompose: (self: Tensor): Tensor => {
    if (self.ndim > 2) throw new ShapeError(`torch.t: expected at most 2 dimensions, got shape ${formatShape(self.shape)}; use transpose or permute.`)
    return self.ndim < 2 ? self : transpose(self, 0, 1)
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    permute(...dims: readonly (number | readonly number[])[]): Tensor
    transpose(dim0: number, dim1: number): Tensor
    t(): Tensor
  }
}
