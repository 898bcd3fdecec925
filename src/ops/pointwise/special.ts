// Logarithms and powers to other bases, and special functions.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { ArgumentError } from '../../errors/index.ts'
import { full } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { div, mul, neg, sub } from './arithmetic.ts'
import { eq, ge, le, logicalAnd, ne } from './comparison.ts'
import { where } from './select.ts'
import { cos, exp, log, reciprocal, sigmoid, sin, square } from './unary.ts'

const number = (like: Expr, value: number): Expr => constant(like.dtype, value)

/** max(a, b) + log2(1 + 2^-|a - b|), which does not overflow; two equal infinities are their own result. */
function stable2(a: Expr, b: Expr): Expr {
  const gap = call('neg', call('abs', call('sub', a, b)))
  const tail = call('mul', call('log1p', call('pow', number(a, 2), gap)), number(a, Math.LOG2E))
  const same = call('and', call('eq', a, b), call('eq', call('abs', a), number(a, Infinity)))
  return call('where', same, a, call('add', call('max', a, b), tail))
}

/**
 * 2^x, elementwise. PyTorch's `torch.exp2`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.exp2(torch.tensor([0, 3])).toArray() // [1, 8]
 */
export const exp2: Op['exp2'] = defineOp({
  schema: 'exp2(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('pow', number(x, 2), x) },
  derivative: ([g], { outputs: [out] }) => [mul(g, mul(out, Math.LN2))],
})

/**
 * The logarithm to base 2, elementwise. PyTorch's `torch.log2`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.log2(torch.tensor([1, 8])).toArray() // [0, 3]
 */
export const log2: Op['log2'] = defineOp({
  schema: 'log2(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('log2', x) },
  derivative: ([g], { args: [x] }) => [div(g, mul(x, Math.LN2))],
})

/**
 * The logarithm to base 10, elementwise. PyTorch's `torch.log10`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.log10(torch.tensor([1, 1000])).toArray() // [0, 3]
 */
export const log10: Op['log10'] = defineOp({
  schema: 'log10(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('log10', x) },
  derivative: ([g], { args: [x] }) => [div(g, mul(x, Math.LN10))],
})

/**
 * 1 - erf(x), elementwise, accurate for large x. PyTorch's `torch.erfc`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.erfc(torch.tensor([0, 1])).toArray() // [1, 0.157299]
 */
export const erfc: Op['erfc'] = defineOp({
  schema: 'erfc(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('erfc', x) },
  derivative: ([g], { args: [x] }) => [mul(g, mul(exp(neg(square(x))), -2 / Math.sqrt(Math.PI)))],
})

/**
 * The inverse of the error function, elementwise; NaN outside -1 to 1. PyTorch's `torch.erfinv`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.erfinv(torch.tensor([0, 0.5])).toArray() // [0, 0.476936]
 */
export const erfinv: Op['erfinv'] = defineOp({
  schema: 'erfinv(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (x) => call('erfinv', x) },
  derivative: ([g], { outputs: [out] }) => [mul(g, mul(exp(square(out)), Math.sqrt(Math.PI) / 2))],
})

/**
 * The logarithm of the absolute value of the gamma function, elementwise. PyTorch's `torch.lgamma`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.lgamma(torch.tensor([1, 5])).toArray() // [0, 3.178054]
 */
export const lgamma: Op['lgamma'] = defineOp({
  schema: 'lgamma(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (x) => call('lgamma', x) },
  derivative: ([g], { args: [x] }) => [mul(g, digamma(x))],
})

/**
 * The derivative of {@link lgamma}, elementwise. PyTorch's `torch.digamma`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.digamma(torch.tensor([1, 2])).toArray() // [-0.577216, 0.422784]
 */
export const digamma: Op['digamma'] = defineOp({
  schema: 'digamma(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (x) => call('digamma', x) },
  derivative: ([g], { args: [x] }) => [mul(g, polygamma(1, x))],
})

/**
 * Derivative number `n` of {@link digamma}, elementwise. PyTorch's `torch.polygamma`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `n` is negative.
 * @example torch.polygamma(1, torch.tensor([1])).toArray() // [1.644934]
 */
export const polygamma: Op['polygamma'] = defineOp({
  schema: 'polygamma(int n, Tensor self) -> Tensor',
  pointwise: {
    promotion: 'float',
    baked: ['n'],
    compute: (n, x) => {
      if (typeof n === 'number' && n >= 0) return n === 0 ? call('digamma', x) : call('polygamma', number(x, n), x)
      throw new ArgumentError("torch.polygamma: argument 'n' must not be negative.")
    },
  },
  derivative: ([g], { args: [n, x] }) => [null, mul(g, polygamma(n + 1, typeof x === 'number' ? full([], x) : x))],
})

