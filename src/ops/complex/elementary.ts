// The elementary functions of complex numbers, as formulas on their parts.
import type { Tensor } from '../../tensor/index.ts'
import { abs as realAbs, add, div, maximum, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, ge, logicalAnd, lt } from '../pointwise/comparison.ts'
import { clamp, maskedFill, where } from '../pointwise/select.ts'
import { rsub } from '../pointwise/variations.ts'
import { detach } from '../view/windows.ts'
import { atan2, cosh as realCosh, sinh as realSinh } from '../pointwise/trigonometry.ts'
import { hypot } from '../pointwise/special.ts'
import {
  cos as realCos,
  exp as realExp,
  expm1 as realExpm1,
  log as realLog,
  log1p as realLog1p,
  sin as realSin,
  sqrt as realSqrt,
  square as realSquare,
} from '../pointwise/unary.ts'

/** A complex number as its two parts. */
export type Parts = readonly [real: Tensor, imaginary: Tensor]

const isZero = ([x, y]: Parts): Tensor => logicalAnd(eq(x, 0), eq(y, 0))

/** The absolute value. At 0 its gradient is 0, as in PyTorch. */
export function magnitude(z: Parts): Tensor {
  const zero = isZero(z)
  return maskedFill(hypot(maskedFill(z[0], zero, 1), z[1]), zero, 0)
}

export const plus = ([a, b]: Parts, [c, d]: Parts): Parts => [add(a, c), add(b, d)]
export const minus = ([a, b]: Parts, [c, d]: Parts): Parts => [sub(a, c), sub(b, d)]
export const times = ([a, b]: Parts, [c, d]: Parts): Parts => [sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))]
export const scaled = ([a, b]: Parts, factor: number | Tensor): Parts => [mul(a, factor), mul(b, factor)]
/** i z */
const turned = ([a, b]: Parts): Parts => [neg(b), a]
/** -i z */
const turnedBack = ([a, b]: Parts): Parts => [b, neg(a)]
const plusOne = ([a, b]: Parts, one = 1): Parts => [add(a, one), b]

/** The quotient: both are scaled first, so that squares neither overflow nor vanish. */
export function quotient([a, b]: Parts, [c, d]: Parts): Parts {
  const scale = detach(maximum(realAbs(c), realAbs(d)))
  const [x, y] = [div(c, scale), div(d, scale)]
  const length = mul(add(mul(x, x), mul(y, y)), scale)
  return [div(add(mul(a, x), mul(b, y)), length), div(sub(mul(b, x), mul(a, y)), length)]
}

export function inverse([c, d]: Parts): Parts {
  const scale = detach(maximum(realAbs(c), realAbs(d)))
  const [x, y] = [div(c, scale), div(d, scale)]
  const length = mul(add(mul(x, x), mul(y, y)), scale)
  return [div(x, length), neg(div(y, length))]
}

export function exp([a, b]: Parts): Parts {
  const size = realExp(a)
  return [mul(size, realCos(b)), mul(size, realSin(b))]
}

export function expm1([a, b]: Parts): Parts {
  const half = realSin(mul(b, 0.5))
  return [sub(mul(realExpm1(a), realCos(b)), mul(mul(half, half), 2)), mul(realExp(a), realSin(b))]
}

export const log = ([a, b]: Parts): Parts => [realLog(hypot(a, b)), atan2(b, a)]

/** log(1 + z), exact for small z: |1 + z|² is 1 + a (2 + a) + b². */
export const log1p = ([a, b]: Parts): Parts => [mul(realLog1p(add(mul(a, add(a, 2)), realSquare(b))), 0.5), atan2(b, add(a, 1))]

export function sqrt([a, b]: Parts): Parts {
  const half = realSqrt(mul(add(hypot(a, b), realAbs(a)), 0.5))
  const zero = isZero([a, b])
  const other = maskedFill(div(realAbs(b), mul(maskedFill(half, zero, 1), 2)), zero, 0)
  const right = ge(a, 0)
  const upper = where(right, other, half)
  return [where(right, half, other), where(lt(b, 0), neg(upper), upper)]
}

export const sinh = ([a, b]: Parts): Parts => [mul(realSinh(a), realCos(b)), mul(realCosh(a), realSin(b))]
export const cosh = ([a, b]: Parts): Parts => [mul(realCosh(a), realCos(b)), mul(realSinh(a), realSin(b))]
export const sin = (z: Parts): Parts => turnedBack(sinh(turned(z)))
export const cos = (z: Parts): Parts => cosh(turned(z))

/** Beyond this the result is ±1 in every dtype, and squares of sinh would overflow. */
const FLAT = 40

/** By sinh² a + cos² b, which is exact near the poles. */
export function tanh([given, b]: Parts): Parts {
  const a = clamp(given, -FLAT, FLAT)
  const [s, c] = [realSinh(a), realCos(b)]
  const length = add(realSquare(s), realSquare(c))
  return [div(mul(s, realCosh(a)), length), div(mul(realSin(b), c), length)]
}
export const tan = (z: Parts): Parts => turnedBack(tanh(turned(z)))

/** An odd function, computed on the right half plane: log(z + sqrt(z² + 1)). */
export function asinh(z: Parts): Parts {
  const left = lt(z[0], 0)
  const flip = (part: Tensor): Tensor => where(left, neg(part), part)
  const right: Parts = [flip(z[0]), flip(z[1])]
  const [a, b] = log(plus(right, sqrt(plusOne(times(right, right)))))
  return [flip(a), flip(b)]
}
export const acosh = (z: Parts): Parts => log(plus(z, times(sqrt(plusOne(z)), sqrt(plusOne(z, -1)))))
export const atanh = (z: Parts): Parts => scaled(minus(log1p(z), log1p([neg(z[0]), neg(z[1])])), 0.5)
export const asin = (z: Parts): Parts => turnedBack(asinh(turned(z)))
export function acos(z: Parts): Parts {
  const [a, b] = asin(z)
  return [rsub(a, Math.PI / 2), neg(b)]
}
export const atan = (z: Parts): Parts => turnedBack(atanh(turned(z)))

export const sigmoid = ([a, b]: Parts): Parts => inverse(plusOne(exp([neg(a), neg(b)])))

/** The direction: a number of absolute value 1, or 0. */
export function direction(z: Parts): Parts {
  const zero = isZero(z)
  const length = magnitude([maskedFill(z[0], zero, 1), z[1]])
  return [maskedFill(div(z[0], length), zero, 0), maskedFill(div(z[1], length), zero, 0)]
}

/** Powers by logarithms; 0 to the power 0 is 1, and to any other power 0. */
export function power(base: Parts, exponent: Parts): Parts {
  const zero = isZero(base)
  const [a, b] = exp(times(exponent, log([maskedFill(base[0], zero, 1), base[1]])))
  return [where(zero, to(isZero(exponent), a.dtype), a), maskedFill(b, zero, 0)]
}
