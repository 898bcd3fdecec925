// Parts of a dimension: select, slice, narrow, and the gradients that put a part back into zeros.
import { ArgumentError } from '../../errors/index.ts'
import { isSymbolicSize, valueText } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { Tensor, sizeAdd, sizeCeilDiv, sizeLess, sizeMul, sizeSub } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { checkOperand, sizeAt, dimAndSize } from '../shared/shapes.ts'
import { clone } from './reshape.ts'
import { fillWindow, scatterInto, scatterSpec } from './scatterWindow.ts'
import { viewSpec } from './strides.ts'

function selectSpec(self: Tensor, dim: number, index: Size): TensorSpec<Size> {
  const [at, size] = dimAndSize('torch.select', self, dim)
  const i = sizeLess(index, 0) ? sizeAdd(index, size) : index
  if (sizeLess(i, 0) || !sizeLess(i, size))
    throw new ArgumentError(`torch.select: index ${index.toString()} is out of range for dimension ${dim} with size ${size.toString()}.`)
  const sizes = self.symSizes
  const steps = self.symSteps
  return viewSpec(self, sizes.toSpliced(at, 1), steps.toSpliced(at, 1), sizeAdd(self.symOffset, sizeMul(i, sizeAt(steps, at))))
}

/** A bound of a slice, which counts from the end if it is negative, as one from 0 to `size`. */
function clipped(bound: Size, size: Size): Size {
  const from = sizeLess(bound, 0) ? sizeAdd(bound, size) : bound
  return sizeLess(from, 0) ? 0 : sizeLess(size, from) ? size : from
}

function sliceSpec(self: Tensor, dim: number, start: Size | null, end: Size | null, step: Size): TensorSpec<Size> {
  const [at, size] = dimAndSize('torch.Tensor.slice', self, dim)
  if (sizeLess(step, 1)) throw new ArgumentError(`torch.Tensor.slice: step must be positive, got ${step.toString()}.`)
  const from = clipped(start ?? 0, size)
  const until = clipped(end ?? size, size)
  const count = sizeLess(from, until) ? sizeCeilDiv(sizeSub(until, from), step) : 0
  const sizes = self.symSizes
  const steps = self.symSteps
  const stride = sizeAt(steps, at)
  return viewSpec(self, sizes.with(at, count), steps.with(at, sizeMul(stride, step)), sizeAdd(self.symOffset, sizeMul(from, stride)))
}

/** Zeros of `shape` with `grad` in the window that `windowOf` cuts from a tensor of that shape. */
function putBack(op: string, grad: Tensor, shape: readonly number[], windowOf: (whole: Tensor) => TensorSpec<Size>): Tensor {
  const whole = zeros(shape, { dtype: grad.dtype })
  checkOperand(op, 'grad', grad, windowOf(whole).shape, grad.dtype)
  return fillWindow(whole, grad, windowOf)
}

/**
 * The gradient of select: zeros with `grad` at one index. Internal; PyTorch's `aten.select_backward`.
 *
 * Shape: `inputSizes`.
 *
 * @throws ArgumentError if `index` is out of range.
 * @example torch.ops.tensorfx.selectBackward(torch.tensor([5, 6]), [2, 2], 0, 1).toArray() // [[0, 0], [5, 6]]
 */
export const selectBackward: Op['selectBackward'] = defineOp({
  schema: 'select_backward(Tensor grad, SymInt[] input_sizes, int dim, SymInt index) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: 'dimensions',
  onnx: { writeTo: 'zeros', view: 'torch.select', part: 'grad' },
  autocast: 'as is',
  meta: (grad, inputSizes) => ({ shape: inputSizes, dtype: grad.dtype }),
  kernel: (grad, inputSizes, dim, index) => putBack('torch.ops.tensorfx.select_backward', grad, inputSizes, (whole) => selectSpec(whole, dim, index)),
  derivative: ([g], { args: [, , dim, index] }) => [select(g, dim, index), null, null, null],
})

