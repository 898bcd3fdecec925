// Sizes of the loop IR: extents, strides and offsets in elements. A size is known when the kernel is built, or is a parameter of each call, or is derived from
// others, such as the columns that whole tiles cover. Kernels compute derived sizes once, when they start; those of known sizes are folded here.

/** An i32 run-time size or stride (in elements). */
export interface SizeParam {
  readonly kind: 'size'
  readonly name: string
}

type SizeOp = 'add' | 'sub' | 'mul' | 'roundDown'

/** A size computed from others, in i32. `roundDown` is the largest multiple of `b` up to `a`; both are positive or 0, and `b` is not 0. */
export interface DerivedSize {
  readonly kind: 'derived'
  readonly op: SizeOp
  readonly a: Size
  readonly b: Size
}

/** A size of a kernel: known now, when the kernel is called, or computed from such. */
export type Size = number | SizeParam | DerivedSize

const operations: Readonly<Record<SizeOp, (a: number, b: number) => number>> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: Math.imul,
  roundDown: (a, b) => a - (a % b),
}

const symbols: Readonly<Record<SizeOp, string>> = { add: '+', sub: '-', mul: '*', roundDown: 'down to' }

/** What leaves the other operand as it is, on the right; adding and multiplying also on the left. */
const neutral: Readonly<Record<SizeOp, number>> = { add: 0, sub: 0, mul: 1, roundDown: 1 }

function derived(op: SizeOp, a: Size, b: Size): Size {
  if (typeof a === 'number' && typeof b === 'number') return operations[op](a, b)
  if (b === neutral[op]) return a
  if ((op === 'add' || op === 'mul') && a === neutral[op]) return b
  if (op === 'mul' && (a === 0 || b === 0)) return 0
  return { kind: 'derived', op, a, b }
}

/** The sum of two sizes. */
export const sizeSum = (a: Size, b: Size): Size => derived('add', a, b)
/** The difference of two sizes. */
export const sizeDifference = (a: Size, b: Size): Size => derived('sub', a, b)
/** The product of two sizes. */
export const sizeProduct = (a: Size, b: Size): Size => derived('mul', a, b)
/** The largest multiple of `step` up to `size`. */
export const roundedDown = (size: Size, step: number): Size => derived('roundDown', size, step)
/** The smallest multiple of `step` from `size` on. */
export const roundedUp = (size: Size, step: number): Size => roundedDown(sizeSum(size, step - 1), step)

/** The number that a size is in a call, from those of the parameters. */
export function sizeValue(size: Size, of: (param: SizeParam) => number): number {
  if (typeof size === 'number') return size
  return size.kind === 'size' ? of(size) : operations[size.op](sizeValue(size.a, of), sizeValue(size.b, of))
}

/** A size as text, with the names that `nameOf` gives to parameters: two sizes with the same text are equal. */
export function sizeText(size: Size, nameOf: (param: SizeParam) => string = (param) => param.name): string {
  if (typeof size === 'number') return String(size)
  return size.kind === 'size' ? nameOf(size) : `(${sizeText(size.a, nameOf)} ${symbols[size.op]} ${sizeText(size.b, nameOf)})`
}

/** The parameters in a size. */
export function paramsIn(size: Size): readonly SizeParam[] {
  if (typeof size === 'number') return []
  return size.kind === 'size' ? [size] : [...paramsIn(size.a), ...paramsIn(size.b)]
}
