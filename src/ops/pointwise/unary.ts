// Functions of one value: exponentials, roots, trigonometry, rounding.
import { ArgumentError } from '../../errors/index.ts'
import { call, constant, dtypeInfo } from '../../kernels/index.ts'
import type { Expr, ScalarOp } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul, neg, sub } from './arithmetic.ts'
import { to } from './cast.ts'

/** The rule of a function of one floating value that the kernels have as an operation. */
const unary = (op: ScalarOp): { readonly promotion: 'float'; readonly compute: (a: Expr) => Expr } => ({
  promotion: 'float',
  compute: (a) => call(op, a),
})

/** The rule of a function that rounds to integers: integers stay as they are. */
const rounding = (op: ScalarOp): { readonly promotion: 'promote'; readonly dtypes: 'numeric'; readonly compute: (a: Expr) => Expr } => ({
  promotion: 'promote',
  dtypes: 'numeric',
  compute: (a) => call(op, a),
})

/**
 * e^x, elementwise. PyTorch's `torch.exp`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.exp(torch.tensor([0, 1])).toArray() // [1, 2.71828]
 */
export const exp: Op['exp'] = defineOp({
  schema: 'exp(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('exp'),
  derivative: ([g], { outputs: [out] }) => [mul(g, out)],
})

/**
 * e^x - 1, elementwise, accurate near 0. PyTorch's `torch.expm1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.expm1(torch.tensor([0, 1])).toArray() // [0, 1.71828]
 */
export const expm1: Op['expm1'] = defineOp({
  schema: 'expm1(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('expm1'),
  derivative: ([g], { outputs: [out] }) => [mul(g, add(out, 1))],
})

/**
 * The natural logarithm, elementwise. PyTorch's `torch.log`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.log(torch.tensor([1, 10])).toArray() // [0, 2.30259]
 */
export const log: Op['log'] = defineOp({
  schema: 'log(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('log'),
  derivative: ([g], { args: [x] }) => [mul(g, reciprocal(x))],
})

/**
 * log(1 + x), elementwise, accurate near 0. PyTorch's `torch.log1p`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.log1p(torch.tensor([0, 1])).toArray() // [0, 0.693147]
 */
export const log1p: Op['log1p'] = defineOp({
  schema: 'log1p(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('log1p'),
  derivative: ([g], { args: [x] }) => [mul(g, reciprocal(add(x, 1)))],
})

/**
 * The square root, elementwise. PyTorch's `torch.sqrt`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sqrt(torch.tensor([4, 9])).toArray() // [2, 3]
 */
export const sqrt: Op['sqrt'] = defineOp({
  schema: 'sqrt(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('sqrt'),
  derivative: ([g], { outputs: [out] }) => [mul(g, reciprocal(mul(out, 2)))],
})

/**
 * 1 / sqrt(x), elementwise. PyTorch's `torch.rsqrt`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.rsqrt(torch.tensor([4, 16])).toArray() // [0.5, 0.25]
 */
export const rsqrt: Op['rsqrt'] = defineOp({
  schema: 'rsqrt(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('rsqrt'),
  derivative: ([g], { outputs: [out] }) => [mul(g, mul(mul(mul(out, out), out), -0.5))],
})

/**
 * 1 / x, elementwise. PyTorch's `torch.reciprocal`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.reciprocal(torch.tensor([2, 4])).toArray() // [0.5, 0.25]
 */
export const reciprocal: Op['reciprocal'] = defineOp({
  schema: 'reciprocal(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('reciprocal'),
  derivative: ([g], { outputs: [out] }) => [mul(g, neg(mul(out, out)))],
})

/**
 * The sine, elementwise. PyTorch's `torch.sin`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sin(torch.tensor([0, 1])).toArray() // [0, 0.841471]
 */
export const sin: Op['sin'] = defineOp({
  schema: 'sin(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('sin'),
  derivative: ([g], { args: [x] }) => [mul(g, cos(x))],
})

/**
 * The cosine, elementwise. PyTorch's `torch.cos`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.cos(torch.tensor([0, 1])).toArray() // [1, 0.540302]
 */
