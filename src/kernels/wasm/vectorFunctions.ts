// Functions of whole vectors that are too long to inline at each use: sin and cos of long float32 angles, float32 functions computed in float64, integer powers.
import { isLong, sineOf } from './float32Math.ts'
import type { Angle } from './float32Math.ts'
import type { LaneCode } from './laneCode.ts'
import type { HostFunction, VectorFunction } from './moduleFunctions.ts'
import type { Val, VectorCode } from './vectorCode.ts'

const PI_OVER_2 = Math.PI / 2

/**
 * sin or cos of float32 for angles that are too long for the inline code, whose result is the second operand. `host` is the same function of float64; it takes over beyond 1e5, where
 * reducing the angle is no longer accurate enough.
 */
export const sineOfLong = (name: 'sin' | 'cos', host: HostFunction): VectorFunction => ({
  name,
  arity: 2,
  host,
  write: (code, x, short, functions) => writeLong(code, x, short, name === 'sin' ? 0 : 1, functions.indexOf(host)),
})

/** float32 pow with C's rules. */
export const power: VectorFunction = {
  name: 'pow',
  arity: 2,
  host: null,
  write: (code, x, y) => powSpecial(code, x, y, viaFloat64(code, x, y, powHalf)),
}

/** Python's `%` of float32. */
export const floatRemainder: VectorFunction = {
  name: 'remainder',
  arity: 2,
  host: null,
  write: (code, x, y) => viaFloat64(code, x, y, remainderHalf),
}

/** Python's `//` of float32. */
export const floatFloorDiv: VectorFunction = {
  name: 'floorDiv',
  arity: 2,
  host: null,
  write: (code, x, y) => viaFloat64(code, x, y, floorDivHalf),
}

/** Integer powers by squaring, modulo 2^32; a negative exponent gives 0 unless the base is 1 or -1. */
export const integerPowers: VectorFunction = { name: 'powInt', arity: 2, host: null, write: (code, x, y) => writeIntegerPower(code, 'i32x4', x, y) }

/** The same for int64, modulo 2^64. */
export const integerPowers64: VectorFunction = {
  name: 'powInt64',
  arity: 2,
  host: null,
  write: (code, x, y) => writeIntegerPower(code, 'i64x2', x, y),
}

/** The angle is reduced in float64. */
function reduced(code: VectorCode, x: Val): Angle<Val> {
  const reduce = (half: Val): { n: Val; r: Val } => {
    const wide = code.op1('f64x2.promote_low_f32x4', half)
    const n = code.op1('f64x2.nearest', code.op2('f64x2.mul', wide, code.f64(1 / PI_OVER_2)))
    const r = code.op2(
      'f64x2.sub',
      code.op2('f64x2.sub', wide, code.op2('f64x2.mul', n, code.f64(PI_OVER_2))),
      code.op2('f64x2.mul', n, code.f64(6.123233995736766e-17)),
    )
    return { n: code.op1('i32x4.trunc_sat_f64x2_s_zero', n), r: code.op1('f32x4.demote_f64x2_zero', r) }
  }
  const low = reduce(x)
  const high = reduce(code.shuffle32(x, x, [2, 3, 2, 3]))
  const join = (a: Val, b: Val): Val => code.shuffle32(a, b, [0, 1, 4, 5])
  return { turns: join(low.n, high.n), rest: join(low.r, high.r) }
}

/** Lanes with shorter angles keep their values, so that no bit depends on a neighbour. `far` is the index of the function for the longest ones. */
function writeLong(code: VectorCode, x: Val, short: Val, quarterTurns: 0 | 1, far: number): Val {
  const { f } = code
  const [result] = code.copy(code.select(isLong(code, x), sineOf(code, reduced(code, x), quarterTurns), short))
  const [isFar] = code.op2('f32x4.gt', code.op1('f32x4.abs', x), code.f32(1e5))
  for (let lane = 0; lane < 4; lane++) {
    f.get(isFar)
    f.lane('i32x4.extract_lane', lane)
    f.if(() => {
      f.get(result)
      f.get(x[0])
      f.lane('f32x4.extract_lane', lane)
      f.op('f64.promote_f32')
      f.call(far)
      f.op('f32.demote_f64')
      f.lane('f32x4.replace_lane', lane)
      f.set(result)
    })
  }
  return [result]
}

