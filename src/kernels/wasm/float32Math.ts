// float32 elementary functions as straight-line SIMD code, inlined where they are used: no tables, branches or calls.
//
// Range reductions and minimax polynomials are the classical ones of Cephes and fdlibm; max errors are measured in test/kernels/float32Math.test.ts.
// All are correct at ±0, ±Infinity and NaN, and give zero, subnormals and Infinity where they should.
import type { Val, VectorCode } from './vectorCode.ts'

const LN2_HIGH = 0.693359375
const LN2_LOW = -2.1219444e-4
/** (e^r - 1 - r) / r^2 for |r| <= ln2 / 2. */
const EXP = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1] as const
const SIGN = -0x80000000

/** n and r with x = n ln2 + r, |r| <= ln2 / 2. */
function reduceExp(code: VectorCode, x: Val): { readonly n: Val; readonly r: Val } {
  const n = code.op1('f32x4.nearest', code.op2('f32x4.mul', x, code.f32(Math.LOG2E)))
  const high = code.op2('f32x4.sub', x, code.op2('f32x4.mul', n, code.f32(LN2_HIGH)))
  return { n, r: code.op2('f32x4.sub', high, code.op2('f32x4.mul', n, code.f32(LN2_LOW))) }
}

/** e^r - 1 for |r| <= ln2 / 2. */
function expm1Core(code: VectorCode, r: Val): Val {
  const square = code.op2('f32x4.mul', r, r)
  return code.op2('f32x4.add', code.op2('f32x4.mul', code.polynomial(r, EXP), square), r)
}

/** 2^n as float32, for the i32 lanes n of a normal result. */
const powerOfTwo = (code: VectorCode, n: Val): Val => code.shift('i32x4.shl', code.op2('i32x4.add', n, code.i32(127)), 23)

const clamp = (code: VectorCode, x: Val, low: number, high: number): Val =>
  code.op2('f32x4.min', code.op2('f32x4.max', x, code.f32(low)), code.f32(high))

/** `magnitude` (not negative) with the sign of `x`. */
const withSign = (code: VectorCode, magnitude: Val, x: Val): Val => code.op2('v128.or', magnitude, code.op2('v128.and', x, code.i32(SIGN)))

export function exp(code: VectorCode, x: Val): Val {
  const { n, r } = reduceExp(code, clamp(code, x, -104, 89))
  const p = code.op2('f32x4.add', expm1Core(code, r), code.f32(1))
  // 2^n in two steps, because n exceeds the exponents of normal numbers at both ends.
  const whole = code.op1('i32x4.trunc_sat_f32x4_s', n)
  const half = code.shift('i32x4.shr_s', whole, 1)
  const once = code.op2('f32x4.mul', p, powerOfTwo(code, half))
  return code.op2('f32x4.mul', once, powerOfTwo(code, code.op2('i32x4.sub', whole, half)))
}

export function expm1(code: VectorCode, x: Val): Val {
  const { n, r } = reduceExp(code, clamp(code, x, -18, 89))
  // Half the scale, doubled at the end, so that 2^128 is never needed.
  const scale = powerOfTwo(code, code.op2('i32x4.sub', code.op1('i32x4.trunc_sat_f32x4_s', n), code.i32(1)))
  const half = code.op2('f32x4.add', code.op2('f32x4.mul', expm1Core(code, r), scale), code.op2('f32x4.sub', scale, code.f32(0.5)))
  return code.select(code.op2('f32x4.eq', x, code.f32(0)), x, code.op2('f32x4.add', half, half))
}

export function log(code: VectorCode, x: Val): Val {
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
  const series = code.op2('f32x4.mul', code.polynomial(z, [0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693]), z)
  const halfSquare = code.op2('f32x4.mul', code.op2('f32x4.mul', f, f), code.f32(0.5))
  const small = code.op2(
    'f32x4.add',
    code.op2('f32x4.mul', s, code.op2('f32x4.add', halfSquare, series)),
    code.op2('f32x4.mul', k, code.f32(9.0580006145e-6)),
  )
  const mantissa = code.op2('f32x4.add', code.op2('f32x4.sub', small, halfSquare), f)
  const finite = code.op2('f32x4.add', mantissa, code.op2('f32x4.mul', k, code.f32(0.69313812256)))
  // 0 gives -Infinity, negative numbers give NaN, Infinity and NaN give themselves.
  const positive = code.select(code.op2('f32x4.lt', x, code.f32(Infinity)), finite, x)
  const zero = code.select(code.op2('f32x4.eq', x, code.f32(0)), code.f32(-Infinity), positive)
  return code.select(code.op2('f32x4.lt', x, code.f32(0)), code.f32(NaN), zero)
}

export function log1p(code: VectorCode, x: Val): Val {
  // Kahan: the rounding of 1 + x cancels in log(u) * x / (u - 1).
  const u = code.op2('f32x4.add', x, code.f32(1))
  const ratio = code.op2('f32x4.div', x, code.op2('f32x4.sub', u, code.f32(1)))
  const value = code.op2('f32x4.mul', log(code, u), ratio)
  const same = code.op2('v128.or', code.op2('f32x4.eq', u, code.f32(1)), code.op2('f32x4.eq', u, code.f32(Infinity)))
  return code.select(same, x, value)
}

export function tanh(code: VectorCode, x: Val): Val {
  // With t = e^(2|x|) - 1 it is t / (t + 2), which is 1 beyond |x| = 10.
  const magnitude = code.op1('f32x4.abs', x)
  const { n, r } = reduceExp(code, code.op2('f32x4.min', code.op2('f32x4.add', magnitude, magnitude), code.f32(20)))
  const scale = powerOfTwo(code, code.op1('i32x4.trunc_sat_f32x4_s', n))
  const t = code.op2('f32x4.add', code.op2('f32x4.mul', expm1Core(code, r), scale), code.op2('f32x4.sub', scale, code.f32(1)))
  return withSign(code, code.op2('f32x4.div', t, code.op2('f32x4.add', t, code.f32(2))), x)
}

export function sigmoid(code: VectorCode, x: Val): Val {
  return code.op2('f32x4.div', code.f32(1), code.op2('f32x4.add', exp(code, code.op1('f32x4.neg', x)), code.f32(1)))
}

/** Coefficients of the rational function x P(x^2) / Q(x^2) that Eigen and XLA use for erf. */
const ERF_P = [2.2905066e-4, 3.408291e-3, 5.0955694e-2, 1.8520832e-1, 1.1283791] as const
const ERF_Q = [-1.1791603e-7, 2.3547966e-5, 1.0179625e-3, 1.407047e-2, 1.1098505e-1, 4.9746925e-1, 1] as const

export function erf(code: VectorCode, x: Val): Val {
  const bounded = clamp(code, x, -3.8325069, 3.8325069)
  const square = code.op2('f32x4.mul', bounded, bounded)
  const ratio = code.op2('f32x4.div', code.op2('f32x4.mul', bounded, code.polynomial(square, ERF_P)), code.polynomial(square, ERF_Q))
  return clamp(code, ratio, -1, 1)
}
