// View operators: another window on the same storage. Each is its arithmetic of shape, strides and offset, and a derivative.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, numelOf, wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { zeros } from '../creation.ts'
import { cat } from '../join.ts'
import { sumToSize } from '../reduction/sum.ts'
import { reshape } from './reshape.ts'

const spec = (self: Tensor, shape: readonly number[], strides: readonly number[], offset: number = self.offset): TensorSpec => ({ shape, strides, offset, dtype: self.dtype })

/** A shape with one -1 filled in. Throws ShapeError when the sizes do not fit. */
export function inferShape(op: string, self: Tensor, shape: readonly number[]): readonly number[] {
  const unknown = shape.indexOf(-1)
  const known = shape.reduce((n, s) => (s === -1 ? n : n * s), 1)
  const out = unknown < 0 ? shape : shape.map((s, i) => (i === unknown ? self.numel / known : s))
  if (shape.filter((s) => s === -1).length > 1 || out.some((s) => !Number.isInteger(s) || s < 0) || numelOf(out) !== self.numel) {
    throw new ShapeError(`${op}: the shape ${formatShape(shape)} does not hold the ${self.numel} elements of self (shape ${formatShape(self.shape)}).`)
  }
  return out
}

/** Strides under which self's elements form `shape` without a copy; null when its layout does not allow that. */
export function viewStrides(self: Pick<Tensor, 'shape' | 'strides' | 'ndim' | 'numel' | 'contiguousLayout'>, shape: readonly number[]): readonly number[] | null {
  if (self.contiguousLayout || self.numel === 0) {
    const out = new Array<number>(shape.length)
    let step = 1
    for (let i = shape.length - 1; i >= 0; i--) {
      out[i] = step
      step *= Math.max(1, shape[i] as number)
    }
    return out
  }
  const out = new Array<number>(shape.length).fill(0)
  let target = shape.length - 1
  let d = self.ndim - 1
  while (d >= 0) {
    // A run of dimensions that walk as one.
    const base = self.strides[d] as number
    let size = self.shape[d] as number
    while (d > 0 && (self.shape[d - 1] === 1 || size === 1 || self.strides[d - 1] === (self.strides[d] as number) * (self.shape[d] as number))) {
      if (size === 1) return viewStridesSqueezed(self, shape)
      d--
      size *= self.shape[d] as number
    }
    d--
    let step = base
    while (target >= 0 && size > 1) {
      const s = shape[target] as number
      if (size % s !== 0) return null
      out[target--] = step
      step *= s
      size /= s
    }
    if (size !== 1) return null
  }
  for (; target >= 0; target--) {
    if (shape[target] !== 1) return null
    out[target] = 1
  }
  return out
}

/** Layouts with dimensions of size 1 in odd places: without them. */
function viewStridesSqueezed(self: Pick<Tensor, 'shape' | 'strides' | 'ndim' | 'numel'>, shape: readonly number[]): readonly number[] | null {
  const keep = self.shape.flatMap((s, i) => (s === 1 ? [] : [i]))
  if (keep.length === self.ndim) return null
  const squeezedShape = keep.map((i) => self.shape[i] as number)
  const squeezedStrides = keep.map((i) => self.strides[i] as number)
  return viewStrides({ shape: squeezedShape, strides: squeezedStrides, ndim: keep.length, numel: self.numel, contiguousLayout: false }, shape)
}

/** The same elements in another shape; -1 stands for what is left. Throws ShapeError where the layout needs a copy: use reshape. PyTorch's `Tensor.view`. */
export const view: OpFunction<(self: Tensor, ...shape: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'view(Tensor self, int[] size) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, size: readonly number[]): TensorSpec => {
    const shape = inferShape('torch.view', self, size)
    const strides = viewStrides(self, shape)
    if (strides === null) throw new ShapeError(`torch.view: self of shape ${formatShape(self.shape)} and strides ${formatShape(self.strides)} cannot be seen as ${formatShape(shape)} without a copy; use reshape.`)
    return spec(self, shape, strides)
  },
  derivative: ([g], { args: [x] }) => [reshape(g as Tensor, (x as Tensor).shape), null],
})

