// Decompositions of small dense matrices by unitary matrices: QR, eigenvalues of Hermitian matrices, singular values; and the exponential.
import {
  addTimes,
  adjoint,
  at,
  columnOf,
  conjugate,
  copyOf,
  denseLike,
  divide,
  get,
  identityLike,
  inner,
  isZero,
  lengthOf,
  minus,
  negative,
  over,
  plus,
  product,
  put,
  rowOf,
  scalar,
  sizeOf,
  times,
  turn,
  turnedBack,
  zerosLike,
  ZERO,
} from './dense.ts'
import type { Dense, Rotation, Scalar } from './dense.ts'

/** Subtracts tau v v^H x from x, where v is 1 in row k and the column k of `vectors` below it: Householder's reflection number k of x, from column `first` on. */
function reflect(x: Dense, vectors: Dense, tau: Scalar, k: number, first: number): void {
  if (isZero(tau)) return
  const v = columnOf(vectors, k, k + 1)
  for (let j = first; j < x.columns; j++) {
    const below = columnOf(x, j, k + 1)
    const factor = negative(times(tau, plus(get(x, k, j), inner(v, below))))
    put(x, k, j, plus(get(x, k, j), factor))
    addTimes(below, factor, v)
  }
}

/** Householder's QR as LAPACK's geqrf gives it: r in the upper triangle, below it the vectors of the reflections, whose first elements are 1, and their factors. */
export function geqrfOf(given: Dense): { readonly a: Dense; readonly tau: readonly Scalar[] } {
  const a = copyOf(given)
  const tau = Array.from({ length: Math.min(a.rows, a.columns) }, (_, k) => {
    const below = columnOf(a, k, k + 1)
    const rest = lengthOf(below)
    const diagonal = get(a, k, k)
    // A column that is 0 below the diagonal, and real there, stays as it is, sign included.
    if (rest === 0 && diagonal.im === 0) return ZERO
    const length = Math.hypot(diagonal.re, diagonal.im, rest)
    const beta = diagonal.re < 0 ? length : -length
    divide(below, minus(diagonal, scalar(beta)))
    const factor = scalar((beta - diagonal.re) / beta, diagonal.im === 0 ? 0 : -diagonal.im / beta)
    reflect(a, a, conjugate(factor), k, k + 1)
    put(a, k, k, scalar(beta))
    return factor
  })
  return { a, tau }
}

/** QR: q [rows, rows] and r [rows, columns], with the signs that LAPACK gives. */
export function qrOf(given: Dense): { readonly q: Dense; readonly r: Dense } {
  const { a, tau } = geqrfOf(given)
  const q = identityLike(a, a.rows)
  for (let k = tau.length - 1; k >= 0; k--) reflect(q, a, tau[k] ?? ZERO, k, k)
  return { q, r: denseLike(a, a.rows, a.columns, (i, j) => (i <= j ? get(a, i, j) : ZERO)) }
}

/** The rotation of columns that makes the off-diagonal element of the Hermitian [[a, c], [conj(c), b]] 0. */
function diagonalizing(a: number, b: number, c: Scalar): Rotation {
  const size = c.im === 0 ? c.re : sizeOf(c)
  const theta = (b - a) / (2 * size)
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1))
  const cosine = 1 / Math.hypot(t, 1)
  return { c: cosine, s: c.im === 0 ? scalar(t * cosine) : times(over(c, scalar(size)), scalar(t * cosine)) }
}

const SWEEPS = 60

/** Eigenvalues of a Hermitian matrix in ascending order, and the eigenvectors as columns, by Jacobi's rotations. */
export function eighOf(given: Dense): { readonly values: readonly number[]; readonly vectors: Dense } {
  const n = given.rows
  const a = copyOf(given)
  const vectors = identityLike(a, n)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let [off, all] = [0, 0]
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        const { re, im } = get(a, i, j)
        const square = re * re + im * im
        all += square
        if (i !== j) off += square
      }
    if (!(off > all * 1e-32)) break
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        const between = get(a, p, q)
        if (isZero(between)) continue
        const rotation = diagonalizing(at(a, p, p), at(a, q, q), between)
        turn(columnOf(a, p), columnOf(a, q), rotation)
        turn(rowOf(a, p), rowOf(a, q), turnedBack(rotation))
        turn(columnOf(vectors, p), columnOf(vectors, q), rotation)
      }
  }
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => at(a, i, i) - at(a, j, j))
  return { values: order.map((i) => at(a, i, i)), vectors: denseLike(a, n, n, (i, j) => get(vectors, i, order[j] ?? 0)) }
}

