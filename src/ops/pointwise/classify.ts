// Questions about numbers, and choices between them: finite, infinite, signs, fmin and fmax, differences within tolerances.
import { call, constant, dtypeInfo } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { finfo } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { abs, add, mul, sign, sub } from './arithmetic.ts'
import { eq, ge, isnan, le, logicalAnd, logicalOr } from './comparison.ts'
import { where } from './select.ts'

const number = (like: Expr, value: number): Expr => constant(like.dtype, value)
const infinite = (x: Expr): Expr => (dtypeInfo[x.dtype].floating ? call('eq', call('abs', x), number(x, Infinity)) : constant('bool', 0))

/** Whether a number has a minus sign, -0 and all. */
const negative = (x: Expr): Expr => {
  const below = call('lt', x, number(x, 0))
  if (!dtypeInfo[x.dtype].floating) return below
  return call('or', below, call('and', call('eq', x, number(x, 0)), call('lt', call('div', number(x, 1), x), number(x, 0))))
}

/** What {@link nanToNum} puts in place of values that are not finite. */
export interface NanToNumOptions {
  readonly nan?: number | null
  readonly posinf?: number | null
  readonly neginf?: number | null
}

/** The tolerances of {@link isclose}. */
export interface IscloseOptions {
  readonly rtol?: number
  readonly atol?: number
  readonly equalNan?: boolean
}

/**
 * Whether an element is infinite, elementwise. PyTorch's `torch.isinf`.
 *
 * Shape: that of `self`. The result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.isinf(torch.tensor([1, -Infinity, NaN])).toArray() // [false, true, false]
 */
export const isinf: Op['isinf'] = defineOp({
  schema: 'isinf(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (x) => infinite(x) },
})

/**
 * Whether an element is neither infinite nor NaN, elementwise. PyTorch's `torch.isfinite`.
 *
 * Shape: that of `self`. The result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.isfinite(torch.tensor([1, -Infinity, NaN])).toArray() // [true, false, false]
 */
export const isfinite: Op['isfinite'] = defineOp({
  schema: 'isfinite(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (x) => call('not', call('or', infinite(x), call('isnan', x))) },
})

/**
 * Whether an element is positive infinity, elementwise. PyTorch's `torch.isposinf`.
 *
 * Shape: that of `self`. The result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.isposinf(torch.tensor([1, -Infinity, Infinity])).toArray() // [false, false, true]
 */
export const isposinf: Op['isposinf'] = defineOp({
  schema: 'isposinf(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (x) => call('and', infinite(x), call('gt', x, number(x, 0))) },
})

/**
 * Whether an element is negative infinity, elementwise. PyTorch's `torch.isneginf`.
 *
 * Shape: that of `self`. The result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.isneginf(torch.tensor([1, -Infinity, Infinity])).toArray() // [false, true, false]
 */
export const isneginf: Op['isneginf'] = defineOp({
  schema: 'isneginf(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (x) => call('and', infinite(x), call('lt', x, number(x, 0))) },
})

/**
 * Whether an element is real, elementwise: true, as there are no complex dtypes. PyTorch's `torch.isreal`.
 *
 * Shape: that of `self`. The result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.isreal(torch.tensor([1, NaN])).toArray() // [true, true]
 */
export const isreal: Op['isreal'] = defineOp({
  schema: 'isreal(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (x) => call('or', call('eq', x, x), call('ne', x, x)) },
})

/**
 * Whether an element has a minus sign, elementwise; that of -0 counts. PyTorch's `torch.signbit`.
 *
 * Shape: that of `self`. The result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.signbit(torch.tensor([1, -2, -0])).toArray() // [false, true, true]
 */
export const signbit: Op['signbit'] = defineOp({
  schema: 'signbit(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (x) => negative(x) },
})

/**
 * Whether exactly one value is non-zero, elementwise. PyTorch's `torch.logical_xor`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.logicalXor(torch.tensor([1, 2, 0]), torch.tensor([3, 0, 0])).toArray() // [false, true, false]
 */
export const logicalXor: Op['logicalXor'] = defineOp({
  schema: 'logical_xor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'logical', compute: (a, b) => call('ne', a, b) },
})

