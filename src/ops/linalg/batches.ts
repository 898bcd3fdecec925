// Kernels of linear algebra: each matrix of a batch is read as float64, computed in JavaScript, and written back in the dtype of the tensor.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { exactElements, formatShape, numelOf, tensorFromValues } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { sizeAt } from '../shapes.ts'
import { contiguous } from '../view/reshape.ts'
import type { Dense } from './dense.ts'

/** Throws ShapeError unless `self` is a matrix or a batch of them (square ones, if `square`), DTypeError unless it is floating. */
export function checkMatrix(op: string, self: Tensor, square = false): void {
  if (self.ndim < 2 || (square && sizeAt(self.sizes, -1) !== sizeAt(self.sizes, -2)))
    throw new ShapeError(
      `${op}: expected ${square ? 'square matrices' : 'matrices'} [.., n, ${square ? 'n' : 'm'}], got shape ${formatShape(self.sizes)}.`,
    )
  if (!self.isFloatingPoint()) throw new DTypeError(`${op}: expected floating-point numbers, got ${self.dtype}. Convert first: x.float().`)
}

/** The rule for the result of an operator on square matrices that gives matrices of their sizes. */
export const squareSpec =
  (op: string) =>
  (self: Tensor): TensorSpec => {
    checkMatrix(op, self, true)
    return { shape: self.sizes, dtype: self.dtype }
  }

/** The matrices of a batch. */
export function matricesOf(self: Tensor): readonly Dense[] {
  const [rows, columns] = [sizeAt(self.sizes, -2), sizeAt(self.sizes, -1)]
  const all = exactElements(contiguous(self))
  const size = rows * columns
  return Array.from({ length: numelOf(self.sizes.slice(0, -2)) }, (_, b) => ({
    rows,
    columns,
    data: Float64Array.from({ length: size }, (__, k) => Number(all[b * size + k])),
  }))
}

/** A tensor of `shape` from the numbers of all matrices of a batch. */
export const tensorOf = (parts: readonly ArrayLike<number>[], shape: readonly number[], like: Tensor): Tensor =>
  tensorFromValues(
    parts.flatMap((part) => Array.from(part)),
    shape,
    like.dtype,
  )

/** The error for a matrix on which an algorithm fails. */
export const failure = (op: string, batch: number, why: string): ArgumentError => new ArgumentError(`${op}: matrix ${batch} of the batch ${why}.`)