/** Replaces columns of length 0 by unit vectors that are orthogonal to all others. */
function completed(u: Dense, missing: readonly number[]): void {
  for (const j of missing)
    for (let unit = 0; unit < u.rows; unit++) {
      const v = zerosLike(u, u.rows, 1)
      put(v, unit, 0, scalar(1))
      for (let pass = 0; pass < 2; pass++)
        for (let k = 0; k < u.columns; k++) addTimes(columnOf(v, 0), negative(inner(columnOf(u, k), columnOf(v, 0))), columnOf(u, k))
      const length = lengthOf(columnOf(v, 0))
      if (length < 0.1 / Math.sqrt(u.rows)) continue
      divide(columnOf(v, 0), scalar(length))
      for (let i = 0; i < u.rows; i++) put(u, i, j, get(v, i, 0))
      break
    }
}

/**
 * Singular values in descending order, and the vectors as columns of u [rows, k] and v [columns, k], by one-sided Jacobi rotations. With `full`, u and v are square.
 */
export function svdOf(a: Dense, full: boolean): { readonly u: Dense; readonly values: readonly number[]; readonly v: Dense } {
  if (a.rows < a.columns) {
    const { u, values, v } = svdOf(adjoint(a), full)
    return { u: v, values, v: u }
  }
  const work = copyOf(a)
  const n = a.columns
  const right = identityLike(a, n)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let turned = false
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        const [one, other] = [columnOf(work, p), columnOf(work, q)]
        const [pp, qq, pq] = [inner(one, one).re, inner(other, other).re, inner(one, other)]
        if (!(sizeOf(pq) > 1e-16 * Math.sqrt(pp * qq))) continue
        turned = true
        const rotation = diagonalizing(pp, qq, pq)
        turn(one, other, rotation)
        turn(columnOf(right, p), columnOf(right, q), rotation)
      }
    if (!turned) break
  }
  const lengths = Array.from({ length: n }, (_, j) => lengthOf(columnOf(work, j)))
  const order = lengths.map((_, j) => j).sort((i, j) => (lengths[j] ?? 0) - (lengths[i] ?? 0))
  const values = order.map((j) => lengths[j] ?? 0)
  const small = (values[0] ?? 0) * 1e-15
  const width = full ? a.rows : n
  const u = denseLike(a, a.rows, width, (i, j) => ((values[j] ?? 0) > small ? over(get(work, i, order[j] ?? 0), scalar(values[j] ?? 1)) : ZERO))
  completed(
    u,
    Array.from({ length: width }, (_, j) => j).filter((j) => !((values[j] ?? 0) > small)),
  )
  return { u, values, v: denseLike(a, n, n, (i, j) => get(right, i, order[j] ?? 0)) }
}

/** The pseudo-inverse: singular values up to the limit count as 0. */
export function pinvOf(a: Dense, limitOf: (greatest: number) => number): Dense {
  const { u, values, v } = svdOf(a, false)
  const limit = limitOf(values[0] ?? 0)
  const scaled = denseLike(v, v.rows, v.columns, (i, j) => ((values[j] ?? 0) > limit ? over(get(v, i, j), scalar(values[j] ?? 1)) : ZERO))
  return product(scaled, adjoint(u))
}

/** The exponential of a square matrix, by Taylor's series of a fraction of it, which is then squared. */
export function expOf(a: Dense): Dense {
  const n = a.rows
  const norm = Math.max(
    0,
    ...Array.from({ length: n }, (_, i) => Array.from({ length: n }, (__, j) => sizeOf(get(a, i, j))).reduce((x, y) => x + y, 0)),
  )
  const halvings = Number.isFinite(norm) && norm > 0.5 ? Math.ceil(Math.log2(norm)) + 1 : 0
  const part = copyOf(a)
  for (let i = 0; i < n; i++) divide(rowOf(part, i), scalar(2 ** halvings))
  let term = identityLike(a, n)
  let sum = identityLike(a, n)
  for (let k = 1; k <= 18; k++) {
    term = product(term, part)
    for (let i = 0; i < n; i++) {
      divide(rowOf(term, i), scalar(k))
      addTimes(rowOf(sum, i), scalar(1), rowOf(term, i))
    }
  }
  for (let k = 0; k < halvings; k++) sum = product(sum, sum)
  return sum
}
