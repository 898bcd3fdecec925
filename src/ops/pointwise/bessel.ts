// Special functions: Bessel functions, the normal distribution, entropy, and the incomplete gamma functions.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { full } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, div, mul, neg, sign, sub } from './arithmetic.ts'
import { eq } from './comparison.ts'
import { where } from './select.ts'
import { factorSlope, lgamma, xlogy } from './special.ts'
import { cos, exp, log, log1p, sin, square } from './unary.ts'

const number = (like: Expr, value: number): Expr => constant(like.dtype, value)

/** y / x, and at 0 the slope 1/2 that both Bessel functions of order 1 have there. */
function overX(y: Tensor, x: Tensor): Tensor {
  const isZero = eq(x, 0)
  return where(isZero, 0.5, div(y, where(isZero, 1, x)))
}

/** log of the normal distribution function: for negative numbers through erfcx. */
function logNormal(x: Expr): Expr {
  const scaled = call('mul', x, number(x, Math.SQRT1_2))
  const left = call('sub', call('log', call('mul', call('erfcx', call('neg', scaled)), number(x, 0.5))), call('mul', scaled, scaled))
  const right = call('log1p', call('mul', call('erfc', scaled), number(x, -0.5)))
  return call('where', call('lt', x, number(x, -1)), left, right)
}

/** -x log x with its limits. */
function entropy(x: Expr): Expr {
  const zero = number(x, 0)
  const inside = call('where', call('eq', x, zero), zero, call('neg', call('mul', x, call('log', x))))
  return call('where', call('lt', x, zero), number(x, -Infinity), inside)
}

/** A number in place of a tensor, as a tensor like `like`. */
const asTensorLike = (value: Tensor | number, like: Tensor): Tensor => (typeof value === 'number' ? full([], value, { dtype: like.dtype }) : value)

/** g x^(a - 1) e^-x / gamma(a). */
const slopeOfGamma = (g: Tensor, a: Tensor, x: Tensor): Tensor => mul(g, exp(sub(sub(xlogy(sub(a, 1), x), x), lgamma(a))))

/**
 * The modified Bessel function of the first kind and order 0, elementwise. PyTorch's `torch.i0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.i0(torch.tensor([0, 1])).toArray() // [1, 1.266066]
 */
export const i0: Op['i0'] = defineOp({
  schema: 'i0(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'float', compute: (x) => call('i0', x) },
  derivative: ([g], { args: [x] }) => [mul(g, i1(x))],
})

/**
 * `torch.i0` times e^-|x|, elementwise. PyTorch's `torch.special.i0e`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.i0e(torch.tensor([0, 1])).toArray() // [1, 0.46576]
 */
export const i0e: Op['i0e'] = defineOp({
  schema: 'i0e(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('i0e', x) },
  derivative: ([g], { args: [x], outputs: [out] }) => [mul(g, sub(i1e(x), mul(sign(x), out)))],
})

/**
 * The modified Bessel function of the first kind and order 1, elementwise. PyTorch's `torch.special.i1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.i1(torch.tensor([0, 1])).toArray() // [0, 0.565159]
 */
export const i1: Op['i1'] = defineOp({
  schema: 'i1(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('i1', x) },
  derivative: ([g], { args: [x], outputs: [out] }) => [mul(g, sub(i0(x), overX(out, x)))],
})

/**
 * {@link i1} times e^-|x|, elementwise. PyTorch's `torch.special.i1e`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.i1e(torch.tensor([0, 1])).toArray() // [0, 0.20791]
 */
export const i1e: Op['i1e'] = defineOp({
  schema: 'i1e(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('i1e', x) },
  derivative: ([g], { args: [x], outputs: [out] }) => [mul(g, sub(sub(i0e(x), mul(sign(x), out)), overX(out, x)))],
})

/**
 * The Bessel function of the first kind and order 0, elementwise. PyTorch's `torch.special.bessel_j0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.besselJ0(torch.tensor([0, 1])).toArray() // [1, 0.765198]
 */
export const besselJ0: Op['besselJ0'] = defineOp({
  schema: 'bessel_j0(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('besselJ0', x) },
})

/**
 * The Bessel function of the first kind and order 1, elementwise. PyTorch's `torch.special.bessel_j1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.besselJ1(torch.tensor([0, 1])).toArray() // [0, 0.440051]
 */
export const besselJ1: Op['besselJ1'] = defineOp({
  schema: 'bessel_j1(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('besselJ1', x) },
})

/**
 * The Bessel function of the second kind and order 0, elementwise; NaN for negative numbers. PyTorch's `torch.special.bessel_y0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.besselY0(torch.tensor([1])).toArray() // [0.088257]
 */
