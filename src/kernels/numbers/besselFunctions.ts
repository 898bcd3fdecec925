// Bessel and modified Bessel functions, Airy's function, and the incomplete gamma functions, in float64. JavaScript's Math has none of them. Integrals of periodic
// functions, and those over the whole line, converge exponentially under the trapezoidal rule.
import { erfc, lgamma } from './specialFunctions.ts'

/** The mean of `fn` over the half circle from 0 to pi. */
function circleMean(points: number, fn: (angle: number) => number): number {
  let sum = (fn(0) + fn(Math.PI)) / 2
  for (let k = 1; k < points; k++) sum += fn((k * Math.PI) / points)
  return sum / points
}

/** Where asymptotic series take over: their error there is e^-60. */
const FAR = 30

/** The terms a_k(n) / x^k of Hankel's series, up to the smallest one. */
function hankelTerms(order: number, x: number): readonly number[] {
  const terms = [1]
  for (let k = 1; k < 60; k++) {
    const next = ((terms[k - 1] ?? 0) * (4 * order * order - (2 * k - 1) ** 2)) / (k * 8 * x)
    if (Math.abs(next) < 1e-17 || Math.abs(next) > Math.abs(terms[k - 1] ?? 0)) break
    terms.push(next)
  }
  return terms
}

/** e^-|x| times the modified Bessel function I of order 0 or 1. */
export function scaledBesselI(order: 0 | 1, x: number): number {
  const size = Math.abs(x)
  const sign = order === 1 && x < 0 ? -1 : 1
  if (Number.isNaN(x)) return NaN
  if (size === Infinity) return 0
  if (size > FAR)
    return (sign * hankelTerms(order, size).reduce((sum, term, k) => sum + (k % 2 === 0 ? term : -term), 0)) / Math.sqrt(2 * Math.PI * size)
  return sign * circleMean(60, (angle) => Math.exp(size * (Math.cos(angle) - 1)) * Math.cos(order * angle))
}

/** The modified Bessel function I of order 0 or 1. At infinity, order 0 is NaN as in PyTorch, which divides infinity by infinity. */
export const besselI = (order: 0 | 1, x: number): number =>
  Math.abs(x) === Infinity ? (order === 1 ? x : NaN) : scaledBesselI(order, x) * Math.exp(Math.abs(x))

/** cos(x - shift) P - sin(x - shift) Q, or with sine and cosine for the second kind, of Hankel's expansions. */
function farBessel(order: number, x: number, second: boolean): number {
  const angle = x - (order * Math.PI) / 2 - Math.PI / 4
  let [p, q] = [0, 0]
  hankelTerms(order, x).forEach((term, k) => {
    const signed = Math.floor(k / 2) % 2 === 0 ? term : -term
    if (k % 2 === 0) p += signed
    else q += signed
  })
  const [c, s] = [Math.cos(angle), Math.sin(angle)]
  return Math.sqrt(2 / (Math.PI * x)) * (second ? s * p + c * q : c * p - s * q)
}

/** The Bessel function of the first kind, of an integer order. */
export function besselJ(order: number, x: number): number {
  if (Number.isNaN(x)) return NaN
  if (Math.abs(x) === Infinity) return 0
  if (x < 0) return (order % 2 === 0 ? 1 : -1) * besselJ(order, -x)
  if (x > FAR) return farBessel(order, x, false)
  return circleMean(64 + order, (angle) => Math.cos(order * angle - x * Math.sin(angle)))
}

const EULER = 0.5772156649015329

/** The Bessel function of the second kind, of order 0 or 1: Neumann's expansion, or Hankel's far from 0. */
export function besselY(order: 0 | 1, x: number): number {
  if (Number.isNaN(x) || x < 0) return NaN
  if (x === 0) return -Infinity
  if (x === Infinity) return 0
  if (x > FAR) return farBessel(order, x, true)
  let sum = 0
  for (let k = 1; k <= 40; k++) sum += ((k % 2 === 0 ? 1 : -1) * (order + 2 * k) * besselJ(order + 2 * k, x)) / (k * (order + k))
  const log = (2 / Math.PI) * (Math.log(x / 2) + EULER - order) * besselJ(order, x)
  return log - (2 / Math.PI) * sum - (order === 1 ? (2 / (Math.PI * x)) * besselJ(0, x) : 0)
}

/** e^x times the integral of e^(-x cosh t) cosh(order t) over t > 0, for positive x: e^x K(x). */
function integralK(order: number, x: number): number {
  const step = 0.0625
  let sum = 0.5
  for (let k = 1; k < 12000; k++) {
    const t = k * step
    const exponent = x * (Math.cosh(t) - 1)
    if (exponent > 745) break
    sum += Math.exp(-exponent) * Math.cosh(order * t)
  }
  return sum * step
}

