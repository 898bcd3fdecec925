// Exact numbers: fractions of big integers, with plus and minus infinity. Sizes multiply up fast (`s0**20` with s0 = 1000), and a rounded coefficient would be a wrong one.
import { checkArgument } from '../protocol/index.ts'

/** A fraction in lowest terms; the denominator is positive, or 0 for an infinity (`p` is then 1 or -1). */
export interface Rational {
  readonly p: bigint
  readonly q: bigint
}

const abs = (value: bigint): bigint => (value < 0n ? -value : value)

export function gcdOf(a: bigint, b: bigint): bigint {
  let [x, y] = [abs(a), abs(b)]
  while (y > 0n) [x, y] = [y, x % y]
  return x
}

/** `p / q` in lowest terms. `q` must not be 0, except in the infinities below. */
export function fraction(p: bigint, q: bigint): Rational {
  const common = gcdOf(p, q)
  if (common === 1n && q > 0n) return { p, q }
  const sign = q < 0n ? -1n : 1n
  return { p: (sign * p) / common, q: (sign * q) / common }
}

export const whole = (p: bigint): Rational => ({ p, q: 1n })
export const ZERO: Rational = whole(0n)
export const ONE: Rational = whole(1n)
export const INFINITE: Rational = { p: 1n, q: 0n }
export const MINUS_INFINITE: Rational = { p: -1n, q: 0n }

/** A JavaScript number as an exact number: an integer, or an infinity. */
export function exactly(value: number): Rational {
  if (value === Infinity) return INFINITE
  if (value === -Infinity) return MINUS_INFINITE
  checkArgument(Number.isInteger(value), 'exactly', 'value', 'an integer or an infinity', value)
  return whole(BigInt(value))
}

export const isWhole = (a: Rational): boolean => a.q === 1n
export const isFinite = (a: Rational): boolean => a.q !== 0n
export const isZero = (a: Rational): boolean => a.p === 0n
export const signOf = (a: Rational): number => (a.p > 0n ? 1 : a.p < 0n ? -1 : 0)
export const sameRational = (a: Rational, b: Rational): boolean => a.p === b.p && a.q === b.q

/** The sum; null for the sum of opposite infinities. */
export function sumOf(a: Rational, b: Rational): Rational | null {
  if (a.q !== 0n && b.q !== 0n) return fraction(a.p * b.q + b.p * a.q, a.q * b.q)
  if (a.q === 0n && b.q === 0n && a.p !== b.p) return null
  return a.q === 0n ? a : b
}

/** The product. Zero times an infinity is 0, as the products of the ends of ranges need it. */
export function productOf(a: Rational, b: Rational): Rational {
  if (a.p === 0n || b.p === 0n) return ZERO
  if (a.q !== 0n && b.q !== 0n) return fraction(a.p * b.p, a.q * b.q)
  return a.p > 0n === b.p > 0n ? INFINITE : MINUS_INFINITE
}

export const negated = (a: Rational): Rational => ({ p: -a.p, q: a.q })

/** `a / b` for a `b` that is not 0; a finite number over an infinity is 0. */
export const quotientOf = (a: Rational, b: Rational): Rational =>
  b.q === 0n ? ZERO : productOf(a, b.p < 0n ? { p: -b.q, q: -b.p } : { p: b.q, q: b.p })

export function compareRationals(a: Rational, b: Rational): number {
  if (a.q === 0n || b.q === 0n) {
    const [x, y] = [a.q === 0n ? Number(a.p) : 0, b.q === 0n ? Number(b.p) : 0]
    return Math.sign(x - y)
  }
  const [x, y] = [a.p * b.q, b.p * a.q]
  return x < y ? -1 : x > y ? 1 : 0
}

export const smaller = (a: Rational, b: Rational): Rational => (compareRationals(a, b) <= 0 ? a : b)
export const larger = (a: Rational, b: Rational): Rational => (compareRationals(a, b) >= 0 ? a : b)

/** The largest integer that is at most `p / q`, for integers of any sign. */
export function floorDivide(p: bigint, q: bigint): bigint {
  const quotient = p / q
  return p % q !== 0n && p < 0n !== q < 0n ? quotient - 1n : quotient
}

/** Python's remainder: it has the sign of `q`. */
export const modulo = (p: bigint, q: bigint): bigint => p - floorDivide(p, q) * q

export const floorOf = (a: Rational): Rational => (isFinite(a) ? whole(floorDivide(a.p, a.q)) : a)
export const ceilOf = (a: Rational): Rational => (isFinite(a) ? whole(-floorDivide(-a.p, a.q)) : a)

/** The nearest double. */
export const toNumber = (a: Rational): number => (a.q === 0n ? Number(a.p) * Infinity : a.q === 1n ? Number(a.p) : Number(a.p) / Number(a.q))

/** `7`, `-1/2`, `int_oo`. */
export const rationalText = (a: Rational): string => (a.q === 0n ? (a.p > 0n ? 'int_oo' : '-int_oo') : a.q === 1n ? `${a.p}` : `${a.p}/${a.q}`)
