// Sizes as rules of operators compute with them: numbers, or symbols in a symbolic trace. The first line of every function is the case of two numbers, so that eager operators pay
// next to nothing. The symbols themselves are in src/symbols, of which this file knows the interface only.
import { InternalError, UnsupportedError } from '../errors/index.ts'
import type { Size, SizeOperation, SymbolicSize } from '../protocol/index.ts'

/** Whether all sizes of a list are numbers. */
export function areNumbers(list: readonly Size[]): list is readonly number[] {
  for (let i = 0; i < list.length; i++) if (typeof list[i] !== 'number') return false
  return true
}

/** The symbolic one of two sizes. */
const symbolicOf = (a: Size, b: Size): SymbolicSize => {
  if (typeof a !== 'number') return a
  if (typeof b !== 'number') return b
  throw new InternalError('neither of two sizes is symbolic')
}
const combined = (operation: SizeOperation, a: Size, b: Size): Size => symbolicOf(a, b).combined(operation, a, b)

export function sizeAdd(a: number, b: number): number
export function sizeAdd(a: Size, b: Size): Size
export function sizeAdd(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? a + b : combined('add', a, b)
}

export function sizeSub(a: number, b: number): number
export function sizeSub(a: Size, b: Size): Size
export function sizeSub(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? a - b : combined('subtract', a, b)
}

export function sizeMul(a: number, b: number): number
export function sizeMul(a: Size, b: Size): Size
export function sizeMul(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? a * b : combined('multiply', a, b)
}

/** The quotient, rounded down. */
export function sizeFloorDiv(a: number, b: number): number
export function sizeFloorDiv(a: Size, b: Size): Size
export function sizeFloorDiv(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? Math.floor(a / b) : combined('floorDivide', a, b)
}

/** The quotient, rounded up. */
export function sizeCeilDiv(a: number, b: number): number
export function sizeCeilDiv(a: Size, b: Size): Size
export function sizeCeilDiv(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? Math.ceil(a / b) : sizeFloorDiv(sizeSub(sizeAdd(a, b), 1), b)
}

/** What is left of `a`, which is at least 0, after division by `b`. */
export function sizeMod(a: number, b: number): number
export function sizeMod(a: Size, b: Size): Size
export function sizeMod(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? a % b : combined('remainder', a, b)
}

export function sizeMin(a: number, b: number): number
export function sizeMin(a: Size, b: Size): Size
export function sizeMin(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? Math.min(a, b) : combined('min', a, b)
}

export function sizeMax(a: number, b: number): number
export function sizeMax(a: Size, b: Size): Size
export function sizeMax(a: Size, b: Size): Size {
  return typeof a === 'number' && typeof b === 'number' ? Math.max(a, b) : combined('max', a, b)
}

/** Whether two sizes are equal; undefined, for a dimension that is not there, equals itself only. A symbolic trace guards on the answer, unless it is the same for all values. */
export function sizeEq(a: Size | undefined, b: Size | undefined): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a === b
  return a === undefined || b === undefined ? a === b : symbolicOf(a, b).holds('Eq', a, b)
}

/** Whether `a < b`, with a guard as {@link sizeEq}. */
export function sizeLess(a: Size, b: Size): boolean {
  return typeof a === 'number' && typeof b === 'number' ? a < b : symbolicOf(a, b).holds('Lt', a, b)
}

/** Whether `a <= b`, with a guard as {@link sizeEq}. */
export function sizeAtMost(a: Size, b: Size): boolean {
  return typeof a === 'number' && typeof b === 'number' ? a <= b : symbolicOf(a, b).holds('Le', a, b)
}

/** Whether two sizes are equal for all values of their symbols. Makes no guard: where false takes a path that is right as well. */
export function sizeAlwaysEq(a: Size, b: Size): boolean {
  return typeof a === 'number' && typeof b === 'number' ? a === b : symbolicOf(a, b).alwaysHolds('Eq', a, b)
}

/** Whether two sizes are equal where an operator needs them to be. As {@link sizeEq}, but for sizes that depend on data it is true, and an assertion of the trace. */
export function sizeMustEq(a: Size, b: Size): boolean {
  return typeof a === 'number' && typeof b === 'number' ? a === b : symbolicOf(a, b).mustEqual(a, b)
}

/** Whether a number or symbol is no size: negative, or no integer. One that depends on data is taken for a size from here on. */
export function isNoSize(size: Size): boolean {
  if (typeof size === 'number') return !Number.isInteger(size) || size < 0
  size.becomeSize()
  return sizeLess(size, 0)
}

/** Makes the sizes that depend on data in a symbolic trace; null outside of one. */
let fresh: ((most: Size) => Size) | null = null

/** Runs shape rules that may ask for sizes which depend on data. */
export function withDataSizes<T>(make: (most: Size) => Size, rule: () => T): T {
  const outer = fresh
  fresh = make
  try {
    return rule()
  } finally {
    fresh = outer
  }
}

/** A size that only the data tells, from 0 to `most`. Throws UnsupportedError outside of a symbolic trace. */
export function sizeOfData(op: string, most: Size): Size {
  if (fresh !== null) return fresh(most)
  throw new UnsupportedError(
    `${op}: the shape of the result depends on data, which fake tensors do not have. Trace with makeFx(fn, { tracingMode: 'symbolic' }) or 'real', or use new FakeTensorMode({ shapeEnv: new ShapeEnv() }).`,
  )
}

/** The product of sizes; 1 for none. */
export function sizeProduct(list: readonly number[]): number
export function sizeProduct(list: readonly Size[]): Size
export function sizeProduct(list: readonly Size[]): Size {
  let product: Size = 1
  for (let i = 0; i < list.length; i++) product = sizeMul(product, list[i] ?? 1)
  return product
}

/**
 * The number that a size is in this run, with a guard that it is this one: for what is made of numbers, such as tables of positions, and holds for these sizes only. PyTorch's `int(s)`.
 */
export const sizeNumber = (size: Size): number => (typeof size === 'number' ? size : size.toInt())

/** {@link sizeNumber} of each. */
export const sizeNumbers = (sizes: readonly Size[]): readonly number[] => (areNumbers(sizes) ? sizes : sizes.map(sizeNumber))

/** Whether one of the sizes is 0. */
export function hasNoElements(shape: readonly Size[]): boolean {
  for (let i = 0; i < shape.length; i++) {
    const size = shape[i] ?? 1
    if (size === 0 || (typeof size !== 'number' && sizeEq(size, 0))) return true
  }
  return false
}