/**
 * The gradient of slice: zeros with `grad` in the slice. Internal; PyTorch's `aten.slice_backward`.
 *
 * Shape: `inputSizes`.
 *
 * @throws ArgumentError if `step` is not positive.
 * @example torch.ops.tensorfx.sliceBackward(torch.tensor([5, 6]), [4], 0, 1, 3, 1).toArray() // [0, 5, 6, 0]
 */
export const sliceBackward: Op['sliceBackward'] = defineOp({
  schema: 'slice_backward(Tensor grad, SymInt[] input_sizes, int dim, SymInt? start, SymInt? end, SymInt step) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: 'dimensions',
  onnx: { writeTo: 'zeros', view: 'torch.Tensor.slice', part: 'grad' },
  autocast: 'as is',
  meta: (grad, inputSizes) => ({ shape: inputSizes, dtype: grad.dtype }),
  kernel: (grad, inputSizes, dim, start, end, step) =>
    putBack('torch.ops.tensorfx.slice_backward', grad, inputSizes, (whole) => sliceSpec(whole, dim, start, end, step)),
  derivative: ([g], { args: [, , dim, start, end, step] }) => [slice(g, dim, start, end, step), null, null, null, null, null],
})

const SELECT_SCATTER = 'torch.select_scatter'
const SLICE_SCATTER = 'torch.slice_scatter'

/**
 * A copy of `self` with `src` at one index of a dimension. PyTorch's `torch.select_scatter`.
 *
 * Shapes: `src` has the shape of `self` without `dim`. The result has the shape of `self`.
 *
 * @throws ShapeError if the shape of `src` does not fit, or `dim` is out of range. DTypeError if the dtypes differ.
 * @throws ArgumentError if `index` is out of range.
 * @example torch.selectScatter(torch.zeros([2, 2]), torch.tensor([5, 6]), 0, 1).toArray() // [[0, 0], [5, 6]]
 */
export const selectScatter: Op['selectScatter'] = defineOp({
  schema: 'select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: { writeTo: 'self', view: 'torch.select', part: 'src' },
  autocast: 'as is',
  meta: (self, src, dim, index) => scatterSpec(SELECT_SCATTER, self, src, selectSpec(self, dim, index)),
  kernel: (self, src, dim, index) => scatterInto(SELECT_SCATTER, self, src, (whole) => selectSpec(whole, dim, index)),
  derivative: ([g], { args: [, src, dim, index], needs }) => [
    needs[0] ? selectScatter(g, zeros(src.symSizes, { dtype: g.dtype }), dim, index) : null,
    needs[1] ? select(g, dim, index) : null,
    null,
    null,
  ],
})

/**
 * A copy of `self` with `src` in the place of the elements start, start + step, … before end of a dimension. PyTorch's `torch.slice_scatter`.
 *
 * Shapes: `src` has the shape of that slice. The result has the shape of `self`.
 *
 * @throws ShapeError if the shape of `src` does not fit, or `dim` is out of range. DTypeError if the dtypes differ.
 * @throws ArgumentError if `step` is not positive.
 * @example torch.sliceScatter(torch.zeros([4]), torch.tensor([5, 6]), 0, 1, 3).toArray() // [0, 5, 6, 0]
 */
export const sliceScatter: Op['sliceScatter'] = defineOp({
  schema: 'slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: { writeTo: 'self', view: 'torch.Tensor.slice', part: 'src' },
  autocast: 'as is',
  meta: (self, src, dim, start, end, step) => scatterSpec(SLICE_SCATTER, self, src, sliceSpec(self, dim, start, end, step)),
  kernel: (self, src, dim, start, end, step) => scatterInto(SLICE_SCATTER, self, src, (whole) => sliceSpec(whole, dim, start, end, step)),
  derivative: ([g], { args: [, src, dim, start, end, step], needs }) => [
    needs[0] ? sliceScatter(g, zeros(src.symSizes, { dtype: g.dtype }), dim, start, end, step) : null,
    needs[1] ? slice(g, dim, start, end, step) : null,
    null,
    null,
    null,
    null,
  ],
})