export const cos: Op['cos'] = defineOp({
  schema: 'cos(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('cos'),
  derivative: ([g], { args: [x] }) => [mul(g, neg(sin(x)))],
})

/**
 * The hyperbolic tangent, elementwise. PyTorch's `torch.tanh`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tanh(torch.tensor([0, 1])).toArray() // [0, 0.761594]
 */
export const tanh: Op['tanh'] = defineOp({
  schema: 'tanh(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('tanh'),
  derivative: ([g], { outputs: [out] }) => [mul(g, sub(neg(mul(out, out)), -1))],
})

/**
 * 1 / (1 + e^-x), elementwise. PyTorch's `torch.sigmoid`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sigmoid(torch.tensor([0, 2])).toArray() // [0.5, 0.880797]
 */
export const sigmoid: Op['sigmoid'] = defineOp({
  schema: 'sigmoid(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('sigmoid'),
  derivative: ([g], { outputs: [out] }) => [mul(g, mul(out, add(neg(out), 1)))],
})

/**
 * The error function, elementwise. PyTorch's `torch.erf`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.erf(torch.tensor([0, 1])).toArray() // [0, 0.842701]
 */
export const erf: Op['erf'] = defineOp({
  schema: 'erf(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: unary('erf'),
  derivative: ([g], { args: [x] }) => [mul(g, mul(exp(neg(mul(x, x))), 2 / Math.sqrt(Math.PI)))],
})

/**
 * Rounds down, elementwise. PyTorch's `torch.floor`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @example torch.floor(torch.tensor([1.7, -1.2])).toArray() // [1, -2]
 */
export const floor: Op['floor'] = defineOp({
  schema: 'floor(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: rounding('floor'),
  derivative: ([g]) => [mul(g, 0)],
})

/**
 * Rounds up, elementwise. PyTorch's `torch.ceil`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @example torch.ceil(torch.tensor([1.2, -1.7])).toArray() // [2, -1]
 */
export const ceil: Op['ceil'] = defineOp({
  schema: 'ceil(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: rounding('ceil'),
  derivative: ([g]) => [mul(g, 0)],
})

/**
 * Rounds to the nearest integer, halves to the even one, elementwise; to `decimals` places behind the point, or before it if they are negative. PyTorch's
 * `torch.round`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @throws ArgumentError for negative `decimals` of integers.
 * @example torch.round(torch.tensor([0.5, 1.5, 2.4])).toArray() // [0, 2, 2]
 */
export const round: Op['round'] = defineOp({
  schema: 'round(Tensor self, *, int decimals=0) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: {
    promotion: 'promote',
    dtypes: 'numeric',
    baked: ['decimals'],
    compute: (a, decimals) => {
      if (decimals === 0) return call('round', a)
      if (!dtypeInfo[a.dtype].floating) {
        if (decimals > 0) return a
        throw new ArgumentError(`torch.round: decimals must not be negative for integers, got ${decimals}. Convert self to floats first.`)
      }
      const unit = constant(a.dtype, 10 ** Math.abs(decimals))
      return decimals > 0 ? call('div', call('round', call('mul', a, unit)), unit) : call('mul', call('round', call('div', a, unit)), unit)
    },
  },
  derivative: ([g]) => [mul(g, 0), null],
})

/**
 * Rounds toward zero, elementwise. PyTorch's `torch.trunc`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @example torch.trunc(torch.tensor([1.7, -1.7])).toArray() // [1, -1]
 */
export const trunc: Op['trunc'] = defineOp({
  schema: 'trunc(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: rounding('trunc'),
  derivative: ([g]) => [mul(g, 0)],
})

/**
 * x * x, elementwise. PyTorch's `torch.square`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.square(torch.tensor([2, -3])).toArray() // [4, 9]
 */
export const square: Op['square'] = defineOp({
  schema: 'square(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  // A power of bools is an integer.
  prepare: (args) => (args[0] instanceof Tensor && args[0].dtype === 'bool' ? [to(args[0], 'int64')] : args),
  pointwise: { promotion: 'promote', compute: (a) => call('mul', a, a) },
  derivative: ([g], { args: [x] }) => [mul(mul(g, x), 2)],
})
