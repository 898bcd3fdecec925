// Parts of a dimension: select, slice, narrow, and the gradients that put a part back into zeros.
import { ArgumentError } from '../../errors/index.ts'
import { Tensor, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { zeros } from '../creation.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { copyInto } from '../eager/copy.ts'
import { viewSpec } from './strides.ts'

function selectSpec(self: Tensor, dim: number, index: number): TensorSpec {
  const at = wrapDim('torch.select', dim, self.ndim)
  const size = self.shape[at] as number
  if (self.ndim === 0 || index < -size || index >= size)
    throw new ArgumentError(`torch.select: index ${index} is out of range for dimension ${dim} with size ${size}.`)
  const i = index < 0 ? index + size : index
  return viewSpec(self, self.shape.toSpliced(at, 1), self.strides.toSpliced(at, 1), self.offset + i * (self.strides[at] as number))
}

function sliceSpec(self: Tensor, dim: number, start: number | null, end: number | null, step: number): TensorSpec {
  const at = wrapDim('torch.Tensor.slice', dim, self.ndim)
  if (self.ndim === 0 || step < 1) throw new ArgumentError(`torch.Tensor.slice: step must be positive, got ${step}.`)
  const [from, until] = sliceBounds(self.shape[at] as number, start, end)
  const size = Math.max(0, Math.ceil((until - from) / step))
  return viewSpec(
    self,
    self.shape.with(at, size),
    self.strides.with(at, (self.strides[at] as number) * step),
    self.offset + from * (self.strides[at] as number),
  )
}

function sliceBounds(size: number, start: number | null, end: number | null): [number, number] {
  const clip = (v: number): number => Math.min(size, Math.max(0, v < 0 ? v + size : v))
  return [clip(start ?? 0), clip(end ?? size)]
}

/** Zeros of `shape` with `grad` in the window that `spec` describes. */
function putBack(grad: Tensor, shape: readonly number[], windowOf: (whole: Tensor) => TensorSpec): Tensor {
  const out = zeros(shape, { dtype: grad.dtype })
  const window = windowOf(out)
  if (grad.numel > 0) copyInto(grad, new Tensor(window.shape, out.dtype, out.storage, window.strides, window.offset))
  return out
}

/** The gradient of select. PyTorch's aten.select_backward. */
export const selectBackward: OpFunction<(grad: Tensor, inputSizes: readonly number[], dim: number, index: number) => Tensor> = defineOp({
  schema: 'select_backward(Tensor grad, int[] input_sizes, int dim, int index) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  meta: (grad: Tensor, inputSizes: readonly number[]): TensorSpec => ({ shape: inputSizes, dtype: grad.dtype }),
  kernel: (grad: Tensor, inputSizes: readonly number[], dim: number, index: number): Tensor =>
    putBack(grad, inputSizes, (whole) => selectSpec(whole, dim, index)),
  derivative: ([g], { args: [, , dim, index] }) => [select(g as Tensor, dim as number, index as number), null, null, null],
})

/** The gradient of slice. PyTorch's aten.slice_backward. */
export const sliceBackward: OpFunction<
  (grad: Tensor, inputSizes: readonly number[], dim: number, start: number | null, end: number | null, step: number) => Tensor
> = defineOp({
  schema: 'slice_backward(Tensor grad, int[] input_sizes, int dim, int? start, int? end, int step) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  meta: (grad: Tensor, inputSizes: readonly number[]): TensorSpec => ({ shape: inputSizes, dtype: grad.dtype }),
  kernel: (grad: Tensor, inputSizes: readonly number[], dim: number, start: number | null, end: number | null, step: number): Tensor =>
    putBack(grad, inputSizes, (whole) => sliceSpec(whole, dim, start, end, step)),
  derivative: ([g], { args: [, , dim, start, end, step] }) => [
    slice(g as Tensor, dim as number, start as number | null, end as number | null, step as number),
    null,
    null,
    null,
    null,
    null,
  ],
})

/** One index of a dimension, which disappears. PyTorch's `torch.select`. */
export const select: OpFunction<(self: Tensor, dim: number, index: number) => Tensor> = defineOp({
  schema: 'select.int(Tensor self, int dim, int index) -> Tensor',
  method: true,
  tags: ['view'],
  meta: selectSpec,
  derivative: ([g], { args: [x, dim, index] }) => [selectBackward(g as Tensor, (x as Tensor).shape, dim as number, index as number), null, null],
})

/** The elements start, start + step, … before end of a dimension. PyTorch's aten.slice, `x[start:end:step]`. */
export const slice: OpFunction<(self: Tensor, dim?: number, start?: number | null, end?: number | null, step?: number) => Tensor> = defineOp({
  schema: 'slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  meta: sliceSpec,
  derivative: ([g], { args: [x, dim, start, end, step] }) => [
    sliceBackward(g as Tensor, (x as Tensor).shape, dim as number, start as number | null, end as number | null, step as number),
    null,
    null,
    null,
    null,
  ],
})

/** `length` elements of a dimension from `start`. PyTorch's `torch.narrow`. */
export const narrow: OpFunction<(self: Tensor, dim: number, start: number, length: number) => Tensor> = defineOp({
  schema: 'narrow(Tensor self, int dim, int start, int length) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: number, start: number, length: number): Tensor => {
    const at = wrapDim('torch.narrow', dim, self.ndim)
    const size = self.shape[at] as number
    if (start < 0 || length < 0 || start + length > size)
      throw new ArgumentError(`torch.narrow: start ${start} and length ${length} exceed dimension ${dim} of size ${size}.`)
    return slice(self, at, start, start + length)
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    select(dim: number, index: number): Tensor
    slice(dim?: number, start?: number | null, end?: number | null, step?: number): Tensor
    narrow(dim: number, start: number, length: number): Tensor
  }
}