/**
 * The absolute value of `self` with the sign of `other`, elementwise. PyTorch's `torch.copysign`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.copysign(torch.tensor([1, -2]), torch.tensor([-3, 4])).toArray() // [-1, 2]
 */
export const copysign: Op['copysign'] = defineOp({
  schema: 'copysign(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'float',
    compute: (a, b) => {
      const size = call('abs', a)
      return call('where', negative(b), call('neg', size), size)
    },
  },
  derivative: ([g], { args: [a], outputs: [out] }) => [where(eq(a, 0), 0, mul(g, mul(sign(a), sign(out)))), null],
})

/**
 * 0 for negative numbers and NaN, 1 for positive ones, `values` at 0, elementwise. PyTorch's `torch.heaviside`.
 *
 * Shapes: `self` and `values` broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.heaviside(torch.tensor([-1, 0, 2]), torch.tensor([0.5])).toArray() // [0, 0.5, 1]
 */
export const heaviside: OpFunction<(self: Tensor, values: Tensor) => Tensor> = defineOp({
  schema: 'heaviside(Tensor self, Tensor values) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'promote',
    compute: (x, v) => {
      const step = call('where', call('gt', x, number(x, 0)), number(x, 1), number(x, 0))
      return call('where', call('eq', x, number(x, 0)), v, step)
    },
  },
})

/**
 * The greater of two values, elementwise; of a number and NaN, the number. PyTorch's `torch.fmax`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.fmax(torch.tensor([1, NaN]), torch.tensor([3, 2])).toArray() // [3, 2]
 */
export const fmax: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'fmax(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a, b) => call('where', call('isnan', a), b, call('where', call('isnan', b), a, call('max', a, b))) },
  derivative: ([g], { args: [a, b] }) => {
    const first = typeof b === 'number' ? ge(a, b) : logicalOr(ge(a, b), isnan(b))
    return [where(first, g, 0), where(first, 0, g)]
  },
})

/**
 * The lesser of two values, elementwise; of a number and NaN, the number. PyTorch's `torch.fmin`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.fmin(torch.tensor([1, NaN]), torch.tensor([3, 2])).toArray() // [1, 2]
 */
export const fmin: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'fmin(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a, b) => call('where', call('isnan', a), b, call('where', call('isnan', b), a, call('min', a, b))) },
  derivative: ([g], { args: [a, b] }) => {
    const first = typeof b === 'number' ? le(a, b) : logicalOr(le(a, b), isnan(b))
    return [where(first, g, 0), where(first, 0, g)]
  },
})

/**
 * Replaces NaN by `nan` (0) and the infinities by `posinf` and `neginf` (the greatest and the least number of the dtype), elementwise. PyTorch's `torch.nan_to_num`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.nanToNum(torch.tensor([1, NaN, Infinity]), 0, 9).toArray() // [1, 0, 9]
 */
export const nanToNum: OpFunction<(self: Tensor, nan?: number | null | NanToNumOptions, posinf?: number | null, neginf?: number | null) => Tensor> =
  defineOp({
    schema: 'nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor',
    method: true,
    inPlace: 'function',
    decompose: (self, nan, posinf, neginf) => {
      if (!dtypeInfo[self.dtype].floating) return self
      const greatest = Number(finfo(self.dtype).max)
      const low = where(eq(self, -Infinity), neginf ?? -greatest, self)
      return where(isnan(self), nan ?? 0, where(eq(self, Infinity), posinf ?? greatest, low))
    },
  })

/**
 * Whether |self - other| is at most atol + rtol |other|, elementwise; equal infinities are close. PyTorch's `torch.isclose`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.isclose(torch.tensor([1, 2]), torch.tensor([1 + 1e-7, 2.1])).toArray() // [true, false]
 */
export const isclose: OpFunction<(self: Tensor, other: Tensor, rtol?: number | IscloseOptions, atol?: number, equalNan?: boolean) => Tensor> =
  defineOp({
    schema: 'isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor',
    method: true,
    decompose: (self, other, rtol, atol, equalNan) => {
      const near = logicalAnd(isfinite(other), le(abs(sub(self, other)), add(mul(abs(other), rtol), atol)))
      const close = logicalOr(eq(self, other), near)
      return equalNan ? logicalOr(close, logicalAnd(isnan(self), isnan(other))) : close
    },
  })
