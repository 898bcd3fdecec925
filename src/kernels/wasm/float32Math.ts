// float32 elementary functions as straight-line code on lanes, for every emitter, inlined where they are used: no tables, branches or calls, but for long angles.
//
// Range reductions and minimax polynomials are the classical ones of Cephes and fdlibm; the errors over every float32 are those of test/kernels/scalars/everyFloat32.test.ts.
// All are correct at ±0, ±Infinity and NaN, and give zero, subnormals and Infinity where they should.
import { polynomial } from './laneCode.ts'
import type { LaneCode } from './laneCode.ts'

const LN2_HIGH = 0.693359375
const LN2_LOW = -2.1219444e-4
/** (e^r - 1 - r) / r^2 for |r| <= ln2 / 2. */
const EXP = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1] as const
const SIGN = -0x80000000

/** Added to a number of magnitude below 2^22, this leaves the nearest integer (of two the even one) in the lowest bits of the sum. */
const ROUNDER = 12582912

/**
 * n and r with x = n ln2 + r, |r| <= ln2 / 2: the lowest bits of `bits` are those of the integer n + bias. `bias` is even, so that ties go to the even n.
 * NaN gives r = NaN.
 */
function reduceExp<V>(code: LaneCode<V>, x: V, bias: number): { readonly bits: V; readonly r: V } {
  const rounder = code.f32(ROUNDER + bias)
  const bits = code.mulAdd(x, code.f32(Math.LOG2E), rounder)
  const n = code.op2('f32x4.sub', bits, rounder)
  const high = code.subMul(n, code.f32(LN2_HIGH), x)
  return { bits, r: code.subMul(n, code.f32(LN2_LOW), high) }
}

/** e^r - 1 for |r| <= ln2 / 2. */
function expm1Core<V>(code: LaneCode<V>, r: V): V {
  const square = code.op2('f32x4.mul', r, r)
  return code.mulAdd(polynomial(code, r, EXP), square, r)
}

/** The float32 whose biased exponent is in the lowest bits: 2^(exponent - 127). */
const powerOfTwo = <V>(code: LaneCode<V>, exponent: V): V => code.shift('i32x4.shl', exponent, 23)

/** The smaller of `x` and a bound. NaN stays, because `pmin` returns its first operand unless the second is less. */
export const atMost = <V>(code: LaneCode<V>, x: V, high: number): V => code.op2('f32x4.pmin', x, code.f32(high))

const clamp = <V>(code: LaneCode<V>, x: V, low: number, high: number): V => atMost(code, code.op2('f32x4.pmax', x, code.f32(low)), high)

/** `magnitude` (not negative) with the sign of `x`. */
export const withSign = <V>(code: LaneCode<V>, magnitude: V, x: V): V => code.op2('v128.or', magnitude, code.op2('v128.and', x, code.i32(SIGN)))

export function exp<V>(code: LaneCode<V>, x: V): V {
  // 2^n in two steps, because n exceeds the exponents of normal numbers at both ends: the bias of each is half of 254.
  const { bits, r } = reduceExp(code, clamp(code, x, -104, 89), 254)
  const p = code.op2('f32x4.add', expm1Core(code, r), code.f32(1))
  const half = code.shift('i32x4.shr_u', bits, 1)
  const once = code.op2('f32x4.mul', p, powerOfTwo(code, half))
  return code.op2('f32x4.mul', once, powerOfTwo(code, code.op2('i32x4.sub', bits, half)))
}

/** (e^x - 1) 2^(bias - 127) for x >= -18, up to e^x = 2^(254.5 - bias): a part of it, so that 2^128 is never needed. `bias` is even. */
export function partOfExpm1<V>(code: LaneCode<V>, x: V, bias: number): V {
  const { bits, r } = reduceExp(code, x, bias)
  const scale = powerOfTwo(code, bits)
  return code.mulAdd(expm1Core(code, r), scale, code.op2('f32x4.sub', scale, code.f32(2 ** (bias - 127))))
}

/** (e^x - 1) / 2 for -18 <= x <= 89. */
const halfExpm1 = <V>(code: LaneCode<V>, x: V): V => partOfExpm1(code, x, 126)

export function expm1<V>(code: LaneCode<V>, x: V): V {
  const half = halfExpm1(code, clamp(code, x, -18, 89))
  return code.select(code.op2('f32x4.eq', x, code.f32(0)), x, code.op2('f32x4.add', half, half))
}

export function log<V>(code: LaneCode<V>, x: V): V {
  const tiny = code.op2('f32x4.lt', x, code.f32(1.17549435e-38))
  const scaled = code.select(tiny, code.op2('f32x4.mul', x, code.f32(8388608)), x)
  // Split into 2^k * m with m in [sqrt(1/2), sqrt(2)).
  const bits = code.op2('i32x4.sub', scaled, code.i32(0x3f3504f3))
  const exponent = code.op2('i32x4.sub', code.shift('i32x4.shr_s', bits, 23), code.op2('v128.and', tiny, code.i32(23)))
  const k = code.op1('f32x4.convert_i32x4_s', exponent)
  const m = code.op2('i32x4.add', code.op2('v128.and', bits, code.i32(0x007fffff)), code.i32(0x3f3504f3))
  const f = code.op2('f32x4.sub', m, code.f32(1))
  const s = code.op2('f32x4.div', f, code.op2('f32x4.add', f, code.f32(2)))
  const z = code.op2('f32x4.mul', s, s)
  const series = code.op2('f32x4.mul', polynomial(code, z, [0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693]), z)
  const halfSquare = code.op2('f32x4.mul', code.op2('f32x4.mul', f, f), code.f32(0.5))
  const low = code.op2('f32x4.mul', k, code.f32(9.0580006145e-6))
  const small = code.mulAdd(s, code.op2('f32x4.add', halfSquare, series), low)
  const mantissa = code.op2('f32x4.add', code.op2('f32x4.sub', small, halfSquare), f)
  const finite = code.mulAdd(k, code.f32(0.69313812256), mantissa)
  // 0 gives -Infinity, negative numbers give NaN, Infinity and NaN give themselves.
  const positive = code.select(code.op2('f32x4.lt', x, code.f32(Infinity)), finite, x)
  const zero = code.select(code.op2('f32x4.eq', x, code.f32(0)), code.f32(-Infinity), positive)
  return code.select(code.op2('f32x4.lt', x, code.f32(0)), code.f32(NaN), zero)
}

