// Windows on the storage with any strides: asStrided, and its scatter.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, inverseOrder, memoryOrder, numelOf, sizeAdd, sizeLess, sizeSub } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { arange, zeros } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { numbersFor, sizeAt } from '../shared/shapes.ts'
import { indexSelect, scatterAdd } from './indexing.ts'
import { permute } from './permute.ts'
import { clone, contiguous, reshape } from './reshape.ts'
import { scatterInto, scatterSpec } from './scatterWindow.ts'
import { checkWindow, storedElementsOf, viewSpec } from './strides.ts'

const AS_STRIDED = 'torch.as_strided'
const AS_STRIDED_SCATTER = 'torch.as_strided_scatter'

/**
 * A contiguous copy of `self` with `src` in a window: `size`, `stride` and `storageOffset`, in elements of that copy. PyTorch's `torch.as_strided_scatter`.
 *
 * Shapes: `src` has the shape `size`. The result has the shape of `self`.
 *
 * @throws ShapeError if `src` is not of shape `size`, or the window reaches beyond the elements of `self`; DTypeError if the dtypes differ.
 * @example torch.asStridedScatter(torch.zeros([2, 2]), torch.tensor([5, 6]), [2], [3]).toArray() // [[5, 0], [0, 6]]
 */
export const asStridedScatter: Op['asStridedScatter'] = defineOp({
  schema: 'as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor',
  method: true,
  vmap: { none: 'the layout of one example says nothing about that of a batch' },
  onnx: { writeTo: 'self', view: 'torch.as_strided', part: 'src' },
  autocast: 'as is',
  meta: (self, src, size, stride, offset) => scatterSpec(AS_STRIDED_SCATTER, self, src, windowOf(self, size, stride, offset)),
  kernel: (self, src, size, stride, offset) => scatterInto(AS_STRIDED_SCATTER, self, src, (whole) => windowOf(whole, size, stride, offset)),
  // The windows are those of contiguous tensors, as in the call.
  derivative: ([g], { args: [, src, size, stride, offset], needs }) => {
    const whole = contiguous(g)
    return [
      needs[0] ? asStridedScatter(whole, zeros(src.symSizes, { dtype: g.dtype }), size, stride, offset) : null,
      needs[1] ? asStrided(whole, size, stride, sizeAdd(whole.symOffset, offset ?? 0)) : null,
      null,
      null,
      null,
    ]
  },
})

/** A window on a contiguous tensor of the shape of `self`. */
function windowOf(self: Tensor, size: readonly Size[], stride: readonly Size[], offset: Size | null): TensorSpec<Size> {
  checkWindow(AS_STRIDED_SCATTER, size, stride, offset ?? 0, self.symNumel, `self (shape ${formatShape(self.symSizes)})`)
  return viewSpec(self, size, stride, offset ?? 0)
}

/** The positions of a window's elements in memory, from that of its first element: int64, of the shape `size`. */
export function windowPlaces(size: readonly number[], stride: readonly number[], first: number): Tensor {
  const along = (count: number, i: number): Tensor =>
    reshape(
      mul(arange(0, count, { dtype: 'int64' }), sizeAt(stride, i)),
      size.map((n, d) => (d === i ? n : 1)),
    )
  return size.reduce((sum, count, i) => add(sum, along(count, i)), add(zeros(size, { dtype: 'int64' }), first))
}

/** The order in memory of a window's dimensions, if it is one on all of `count` elements, each once; null if it is not. */
export const coveringOrder = (size: readonly number[], stride: readonly number[], count: number): readonly number[] | null =>
  numelOf(size) === count ? memoryOrder(size, stride) : null

/**
 * A copy of a window on `whole`, whose elements lie in memory in their order. It is found by positions, not by strides: under vmap the memory of `whole` is that of all examples.
 */
export function windowCopy(whole: Tensor, size: readonly number[], stride: readonly number[], first: number): Tensor {
  const order = coveringOrder(size, stride, whole.numel)
  if (order === null) return reshape(indexSelect(reshape(whole, [-1]), 0, reshape(windowPlaces(size, stride, first), [-1])), size)
  const inMemory = reshape(
    whole,
    order.map((dim) => sizeAt(size, dim)),
  )
  return clone(permute(inMemory, inverseOrder(order)))
}

/** The gradient of a window on elements without gaps: those that occur in it several times get the sum. */
function windowGradient(g: Tensor, self: Tensor, size: readonly number[], stride: readonly number[], first: number): Tensor {
  const order = memoryOrder(self.sizes, self.steps)
  if (order === null)
    throw new UnsupportedError(
      `backward of torch.as_strided: self of shape ${formatShape(self.symSizes)} has gaps in its memory, or elements that share a place; call contiguous() first.`,
    )
  const covering = coveringOrder(size, stride, self.numel)
  const added = (): Tensor =>
    scatterAdd(zeros([self.symNumel], { dtype: g.dtype }), 0, reshape(windowPlaces(size, stride, first), [-1]), reshape(g, [-1]))
  const inMemory = covering === null ? added() : clone(permute(g, covering))
  const sizes = order.map((dim) => sizeAt(self.symSizes, dim))
  return permute(reshape(inMemory, sizes), inverseOrder(order))
}

/** The layout of a window on the storage of `self`. Throws ShapeError unless it lies inside. Strides may be negative. */
export function windowSpec(self: Tensor, size: readonly Size[], stride: readonly Size[], offset: Size): TensorSpec<Size> {
  checkWindow(AS_STRIDED, size, stride, offset, storedElementsOf(self), `the storage of self (shape ${formatShape(self.symSizes)})`)
  return viewSpec(self, size, stride, offset)
}

/**
 * Any window on the storage: `size`, `stride` and `storageOffset` in elements. PyTorch's `torch.as_strided`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if `size` or `stride` is not a list of integers, or a stride is negative.
 * @throws ShapeError if the window reaches outside the storage, or `size` and `stride` have different lengths.
 * @example torch.asStrided(torch.tensor([1, 2, 3, 4]), [2, 2], [1, 2]).toArray() // [[1, 3], [2, 4]]
 */
export const asStrided: Op['asStrided'] = defineOp({
  schema: 'as_strided(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: { none: 'the layout of one example says nothing about that of a batch' },
  onnx: 'positions',
  autocast: 'as is',
  meta: (self, size, stride, offset) => {
    if (stride.some((s) => sizeLess(s, 0)))
      throw new ArgumentError(`${AS_STRIDED}: argument 'stride' must hold integers of at least 0, got ${formatShape(stride)}.`)
    return windowSpec(self, size, stride, offset ?? self.symOffset)
  },
  derivative: ([g], { args: [self, size, stride, offset] }) => [
    windowGradient(
      g,
      self,
      numbersFor(AS_STRIDED, size),
      numbersFor(AS_STRIDED, stride),
      sizeAt(numbersFor(AS_STRIDED, [sizeSub(offset ?? self.symOffset, self.symOffset)]), 0),
    ),
    null,
    null,
    null,
  ],
  scatter: (value, self, size, stride, offset) => asStridedScatter(self, value, size, stride, offset),
})
