// Kernels of linear algebra: each matrix of a batch is read as float64, computed in JavaScript, and written back in the dtype of the tensor; and the adjoint, with which derivatives
// are written for real and complex matrices alike.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { isComplexDType, realDType } from '../../kernels/index.ts'
import type { ComplexDType, DType } from '../../kernels/index.ts'
import { exactElements, formatShape, numelOf, sizeEq, tensorFromValues, sizeMin } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { real } from '../complex/construct.ts'
import { complexOf } from '../complex/views.ts'
import { sizeAt } from '../shared/shapes.ts'
import { adjoint } from '../view/arrange.ts'
import { transpose } from '../view/permute.ts'
import type { Dense, Scalar } from './dense.ts'

/** The conjugate transpose of matrices, which is the transpose of real ones. */
export const adjointOf = (t: Tensor): Tensor => (isComplexDType(t.dtype) ? adjoint(t) : transpose(t, -2, -1))

/** The real parts, of real numbers themselves. */
export const realPart = (t: Tensor): Tensor => (isComplexDType(t.dtype) ? real(t) : t)

/** Throws ShapeError unless `self` is a matrix or a batch of them (square ones, if `square`), DTypeError unless it is floating or complex. */
export function checkMatrix(op: string, self: Tensor, square = false): void {
  if (self.ndim < 2 || (square && !sizeEq(sizeAt(self.symSizes, -1), sizeAt(self.symSizes, -2))))
    throw new ShapeError(
      `${op}: expected ${square ? 'square matrices' : 'matrices'} [.., n, ${square ? 'n' : 'm'}], got shape ${formatShape(self.symSizes)}.`,
    )
  if (!self.isFloatingPoint() && !isComplexDType(self.dtype))
    throw new DTypeError(`${op}: expected floating-point numbers, got ${self.dtype}. Convert first: x.float().`)
}

/** The rule for the result of an operator on square matrices that gives matrices of their sizes. */
export const squareSpec =
  (op: string) =>
  (self: Tensor): TensorSpec<Size> => {
    checkMatrix(op, self, true)
    return { shape: self.symSizes, dtype: self.dtype }
  }

/** The smaller one of the sizes of matrices. */
export function smaller(shape: readonly number[]): number
export function smaller(shape: readonly Size[]): Size
export function smaller(shape: readonly Size[]): Size {
  return sizeMin(sizeAt(shape, -2), sizeAt(shape, -1))
}

/** Throws DTypeError if one of two operands is complex, and the other is not. */
export function checkAlike(op: string, a: Tensor, b: Tensor): void {
  if (isComplexDType(a.dtype) !== isComplexDType(b.dtype))
    throw new DTypeError(`${op}: expected real matrices or complex ones, got ${a.dtype} and ${b.dtype}. Convert first: x.to('complex64').`)
}

/** The matrices of a batch. */
export function matricesOf(self: Tensor): readonly Dense[] {
  const [rows, columns] = [sizeAt(self.sizes, -2), sizeAt(self.sizes, -1)]
  const all = exactElements(self)
  const size = rows * columns
  const isComplex = isComplexDType(self.dtype)
  const each = isComplex ? 2 : 1
  const part = (batch: number, which: number): Float64Array =>
    Float64Array.from({ length: size }, (_, k) => Number(all[each * (batch * size + k) + which]))
  return Array.from({ length: numelOf(self.sizes.slice(0, -2)) }, (_, b) => ({
    rows,
    columns,
    data: part(b, 0),
    imaginary: isComplex ? part(b, 1) : null,
  }))
}

/** A complex tensor of numbers in pairs. */
const complexTensor = (pairs: readonly number[], shape: readonly number[], dtype: ComplexDType): Tensor =>
  complexOf(tensorFromValues(pairs, [...shape, 2], realDType(dtype)))

/** A tensor of `shape` from the matrices of a batch. */
export const tensorOf = (matrices: readonly Dense[], shape: readonly number[], dtype: DType): Tensor =>
  isComplexDType(dtype)
    ? complexTensor(
        matrices.flatMap(({ data, imaginary }) => Array.from(data).flatMap((x, i) => [x, imaginary?.[i] ?? 0])),
        shape,
        dtype,
      )
    : tensorFromValues(
        matrices.flatMap(({ data }) => Array.from(data)),
        shape,
        dtype,
      )

/** A tensor of `shape` from numbers. */
export const tensorOfScalars = (scalars: readonly Scalar[], shape: readonly number[], dtype: DType): Tensor =>
  isComplexDType(dtype)
    ? complexTensor(
        scalars.flatMap(({ re, im }) => [re, im]),
        shape,
        dtype,
      )
    : tensorFromValues(
        scalars.map(({ re }) => re),
        shape,
        dtype,
      )

/** The error for a matrix on which an algorithm fails. */
export const failure = (op: string, batch: number, why: string): ArgumentError => new ArgumentError(`${op}: matrix ${batch} of the batch ${why}.`)
