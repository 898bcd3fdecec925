// The arithmetic of each dtype on JavaScript values: rounding, conversion, and functions that JavaScript's Math lacks or defines differently.
// Values of int64 are bigints, all others are numbers. Compiled kernels must agree with these definitions, and the builders of the loop IR fold constants
// with them.
import { dtypeInfo, realDType } from './dtype.ts'
import type { DType, ElementValue, RealDType } from './dtype.ts'
import { roundToBfloat16, roundToFloat16 } from './halfPrecision.ts'

const round: Readonly<Record<Exclude<RealDType, 'int64'>, (value: number) => number>> = {
  bool: (value) => (value === 0 ? 0 : 1),
  uint8: (value) => value & 255,
  int8: (value) => (value << 24) >> 24,
  int16: (value) => (value << 16) >> 16,
  int32: (value) => value | 0,
  float16: roundToFloat16,
  bfloat16: roundToBfloat16,
  float32: Math.fround,
  float64: (value) => value,
}

/** A value as the dtype represents it: floats round, integers wrap around, any bool but 0 is 1. */
export function rounded(dtype: Exclude<DType, 'int64'>, value: number): number
export function rounded(dtype: DType, value: ElementValue): ElementValue
export function rounded(dtype: DType, value: ElementValue): ElementValue {
  if (dtype === 'int64') return typeof value === 'bigint' ? BigInt.asIntN(64, value) : saturatedInt64(value)
  return round[realDType(dtype)](typeof value === 'bigint' ? numberOf(dtype, value) : value)
}

/** A bigint as a number that rounds to the same value of the dtype: the low bits for integers, the nearest number otherwise. */
function numberOf(dtype: DType, value: bigint): number {
  if (dtypeInfo[dtype].kind === 'integer') return Number(BigInt.asIntN(32, value))
  const magnitude = value < 0n ? -value : value
  // Beyond 53 bits Number() rounds, and rounding again to float32 could then go the wrong way: a set last bit stands for those that are cut off.
  if (dtype === 'float64' || magnitude < 2n ** 53n) return Number(value)
  const kept = (magnitude >> 12n) | (magnitude % 4096n === 0n ? 0n : 1n)
  return (value < 0n ? -4096 : 4096) * Number(kept)
}

/** A number as int32: truncated towards zero; NaN becomes 0, and values out of range become the nearest in range. */
export function saturated(value: number): number {
  return (Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), -2147483648), 2147483647)) | 0
}

/** A bigint as int64: values out of range become the nearest in range. */
export const clampedInt64 = (value: bigint): bigint => (value >= 2n ** 63n ? 2n ** 63n - 1n : value < -(2n ** 63n) ? -(2n ** 63n) : value)

/** A number as int64, like {@link saturated}. */
function saturatedInt64(value: number): bigint {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 0n : clampedInt64(value < 0 ? -(2n ** 63n) : 2n ** 63n)
  return clampedInt64(BigInt(Math.trunc(value)))
}

/**
 * A value of another dtype, as `cast` converts it. A float becomes an int32 or int64 by truncation and saturation; the smaller integers then keep its low bits.
 * (PyTorch leaves open what becomes of a float out of range.)
 */
export function converted(dtype: DType, value: ElementValue): ElementValue {
  return dtypeInfo[dtype].compute === 'int32' && typeof value === 'number' ? rounded(dtype, saturated(value)) : rounded(dtype, value)
}

/** The nearest integer; halves go to the even one. */
export function nearest(x: number): number {
  const floor = Math.floor(x)
  const rest = x - floor
  if (rest !== 0.5) return rest < 0.5 ? floor : Math.ceil(x)
  return floor % 2 === 0 ? floor : Math.ceil(x)
}

/** erf: a series of positive terms or, far out, the continued fraction of erfc. The error is about 1e-15. */
export function erf(x: number): number {
  const a = Math.abs(x)
  if (!(a < 6)) return Number.isNaN(x) ? x : Math.sign(x)
  if (a < 3) {
    let term = x
    let sum = x
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= (2 * x * x) / (2 * n + 1)
      sum += term
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum
  }
  let fraction = a
  for (let n = 60; n >= 1; n--) fraction = a + n / 2 / fraction
  return Math.sign(x) * (1 - Math.exp(-a * a) / (Math.sqrt(Math.PI) * fraction))
}

/** 1 / (1 + e^-x). */
export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** Python's `%` on floats: the result has the sign of the divisor. */
export function remainder(a: number, b: number): number {
  const rest = a % b
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest
}

/** Python's `//` on floats; dividing by zero gives what `/` gives. */
export function floorDiv(a: number, b: number): number {
  if (b === 0) return a / b
  const rest = a % b
  let quotient = (a - rest) / b
  if (rest !== 0 && rest < 0 !== b < 0) quotient -= 1
  const whole = Math.floor(quotient)
  return quotient - whole > 0.5 ? whole + 1 : whole
}

/** C's pow. JavaScript's differs at a base of ±1 with an infinite or NaN exponent. */
export const pow = (a: number, b: number): number => (a === 1 || (a === -1 && !Number.isFinite(b) && !Number.isNaN(b)) ? 1 : a ** b)

/** Python's `//` on int32. Division by zero does not fail: its result is {@link saturated}. */
export const integerFloorDiv = (a: number, b: number): number => saturated(Math.floor(a / b))

/** Python's `%` on int32; the remainder of a division by zero is the dividend. The quotient by -1 may exceed int32, but its remainder is always 0. */
export const integerRemainderOf = (a: number, b: number): number => (b === -1 ? 0 : a - Math.imul(integerFloorDiv(a, b), b))

/** A power of int32 values, modulo 2^32. A negative exponent gives 0 unless the base is 1 or -1. */
export function integerPower(base: number, exponent: number): number {
  if (exponent < 0) return base === 1 ? 1 : base === -1 ? (exponent % 2 === 0 ? 1 : -1) : 0
  let result = 1
  let power = base
  for (let e = exponent; e > 0; e = Math.floor(e / 2)) {
    if (e % 2 === 1) result = Math.imul(result, power)
    power = Math.imul(power, power)
  }
  return result
}
