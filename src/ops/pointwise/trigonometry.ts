// Tangents, inverse trigonometric functions and hyperbolic functions.
import { call } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, div, mul, neg, sub } from './arithmetic.ts'
import { reciprocal, rsqrt, square } from './unary.ts'

/** 1 - x^2, without cancellation near 1 and -1. */
const oneMinusSquare = (x: Tensor): Tensor => mul(sub(neg(x), -1), add(x, 1))

/**
 * The tangent, elementwise. PyTorch's `torch.tan`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tan(torch.tensor([0, 1])).toArray() // [0, 1.557408]
 */
export const tan: Op['tan'] = defineOp({
  schema: 'tan(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('tan', x) },
  derivative: ([g], { outputs: [out] }) => [mul(g, add(square(out), 1))],
})

/**
 * The arcsine, elementwise; NaN outside -1 to 1. PyTorch's `torch.asin`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.asin(torch.tensor([0, 1])).toArray() // [0, 1.570796]
 */
export const asin: Op['asin'] = defineOp({
  schema: 'asin(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('asin', x) },
  derivative: ([g], { args: [x] }) => [mul(g, rsqrt(oneMinusSquare(x)))],
})

/**
 * The arccosine, elementwise; NaN outside -1 to 1. PyTorch's `torch.acos`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.acos(torch.tensor([0, 1])).toArray() // [1.570796, 0]
 */
export const acos: Op['acos'] = defineOp({
  schema: 'acos(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('acos', x) },
  derivative: ([g], { args: [x] }) => [mul(g, neg(rsqrt(oneMinusSquare(x))))],
})

/**
 * The arctangent, elementwise. PyTorch's `torch.atan`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.atan(torch.tensor([0, 1])).toArray() // [0, 0.785398]
 */
export const atan: Op['atan'] = defineOp({
  schema: 'atan(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('atan', x) },
  derivative: ([g], { args: [x] }) => [div(g, add(square(x), 1))],
})

/**
 * The hyperbolic sine, elementwise. PyTorch's `torch.sinh`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sinh(torch.tensor([0, 1])).toArray() // [0, 1.175201]
 */
export const sinh: Op['sinh'] = defineOp({
  schema: 'sinh(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('sinh', x) },
  derivative: ([g], { args: [x] }) => [mul(g, cosh(x))],
})

/**
 * The hyperbolic cosine, elementwise. PyTorch's `torch.cosh`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.cosh(torch.tensor([0, 1])).toArray() // [1, 1.543081]
 */
export const cosh: Op['cosh'] = defineOp({
  schema: 'cosh(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('cosh', x) },
  derivative: ([g], { args: [x] }) => [mul(g, sinh(x))],
})

/**
 * The inverse hyperbolic sine, elementwise. PyTorch's `torch.asinh`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.asinh(torch.tensor([0, 1])).toArray() // [0, 0.881374]
 */
export const asinh: Op['asinh'] = defineOp({
  schema: 'asinh(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('asinh', x) },
  derivative: ([g], { args: [x] }) => [mul(g, rsqrt(add(square(x), 1)))],
})

/**
 * The inverse hyperbolic cosine, elementwise; NaN below 1. PyTorch's `torch.acosh`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.acosh(torch.tensor([1, 2])).toArray() // [0, 1.316958]
 */
export const acosh: Op['acosh'] = defineOp({
  schema: 'acosh(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('acosh', x) },
  derivative: ([g], { args: [x] }) => [mul(g, rsqrt(mul(sub(x, 1), add(x, 1))))],
})

/**
 * The inverse hyperbolic tangent, elementwise; NaN outside -1 to 1. PyTorch's `torch.atanh`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.atanh(torch.tensor([0, 0.5])).toArray() // [0, 0.549306]
 */
export const atanh: Op['atanh'] = defineOp({
  schema: 'atanh(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('atanh', x) },
  derivative: ([g], { args: [x] }) => [mul(g, reciprocal(oneMinusSquare(x)))],
})

/**
 * The angle of the point with the coordinates `other` and `self`, from -pi to pi, elementwise. PyTorch's `torch.atan2`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.atan2(torch.tensor([1, -1]), torch.tensor([1, -1])).toArray() // [0.785398, -2.356194]
 */
export const atan2: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'atan2(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (y, x) => call('atan2', y, x) },
  derivative: ([g], { args: [y, x], needs }) => {
    const length = add(square(y), typeof x === 'number' ? x * x : square(x))
    const share = div(g, length)
    return [mul(share, x), needs[1] ? neg(mul(share, y)) : null]
  },
})
