// The arithmetic of int64 on bigints that JavaScript's operators define differently.
import { clampedInt64 } from './numbers.ts'

/** Division that truncates. Division by zero does not fail: it saturates, and 0 / 0 is 0. */
export const bigQuotient = (a: bigint, b: bigint): bigint => clampedInt64(b === 0n ? (a === 0n ? 0n : a > 0n ? 2n ** 63n : -(2n ** 63n)) : a / b)

/** Python's `//`; division by zero as in {@link bigQuotient}. */
export const bigFloorDiv = (a: bigint, b: bigint): bigint => (isCutUp(a, b) ? a / b - 1n : bigQuotient(a, b))

/** Python's `%`; the remainder of a division by zero is the dividend. */
export const bigRemainder = (a: bigint, b: bigint): bigint => (b === 0n ? a : isCutUp(a, b) ? (a % b) + b : a % b)

/** Whether truncating a / b rounds up. */
const isCutUp = (a: bigint, b: bigint): boolean => b !== 0n && a % b !== 0n && a < 0n !== b < 0n

/** A power modulo 2^64. A negative exponent gives 0 unless the base is 1 or -1. */
export function bigPower(base: bigint, exponent: bigint): bigint {
  if (exponent < 0n) return base === 1n ? 1n : base === -1n ? (exponent % 2n === 0n ? 1n : -1n) : 0n
  let result = 1n
  let power = base
  for (let e = exponent; e > 0n; e >>= 1n) {
    if (e % 2n === 1n) result = BigInt.asIntN(64, result * power)
    power = BigInt.asIntN(64, power * power)
  }
  return result
}
