// float32 functions of rarer use as straight-line SIMD code: hypot, atan2, sinh and cosh, which the functions of complex numbers consist of.
import { atMost, partOfExpm1, withSign } from './float32Math.ts'
import { polynomial } from './laneCode.ts'
import type { LaneCode } from './laneCode.ts'
import type { Val, VectorCode } from './vectorCode.ts'

const { PI } = Math

/** A constant as the float32 next to it, and what that lacks. */
const inTwo = (value: number): readonly [high: number, low: number] => [Math.fround(value), value - Math.fround(value)]

/** `constant - x` for x of at least 0. */
function takenFrom<V>(code: LaneCode<V>, constant: number, x: V): V {
  const [high, low] = inTwo(constant)
  return code.op2('f32x4.sub', code.f32(high), code.op2('f32x4.sub', x, code.f32(low)))
}

/** The root of the sum of squares. In float64 squares neither overflow nor vanish. */
export function hypot(code: VectorCode, x: Val, y: Val): Val {
  const upper = (a: Val): Val => code.shuffle32(a, a, [2, 3, 2, 3])
  const half = (a: Val, b: Val): Val => {
    const [p, q] = [code.op1('f64x2.promote_low_f32x4', a), code.op1('f64x2.promote_low_f32x4', b)]
    const root = code.op1('f64x2.sqrt', code.op2('f64x2.add', code.op2('f64x2.mul', p, p), code.op2('f64x2.mul', q, q)))
    return code.op1('f32x4.demote_f64x2_zero', root)
  }
  const value = code.shuffle32(half(x, y), half(upper(x), upper(y)), [0, 1, 4, 5])
  const infinity = code.f32(Infinity)
  const isInfinite = (a: Val): Val => code.op2('f32x4.eq', code.op1('f32x4.abs', a), infinity)
  // Infinity and NaN give Infinity.
  return code.select(code.op2('v128.or', isInfinite(x), isInfinite(y)), infinity, value)
}

/** atan(t) = t + t^3 P(t^2) for |t| <= tan(pi / 8). */
const ATAN = [8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1] as const

/** The angle of the point (x, y). */
export function atan2<V>(code: LaneCode<V>, y: V, x: V): V {
  const [ax, ay] = [code.op1('f32x4.abs', x), code.op1('f32x4.abs', y)]
  const [greater, lesser] = [code.op2('f32x4.max', ax, ay), code.op2('f32x4.min', ax, ay)]
  const quotient = code.op2('f32x4.div', lesser, greater)
  // 0 / 0 is 0 here, and Infinity / Infinity is 1.
  const bounded = code.select(code.op2('f32x4.eq', lesser, code.f32(Infinity)), code.f32(1), quotient)
  const t = code.select(code.op2('f32x4.eq', greater, code.f32(0)), code.f32(0), bounded)
  const isSteep = code.op2('f32x4.gt', t, code.f32(Math.tan(PI / 8)))
  const turned = code.op2('f32x4.div', code.op2('f32x4.sub', t, code.f32(1)), code.op2('f32x4.add', t, code.f32(1)))
  const u = code.select(isSteep, turned, t)
  const z = code.op2('f32x4.mul', u, u)
  const atan = code.mulAdd(code.op2('f32x4.mul', polynomial(code, z, ATAN), z), u, u)
  const octant = code.select(isSteep, code.op2('f32x4.add', atan, code.f32(PI / 4)), atan)
  const quadrant = code.select(code.op2('f32x4.gt', ay, ax), takenFrom(code, PI / 2, octant), octant)
  // Of -0 too, whose sign is a bit.
  const isLeft = code.op2('i32x4.lt_s', x, code.i32(0))
  return withSign(code, code.select(isLeft, takenFrom(code, PI, quadrant), quadrant), y)
}

/** e^|x| and (e^|x| - 1) / 2, the latter finite up to where sinh and cosh overflow. */
function growth<V>(code: LaneCode<V>, x: V): { readonly whole: V; readonly half: V } {
  const eighth = partOfExpm1(code, atMost(code, code.op1('f32x4.abs', x), 89.5), 124)
  const times = (factor: number): V => code.op2('f32x4.mul', eighth, code.f32(factor))
  return { whole: code.op2('f32x4.add', times(8), code.f32(1)), half: times(4) }
}

export function sinh<V>(code: LaneCode<V>, x: V): V {
  const { whole, half } = growth(code, x)
  // At most 1/2, which it is too where both are infinite: the quotient is NaN then, and not less.
  const quotient = code.op2('f32x4.pmin', code.f32(0.5), code.op2('f32x4.div', half, whole))
  return withSign(code, code.op2('f32x4.add', half, quotient), x)
}

export function cosh<V>(code: LaneCode<V>, x: V): V {
  const { whole, half } = growth(code, x)
  return code.op2('f32x4.add', code.op2('f32x4.add', half, code.f32(0.5)), code.op2('f32x4.div', code.f32(0.5), whole))
}