/**
 * sin(pi x) / (pi x), elementwise; 1 at 0. PyTorch's `torch.sinc`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sinc(torch.tensor([0, 0.5])).toArray() // [1, 0.63662]
 */
export const sinc: Op['sinc'] = defineOp({
  schema: 'sinc(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: {
    promotion: 'float',
    compute: (x) => {
      const angle = call('mul', x, number(x, Math.PI))
      return call('where', call('eq', x, number(x, 0)), number(x, 1), call('div', call('sin', angle), angle))
    },
  },
  derivative: ([g], { args: [x] }) => {
    const angle = mul(x, Math.PI)
    const slope = div(sub(mul(angle, cos(angle)), sin(angle)), mul(angle, x))
    return [mul(g, where(eq(x, 0), 0, slope))]
  },
})

/**
 * log2(2^self + 2^other), elementwise, without overflow. PyTorch's `torch.logaddexp2`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.logaddexp2(torch.tensor([0, 1000]), torch.tensor([0, 1000])).toArray() // [1, 1001]
 */
export const logaddexp2: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'logaddexp2(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'float', compute: stable2 },
  derivative: ([g], { args: [x, y] }) => {
    const gap = mul(sub(x, y), Math.LN2)
    return [mul(g, sigmoid(gap)), mul(g, sigmoid(neg(gap)))]
  },
})

/**
 * sqrt(self^2 + other^2), elementwise, without overflow. PyTorch's `torch.hypot`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.hypot(torch.tensor([3]), torch.tensor([4])).toArray() // [5]
 */
export const hypot: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'hypot(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (a, b) => call('hypot', a, b) },
  derivative: ([g], { args: [a, b], outputs: [out] }) => [mul(g, div(a, out)), mul(g, mul(reciprocal(out), b))],
})

/** The derivative of a * slope with respect to a, where the product is 0 for a = 0 and other numbers of at most `least`, though their slope is not finite. */
export const factorSlope = (a: Tensor, b: Tensor | number, least: number, slope: Tensor | number): Tensor =>
  where(typeof b === 'number' ? (b <= least ? eq(a, 0) : ne(a, a)) : logicalAnd(eq(a, 0), le(b, least)), 0, slope)

/**
 * self * log(other), elementwise; 0 where `self` is 0, unless `other` is NaN. PyTorch's `torch.xlogy`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example
 * torch.xlogy(torch.tensor([0, 2]), torch.tensor([0, 1])).toArray() // [0, 0]
 * torch.xlogy(2, torch.tensor([1])).toArray() // [0]
 */
export const xlogy: Op['xlogy'] = defineOp({
  schema: 'xlogy(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'function',
  tags: ['numberFirst'],
  pointwise: {
    promotion: 'float',
    compute: (a, b) => {
      const product = call('mul', a, call('log', b))
      return call('where', call('isnan', b), b, call('where', call('eq', a, number(a, 0)), number(a, 0), product))
    },
  },
  derivative: ([g], { args: [a, b], needs }) => [
    needs[0] ? mul(g, factorSlope(a, b, 0, typeof b === 'number' ? Math.log(b) : log(b))) : null,
    needs[1] ? mul(div(g, b), a) : null,
  ],
})

/**
 * log(x / (1 - x)), elementwise; with `eps`, of x limited to eps and 1 - eps. PyTorch's `torch.logit`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.logit(torch.tensor([0.5, 0.9])).toArray() // [0, 2.197225]
 */
export const logit: Op['logit'] = defineOp({
  schema: 'logit(Tensor self, float? eps=None) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: {
    promotion: 'float',
    baked: ['eps'],
    compute: (x, eps) => {
      const p = eps === null ? x : call('min', call('max', x, number(x, eps)), number(x, 1 - eps))
      return call('log', call('div', p, call('sub', number(p, 1), p)))
    },
  },
  derivative: ([g], { args: [x, eps] }) => {
    const slope = mul(g, reciprocal(mul(x, sub(neg(x), -1))))
    return [eps === null ? slope : where(logicalAnd(ge(x, eps), le(x, 1 - eps)), slope, 0), null]
  },
})

/**
 * {@link polygamma} with the order second, as a method: `x.polygamma(n)`. PyTorch's `Tensor.polygamma`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `n` is negative.
 * @example torch.tensor([1]).polygamma(1).toArray() // [1.644934]
 */
export const polygammaMethod: Op['polygammaMethod'] = defineOp({
  schema: 'polygamma(Tensor self, int n) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, n) => polygamma(n, self),
})