/** Computes a float32 function of two operands in float64, two lanes at a time. */
function viaFloat64(code: VectorCode, x: Val, y: Val, half: (code: VectorCode, x: Val, y: Val) => Val): Val {
  const upper = (a: Val): Val => code.op1('f64x2.promote_low_f32x4', code.shuffle32(a, a, [2, 3, 2, 3]))
  const low = half(code, code.op1('f64x2.promote_low_f32x4', x), code.op1('f64x2.promote_low_f32x4', y))
  const high = half(code, upper(x), upper(y))
  return code.shuffle32(code.op1('f32x4.demote_f64x2_zero', low), code.op1('f32x4.demote_f64x2_zero', high), [0, 1, 4, 5])
}

/** floor(x / y); for an infinite y, 0 or -1. Exact for quotients below 2^29. */
function floorQuotient(code: VectorCode, x: Val, y: Val): Val {
  const quotient = code.op1('f64x2.floor', code.op2('f64x2.div', x, y))
  const zero = code.f64(0)
  const opposite = code.op2('v128.xor', code.op2('f64x2.lt', x, zero), code.op2('f64x2.lt', y, zero))
  const below = code.op2('v128.and', code.op2('v128.and', opposite, code.op2('f64x2.ne', x, zero)), code.f64(-1))
  const infinite = code.op2(
    'v128.and',
    code.op2('f64x2.eq', code.op1('f64x2.abs', y), code.f64(Infinity)),
    code.op2('f64x2.lt', code.op1('f64x2.abs', x), code.f64(Infinity)),
  )
  return code.select(infinite, below, quotient)
}

function floorDivHalf(code: VectorCode, x: Val, y: Val): Val {
  const infinite = code.op2('f64x2.eq', code.op1('f64x2.abs', x), code.f64(Infinity))
  // Python's definition uses fmod, which is NaN for an infinite dividend.
  const divided = code.op2('f64x2.ne', y, code.f64(0))
  return code.select(code.op2('v128.and', infinite, divided), code.f64(NaN), floorQuotient(code, x, y))
}

function remainderHalf(code: VectorCode, x: Val, y: Val): Val {
  const quotient = floorQuotient(code, x, y)
  const rest = code.op2('f64x2.sub', x, code.op2('f64x2.mul', quotient, y))
  // Where the quotient is 0 the remainder is x itself (-0 too); where it is -1 and y infinite, the remainder is y.
  const infinite = code.op2(
    'v128.and',
    code.op2('f64x2.eq', code.op1('f64x2.abs', y), code.f64(Infinity)),
    code.op2('f64x2.eq', quotient, code.f64(-1)),
  )
  return code.select(code.op2('f64x2.eq', quotient, code.f64(0)), x, code.select(infinite, y, rest))
}

/** c[0] * x^n + … + c[n] of float64, by Horner's rule; coefficients of the highest power first. */
function polynomial64(code: VectorCode, x: Val, [first, ...rest]: readonly [number, ...number[]]): Val {
  return rest.reduce((sum, c) => code.op2('f64x2.add', code.op2('f64x2.mul', sum, x), code.f64(c)), code.f64(first))
}

