// Shapes and strides: plain arrays of non-negative integers, row-major by default.
import { valueText } from '../protocol/index.ts'
import type { Size } from '../protocol/index.ts'
import { ShapeError } from '../errors/index.ts'
import { hasNoElements, isNoSize, sizeAdd, sizeAlwaysEq, sizeEq, sizeLess, sizeMax, sizeMul, sizeMustEq, sizeSub } from './size.ts'

/** Number of elements of a shape; 1 for a scalar. */
export function numelOf(shape: readonly number[]): number {
  let n = 1
  for (const size of shape) n *= size
  return n
}

/** Kernels count elements in 32 bits. */
const MAX_ELEMENTS = 2 ** 31 - 1

/** Number of elements of the shape of a tensor; `real` says whether it has data. Throws ShapeError for a shape that no tensor can have. */
export function checkedNumel(shape: readonly number[], real: boolean): number {
  let n = 1
  for (let i = 0; i < shape.length; i++) {
    const size = shape[i] ?? NaN
    // In 32 bits first, which costs next to nothing.
    if (((size | 0) !== size || size < 0) && !(Number.isSafeInteger(size) && size >= 0)) throw impossibleShape(shape, real)
    n *= size
  }
  if (n > (real ? MAX_ELEMENTS : Number.MAX_SAFE_INTEGER)) throw impossibleShape(shape, real)
  return n
}

/** Throws ShapeError if a size is negative. */
export function checkedSizes(shape: readonly Size[]): void {
  for (const size of shape) if (isNoSize(size)) throw impossibleShape(shape, false)
}

function impossibleShape(shape: readonly Size[], real: boolean): ShapeError {
  const limit = real ? MAX_ELEMENTS : Number.MAX_SAFE_INTEGER
  return new ShapeError(
    `a tensor cannot have the shape ${formatShape(shape)}: sizes are integers of at least 0, and their product is at most ${limit}.`,
  )
}

type Reach<S extends Size> = readonly [lowest: S, highest: S]

/** The lowest and the highest position, in elements, that a tensor reads of its storage; null if it has no elements. NaN where a stride is. */
export function reachOf(shape: readonly number[], strides: readonly number[], offset: number): Reach<number> | null
export function reachOf(shape: readonly Size[], strides: readonly Size[], offset: Size): Reach<Size> | null
export function reachOf(shape: readonly Size[], strides: readonly Size[], offset: Size): Reach<Size> | null {
  if (hasNoElements(shape)) return null
  let [lowest, highest] = [offset, offset]
  shape.forEach((size, i) => {
    const span = sizeMul(sizeSub(size, 1), strides[i] ?? NaN)
    if (sizeLess(span, 0)) lowest = sizeAdd(lowest, span)
    else highest = sizeAdd(highest, span)
  })
  return [lowest, highest]
}

/** Row-major strides, in elements. */
export function contiguousStrides(shape: readonly number[]): readonly number[]
export function contiguousStrides(shape: readonly Size[]): readonly Size[]
export function contiguousStrides(shape: readonly Size[]): readonly Size[] {
  const strides = new Array<Size>(shape.length)
  let step: Size = 1
  for (let i = shape.length - 1; i >= 0; i--) {
    strides[i] = step
    step = sizeMul(step, sizeMax(1, shape[i] ?? 1))
  }
  return strides
}

/** Whether the elements are in row-major order without gaps. Strides of dimensions of size 1 do not matter, nor do those of empty tensors. */
export function isContiguous(shape: readonly Size[], strides: readonly Size[]): boolean {
  let step: Size = 1
  for (let i = shape.length - 1; i >= 0; i--) {
    const size = shape[i] ?? 1
    if (size === 1 || (typeof size !== 'number' && sizeEq(size, 1))) continue
    if (strides[i] !== step && !sizeEq(strides[i] ?? NaN, step)) return hasNoElements(shape)
    step = sizeMul(step, size)
  }
  return true
}

export function sameShape(a: readonly Size[], b: readonly Size[]): boolean {
  if (a === b) return true
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !sizeEq(a[i], b[i])) return false
  return true
}

/** {@link sameShape} for all values of symbols, without a guard. */
function alwaysSameShape(a: readonly Size[], b: readonly Size[]): boolean {
  if (a === b) return true
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !sizeAlwaysEq(a[i] ?? 1, b[i] ?? 1)) return false
  return true
}

/** `[2, 3]`, as error messages print shapes. */
export const formatShape = (shape: readonly Size[]): string => `[${shape.map((size) => size.toString()).join(', ')}]`

/** The broadcast shape, PyTorch's `torch.broadcast_shapes`. Throws ShapeError naming `op` and both shapes. */
export function broadcastShapes(op: string, a: readonly number[], b: readonly number[]): readonly number[]
export function broadcastShapes(op: string, a: readonly Size[], b: readonly Size[]): readonly Size[]
export function broadcastShapes(op: string, a: readonly Size[], b: readonly Size[]): readonly Size[] {
  if (alwaysSameShape(a, b)) return a
  const rank = Math.max(a.length, b.length)
  const out = new Array<Size>(rank)
  for (let i = 1; i <= rank; i++) {
    const x = i <= a.length ? (a[a.length - i] ?? 1) : 1
    const y = i <= b.length ? (b[b.length - i] ?? 1) : 1
    if (x === y) {
      out[rank - i] = x
      continue
    }
    const isOne = sizeEq(x, 1)
    if (!isOne && !sizeEq(y, 1) && !sizeMustEq(x, y)) {
      throw new ShapeError(
        `${op}: the shapes ${formatShape(a)} (self) and ${formatShape(b)} (other) do not broadcast: ` +
          `size ${x.toString()} of self must equal size ${y.toString()} of other at dimension ${rank - i} (or one of them must be 1). Reshape or unsqueeze one of them.`,
      )
    }
    out[rank - i] = isOne ? y : x
  }
  return out
}

/** Converts a dimension in -rank..rank-1 to one in 0..rank-1. Throws ShapeError naming `op`. */
export function wrapDim(op: string, dim: number, rank: number): number {
  const bound = Math.max(1, rank)
  if (!Number.isInteger(dim) || dim < -bound || dim >= bound) {
    throw new ShapeError(`${op}: dim ${valueText(dim)} is out of range for a tensor of ${rank} dimensions; expected ${-bound} to ${bound - 1}.`)
  }
  return dim < 0 ? dim + bound : dim
}

/** The order that undoes a permutation: where each position went. */
export function inverseOrder(order: readonly number[]): readonly number[] {
  const inverse = order.map(() => 0)
  for (const [i, at] of order.entries()) inverse[at] = i
  return inverse
}

/** The dimensions in the order of their strides, largest first, if the elements lie in memory in that order without gaps; null if they do not. */
export function memoryOrder(shape: readonly number[], strides: readonly number[]): readonly number[] | null {
  const order = shape.map((_, dim) => dim).toSorted((a, b) => (strides[b] ?? 0) - (strides[a] ?? 0) || (shape[b] ?? 0) - (shape[a] ?? 0))
  const inOrder = (list: readonly number[]): number[] => order.map((dim) => list[dim] ?? 0)
  return isContiguous(inOrder(shape), inOrder(strides)) ? order : null
}
