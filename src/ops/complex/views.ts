// Complex tensors and their numbers: views in both directions, on which everything that is computed with complex numbers rests.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import { complexDType, isComplexDType, realDType } from '../../kernels/index.ts'
import { formatShape, noted, sizeEq } from '../../tensor/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { clone } from '../view/reshape.ts'
import { fullOf } from '../create/creation.ts'

/** ONNX has complex tensors, and no operators on them. */
const NO_COMPLEX = { none: 'ONNX has no operators on complex numbers' } as const

/** Whether the numbers of `pairs` can be seen as complex ones where they lie. */
const areSideBySide = ({ steps, offset, sizes }: Tensor): boolean =>
  (steps.at(-1) === 1 || sizes.includes(0)) && offset % 2 === 0 && steps.slice(0, -1).every((step, d) => step % 2 === 0 || sizes[d] === 1)

/** The complex numbers of pairs. Throws DTypeError or ShapeError unless the pairs are floats that lie side by side. */
function pairsSpec(op: string, self: Tensor): TensorSpec {
  if (self.dtype !== 'float32' && self.dtype !== 'float64')
    throw new DTypeError(`${op}: self must be float32 or float64, got ${self.dtype}; convert it first: x.float().`)
  if (!sizeEq(self.symSizes.at(-1), 2))
    throw new ShapeError(`${op}: the last dimension must have size 2, the real and the imaginary part, got shape ${formatShape(self.symSizes)}.`)
  if (!areSideBySide(self))
    throw new ShapeError(
      `${op}: the two numbers of each pair must lie side by side, got strides ${formatShape(self.symSteps)}, offset ${self.offset}; use x.contiguous().`,
    )
  return {
    shape: self.sizes.slice(0, -1),
    dtype: noted(complexDType(self.dtype)),
    strides: self.steps.slice(0, -1).map((step) => Math.floor(step / 2)),
    offset: self.offset / 2,
  }
}

/**
 * The numbers of a complex tensor: a view with a last dimension of two, the real part and the imaginary part. PyTorch's `torch.view_as_real`.
 *
 * Shape: that of `self`, and 2.
 *
 * @throws DTypeError if `self` is not complex.
 * @example torch.viewAsReal(torch.tensor([{ re: 1, im: 2 }])).toArray() // [[1, 2]]
 */
export const viewAsReal: Op['viewAsReal'] = defineOp({
  schema: 'view_as_real(Tensor self) -> Tensor',
  tags: ['view'],
  vmap: 'dimensions',
  onnx: NO_COMPLEX,
  autocast: 'as is',
  meta: (self) => {
    if (!isComplexDType(self.dtype))
      throw new DTypeError(`torch.view_as_real: self must be complex, got ${self.dtype}; use torch.complex(x, y) first.`)
    return { shape: [...self.sizes, 2], dtype: realDType(self.dtype), strides: [...self.steps.map((step) => 2 * step), 1], offset: 2 * self.offset }
  },
  derivative: ([g]) => [complexFromPairs(g)],
  scatter: (value) => complexFromPairs(value),
})

/**
 * Pairs of numbers as complex ones: a view without the last dimension. PyTorch's `torch.view_as_complex`.
 *
 * Shape: [.., 2] becomes [..].
 *
 * @throws DTypeError unless `self` is float32 or float64.
 * @throws ShapeError unless the last dimension has size 2, and its numbers lie side by side.
 * @example torch.viewAsComplex(torch.tensor([[1, 2]])).toArray() // [{ re: 1, im: 2 }]
 */
export const viewAsComplex: Op['viewAsComplex'] = defineOp({
  schema: 'view_as_complex(Tensor self) -> Tensor',
  tags: ['view'],
  vmap: 'dimensions',
  onnx: NO_COMPLEX,
  autocast: 'float32',
  meta: (self) => pairsSpec('torch.view_as_complex', self),
  derivative: ([g]) => [viewAsReal(g)],
  scatter: (value) => viewAsReal(value),
})

/** Pairs of numbers in any layout as complex ones: a view where they lie side by side. */
const complexFromPairs = (pairs: Tensor): Tensor => viewAsComplex(areSideBySide(pairs) ? pairs : clone(pairs))

/**
 * Pairs that were just computed, and that nothing else uses, as complex numbers. Internal: it is no view, so that its result can be written to like that of any other operator. PyTorch's `torch.view_as_complex` of a temporary.
 *
 * Shape: [.., 2] becomes [..].
 *
 * @throws DTypeError and ShapeError as {@link viewAsComplex} does.
 * @example torch.ops.tensorfx.complexOf(torch.ones([1, 2])).toArray() // [{ re: 1, im: 1 }]
 */
export const complexOf: Op['complexOf'] = defineOp({
  schema: 'complex_of(Tensor pairs) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['takesMemory'],
  vmap: 'dimensions',
  onnx: NO_COMPLEX,
  autocast: 'as is',
  meta: (pairs) => pairsSpec('torch.ops.tensorfx.complex_of', pairs),
  kernel: (pairs) => {
    const { shape, dtype, strides, offset } = pairsSpec('torch.ops.tensorfx.complex_of', pairs)
    return new Tensor(shape, dtype, pairs.realize(), strides, offset)
  },
  derivative: ([g]) => [viewAsReal(g)],
})

/** The complex numbers of pairs that were just computed, in any layout. */
export const fromPairs = (pairs: Tensor): Tensor => complexOf(areSideBySide(pairs) ? pairs : clone(pairs))

/**
 * `src` as what `self` becomes. Internal: its in-place form writes complex numbers into `self`. PyTorch's `aten.copy`.
 *
 * Shape: that of `self`, which `src` has too.
 *
 * @throws DTypeError unless both have one complex dtype.
 * @example torch.ops.tensorfx.complexCopy(torch.zeros([1], { dtype: 'complex64' }), torch.tensor([{ re: 1, im: 2 }])).toArray() // [{ re: 1, im: 2 }]
 */
export const complexCopy: Op['complexCopy'] = defineOp({
  schema: 'complex_copy(Tensor self, Tensor src) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  inPlace: 'function',
  vmap: { none: 'writes of complex numbers into a batch have no rule yet' },
  onnx: NO_COMPLEX,
  autocast: 'as is',
  meta: (self, src) => {
    if (!isComplexDType(self.dtype) || src.dtype !== self.dtype)
      throw new DTypeError(`torch.ops.tensorfx.complex_copy: self and src must have one complex dtype, got ${self.dtype} and ${src.dtype}.`)
    return { shape: src.symSizes, dtype: src.dtype }
  },
  decompose: (_self, src) => fromPairs(clone(viewAsReal(src))),
  derivative: ([g], { args: [self] }) => [zerosOf(self), g],
})

/** Zeros in the shape and dtype of a complex tensor. */
export const zerosOf = (like: Tensor): Tensor => complexOf(fullOf([...like.symSizes, 2], 0, realDType(like.dtype)))