/** Dimensions in another order. PyTorch's `torch.permute`. */
export const permute: OpFunction<(self: Tensor, ...dims: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'permute(Tensor self, int[] dims) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dims: readonly number[]): TensorSpec => {
    const order = dims.map((d) => wrapDim('torch.permute', d, self.ndim))
    if (order.length !== self.ndim || new Set(order).size !== self.ndim) throw new ShapeError(`torch.permute: dims ${formatShape(dims)} must name each of the ${self.ndim} dimensions of self once.`)
    return spec(self, order.map((d) => self.shape[d] as number), order.map((d) => self.strides[d] as number))
  },
  derivative: ([g], { args: [x, dims] }) => {
    const order = (dims as readonly number[]).map((d) => (d < 0 ? d + (x as Tensor).ndim : d))
    return [permute(g as Tensor, order.map((_, i) => order.indexOf(i))), null]
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
    return spec(self, swap(self.shape), swap(self.strides))
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

/** A new dimension of size 1. PyTorch's `torch.unsqueeze`. */
export const unsqueeze: OpFunction<(self: Tensor, dim: number) => Tensor> = defineOp({
  schema: 'unsqueeze(Tensor self, int dim) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dim: number): TensorSpec => {
    const at = wrapDim('torch.unsqueeze', dim, self.ndim + 1)
    const stride = at < self.ndim ? (self.shape[at] as number) * (self.strides[at] as number) : 1
    return spec(self, self.shape.toSpliced(at, 0, 1), self.strides.toSpliced(at, 0, stride))
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
    return spec(self, keep.map((i) => self.shape[i] as number), keep.map((i) => self.strides[i] as number))
  },
  derivative: ([g], { args: [x] }) => [reshape(g as Tensor, (x as Tensor).shape), null],
})

/** Repeats dimensions of size 1 without copying; -1 keeps a size. PyTorch's `Tensor.expand`. */
export const expand: OpFunction<(self: Tensor, ...size: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'expand(Tensor self, int[] size) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, size: readonly number[]): TensorSpec => {
    const lead = size.length - self.ndim
    const shape = size.map((s, i) => (s === -1 && i >= lead ? (self.shape[i - lead] as number) : s))
    const strides = shape.map((s, i) => {
      const own = i < lead ? 1 : (self.shape[i - lead] as number)
      if (lead < 0 || (own !== s && own !== 1)) throw new ShapeError(`torch.expand: shape ${formatShape(self.shape)} does not expand to ${formatShape(size)}: only dimensions of size 1 can grow.`)
      return i < lead || own === 1 ? (s === 1 && i >= lead ? (self.strides[i - lead] as number) : 0) : (self.strides[i - lead] as number)
    })
    if (lead < 0) throw new ShapeError(`torch.expand: shape ${formatShape(self.shape)} has more dimensions than ${formatShape(size)}.`)
    return spec(self, shape, strides)
  },
  derivative: ([g], { args: [x] }) => [sumToSize(g as Tensor, (x as Tensor).shape), null],
})

/** One index of a dimension, which disappears. PyTorch's `torch.select`. */
export const select: OpFunction<(self: Tensor, dim: number, index: number) => Tensor> = defineOp({
  schema: 'select.int(Tensor self, int dim, int index) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dim: number, index: number): TensorSpec => {
    const at = wrapDim('torch.select', dim, self.ndim)
    const size = self.shape[at] as number
    if (self.ndim === 0 || index < -size || index >= size) throw new ArgumentError(`torch.select: index ${index} is out of range for dimension ${dim} with size ${size}.`)
    const i = index < 0 ? index + size : index
    return spec(self, self.shape.toSpliced(at, 1), self.strides.toSpliced(at, 1), self.offset + i * (self.strides[at] as number))
  },
  derivative: ([g], { args: [x, dim, index] }) => {
    const self = x as Tensor
    const at = wrapDim('torch.select', dim as number, self.ndim)
    const i = (index as number) < 0 ? (index as number) + (self.shape[at] as number) : (index as number)
    return [padded(unsqueeze(g as Tensor, at), self, at, i, i + 1, 1), null, null]
  },
})

