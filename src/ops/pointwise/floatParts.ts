// The parts of floating-point numbers: frexp, and the next number in a direction. They are composed of powers of two, which are exact.
import { finfo } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { DTypeError } from '../../errors/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { accumulatedIn } from '../eager/promotion.ts'
import { abs, add, mul, pow, sign, sub } from './arithmetic.ts'
import { to } from './cast.ts'
import { isfinite } from './classify.ts'
import { eq, ge, gt, isnan, logicalAnd, logicalNot, logicalOr, lt, ne } from './comparison.ts'
import { clamp, where } from './select.ts'
import { log2 } from './special.ts'
import { floor } from './unary.ts'

const half = (n: Tensor): Tensor => floor(mul(n, 0.5))
/** x * 2^n for integers n, in two steps, as 2^n may be beyond the numbers of the dtype. */
const timesPower = (x: Tensor, n: Tensor): Tensor => mul(mul(x, pow(2, half(n))), pow(2, sub(n, half(n))))

/** The exponents of numbers m * 2^e with 0.5 <= |m| < 1; 0 for 0, infinities and NaN. It has no gradient. */
function exponentOf(x: Tensor): Tensor {
  const size = abs(x.detach())
  const regular = logicalAnd(gt(size, 0), isfinite(size))
  const safe = where(regular, size, 1)
  const near = add(floor(log2(safe)), 1)
  // The logarithm may be rounded to the next integer.
  const mantissa = timesPower(safe, mul(near, -1))
  const exact = add(near, sub(to(ge(mantissa, 1), near.dtype), to(lt(mantissa, 0.5), near.dtype)))
  return where(regular, exact, 0)
}

function checkFloating(op: string, x: Tensor): void {
  if (!x.isFloatingPoint()) throw new DTypeError(`${op}: argument must be floating, got ${x.dtype}. Convert it: x.float().`)
}

/**
 * Mantissa and exponent, elementwise: [m, e] with x = m * 2^e and 0.5 <= |m| < 1. PyTorch's `torch.frexp`.
 *
 * Shapes: both have the shape of `self`; the exponent is int32.
 *
 * @throws DTypeError unless `self` is floating.
 * @example torch.frexp(torch.tensor([6, -0.3])).map((t) => t.toArray()) // [[0.75, -0.6], [3, -1]]
 */
export const frexp: Op['frexp'] = defineOp({
  schema: 'frexp.Tensor(Tensor self) -> (Tensor, Tensor)',
  method: true,
  decompose: (self) => {
    checkFloating('torch.frexp', self)
    const x = to(self, accumulatedIn(self.dtype))
    const exponent = exponentOf(x)
    return [to(timesPower(x, mul(exponent, -1)), self.dtype), to(exponent, 'int32')]
  },
})

/**
 * The number of the dtype that follows `self` in the direction of `other`, elementwise. PyTorch's `torch.nextafter`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape.
 *
 * @throws DTypeError unless both are floating and of one dtype.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.nextafter(torch.tensor([1, 1]), torch.tensor([2, 0])).toArray() // [1.0000001192, 0.9999999404]
 */
export const nextafter: Op['nextafter'] = defineOp({
  schema: 'nextafter(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  vmap: 'elementwise',
  decompose: (self, other) => {
    checkFloating('torch.nextafter', self)
    if (self.dtype !== other.dtype) throw new DTypeError(`torch.nextafter: self is ${self.dtype}, but other is ${other.dtype}; convert one of them.`)
    const { eps, max, tiny } = finfo(self.dtype)
    const [x, end] = [to(self, accumulatedIn(self.dtype)), to(other, accumulatedIn(self.dtype))]
    const exponent = exponentOf(x)
    const up = gt(end, x)
    // Toward 0 from a power of two, the numbers lie twice as close.
    const inward = logicalNot(eq(up, gt(x, 0)))
    const isPower = eq(abs(timesPower(x, mul(exponent, -1))), 0.5)
    const distance = mul(timesPower(mul(to(ne(x, 0), x.dtype), eps / 2), exponent), where(logicalAnd(inward, isPower), 0.5, 1))
    const step = clamp(distance, tiny * eps)
    const next = add(x, where(up, step, mul(step, -1)))
    const finite = where(isfinite(x), next, mul(sign(x), max))
    const moved = where(eq(x, end), end, finite)
    return to(where(logicalOr(isnan(x), isnan(end)), NaN, moved), self.dtype)
  },
  derivative: ([g], { needs }) => [g, needs[1] ? mul(g, 0) : null],
})