/** |x|^y as exp(y * log |x|), with a relative error of about 1e-11. */
function powHalf(code: VectorCode, x: Val, y: Val): Val {
  const magnitude = code.op1('f64x2.abs', x)
  // |x| = 2^k * m, m in [sqrt(1/2), sqrt(2)): every float32, subnormals too, is a normal float64.
  const bits = code.op2('i64x2.sub', magnitude, code.f64(Math.SQRT1_2))
  const k64 = code.shift('i64x2.shr_s', bits, 52)
  const k = code.op1('f64x2.convert_low_i32x4_s', code.shuffle32(k64, k64, [0, 2, 0, 2]))
  const m = code.op2('i64x2.sub', magnitude, code.shift('i64x2.shl', k64, 52))
  const s = code.op2('f64x2.div', code.op2('f64x2.sub', m, code.f64(1)), code.op2('f64x2.add', m, code.f64(1)))
  const z = code.op2('f64x2.mul', s, s)
  const series = polynomial64(code, z, [2 / 15, 2 / 13, 2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3, 2])
  const log = code.op2('f64x2.add', code.op2('f64x2.mul', s, series), code.op2('f64x2.mul', k, code.f64(Math.LN2)))
  const zeroed = code.select(code.op2('f64x2.eq', magnitude, code.f64(0)), code.f64(-Infinity), log)
  const full = code.select(code.op2('f64x2.lt', magnitude, code.f64(Infinity)), zeroed, magnitude)
  const t = code.op2('f64x2.min', code.op2('f64x2.max', code.op2('f64x2.mul', full, y), code.f64(-160)), code.f64(100))
  const n = code.op1('f64x2.nearest', code.op2('f64x2.mul', t, code.f64(Math.LOG2E)))
  const r = code.op2('f64x2.sub', t, code.op2('f64x2.mul', n, code.f64(Math.LN2)))
  const p = polynomial64(code, r, [1 / 362880, 1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1, 1])
  const scale = code.shift(
    'i64x2.shl',
    code.op1('i64x2.extend_low_i32x4_s', code.op2('i32x4.add', code.op1('i32x4.trunc_sat_f64x2_s_zero', n), code.i32(1023))),
    52,
  )
  const value = code.op2('f64x2.mul', p, scale)
  return code.select(code.op2('f64x2.eq', t, t), value, t)
}

/** Applies C's rules for signs, 0, 1 and NaN to the magnitude. */
export function powSpecial<V>(code: LaneCode<V>, x: V, y: V, magnitude: V): V {
  const [zero, one] = [code.f32(0), code.f32(1)]
  const whole = code.op2('f32x4.eq', code.op1('f32x4.trunc', y), y)
  const small = code.op2('f32x4.lt', code.op1('f32x4.abs', y), code.f32(16777216))
  const lowBit = code.op2('i32x4.ne', code.op2('v128.and', code.op1('i32x4.trunc_sat_f32x4_s', y), code.i32(1)), code.i32(0))
  const odd = code.op2('v128.and', code.op2('v128.and', whole, small), lowBit)
  const sign = code.op2('v128.and', code.op2('v128.and', x, odd), code.i32(-0x80000000))
  const unit = code.op2('f32x4.eq', code.op1('f32x4.abs', x), one)
  const bounded = code.select(code.op2('v128.and', unit, code.op2('f32x4.eq', y, y)), one, magnitude)
  const signed = code.op2('v128.xor', bounded, sign)
  const negative = code.op2('v128.and', code.op2('f32x4.lt', x, zero), code.op2('f32x4.gt', x, code.f32(-Infinity)))
  const undefined_ = code.op2('v128.andnot', negative, whole)
  const value = code.select(undefined_, code.f32(NaN), signed)
  return code.select(code.op2('v128.or', code.op2('f32x4.eq', y, zero), code.op2('f32x4.eq', x, one)), one, value)
}

function writeIntegerPower(code: VectorCode, type: 'i32x4' | 'i64x2', x: Val, y: Val): Val {
  const { f } = code
  const number = (value: number): Val => (type === 'i32x4' ? code.i32(value) : code.i64(BigInt(value)))
  const [base, exponent, result] = [code.temp(), code.temp(), code.temp()]
  const negative = code.op2(`${type}.lt_s`, y, number(0))
  const unit = code.op2('v128.or', code.op2(`${type}.eq`, x, number(1)), code.op2(`${type}.eq`, x, number(-1)))
  const start = code.select(code.op2('v128.andnot', negative, unit), number(0), number(1))
  const step = (target: number, value: Val): void => {
    f.get(value[0])
    f.set(target)
  }
  step(base, x)
  step(exponent, code.op1(`${type}.abs`, y))
  step(result, start)
  f.block((end) => {
    f.loop((again) => {
      f.get(exponent)
      f.op('v128.any_true')
      f.op('i32.eqz')
      f.brIf(end)
      const bit = code.op2(`${type}.ne`, code.op2('v128.and', [exponent], number(1)), number(0))
      step(result, code.op2(`${type}.mul`, [result], code.select(bit, [base], number(1))))
      step(base, code.op2(`${type}.mul`, [base], [base]))
      step(exponent, code.shift(`${type}.shr_u`, [exponent], 1))
      f.br(again)
    })
  })
  return [result]
}
