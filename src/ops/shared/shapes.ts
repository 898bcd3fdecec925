// Reading shapes.
import { ArgumentError, DTypeError, InternalError, ShapeError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { NumbersNeeded, areNumbers, formatShape, numelOf, sameShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** The size of one dimension; -1 is the last. Throws InternalError if there is no such dimension: callers check user input first. */
export function sizeAt(shape: readonly number[], dim: number): number
export function sizeAt(shape: readonly Size[], dim: number): Size
export function sizeAt(shape: readonly Size[], dim: number): Size {
  const size = shape.at(dim)
  if (size === undefined) throw new InternalError(`the shape ${formatShape(shape)} has no dimension ${dim}`)
  return size
}

/** The index and the size of a dimension that the user named. Throws ShapeError, naming `op`, if `self` has no such dimension. */
export function dimAndSize(op: string, self: Tensor, dim: number): readonly [index: number, size: Size] {
  const index = wrapDim(op, dim, self.ndim)
  const size = self.symSizes[index]
  if (size === undefined) throw new ShapeError(`${op}: self has no dimensions, so there is no dimension ${dim}; call unsqueeze(0) first.`)
  return [index, size]
}

/** Sizes for a rule that takes numbers only. Throws UnsupportedError, naming `op`, if there is a symbol among them. */
export function numbersFor(op: string, sizes: readonly Size[]): readonly number[] {
  if (areNumbers(sizes)) return sizes
  throw new NumbersNeeded(`${op}: there is no rule for the symbolic size in ${formatShape(sizes)} yet.`)
}

/** `list`, which holds sizes or strides of `rank` dimensions. Throws InternalError if it has another length. */
function sized(list: readonly Size[], rank: number): readonly Size[] {
  if (list.length !== rank) throw new InternalError(`expected sizes of ${rank} dimensions, got ${formatShape(list)}`)
  return list
}

/** Sizes (or strides) of a tensor with 2 dimensions. Throws InternalError for any other number of them. */
export function pairOf(list: readonly number[]): readonly [number, number]
export function pairOf(list: readonly Size[]): readonly [Size, Size]
export function pairOf(list: readonly Size[]): readonly [Size, Size] {
  const [a = 0, b = 0] = sized(list, 2)
  return [a, b]
}

/** Sizes (or strides) of a tensor with 3 dimensions. */
export function tripleOf(list: readonly number[]): readonly [number, number, number]
export function tripleOf(list: readonly Size[]): readonly [Size, Size, Size]
export function tripleOf(list: readonly Size[]): readonly [Size, Size, Size] {
  const [a = 0, b = 0, c = 0] = sized(list, 3)
  return [a, b, c]
}

/** Sizes (or strides) of a tensor with 4 dimensions. */
export function quadrupleOf(list: readonly number[]): readonly [number, number, number, number]
export function quadrupleOf(list: readonly Size[]): readonly [Size, Size, Size, Size]
export function quadrupleOf(list: readonly Size[]): readonly [Size, Size, Size, Size] {
  const [a = 0, b = 0, c = 0, d = 0] = sized(list, 4)
  return [a, b, c, d]
}

/** More results than that take all memory of JavaScript, which ends the process. */
const MOST_PARTS = 2 ** 20

/** `count`, the number of tensors that an operator returns. Throws ArgumentError if they are too many to make. */
export function partCount(op: string, count: number): number {
  if (count > MOST_PARTS) throw new ArgumentError(`${op}: the result would be ${count} tensors; at most ${MOST_PARTS} are possible.`)
  return count
}

/** A shape seen as [outer, size, inner] around dimension `dim`; [1, 1, 1] for a tensor without dimensions. */
export const linesOf = (shape: readonly number[], dim: number): readonly [outer: number, size: number, inner: number] => [
  numelOf(shape.slice(0, dim)),
  shape[dim] ?? 1,
  numelOf(shape.slice(dim + 1)),
]

/** The dtype that kernels compute in. */
const computed = (dtype: DType): DType => (dtype === 'float16' || dtype === 'bfloat16' ? 'float32' : dtype)

/**
 * Throws ShapeError or DTypeError, naming `op` and the argument, unless the tensor has that shape and is computed in that dtype; null passes. Kernels take addresses,
 * so this must be known of each operand, also where only the library itself calls the operator: a graph from a file may call it too.
 */
export function checkOperand(op: string, argument: string, tensor: Tensor | null, shape: readonly Size[], dtype: DType): void {
  if (tensor === null) return
  if (!sameShape(tensor.symSizes, shape))
    throw new ShapeError(`${op}: argument '${argument}' must have the shape ${formatShape(shape)}, got ${formatShape(tensor.symSizes)}.`)
  if (computed(tensor.dtype) !== computed(dtype))
    throw new DTypeError(`${op}: argument '${argument}' must be ${dtype}, got ${tensor.dtype}. Convert it: ${argument}.to('${dtype}').`)
}
