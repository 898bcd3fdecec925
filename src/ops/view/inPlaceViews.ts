// Operators that give a tensor another shape in place: it becomes a view of what it was (PyTorch's tag inplace_view), or of another tensor (set_). They are composites: autograd and modes see the view
// operators by which the tensor becomes what it is afterwards.
import { anyRequiresGrad, becomeView, dispatchState } from '../../dispatch/index.ts'
import { DTypeError, ShapeError, UnsupportedError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { contiguousStrides, formatShape, sameShape, sizeAdd, sizeLess, sizeNumber, sizeProduct } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { Size } from '../../protocol/index.ts'
import { empty } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { t, transpose } from './permute.ts'
import { squeeze, squeezedDims, unsqueeze } from './reshape.ts'
import { storedElementsOf, viewSpec } from './strides.ts'
import { asStrided, windowSpec } from './strided.ts'
import { detach } from './windows.ts'

/**
 * Exchanges two dimensions of `self` in place: the shape changes, the memory stays. PyTorch's `Tensor.transpose_`.
 *
 * Shape: that of `self` with the two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range; AutogradError for a leaf that requires grad, outside of noGrad.
 * @example torch.tensor([[1, 2, 3]]).transpose_(0, 1).toArray() // [[1], [2], [3]]
 */
export const transpose_: Op['transpose_'] = defineOp({
  schema: 'transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, dim0, dim1) => transpose.op.meta(self, dim0, dim1),
  decompose: (self, dim0, dim1) => becomeView('torch.Tensor.transpose_', self, (was) => transpose(was, dim0, dim1)),
})

/**
 * Another name of {@link transpose_}. PyTorch's `Tensor.swapaxes_`.
 *
 * Shape: that of `self` with the two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range; AutogradError for a leaf that requires grad, outside of noGrad.
 * @example torch.tensor([[1, 2, 3]]).swapaxes_(0, 1).toArray() // [[1], [2], [3]]
 */
export const swapaxes_: Op['swapaxes_'] = defineOp({
  schema: 'swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, axis0, axis1) => transpose.op.meta(self, axis0, axis1),
  decompose: (self, axis0, axis1) => becomeView('torch.Tensor.swapaxes_', self, (was) => transpose(was, axis0, axis1)),
})

/**
 * Another name of {@link transpose_}. PyTorch's `Tensor.swapdims_`.
 *
 * Shape: that of `self` with the two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range; AutogradError for a leaf that requires grad, outside of noGrad.
 * @example torch.tensor([[1, 2, 3]]).swapdims_(0, 1).toArray() // [[1], [2], [3]]
 */
export const swapdims_: Op['swapdims_'] = defineOp({
  schema: 'swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, dim0, dim1) => transpose.op.meta(self, dim0, dim1),
  decompose: (self, dim0, dim1) => becomeView('torch.Tensor.swapdims_', self, (was) => transpose(was, dim0, dim1)),
})

/**
 * Exchanges rows and columns of a matrix in place; vectors and scalars stay as they are. PyTorch's `Tensor.t_`.
 *
 * Shape: [m, n] becomes [n, m].
 *
 * @throws ShapeError for more than 2 dimensions; AutogradError for a leaf that requires grad, outside of noGrad.
 * @example torch.tensor([[1, 2, 3]]).t_().toArray() // [[1], [2], [3]]
 */
export const t_: Op['t_'] = defineOp({
  schema: 't_(Tensor(a!) self) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self) => t.op.meta(self),
  decompose: (self) => becomeView('torch.Tensor.t_', self, t),
})

/**
 * Removes dimensions of size 1 in place: all of them, or only `dim`, or those of the list `dim`, if they have size 1. PyTorch's `Tensor.squeeze_`.
 *
 * Shape: that of `self` without those dimensions.
 *
 * @throws ShapeError if `dim` is out of range; ArgumentError if it is neither an integer, nor a list of them, nor null; AutogradError for a leaf that requires grad, outside of noGrad.
 * @example torch.zeros([1, 3, 1]).squeeze_().shape // [3]
 */
export const squeeze_: OpFunction<(self: Tensor, dim?: number | readonly number[] | null) => Tensor> = defineOp({
  schema: 'squeeze_(Tensor(a!) self, any dim=None) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, dim) => squeeze.op.meta(self, squeezedDims(self, dim)),
  decompose: (self, dim) => becomeView('torch.Tensor.squeeze_', self, (was) => squeeze(was, squeezedDims(was, dim))),
})

/**
 * Adds a dimension of size 1 at `dim` in place. PyTorch's `Tensor.unsqueeze_`.
 *
 * Shape: that of `self` with a 1 at `dim`.
 *
 * @throws ShapeError if `dim` is out of range; AutogradError for a leaf that requires grad, outside of noGrad.
 * @example torch.zeros([3]).unsqueeze_(0).shape // [1, 3]
 */
export const unsqueeze_: Op['unsqueeze_'] = defineOp({
  schema: 'unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, dim) => unsqueeze.op.meta(self, dim),
  decompose: (self, dim) => becomeView('torch.Tensor.unsqueeze_', self, (was) => unsqueeze(was, dim)),
})

/**
 * Makes `self` another window on its storage, in place: `size`, `stride` and `storageOffset` in elements. PyTorch's `torch.as_strided_`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if the window reaches outside the storage, or `size` and `stride` have different lengths; ArgumentError if a stride is negative; AutogradError for a leaf that requires grad, outside
 * of noGrad.
 * @example torch.asStrided_(torch.tensor([1, 2, 3, 4]), [2], [2], 1).toArray() // [2, 4]
 */
export const asStrided_: Op['asStrided_'] = defineOp({
  schema: 'as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)',
  method: true,
  tags: ['mutates'],
  meta: (self, size, stride, offset) => asStrided.op.meta(self, size, stride, offset),
  decompose: (self, size, stride, offset) => becomeView('torch.as_strided_', self, (was) => asStrided(was, size, stride, offset)),
})

/**
 * Gives `self` the shape `size` in place, with its elements in the order of its memory. If the storage is too short, it grows: the new elements are 0. PyTorch's `Tensor.resize_`, whose new elements are
 * arbitrary.
 *
 * Shape: `size`.
 *
 * @throws ShapeError for a negative size; UnsupportedError for a tensor that requires grad, and for a larger size while a program is traced.
 * @example torch.tensor([1, 2, 3, 4]).resize_([3]).toArray() // [1, 2, 3]
 */
export const resize_: OpFunction<(self: Tensor, ...size: readonly (Size | readonly Size[])[]) => Tensor> = defineOp({
  schema: 'resize_(Tensor(a!) self, SymInt[] size) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, size) => resized(self, size),
  decompose: (self, size) => resize('torch.Tensor.resize_', self, size),
})

/**
 * Gives `self` the shape of `theTemplate` in place, see `x.resize_`. PyTorch's `torch.resize_as_`.
 *
 * Shape: that of `theTemplate`.
 *
 * @throws UnsupportedError for a tensor that requires grad, and for a larger size while a program is traced.
 * @example torch.resizeAs_(torch.tensor([1, 2, 3]), torch.zeros([2])).toArray() // [1, 2]
 */
export const resizeAs_: Op['resizeAs_'] = defineOp({
  schema: 'resize_as_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)',
  method: true,
  tags: ['mutates'],
  meta: (self, template) => resized(self, template.symSizes),
  decompose: (self, template) => resize('torch.resize_as_', self, template.symSizes),
})

const resized = (self: Tensor, size: readonly Size[]): TensorSpec<Size> => ({ shape: size, dtype: self.dtype, offset: self.symOffset })

function resize(qualname: string, self: Tensor, size: readonly Size[]): Tensor {
  if (self.requiresGrad)
    throw new UnsupportedError(`${qualname}: a tensor that requires grad cannot be resized. Use a new tensor: reshape(…), narrow(…) or torch.cat(…).`)
  if (sameShape(self.symSizes, size)) return self
  checkSizes(qualname, size)
  return becomeView(
    qualname,
    self,
    (was) => {
      const needed = sizeAdd(was.symOffset, sizeProduct(size))
      if (sizeLess(storedElementsOf(was), needed)) {
        if (was.storage === null || dispatchState.mode !== null)
          throw new UnsupportedError(
            `${qualname}: a tensor of shape ${formatShape(was.symSizes)} cannot grow to ${formatShape(size)} while the program is traced, since a graph has no memory that could grow. Use a new tensor of that size.`,
          )
        was.realize().growTo(sizeNumber(needed) * dtypeInfo[was.dtype].size)
      }
      return asStrided(was, size, contiguousStrides(size), was.symOffset)
    },
    false,
  )
}

function checkSizes(qualname: string, size: readonly Size[]): void {
  if (size.some((n) => sizeLess(n, 0)))
    throw new ShapeError(`${qualname}: argument 'size' must hold integers of at least 0, got ${formatShape(size)}.`)
}

/**
 * Makes `self` another tensor on the memory of `source`, in place: with its shape and strides, or with `size`, `stride` and `storageOffset` in elements. Both see later writes, and neither has the other's
 * history. Without `source` it becomes an empty tensor. PyTorch's `Tensor.set_`.
 *
 * Shape: that of `source`, or `size`.
 *
 * @throws DTypeError if the dtypes differ; ShapeError if the window reaches outside the storage; UnsupportedError if one of the tensors requires grad, outside of noGrad; AutogradError for a leaf that requires
 * grad, outside of noGrad.
 * @example torch.zeros([3]).set_(torch.tensor([[1, 2]])).toArray() // [[1, 2]]
 */
export const set_: Op['set_'] = defineOp({
  schema: 'set_(Tensor(a!) self, Tensor? source=None, SymInt storage_offset=0, SymInt[]? size=None, SymInt[]? stride=None) -> Tensor(a!)',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['mutates'],
  meta: (self, source, offset, size, stride) => {
    if (source === null) return { shape: [0], dtype: self.dtype }
    return size === null ? viewSpec(source, source.symSizes, source.symSteps) : windowSpec(source, size, stride ?? contiguousStrides(size), offset)
  },
  decompose: (self, source, offset, size, stride) => {
    const from = source ?? empty([0], { dtype: self.dtype })
    if (from.dtype !== self.dtype)
      throw new DTypeError(
        `torch.Tensor.set_: source has dtype ${from.dtype}, but self has ${self.dtype}; a tensor keeps its dtype. Convert source first.`,
      )
    const recorded = dispatchState.gradEnabled && anyRequiresGrad([self, from])
    return becomeView(
      'torch.Tensor.set_',
      self,
      () => {
        if (recorded)
          throw new UnsupportedError('torch.Tensor.set_ has no derivative: call it inside noGrad(() => …), or on tensors that do not require grad.')
        return detach(size === null ? from : asStrided(from, size, stride ?? contiguousStrides(size), offset))
      },
      false,
    )
  },
})
