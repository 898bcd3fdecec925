// Orthogonal polynomials, by their explicit sums and by trigonometry: the library computes them by recurrences.
import { each, ints, sample, t } from '../plain.ts'
import { withoutGradients } from '../valueCases.ts'
import type { ValueCase, ValueCases } from '../valueCases.ts'

const inside = sample([3, 1], 1, -0.95, 0.95)
const outside = sample([2, 1], 2, 1.1, 2.5)
const degrees = t([0, 1, 2, 3, 5, 8, 12])
const NOT_HALF = { notInHalf: 'a polynomial of high degree is steep', tolerance: 4e-5 }

const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1))
const choose = (n: number, k: number): number => factorial(n) / (factorial(k) * factorial(n - k))
const sum = (n: number, term: (k: number) => number): number => Array.from({ length: n + 1 }, (_, k) => term(k)).reduce((a, b) => a + b, 0)

type Fn = (x: number, n: number) => number
type AtAngle = (n: number, angle: number) => number

/** By the angle whose cosine is x; beyond 1 by the number whose hyperbolic cosine is x, and below -1 by the values of `mirror` at -x. */
const byAngle =
  (circular: AtAngle, hyperbolic: AtAngle, mirror: AtAngle = hyperbolic): Fn =>
  (x, n) =>
    Math.abs(x) < 1 ? circular(n, Math.acos(x)) : x > 0 ? hyperbolic(n, Math.acosh(x)) : (-1) ** n * mirror(n, Math.acosh(-x))

const coshRatio: AtAngle = (n, s) => Math.cosh((n + 0.5) * s) / Math.cosh(s / 2)
const sinhRatio: AtAngle = (n, s) => Math.sinh((n + 0.5) * s) / Math.sinh(s / 2)
const T = byAngle(
  (n, a) => Math.cos(n * a),
  (n, s) => Math.cosh(n * s),
)
const U = byAngle(
  (n, a) => Math.sin((n + 1) * a) / Math.sin(a),
  (n, s) => Math.sinh((n + 1) * s) / Math.sinh(s),
)
const V = byAngle((n, a) => Math.cos((n + 0.5) * a) / Math.cos(a / 2), coshRatio, sinhRatio)
const W = byAngle((n, a) => Math.sin((n + 0.5) * a) / Math.sin(a / 2), sinhRatio, coshRatio)
const shifted =
  (fn: Fn): Fn =>
  (x, n) =>
    fn(2 * x - 1, n)

const H: Fn = (x, n) => factorial(n) * sum(Math.floor(n / 2), (m) => ((-1) ** m * (2 * x) ** (n - 2 * m)) / (factorial(m) * factorial(n - 2 * m)))
const He: Fn = (x, n) => 2 ** (-n / 2) * H(x / Math.SQRT2, n)
const L: Fn = (x, n) => sum(n, (k) => (choose(n, k) * (-x) ** k) / factorial(k))
const P: Fn = (x, n) => 2 ** -n * sum(Math.floor(n / 2), (k) => (-1) ** k * choose(n, k) * choose(2 * n - 2 * k, n) * x ** (n - 2 * k))

/** Numbers on either side of 1, degrees that are truncated or negative, and degrees 10 and 11 at two special arguments. */
const of = (fn: Fn, special: readonly [number, number], values: readonly number[]): ValueCase[] => [
  { args: [inside, degrees], gives: each(fn), ...NOT_HALF },
  { args: [outside, degrees], gives: each(fn), ...NOT_HALF },
  { args: [0.3, degrees], gives: each(fn), ...NOT_HALF },
  { args: [inside, 3], gives: each(fn), ...NOT_HALF },
  { args: [t([0.25, 0.25, 0.25]), t([2.9, -0.5, -1])], gives: each((x, n) => (n === -1 ? 0 : fn(x, Math.trunc(n)))), ...NOT_HALF },
  { args: [t([NaN, 0.5, 2, 0.5]), t([3, NaN, Infinity, 0])], gives: t([NaN, NaN, NaN, 1]) },
  { args: [t([special[0], special[0], special[1], special[1]]), t([10, 11, 10, 11])], gives: t(values), ...NOT_HALF },
  { args: [ints([3, 2, -1]), ints([1, 0, -4])], gives: each((x, n) => (n < 0 ? 0 : fn(x, n)), 'float'), ...NOT_HALF },
]

const NONE = 'PyTorch has none'

export default {
  'torch.special.chebyshev_polynomial_t': withoutGradients(NONE, of(T, [-1, 1], [1, -1, 1, 1])),
  'torch.special.chebyshev_polynomial_u': withoutGradients(NONE, of(U, [-1, 1], [11, -12, 11, 12])),
  'torch.special.chebyshev_polynomial_v': withoutGradients(NONE, of(V, [-1, 1], [21, -23, 1, 1])),
  'torch.special.chebyshev_polynomial_w': withoutGradients(NONE, of(W, [-1, 1], [1, -1, 21, 23])),
  'torch.special.shifted_chebyshev_polynomial_t': withoutGradients(NONE, of(shifted(T), [0, 1], [1, -1, 1, 1])),
  'torch.special.shifted_chebyshev_polynomial_u': withoutGradients(NONE, of(shifted(U), [0, 1], [11, -12, 11, 12])),
  'torch.special.shifted_chebyshev_polynomial_v': withoutGradients(NONE, of(shifted(V), [0, 1], [21, -23, 1, 1])),
  'torch.special.shifted_chebyshev_polynomial_w': withoutGradients(NONE, of(shifted(W), [0, 1], [1, -1, 21, 23])),
  'torch.special.hermite_polynomial_h': withoutGradients(NONE, of(H, [0, 1], [H(0, 10), 0, H(1, 10), H(1, 11)])),
  'torch.special.hermite_polynomial_he': withoutGradients(NONE, of(He, [0, 1], [He(0, 10), 0, He(1, 10), He(1, 11)])),
  'torch.special.laguerre_polynomial_l': withoutGradients(NONE, of(L, [0, 1], [1, 1, L(1, 10), L(1, 11)])),
  'torch.special.legendre_polynomial_p': withoutGradients(NONE, of(P, [-1, 1], [1, -1, 1, 1])),
} satisfies ValueCases
