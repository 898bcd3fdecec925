// Orthogonal polynomials of degree n, in float64: Chebyshev's four kinds, Hermite's two, Laguerre's and Legendre's. PyTorch truncates n, gives 0 for negative degrees,
// and takes the closed form of a Chebyshev polynomial of high degree inside [-1, 1], where the recurrence loses digits.

/** The highest degree that recurrences compute; for higher ones they give NaN, since a single element of degree 2^31 would take ten seconds. */
const RECURRENCE_LIMIT = 2 ** 20

/** The three-term recurrence from degrees 0 and 1: `next` gives degree k + 1 from degrees k and k - 1. It ends early at NaN, which stays. */
function recurrence(n: number, first: number, next: (k: number, current: number, previous: number) => number): number {
  if (n === 0) return 1
  if (n > RECURRENCE_LIMIT) return NaN
  let [previous, current] = [1, first]
  for (let k = 1; k < n && !Number.isNaN(current); k++) [previous, current] = [current, next(k, current, previous)]
  return current
}

const isEven = (n: number): boolean => n % 2 === 0

/** The degree as a whole number; null where the polynomial is 0, NaN where there is none. */
const degreeOf = (n: number): number | null => (n <= -1 ? null : Number.isFinite(n) ? Math.trunc(n) : NaN)

export type ChebyshevKind = 'T' | 'U' | 'V' | 'W'

/** Degree 1 of each kind, and the least degree whose closed form is taken (of the shifted ones in `SHIFTED_FROM`). */
const FIRST: Readonly<Record<ChebyshevKind, (x: number) => number>> = { T: (x) => x, U: (x) => 2 * x, V: (x) => 2 * x - 1, W: (x) => 2 * x + 1 }
const CLOSED_FROM: Readonly<Record<ChebyshevKind, number>> = { T: 7, U: 9, V: 9, W: 9 }
const SHIFTED_FROM: Readonly<Record<ChebyshevKind, number>> = { T: 7, U: 7, V: 7, W: 5 }

/** The values at 1; those at -1 are the same with the sign (-1)^n, where V and W change places. */
const AT_ONE: Readonly<Record<ChebyshevKind, (n: number) => number>> = { T: () => 1, U: (n) => n + 1, V: () => 1, W: (n) => 2 * n + 1 }
const MIRRORED: Readonly<Record<ChebyshevKind, ChebyshevKind>> = { T: 'T', U: 'U', V: 'W', W: 'V' }

/** At cos(angle), inside (-1, 1). */
const CLOSED: Readonly<Record<ChebyshevKind, (n: number, angle: number) => number>> = {
  T: (n, angle) => Math.cos(n * angle),
  U: (n, angle) => Math.sin((n + 1) * angle) / Math.sin(angle),
  V: (n, angle) => Math.cos((n + 0.5) * angle) / Math.cos(angle / 2),
  W: (n, angle) => Math.sin((n + 0.5) * angle) / Math.sin(angle / 2),
}

/** A Chebyshev polynomial at `x`; of the closed form from degree `closedFrom` on. */
function chebyshevAt(kind: ChebyshevKind, x: number, given: number, closedFrom: number): number {
  const n = degreeOf(given)
  if (n === null) return 0
  if (Number.isNaN(n)) return NaN
  if (x === 1) return AT_ONE[kind](n)
  if (x === -1) return AT_ONE[MIRRORED[kind]](n) * (isEven(n) ? 1 : -1)
  if (n >= closedFrom && Math.abs(x) < 1) return CLOSED[kind](n, Math.acos(x))
  return recurrence(n, FIRST[kind](x), (_, current, previous) => 2 * x * current - previous)
}

export const chebyshev = (kind: ChebyshevKind, x: number, n: number): number => chebyshevAt(kind, x, n, CLOSED_FROM[kind])

/** The Chebyshev polynomial at 2x - 1, which maps [0, 1] to [-1, 1]. */
export const shiftedChebyshev = (kind: ChebyshevKind, x: number, n: number): number => chebyshevAt(kind, 2 * x - 1, n, SHIFTED_FROM[kind])

/** PyTorch gives NaN for Hermite polynomials of higher degrees. */
const HERMITE_LIMIT = 512

function hermiteAt(first: number, slope: number, given: number, factor: 1 | 2): number {
  const n = degreeOf(given)
  if (n === null) return 0
  if (!(n <= HERMITE_LIMIT)) return NaN
  return recurrence(n, first, (k, current, previous) => slope * current - factor * k * previous)
}

/** Hermite's polynomials as physicists have them: H_1 = 2x. */
export const hermiteH = (x: number, n: number): number => hermiteAt(2 * x, 2 * x, n, 2)

/** Hermite's polynomials as statisticians have them: He_1 = x. */
export const hermiteHe = (x: number, n: number): number => hermiteAt(x, x, n, 1)

export function laguerre(x: number, given: number): number {
  const n = degreeOf(given)
  if (n === null) return 0
  if (Number.isNaN(n)) return NaN
  if (x === 0) return 1
  return recurrence(n, 1 - x, (k, current, previous) => ((2 * k + 1 - x) * current - k * previous) / (k + 1))
}

export function legendre(x: number, given: number): number {
  const n = degreeOf(given)
  if (n === null) return 0
  if (Number.isNaN(n)) return NaN
  if (Math.abs(x) === 1) return x > 0 || isEven(n) ? 1 : -1
  return recurrence(n, x, (k, current, previous) => ((2 * k + 1) * x * current - k * previous) / (k + 1))
}
