// Bessel functions and their kin, the normal distribution, incomplete gamma functions, and functions of whole numbers.
import { Plain, each, erf, ints, sample, t } from '../plain.ts'
import { withoutGradients } from '../valueCases.ts'
import type { ValueCase, ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const wide = sample([7], 2, -9, 9)
const positive = sample([6], 3, 0.4, 9)
const inside = sample([5], 4, 0.05, 0.95)
const NOT_HALF = { notInHalf: 'the arguments are rounded where the function is steep', tolerance: 2e-5 }
const of = (fn: (v: number) => number, ...args: Plain[]): ValueCase[] => args.map((arg) => ({ args: [arg], gives: each(fn), ...NOT_HALF }))

/** The integral of fn from a to b by Simpson's rule. */
function integral(fn: (v: number) => number, a: number, b: number, pieces = 4000): number {
  const h = (b - a) / pieces
  let sum = fn(a) + fn(b)
  for (let i = 1; i < pieces; i++) sum += (i % 2 === 1 ? 4 : 2) * fn(a + i * h)
  return (sum * h) / 3
}
/** The power series of I and J (with alternating signs) of order n. */
function series(n: number, v: number, sign: number): number {
  let term = (v / 2) ** n
  let sum = term
  for (let k = 1; k < 80; k++) {
    term *= (sign * (v / 2) ** 2) / (k * (k + n))
    sum += term
  }
  return sum
}
const i0 = (v: number): number => series(0, v, 1)
const i1 = (v: number): number => series(1, v, 1)
const j0 = (v: number): number => series(0, v, -1)
const j1 = (v: number): number => series(1, v, -1)
/** The integral representation of the functions of the second kind. */
const y = (n: number, v: number): number =>
  integral((a) => Math.sin(v * Math.sin(a) - n * a), 0, Math.PI) / Math.PI -
  integral((s) => (Math.exp(n * s) + (-1) ** n * Math.exp(-n * s)) * Math.exp(-v * Math.sinh(s)), 0, 6, 20000) / Math.PI
const k = (n: number, v: number): number => integral((s) => Math.exp(-v * Math.cosh(s)) * Math.cosh(n * s), 0, 8, 20000)
/** K at 0, below it, and at infinity. */
const atEdges: ValueCase = { args: [t([0, -1, Infinity, NaN])], gives: t([Infinity, NaN, 0, NaN]) }
/** Airy's equation y'' = x y, from 0. */
function airy(v: number): number {
  const steps = 16000
  const h = v / steps
  let [at, value, slope] = [0, 0.3550280538878172, -0.2588194037928068]
  for (let i = 0; i < steps; i++) {
    const k1 = [slope, at * value] as const
    const k2 = [slope + (h / 2) * k1[1], (at + h / 2) * (value + (h / 2) * k1[0])] as const
    const k3 = [slope + (h / 2) * k2[1], (at + h / 2) * (value + (h / 2) * k2[0])] as const
    const k4 = [slope + h * k3[1], (at + h) * (value + h * k3[0])] as const
    value += (h / 6) * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
    slope += (h / 6) * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
    at += h
  }
  return value
}
const ndtr = (v: number): number => (1 + erf(v / Math.SQRT2)) / 2
const quantile = (p: number): number => {
  let [low, high] = [-9, 9]
  for (let i = 0; i < 200; i++) {
    const mid = (low + high) / 2
    if (ndtr(mid) < p) low = mid
    else high = mid
  }
  return low
}
const gammaUpTo = (a: number, v: number): number => integral((s) => (s === 0 ? 0 : 2 * s ** (2 * a - 1) * Math.exp(-s * s)), 0, Math.sqrt(v))
const gamma = (a: number): number => gammaUpTo(a, 60)
const zeta = (s: number, q: number): number => {
  let sum = 0
  for (let k = 0; k < 20000; k++) sum += (q + k) ** -s
  return sum + (q + 20000 - 0.5) ** (1 - s) / (s - 1)
}
const common = (a: number, b: number): number => (b === 0 ? Math.abs(a) : common(b, a % b))

const NONE = 'PyTorch has none'

export default {
  'torch.i0': [...of(i0, x, wide), { args: [t([0, Infinity, NaN])], gives: t([1, NaN, NaN]), noGradient: 'infinite' }],
  'torch.special.i0e': of((v) => i0(v) * Math.exp(-Math.abs(v)), x, wide),
  'torch.special.i1': of(i1, x, wide),
  'torch.special.i1e': of((v) => i1(v) * Math.exp(-Math.abs(v)), x, wide),
  'torch.special.bessel_j0': withoutGradients(NONE, of(j0, x, wide)),
  'torch.special.bessel_j1': withoutGradients(NONE, of(j1, x, wide)),
  'torch.special.bessel_y0': withoutGradients(
    NONE,
    of((v) => y(0, v), positive),
  ),
  'torch.special.bessel_y1': withoutGradients(
    NONE,
    of((v) => y(1, v), positive),
  ),
  'torch.special.modified_bessel_i0': withoutGradients(NONE, of(i0, x)),
  'torch.special.modified_bessel_i1': withoutGradients(NONE, of(i1, x)),
  'torch.special.modified_bessel_k0': withoutGradients(NONE, [...of((v) => k(0, v), positive), atEdges]),
  'torch.special.modified_bessel_k1': withoutGradients(NONE, [...of((v) => k(1, v), positive), atEdges]),
  'torch.special.scaled_modified_bessel_k0': withoutGradients(NONE, [...of((v) => k(0, v) * Math.exp(v), positive), atEdges]),
  'torch.special.scaled_modified_bessel_k1': withoutGradients(NONE, [...of((v) => k(1, v) * Math.exp(v), positive), atEdges]),
  'torch.special.airy_ai': withoutGradients(NONE, of(airy, x, sample([4], 5, -9, 2))),
  'torch.special.spherical_bessel_j0': of((v) => (v === 0 ? 1 : Math.sin(v) / v), x, t([0])),
  'torch.special.erfcx': of((v) => Math.exp(v * v) * (1 - erf(v)), x),
  'torch.special.ndtri': of(quantile, inside),
  'torch.special.ndtr': of(ndtr, x),
  'torch.special.log_ndtr': of((v) => Math.log(ndtr(v)), x),
  'torch.special.entr': [...of((v) => -v * Math.log(v), inside), { args: [t([0, -1, NaN])], gives: t([0, -Infinity, NaN]), noGradient: 'infinite' }],
  'torch.special.xlog1py': [
    { args: [x, sample([2, 3], 4, 0.1, 0.9)], gives: each((a, b) => a * Math.log1p(b)) },
    { args: [t([0, 0]), t([-1, NaN])], gives: t([0, NaN]), noGradient: 'infinite' },
  ],
  'torch.special.zeta': [{ args: [3, sample([4], 6, 0.5, 4)], gives: each(zeta), ...NOT_HALF }],
  'torch.igamma': [
    { args: [t([1, 1.5, 2, 3]), sample([4], 8, 0.4, 5)], gives: each((a, v) => gammaUpTo(a, v) / gamma(a)), ...NOT_HALF, constants: [0] },
  ],
  'torch.igammac': [
    { args: [t([1, 1.5, 2, 3]), sample([4], 8, 0.4, 5)], gives: each((a, v) => 1 - gammaUpTo(a, v) / gamma(a)), ...NOT_HALF, constants: [0] },
  ],
  'torch.gcd': [
    {
      args: [ints([[12], [-8]]), ints([18, 0])],
      gives: ints([
        [6, 12],
        [2, 8],
      ]),
    },
    { args: [ints([12, 9]), ints([8, 6])], gives: each((a, b) => common(a, b), 'int') },
  ],
  'torch.lcm': [{ args: [ints([4, 0, 3]), ints([6, 5, 7])], gives: ints([12, 0, 21]) }],
  'torch.float_power': [
    { args: [positive, 2], gives: (a: Plain) => a.map((v) => v * v, 'float64') },
    { args: [2, ints([1, 3])], gives: t([2, 8], 'float64') },
  ],
  'torch.mvlgamma': [
    {
      args: [sample([4], 9, 2, 5), 2],
      gives: each((v, p) => Math.log(gamma(v)) + Math.log(gamma(v - 0.5)) + (p / 4) * Math.log(Math.PI)),
      ...NOT_HALF,
    },
  ],
} satisfies ValueCases