/** The elements start, start + step, … before end of a dimension. PyTorch's aten.slice, `x[start:end:step]`. */
export const slice: OpFunction<(self: Tensor, dim?: number, start?: number | null, end?: number | null, step?: number) => Tensor> = defineOp({
  schema: 'slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, dim: number, start: number | null, end: number | null, step: number): TensorSpec => {
    const at = wrapDim('torch.slice', dim, self.ndim)
    if (self.ndim === 0 || step < 1) throw new ArgumentError(`torch.slice: step must be positive, got ${step}.`)
    const [from, until] = sliceBounds(self.shape[at] as number, start, end)
    const size = Math.max(0, Math.ceil((until - from) / step))
    return spec(self, self.shape.with(at, size), self.strides.with(at, (self.strides[at] as number) * step), self.offset + from * (self.strides[at] as number))
  },
  derivative: ([g], { args: [x, dim, start, end, step] }) => {
    const self = x as Tensor
    const at = wrapDim('torch.slice', dim as number, self.ndim)
    const [from, until] = sliceBounds(self.shape[at] as number, start as number | null, end as number | null)
    return [padded(g as Tensor, self, at, from, Math.max(from, until), step as number), null, null, null, null]
  },
})

function sliceBounds(size: number, start: number | null, end: number | null): [number, number] {
  const clip = (v: number): number => Math.min(size, Math.max(0, v < 0 ? v + size : v))
  return [clip(start ?? 0), clip(end ?? size)]
}

/** `grad` at from, from + step, … of a dimension, zeros elsewhere. */
function padded(grad: Tensor, like: Tensor, dim: number, from: number, until: number, step: number): Tensor {
  const zerosOf = (size: number): Tensor => zeros(like.shape.with(dim, size), { dtype: grad.dtype })
  let middle = grad
  if (step > 1) {
    // Interleave with zeros, then cut the excess.
    const wide = unsqueeze(grad, dim + 1)
    const gap = zeros([...grad.shape.slice(0, dim + 1), step - 1, ...grad.shape.slice(dim + 1)], { dtype: grad.dtype })
    const joined = cat([wide, gap], dim + 1)
    middle = slice(reshape(joined, grad.shape.with(dim, (grad.shape[dim] as number) * step)), dim, 0, until - from)
  }
  const size = middle.shape[dim] as number
  const after = (like.shape[dim] as number) - from - size
  const parts = [...(from > 0 ? [zerosOf(from)] : []), middle, ...(after > 0 ? [zerosOf(after)] : [])]
  return parts.length === 1 ? middle : cat(parts, dim)
}

/** `length` elements of a dimension from `start`. PyTorch's `torch.narrow`. */
export const narrow: OpFunction<(self: Tensor, dim: number, start: number, length: number) => Tensor> = defineOp({
  schema: 'narrow(Tensor self, int dim, int start, int length) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: number, start: number, length: number): Tensor => {
    const at = wrapDim('torch.narrow', dim, self.ndim)
    const size = self.shape[at] as number
    if (start < 0 || length < 0 || start + length > size) throw new ArgumentError(`torch.narrow: start ${start} and length ${length} exceed dimension ${dim} of size ${size}.`)
    return slice(self, at, start, start + length)
  },
})

/** Any window on the storage: shape, strides and offset in elements. No derivative. PyTorch's `torch.as_strided`. */
export const asStrided: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], storageOffset?: number | null) => Tensor> = defineOp({
  schema: 'as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor, size: readonly number[], stride: readonly number[], offset: number | null): TensorSpec => spec(self, size, stride, offset ?? self.offset),
})

/** The same data outside of autograd. PyTorch's `Tensor.detach`. */
export const detach: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'detach(Tensor self) -> Tensor',
  method: true,
  tags: ['view'],
  meta: (self: Tensor): TensorSpec => spec(self, self.shape, self.strides),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    view(...shape: readonly (number | readonly number[])[]): Tensor
    permute(...dims: readonly (number | readonly number[])[]): Tensor
    transpose(dim0: number, dim1: number): Tensor
    t(): Tensor
    unsqueeze(dim: number): Tensor
    squeeze(dim?: number | null): Tensor
    expand(...size: readonly (number | readonly number[])[]): Tensor
    select(dim: number, index: number): Tensor
    slice(dim?: number, start?: number | null, end?: number | null, step?: number): Tensor
    narrow(dim: number, start: number, length: number): Tensor
    detach(): Tensor
    asStrided(size: readonly number[], stride: readonly number[], storageOffset?: number | null): Tensor
  }
}
