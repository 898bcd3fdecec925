// The arithmetic of each dtype on JavaScript numbers: rounding, conversion, and functions that JavaScript's Math lacks or defines differently.
// Compiled kernels must agree with these definitions, and the builders of the loop IR fold constants with them.
import { dtypeInfo } from './dtype.ts'
import type { DType } from './dtype.ts'

/** A value as the dtype represents it: float32 rounds, int32 wraps around, any bool but 0 is 1. */
export function rounded(dtype: DType, value: number): number {
  if (dtype === 'float32') return Math.fround(value)
  if (dtype === 'int32') return value | 0
  return dtype === 'bool' ? (value === 0 ? 0 : 1) : value
}

/** A value as int32: truncated towards zero; NaN becomes 0, and values out of range become the nearest in range. */
export function saturated(value: number): number {
  const { lowest, highest } = dtypeInfo.int32
  return (Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), lowest), highest)) | 0
}

/** A value of another dtype, as `cast` converts it: to int32 it is {@link saturated}, otherwise {@link rounded}. */
export const converted = (dtype: DType, value: number): number => (dtype === 'int32' ? saturated(value) : rounded(dtype, value))

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