export function log1p<V>(code: LaneCode<V>, x: V): V {
  // Kahan: the rounding of 1 + x cancels in log(u) * x / (u - 1).
  const u = code.op2('f32x4.add', x, code.f32(1))
  const ratio = code.op2('f32x4.div', x, code.op2('f32x4.sub', u, code.f32(1)))
  const value = code.op2('f32x4.mul', log(code, u), ratio)
  const same = code.op2('v128.or', code.op2('f32x4.eq', u, code.f32(1)), code.op2('f32x4.eq', u, code.f32(Infinity)))
  return code.select(same, x, value)
}

export function tanh<V>(code: LaneCode<V>, x: V): V {
  // With u = (e^(2|x|) - 1) / 2 it is u / (u + 1), which is 1 beyond |x| = 10.
  const magnitude = code.op1('f32x4.abs', x)
  const u = halfExpm1(code, atMost(code, code.op2('f32x4.add', magnitude, magnitude), 20))
  return withSign(code, code.op2('f32x4.div', u, code.op2('f32x4.add', u, code.f32(1))), x)
}

export function sigmoid<V>(code: LaneCode<V>, x: V): V {
  return code.op2('f32x4.div', code.f32(1), code.op2('f32x4.add', exp(code, code.op1('f32x4.neg', x)), code.f32(1)))
}

/** Coefficients of the rational function x P(x^2) / Q(x^2) that Eigen and XLA use for erf. */
const ERF_P = [2.2905066e-4, 3.408291e-3, 5.0955694e-2, 1.8520832e-1, 1.1283791] as const
const ERF_Q = [-1.1791603e-7, 2.3547966e-5, 1.0179625e-3, 1.407047e-2, 1.1098505e-1, 4.9746925e-1, 1] as const

export function erf<V>(code: LaneCode<V>, x: V): V {
  const bounded = clamp(code, x, -3.8325069, 3.8325069)
  const square = code.op2('f32x4.mul', bounded, bounded)
  const ratio = code.op2('f32x4.div', code.op2('f32x4.mul', bounded, polynomial(code, square, ERF_P)), polynomial(code, square, ERF_Q))
  return clamp(code, ratio, -1, 1)
}

/** A number of quarter turns as an integer, of which only the last two bits count, and the rest of the angle, at most an eighth of a turn. */
export interface Angle<V> {
  readonly turns: V
  readonly rest: V
}

/** Up to this angle {@link reduced} is as accurate as float32. */
const LONG = 1024

/** Where angles are too long for {@link sin} and {@link cos}. */
export const isLong = <V>(code: LaneCode<V>, x: V): V => code.op2('f32x4.gt', code.op1('f32x4.abs', x), code.f32(LONG))

/** A quarter turn as a sum of numbers: the first two have so few bits that their products with the quarter turns in LONG are exact. */
const QUARTER = [1.5703125, 4.837512969970703e-4, 7.549790126404332e-8] as const

function reduced<V>(code: LaneCode<V>, x: V): Angle<V> {
  const rounder = code.f32(ROUNDER)
  const turns = code.mulAdd(x, code.f32(2 / Math.PI), rounder)
  const n = code.op2('f32x4.sub', turns, rounder)
  return { turns, rest: QUARTER.reduce((rest, part) => code.subMul(n, code.f32(part), rest), x) }
}

/** The sine of an angle and of `quarterTurns` more. */
export function sineOf<V>(code: LaneCode<V>, { turns, rest: r }: Angle<V>, quarterTurns: 0 | 1): V {
  const quarter = quarterTurns === 0 ? turns : code.op2('i32x4.add', turns, code.i32(quarterTurns))
  const z = code.op2('f32x4.mul', r, r)
  const sine = code.mulAdd(code.op2('f32x4.mul', polynomial(code, z, [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]), z), r, r)
  const tail = code.op2(
    'f32x4.mul',
    polynomial(code, z, [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]),
    code.op2('f32x4.mul', z, z),
  )
  const cosine = code.op2('f32x4.add', code.subMul(z, code.f32(0.5), tail), code.f32(1))
  const odd = code.op2('i32x4.ne', code.op2('v128.and', quarter, code.i32(1)), code.i32(0))
  const flip = code.shift('i32x4.shl', code.op2('v128.and', quarter, code.i32(2)), 30)
  return code.op2('v128.xor', code.select(odd, cosine, sine), flip)
}

/** Right where the angle is not {@link isLong}. */
export function sin<V>(code: LaneCode<V>, x: V): V {
  // The sine of -0 is -0; the reduction loses the sign.
  return code.select(code.op2('f32x4.eq', x, code.f32(0)), x, sineOf(code, reduced(code, x), 0))
}

/** Right where the angle is not {@link isLong}. */
export const cos = <V>(code: LaneCode<V>, x: V): V => sineOf(code, reduced(code, x), 1)