export const besselY0: Op['besselY0'] = defineOp({
  schema: 'bessel_y0(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('besselY0', x) },
})

/**
 * The Bessel function of the second kind and order 1, elementwise; NaN for negative numbers. PyTorch's `torch.special.bessel_y1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.besselY1(torch.tensor([1])).toArray() // [-0.781213]
 */
export const besselY1: Op['besselY1'] = defineOp({
  schema: 'bessel_y1(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('besselY1', x) },
})

/**
 * The modified Bessel function of the first kind and order 0, elementwise. PyTorch's `torch.special.modified_bessel_i0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.modifiedBesselI0(torch.tensor([1])).toArray() // [1.266066]
 */
export const modifiedBesselI0: Op['modifiedBesselI0'] = defineOp({
  schema: 'modified_bessel_i0(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('i0', x) },
})

/**
 * The modified Bessel function of the first kind and order 1, elementwise. PyTorch's `torch.special.modified_bessel_i1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.modifiedBesselI1(torch.tensor([1])).toArray() // [0.565159]
 */
export const modifiedBesselI1: Op['modifiedBesselI1'] = defineOp({
  schema: 'modified_bessel_i1(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('i1', x) },
})

/**
 * The modified Bessel function of the second kind and order 0, elementwise; NaN for negative numbers. PyTorch's `torch.special.modified_bessel_k0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.modifiedBesselK0(torch.tensor([1])).toArray() // [0.421024]
 */
export const modifiedBesselK0: Op['modifiedBesselK0'] = defineOp({
  schema: 'modified_bessel_k0(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('besselK0', x) },
})

/**
 * The modified Bessel function of the second kind and order 1, elementwise; NaN for negative numbers. PyTorch's `torch.special.modified_bessel_k1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.modifiedBesselK1(torch.tensor([1])).toArray() // [0.601907]
 */
export const modifiedBesselK1: Op['modifiedBesselK1'] = defineOp({
  schema: 'modified_bessel_k1(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('besselK1', x) },
})

/**
 * {@link modifiedBesselK0} times e^x, elementwise; NaN for negative numbers. PyTorch's `torch.special.scaled_modified_bessel_k0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.scaledModifiedBesselK0(torch.tensor([1])).toArray() // [1.144463]
 */
export const scaledModifiedBesselK0: Op['scaledModifiedBesselK0'] = defineOp({
  schema: 'scaled_modified_bessel_k0(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('scaledBesselK0', x) },
})

/**
 * {@link modifiedBesselK1} times e^x, elementwise; NaN for negative numbers. PyTorch's `torch.special.scaled_modified_bessel_k1`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.scaledModifiedBesselK1(torch.tensor([1])).toArray() // [1.636153]
 */
export const scaledModifiedBesselK1: Op['scaledModifiedBesselK1'] = defineOp({
  schema: 'scaled_modified_bessel_k1(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('scaledBesselK1', x) },
})

/**
 * Airy's function Ai, elementwise. PyTorch's `torch.special.airy_ai`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.airyAi(torch.tensor([0, 1])).toArray() // [0.355028, 0.135292]
 */
export const airyAi: Op['airyAi'] = defineOp({
  schema: 'airy_ai(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('airyAi', x) },
})

/**
 * sin(x) / x, elementwise; 1 at 0. The spherical Bessel function of order 0. PyTorch's `torch.special.spherical_bessel_j0`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.sphericalBesselJ0(torch.tensor([0, 1])).toArray() // [1, 0.841471]
 */
export const sphericalBesselJ0: Op['sphericalBesselJ0'] = defineOp({
  schema: 'spherical_bessel_j0(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('where', call('eq', x, number(x, 0)), number(x, 1), call('div', call('sin', x), x)) },
  derivative: ([g], { args: [x] }) => [mul(g, where(eq(x, 0), 0, div(sub(mul(x, cos(x)), sin(x)), square(x))))],
})

/**
 * e^(x^2) erfc(x), elementwise, which does not underflow. PyTorch's `torch.special.erfcx`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.erfcx(torch.tensor([0, 1])).toArray() // [1, 0.427584]
 */
export const erfcx: Op['erfcx'] = defineOp({
  schema: 'erfcx(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('erfcx', x) },
  derivative: ([g], { args: [x], outputs: [out] }) => [mul(g, sub(mul(mul(x, out), 2), 2 / Math.sqrt(Math.PI)))],
})

/**
 * The number below which a standard normal variable lies with this probability, elementwise: the inverse of {@link ndtr}. PyTorch's `torch.special.ndtri`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.ndtri(torch.tensor([0.5, 0.9])).toArray() // [0, 1.281552]
 */
