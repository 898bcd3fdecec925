// Other shapes for the same elements: a view if the layout allows it, otherwise a copy.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, sameShape, sizeEq, sizeMul, sizeProduct, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { inFormat } from '../shared/memoryFormat.ts'
import type { FormatOptions } from '../shared/memoryFormat.ts'
import { sizeAt } from '../shared/shapes.ts'
import { inferShape, viewSpec, viewStrides } from './strides.ts'

/**
 * A contiguous copy. PyTorch's `torch.clone`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.clone(torch.tensor([1, 2])).toArray() // [1, 2]
 */
export const clone: Op['clone'] = defineOp({
  schema: 'clone(Tensor self) -> Tensor',
  method: true,
  onnx: 'identity',
  pointwise: { promotion: 'promote', compute: (x) => x },
  derivative: ([g]) => [g],
})

/**
 * `self` if it is contiguous, otherwise a contiguous copy. PyTorch's `Tensor.contiguous`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.zeros([2, 3]).t().contiguous().isContiguous() // true
 */
export const contiguous: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: "contiguous(Tensor self, *, str memory_format='contiguous_format') -> Tensor",
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) =>
    format !== 'contiguous_format' ? inFormat('torch.Tensor.contiguous', self, format) : self.contiguousLayout ? self : clone(self),
})

/**
 * The same elements in another shape, without a copy; one -1 stands for whatever size is left. PyTorch's `Tensor.view`.
 *
 * Shape: `shape`, which must hold the elements of `self`.
 *
 * @throws ShapeError if the number of elements differs, or the layout would need a copy (use reshape).
 * @example torch.arange(6).view(2, -1).toArray() // [[0, 1, 2], [3, 4, 5]]
 */
export const view: OpFunction<(self: Tensor, ...shape: readonly (Size | readonly Size[])[]) => Tensor> = defineOp({
  schema: 'view(Tensor self, SymInt[] size) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  vmap: 'sizes',
  onnx: 'reshape',
  autocast: 'as is',
  meta: (self, size) => {
    const shape = inferShape('torch.Tensor.view', self, size)
    const strides = viewStrides(self, shape)
    if (strides === null)
      throw new ShapeError(
        `torch.Tensor.view: self of shape ${formatShape(self.symSizes)} and strides ${formatShape(self.symSteps)} cannot be seen as ${formatShape(shape)} without a copy; use reshape.`,
      )
    return viewSpec(self, shape, strides)
  },
  derivative: ([g], { args: [self] }) => [reshape(g, self.symSizes), null],
  scatter: (value, self) => reshape(value, self.symSizes),
})

/**
 * The same elements in another shape; one -1 stands for whatever size is left. A view if possible, otherwise a copy. PyTorch's `torch.reshape`.
 *
 * Shape: `shape`, which must hold the elements of `self`.
 *
 * @throws ShapeError if the number of elements differs.
 * @example torch.reshape(torch.tensor([[1, 2], [3, 4]]).t(), [4]).toArray() // [1, 3, 2, 4]
 */
export const reshape: OpFunction<(self: Tensor, ...shape: readonly (Size | readonly Size[])[]) => Tensor> = defineOp({
  schema: 'reshape(Tensor self, SymInt[] shape) -> Tensor',
  method: true,
  decompose: (self, shape) => {
    const target = inferShape('torch.reshape', self, shape)
    if (sameShape(self.symSizes, target)) return self
    return view(viewStrides(self, target) === null ? clone(self) : self, target)
  },
})

/**
 * The dimensions `startDim` to `endDim` as one. PyTorch's `torch.flatten`.
 *
 * Shape: [.., a, b, c, ..] becomes [.., a * b * c, ..]; a scalar becomes [1].
 *
 * @throws ShapeError if a dimension is out of range, or `startDim` comes after `endDim`.
 * @example torch.flatten(torch.zeros([2, 3, 4]), 1).shape // [2, 12]
 */
export const flatten: Op['flatten'] = defineOp({
  schema: 'flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor',
  method: true,
  decompose: (self, startDim, endDim) => {
    const from = wrapDim('torch.flatten', startDim, self.ndim)
    const to = wrapDim('torch.flatten', endDim, self.ndim)
    if (from > to) throw new ShapeError(`torch.flatten: start_dim ${startDim} comes after end_dim ${endDim} (shape ${formatShape(self.symSizes)}).`)
    if (self.ndim === 0) return reshape(self, [1])
    const sizes = self.symSizes
    return reshape(self, [...sizes.slice(0, from), sizeProduct(sizes.slice(from, to + 1)), ...sizes.slice(to + 1)])
  },
})

/**
 * A new dimension of size 1 at position `dim`; a view. PyTorch's `torch.unsqueeze`.
 *
 * Shape: that of `self` with a 1 inserted.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.unsqueeze(torch.tensor([1, 2]), 1).toArray() // [[1], [2]]
 */
export const unsqueeze: Op['unsqueeze'] = defineOp({
  schema: 'unsqueeze(Tensor self, int dim) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: 'dimensions',
  onnx: 'reshape',
  autocast: 'as is',
  meta: (self, dim) => {
    const at = wrapDim('torch.unsqueeze', dim, self.ndim + 1)
    const sizes = self.symSizes
    const steps = self.symSteps
    const stride = at < self.ndim ? sizeMul(sizeAt(sizes, at), sizeAt(steps, at)) : 1
    return viewSpec(self, sizes.toSpliced(at, 0, 1), steps.toSpliced(at, 0, stride))
  },
  derivative: ([g], { args: [, dim] }) => [squeeze(g, dim), null],
  scatter: (value, _self, dim) => squeeze(value, dim),
})

/** The dimensions that squeeze was told to leave out, or null. */
export function squeezedDims(self: Tensor, dim: unknown): readonly number[] | null {
  if (dim === null) return null
  const list: readonly unknown[] = Array.isArray(dim) ? dim : [dim]
  return list.map((d) => {
    if (typeof d === 'number' && Number.isInteger(d)) return wrapDim('torch.squeeze', d, self.ndim)
    throw new ArgumentError(`torch.squeeze: argument 'dim' must be an integer, a list of them or null, got ${valueText(dim)}.`)
  })
}

/**
 * Without the dimensions of size 1: all of them, or only `dim`, or those of the list `dim`, if they have size 1. A view. PyTorch's `torch.squeeze`.
 *
 * Shape: that of `self` without those dimensions.
 *
 * @throws ShapeError if `dim` is out of range.
 * @throws ArgumentError if it is neither an integer, nor a list of them, nor null.
 * @example torch.squeeze(torch.zeros([1, 3, 1])).shape // [3]
 */
export const squeeze: OpFunction<(self: Tensor, dim?: number | readonly number[] | null) => Tensor> = defineOp({
  schema: 'squeeze(Tensor self, any dim=None) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: 'squeeze',
  onnx: 'reshape',
  autocast: 'as is',
  meta: (self, dim) => {
    const dims = squeezedDims(self, dim)
    const sizes = self.symSizes
    const stays = (_: Size, i: number): boolean => (dims !== null && !dims.includes(i)) || !sizeEq(sizes[i] ?? 1, 1)
    return viewSpec(self, sizes.filter(stays), self.symSteps.filter(stays))
  },
  derivative: ([g], { args: [self] }) => [reshape(g, self.symSizes), null],
  scatter: (value, self) => reshape(value, self.symSizes),
})
