// Special functions of float64 that JavaScript's Math lacks: erfc, the inverse of erf, and the gamma family. Errors are below 1e-13 of the value, or of 1 near a zero.
import { erf } from './numbers.ts'

/** 1 - erf(x), without cancellation for large x. */
export function erfc(x: number): number {
  if (x < 2) return 1 - erf(x)
  if (x > 27) return 0
  let fraction = x
  for (let n = 120; n >= 1; n--) fraction = x + n / 2 / fraction
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * fraction)
}

/** The inverse of erf: a first guess by logarithms (Winitzki), and Newton steps (Halley's, of third order). */
export function erfinv(y: number): number {
  if (!(Math.abs(y) < 1)) return Math.abs(y) === 1 ? y * Infinity : NaN
  if (y === 0) return y
  const log = Math.log1p(-y * y)
  const half = 2 / (Math.PI * 0.147) + log / 2
  let x = Math.sign(y) * Math.sqrt(Math.sqrt(half * half - log / 0.147) - half)
  for (let i = 0; i < 4; i++) {
    // Near 1, erfc keeps the digits that erf loses.
    const error = Math.abs(y) > 0.5 ? Math.sign(y) * (1 - Math.abs(y) - erfc(Math.abs(x))) : erf(x) - y
    const step = error / ((2 / Math.sqrt(Math.PI)) * Math.exp(-x * x))
    x -= step / (1 + x * step)
  }
  return x
}

/** Lanczos' coefficients for g = 7. */
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012,
  9.9843695780195716e-6, 1.5056327351493116e-7,
]

/** log |gamma(x)|. */
export function lgamma(x: number): number {
  if (Number.isNaN(x)) return x
  if (!Number.isFinite(x) || (x <= 0 && Number.isInteger(x))) return Infinity
  if (x === 1 || x === 2) return 0
  if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - lgamma(1 - x)
  // Far from 0, Stirling's series is exact, and Lanczos' terms would overflow.
  if (x > 1e7) return x * (Math.log(x) - 1) - Math.log(x) / 2 + Math.log(2 * Math.PI) / 2
  const t = x + 6.5
  const sum = LANCZOS.reduce((total, c, i) => total + (i === 0 ? c : c / (x - 1 + i)), 0)
  return Math.log(2 * Math.PI) / 2 + (x - 0.5) * Math.log(t) - t + Math.log(sum)
}

/** Bernoulli's numbers B2, B4, … */
const BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]

/** The derivative of log gamma. */
export function digamma(x: number): number {
  if (x === 0) return Object.is(x, -0) ? Infinity : -Infinity
  if (x < 0) return Number.isInteger(x) || !Number.isFinite(x) ? NaN : digamma(1 - x) - Math.PI / Math.tan(Math.PI * x)
  let sum = 0
  let at = x
  for (; at < 10; at++) sum -= 1 / at
  const inverse = 1 / (at * at)
  let power = inverse
  let tail = 0
  BERNOULLI.forEach((b, k) => {
    tail += (b / (2 * k + 2)) * power
    power *= inverse
  })
  return at === Infinity ? Infinity : sum + Math.log(at) - 0.5 / at - tail
}

/** Derivative number n of digamma: (-1)^(n+1) n! zeta(n+1, x); NaN unless n is an integer of at least 0. */
export function polygamma(n: number, x: number): number {
  if (!Number.isInteger(n) || n < 0) return NaN
  if (n === 0) return digamma(x)
  const sign = n % 2 === 1 ? 1 : -1
  // 171! is beyond float64.
  if (n > 170) return sign * Infinity
  let factorial = 1
  for (let k = 2; k <= n; k++) factorial *= k
  return sign * factorial * hurwitzZeta(n + 1, x)
}

/** The zeta function as PyTorch has it: for s > 1 only, with the pole at s = 1, and for q of at most 0 as Cephes. */
export function zeta(s: number, q: number): number {
  if (s === 1) return Infinity
  if (s < 1) return NaN
  return hurwitzZeta(s, q)
}

/** The sum of (q + k)^-s over k >= 0, by Euler and Maclaurin's formula; infinite at the poles 0, -1, …, NaN for other q below 0 unless s is an integer. */
export function hurwitzZeta(s: number, q: number): number {
  if (Number.isNaN(s) || Number.isNaN(q) || q === -Infinity) return NaN
  if (q <= 0 && Number.isInteger(q)) return Infinity
  if (q < 0) {
    if (!Number.isInteger(s)) return NaN
    // The terms below 0 are those of the sum from 1 - q on, with the sign of (-1)^s; there may be too many to add them up.
    const fraction = q - Math.floor(q)
    const sign = s % 2 === 0 ? 1 : -1
    return hurwitzZeta(s, fraction) + sign * (hurwitzZeta(s, 1 - fraction) - hurwitzZeta(s, 1 - q))
  }
  let sum = 0
  let at = q
  for (; at < 12; at++) sum += at ** -s
  sum += at ** (1 - s) / (s - 1) + at ** -s / 2
  let term = s * at ** (-s - 1)
  BERNOULLI.forEach((b, k) => {
    const order = 2 * k + 2
    let factorial = 1
    for (let j = 2; j <= order; j++) factorial *= j
    sum += (b / factorial) * term
    term *= ((s + order - 1) * (s + order)) / (at * at)
  })
  return sum
}