/**
 * One index of a dimension, which disappears; a view. PyTorch's `torch.select`.
 *
 * Shape: that of `self` without `dim`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @throws ArgumentError if `index` is out of range.
 * @example torch.select(torch.tensor([[1, 2], [3, 4]]), 0, -1).toArray() // [3, 4]
 */
export const select: Op['select'] = defineOp({
  schema: 'select.int(Tensor self, int dim, SymInt index) -> Tensor',
  method: true,
  tags: ['view'],
  vmap: 'dimensions',
  onnx: 'select',
  autocast: 'as is',
  meta: selectSpec,
  derivative: ([g], { args: [self, dim, index] }) => [selectBackward(g, self.symSizes, dim, index), null, null],
  scatter: (value, self, dim, index) => selectScatter(self, value, dim, index),
})

/**
 * The elements start, start + step, … before end of a dimension, as Python's `x[start:end:step]`; a view. PyTorch's `aten.slice`.
 *
 * Shape: that of `self`, with the number of chosen elements in `dim`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @throws ArgumentError if `step` is not positive.
 * @example torch.arange(6).slice(0, 1, -1, 2).toArray() // [1, 3]
 */
export const slice: Op['slice'] = defineOp({
  schema: 'slice.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  tags: ['view'],
  vmap: 'dimensions',
  onnx: 'slice',
  autocast: 'as is',
  meta: sliceSpec,
  derivative: ([g], { args: [self, dim, start, end, step] }) => [sliceBackward(g, self.symSizes, dim, start, end, step), null, null, null, null],
  scatter: (value, self, dim, start, end, step) => sliceScatter(self, value, dim, start, end, step),
})

/** What {@link narrow} gives. */
function narrowed(self: Tensor, dim: number, from: unknown, length: Size): Tensor {
  const [at, size] = dimAndSize('torch.narrow', self, dim)
  const isIndex = from instanceof Tensor && from.ndim === 0 && !from.isFloatingPoint() && from.dtype !== 'bool'
  const given = isIndex ? from.item() : from
  if (!isSymbolicSize(given) && (typeof given !== 'number' || !Number.isSafeInteger(given)))
    throw new ArgumentError(
      `torch.narrow: argument 'start' must be an integer, or a Tensor without dimensions that holds one, got ${valueText(from)}.`,
    )
  const start = sizeLess(given, 0) ? sizeAdd(given, size) : given
  const end = sizeAdd(start, length)
  if (sizeLess(start, 0) || sizeLess(length, 0) || sizeLess(size, end))
    throw new ArgumentError(
      `torch.narrow: start ${start.toString()} and length ${length.toString()} exceed dimension ${dim} of size ${size.toString()}.`,
    )
  return slice(self, at, start, end)
}

/**
 * `length` elements of a dimension, from `start` on; a view. PyTorch's `torch.narrow`.
 *
 * Shape: that of `self`, with size `length` in `dim`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @throws ArgumentError if the elements are not all inside the dimension.
 * @example torch.narrow(torch.arange(5), 0, 1, 3).toArray() // [1, 2, 3]
 */
export const narrow: OpFunction<(self: Tensor, dim: number, start: Size | Tensor, length: Size) => Tensor> = defineOp({
  schema: 'narrow(Tensor self, int dim, any start, SymInt length) -> Tensor',
  method: true,
  decompose: (self, dim, start, length) => narrowed(self, dim, start, length),
})

/**
 * A copy of the part of `self` that {@link narrow} gives. PyTorch's `torch.narrow_copy`.
 *
 * Shape: that of `self`, with `length` along `dim`.
 *
 * @throws ArgumentError if the part is out of range.
 * @example torch.narrowCopy(torch.tensor([1, 2, 3]), 0, 1, 2).toArray() // [2, 3]
 */
export const narrowCopy: OpFunction<(self: Tensor, dim: number, start: Size | Tensor, length: Size) => Tensor> = defineOp({
  schema: 'narrow_copy(Tensor self, int dim, any start, SymInt length) -> Tensor',
  method: true,
  decompose: (self, dim, start, length) => clone(narrowed(self, dim, start, length)),
})