/** e^x times the modified Bessel function K of order 0 or 1. */
export function scaledBesselK(order: 0 | 1, x: number): number {
  if (Number.isNaN(x) || x < 0) return NaN
  return x === 0 ? Infinity : x === Infinity ? 0 : integralK(order, x)
}

/** The modified Bessel function K of order 0 or 1. */
export const besselK = (order: 0 | 1, x: number): number => (x === Infinity ? 0 : Math.exp(-x) * scaledBesselK(order, x))

/** Airy's function Ai: its power series near 0, K of order 1/3 to the right, and the asymptotic series to the left. */
export function airyAi(x: number): number {
  if (Number.isNaN(x)) return NaN
  if (Math.abs(x) === Infinity) return 0
  const zeta = (2 / 3) * Math.abs(x) ** 1.5
  if (x > 2) return (Math.sqrt(x / 3) / Math.PI) * Math.exp(-zeta) * integralK(1 / 3, zeta)
  if (x < -7) {
    let [p, q, term] = [0, 0, 1]
    for (let k = 0; k < 40; k++) {
      if (k > 0) {
        const next = (term * (6 * k - 5) * (6 * k - 3) * (6 * k - 1)) / (216 * k * (2 * k - 1) * zeta)
        if (Math.abs(next) > Math.abs(term) || Math.abs(next) < 1e-17) break
        term = next
      }
      const signed = Math.floor(k / 2) % 2 === 0 ? term : -term
      if (k % 2 === 0) p += signed
      else q += signed
    }
    const angle = zeta + Math.PI / 4
    return (Math.sin(angle) * p - Math.cos(angle) * q) / (Math.sqrt(Math.PI) * (-x) ** 0.25)
  }
  let [f, g, sum] = [0.3550280538878172, -0.2588194037928068 * x, 0]
  for (let k = 1; k < 200; k++) {
    sum += f + g
    f *= x ** 3 / ((3 * k - 1) * 3 * k)
    g *= x ** 3 / (3 * k * (3 * k + 1))
    if (Math.abs(f) + Math.abs(g) < 1e-20) break
  }
  return sum
}

/** The lower regularized incomplete gamma function P(a, x), or with `upper` Q(a, x) = 1 - P(a, x): a series, or a continued fraction. */
export function incompleteGamma(a: number, x: number, upper: boolean): number {
  if (Number.isNaN(a) || Number.isNaN(x) || a < 0 || x < 0 || (a === 0 && x === 0) || (a === Infinity && x === Infinity)) return NaN
  if (a === 0 || x === Infinity) return upper ? 0 : 1
  if (x === 0 || a === Infinity) return upper ? 1 : 0
  const front = Math.exp(a * Math.log(x) - x - lgamma(a))
  if (x < a + 1) {
    let [term, sum] = [1 / a, 1 / a]
    for (let k = 1; k < 5000 && term > sum * 1e-17; k++) {
      term *= x / (a + k)
      sum += term
    }
    return upper ? 1 - sum * front : sum * front
  }
  // Lentz's method.
  let b = x + 1 - a
  let c = 1e300
  let d = 1 / b
  let fraction = d
  for (let k = 1; k < 5000; k++) {
    const factor = -k * (k - a)
    b += 2
    d = 1 / (factor * d + b)
    c = b + factor / c
    fraction *= d * c
    if (Math.abs(d * c - 1) < 1e-16) break
  }
  return upper ? front * fraction : 1 - front * fraction
}

/** e^(x^2) erfc(x), which does not underflow for large x. */
export function erfcx(x: number): number {
  if (x < 2) return Math.exp(x * x) * erfc(x)
  let fraction = x
  for (let n = 120; n >= 1; n--) fraction = x + n / 2 / fraction
  return 1 / (Math.sqrt(Math.PI) * fraction)
}

/** The number below which a standard normal variable lies with probability p: Halley's steps. */
export function ndtri(p: number): number {
  if (!(p > 0 && p < 1)) return p === 0 ? -Infinity : p === 1 ? Infinity : NaN
  if (p > 0.5) return -ndtri(1 - p)
  if (p === 0.5) return 0
  const t = Math.sqrt(-2 * Math.log(p))
  let x = -(t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t ** 3))
  for (let i = 0; i < 4; i++) {
    const error = (0.5 * erfc(-x / Math.SQRT2) - p) * Math.sqrt(2 * Math.PI) * Math.exp((x * x) / 2)
    x -= error / (1 + (x * error) / 2)
  }
  return x
}