export const ndtri: Op['ndtri'] = defineOp({
  schema: 'ndtri(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('ndtri', x) },
  derivative: ([g], { outputs: [out] }) => [mul(g, mul(exp(mul(square(out), 0.5)), Math.sqrt(2 * Math.PI)))],
})

/**
 * The probability that a standard normal variable is less, elementwise. PyTorch's `torch.special.ndtr`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.ndtr(torch.tensor([0, 1])).toArray() // [0.5, 0.841345]
 */
export const ndtr: Op['ndtr'] = defineOp({
  schema: 'ndtr(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: (x) => call('mul', call('erfc', call('mul', x, number(x, -Math.SQRT1_2))), number(x, 0.5)) },
  derivative: ([g], { args: [x] }) => [mul(g, mul(exp(mul(square(x), -0.5)), 1 / Math.sqrt(2 * Math.PI)))],
})

/**
 * The logarithm of {@link ndtr}, elementwise, which does not underflow. PyTorch's `torch.special.log_ndtr`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.logNdtr(torch.tensor([0, -20])).toArray() // [-0.693147, -203.917155]
 */
export const logNdtr: Op['logNdtr'] = defineOp({
  schema: 'log_ndtr(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: logNormal },
  derivative: ([g], { args: [x], outputs: [out] }) => [mul(g, mul(exp(sub(mul(square(x), -0.5), out)), 1 / Math.sqrt(2 * Math.PI)))],
})

/**
 * -x log(x), elementwise; 0 at 0, and -Infinity for negative numbers. PyTorch's `torch.special.entr`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.special.entr(torch.tensor([0, 0.5])).toArray() // [0, 0.346574]
 */
export const entr: Op['entr'] = defineOp({
  schema: 'entr(Tensor self) -> Tensor',
  namespace: 'torch.special',
  pointwise: { promotion: 'float', compute: entropy },
  derivative: ([g], { args: [x] }) => [mul(g, neg(add(log(x), 1)))],
})

/**
 * self * log(1 + other), elementwise; 0 where `self` is 0, unless `other` is NaN. PyTorch's `torch.special.xlog1py`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.xlog1py(torch.tensor([0, 2]), torch.tensor([-1, 1])).toArray() // [0, 1.386294]
 */
export const xlog1py: Op['xlog1py'] = defineOp({
  schema: 'xlog1py(Tensor self, Tensor other) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: {
    promotion: 'float',
    compute: (a, b) => {
      const product = call('mul', a, call('log1p', b))
      return call('where', call('isnan', b), b, call('where', call('eq', a, number(a, 0)), number(a, 0), product))
    },
  },
  derivative: ([g], { args: [a, b], needs }) => [
    needs[0] ? mul(g, factorSlope(a, b, -1, typeof b === 'number' ? Math.log1p(b) : log1p(b))) : null,
    needs[1] ? mul(div(g, typeof b === 'number' ? 1 + b : add(b, 1)), a) : null,
  ],
})

/**
 * Hurwitz' zeta function, elementwise: the sum of 1 / (other + k)^self over k >= 0. PyTorch's `torch.special.zeta`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.zeta(torch.tensor([2]), torch.tensor([1])).toArray() // [1.644934]
 */
export const zeta: Op['zeta'] = defineOp({
  schema: 'zeta(Tensor self, Tensor other) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (s, q) => call('zeta', s, q) },
  derivative: ([g], { args: [s, q], needs }) => [null, needs[1] ? mul(g, mul(neg(asTensorLike(s, g)), zeta(add(asTensorLike(s, g), 1), q))) : null],
})

/**
 * The lower regularized incomplete gamma function of `self` and `other`, elementwise. There is a gradient for `other` only. PyTorch's `torch.igamma`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.igamma(torch.tensor([1]), torch.tensor([2])).toArray() // [0.864665]
 */
export const igamma: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'igamma(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (a, x) => call('igamma', a, x) },
  derivative: ([g], { args: [a, x], needs }) => [null, needs[1] && typeof x !== 'number' ? slopeOfGamma(g, a, x) : null],
})

/**
 * The upper regularized incomplete gamma function of `self` and `other`, elementwise: 1 - torch.igamma. There is a gradient for `other` only. PyTorch's `torch.igammac`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.igammac(torch.tensor([1]), torch.tensor([2])).toArray() // [0.135335]
 */
export const igammac: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'igammac(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (a, x) => call('igammac', a, x) },
  derivative: ([g], { args: [a, x], needs }) => [null, needs[1] && typeof x !== 'number' ? neg(slopeOfGamma(g, a, x)) : null],
})
