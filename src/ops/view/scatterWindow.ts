// What the scatter operators share: a copy of a tensor with other values in a window of it, which is described as the layout of a view.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { Tensor, formatShape, numbersOf, sameShape } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { copyInto } from '../eager/copy.ts'
import { clone } from './reshape.ts'

/** Copies `src` to the window that `windowOf` cuts from `whole`; returns `whole`. */
export function fillWindow(whole: Tensor, src: Tensor, windowOf: (whole: Tensor) => TensorSpec<Size>): Tensor {
  const { shape, strides, offset } = numbersOf(windowOf(whole))
  if (src.numel > 0) copyInto(src, new Tensor(shape, whole.dtype, whole.realize(), strides, offset))
  return whole
}

/** The layout of the result, a contiguous one. Throws ShapeError or DTypeError if `src` does not fit the window. */
export function scatterSpec(op: string, self: Tensor, src: Tensor, window: TensorSpec<Size>): TensorSpec<Size> {
  if (!sameShape(src.symSizes, window.shape))
    throw new ShapeError(`${op}: src has shape ${formatShape(src.symSizes)}, but its place in self has shape ${formatShape(window.shape)}.`)
  if (src.dtype !== self.dtype) throw new DTypeError(`${op}: src is ${src.dtype}, but self is ${self.dtype}; convert one of them.`)
  return { shape: self.symSizes, dtype: self.dtype }
}

/** A contiguous copy of `self` with `src` in the window. */
export function scatterInto(op: string, self: Tensor, src: Tensor, windowOf: (whole: Tensor) => TensorSpec<Size>): Tensor {
  scatterSpec(op, self, src, windowOf(self))
  return fillWindow(clone(self), src, windowOf)
}
