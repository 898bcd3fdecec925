// Algorithms on small dense matrices, in float64: LU, QR, symmetric eigenvalues, singular values, the exponential. A matrix is a row-major array; nothing is checked here.

/** A matrix of `rows` times `columns` numbers. */
export interface Dense {
  readonly rows: number
  readonly columns: number
  readonly data: Float64Array
}

export const dense = (rows: number, columns: number, fn: (i: number, j: number) => number = () => 0): Dense => ({
  rows,
  columns,
  data: Float64Array.from({ length: rows * columns }, (_, k) => fn(Math.floor(k / columns), k % columns)),
})

/** An element of a matrix. */
export const at = (a: Dense, i: number, j: number): number => a.data[i * a.columns + j] ?? 0
const put = (a: Dense, i: number, j: number, value: number): void => {
  a.data[i * a.columns + j] = value
}
export const identity = (n: number): Dense => dense(n, n, (i, j) => Number(i === j))
export const transposed = (a: Dense): Dense => dense(a.columns, a.rows, (i, j) => at(a, j, i))
const copyOf = (a: Dense): Dense => ({ ...a, data: a.data.slice() })

export function product(a: Dense, b: Dense): Dense {
  const out = dense(a.rows, b.columns)
  for (let i = 0; i < a.rows; i++)
    for (let k = 0; k < a.columns; k++) {
      const factor = at(a, i, k)
      for (let j = 0; j < b.columns; j++) out.data[i * b.columns + j] = at(out, i, j) + factor * at(b, k, j)
    }
  return out
}

/** LU, with partial pivoting if `pivoting`: both factors in one, the row that each was exchanged with, and the number of the first pivot that is 0, counted from 1, or 0. */
export function factorsOf(given: Dense, pivoting: boolean): { readonly lu: Dense; readonly pivots: readonly number[]; readonly info: number } {
  const lu = copyOf(given)
  const pivots: number[] = []
  let info = 0
  for (let k = 0; k < Math.min(given.rows, given.columns); k++) {
    let pivot = k
    if (pivoting) for (let i = k + 1; i < given.rows; i++) if (Math.abs(at(lu, i, k)) > Math.abs(at(lu, pivot, k))) pivot = i
    pivots.push(pivot)
    if (pivot !== k)
      for (let j = 0; j < given.columns; j++) {
        const value = at(lu, k, j)
        put(lu, k, j, at(lu, pivot, j))
        put(lu, pivot, j, value)
      }
    if (at(lu, k, k) === 0) {
      if (info === 0) info = k + 1
      continue
    }
    for (let i = k + 1; i < given.rows; i++) {
      const factor = at(lu, i, k) / at(lu, k, k)
      put(lu, i, k, factor)
      for (let j = k + 1; j < given.columns; j++) put(lu, i, j, at(lu, i, j) - factor * at(lu, k, j))
    }
  }
  return { lu, pivots, info }
}

/** LU with partial pivoting of a square matrix: both factors in one, the rows of the original in the order of the factors, and the sign of that order. */
export function luOf(given: Dense): { readonly lu: Dense; readonly order: readonly number[]; readonly sign: number } {
  const { lu, pivots } = factorsOf(given, true)
  const order = pivots.map((_, i) => i)
  for (const [k, pivot] of pivots.entries()) {
    const row = order[k] ?? 0
    order[k] = order[pivot] ?? 0
    order[pivot] = row
  }
  return { lu, order, sign: pivots.filter((pivot, k) => pivot !== k).length % 2 === 0 ? 1 : -1 }
}

/** x with a x = b for a triangular matrix `a`. With `unit`, its diagonal counts as 1. */
export function solveTriangularOf(a: Dense, b: Dense, upper: boolean, unit: boolean): Dense {
  const x = copyOf(b)
  const n = a.rows
  for (let step = 0; step < n; step++) {
    const i = upper ? n - 1 - step : step
    for (let j = 0; j < b.columns; j++) {
      let value = at(x, i, j)
      for (let k = upper ? i + 1 : 0; k < (upper ? n : i); k++) value -= at(a, i, k) * at(x, k, j)
      put(x, i, j, unit ? value : value / at(a, i, i))
    }
  }
  return x
}

/** x with a x = b, or null if `a` is singular. */
export function solveOf(a: Dense, b: Dense): Dense | null {
  const { lu, order } = luOf(a)
  for (let i = 0; i < a.rows; i++) if (at(lu, i, i) === 0) return null
  const ordered = dense(b.rows, b.columns, (i, j) => at(b, order[i] ?? 0, j))
  return solveTriangularOf(lu, solveTriangularOf(lu, ordered, false, true), true, false)
}

/** The lower factor of a positive-definite matrix, of which the lower triangle counts. `info` is 0, or the order of the first leading minor that is not positive, at which the factor ends. */
export function choleskyOf(a: Dense): { readonly factor: Dense; readonly info: number } {
  const n = a.rows
  const out = dense(n, n)
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++) {
      let value = at(a, i, j)
      for (let k = 0; k < j; k++) value -= at(out, i, k) * at(out, j, k)
      if (i === j && !(value > 0)) return { factor: out, info: i + 1 }
      put(out, i, j, i === j ? Math.sqrt(value) : value / at(out, j, j))
    }
  return { factor: out, info: 0 }
}

/** Subtracts tau v v^T x from x, where v is 1 in row k and the column k of `vectors` below it: Householder's reflection number k of x, from column `first` on. */
function reflect(x: Dense, vectors: Dense, tau: number, k: number, first: number): void {
  if (tau === 0) return
  for (let j = first; j < x.columns; j++) {
    let along = at(x, k, j)
    for (let i = k + 1; i < x.rows; i++) along += at(vectors, i, k) * at(x, i, j)
    put(x, k, j, at(x, k, j) - tau * along)
    for (let i = k + 1; i < x.rows; i++) put(x, i, j, at(x, i, j) - tau * along * at(vectors, i, k))
  }
}

/** Householder's QR as LAPACK's geqrf gives it: r in the upper triangle, below it the vectors of the reflections, whose first elements are 1, and their factors. */
export function geqrfOf(given: Dense): { readonly a: Dense; readonly tau: readonly number[] } {
  const a = copyOf(given)
  const tau = Array.from({ length: Math.min(a.rows, a.columns) }, (_, k) => {
    let below = 0
    for (let i = k + 1; i < a.rows; i++) below = Math.hypot(below, at(a, i, k))
    // A column that is 0 below the diagonal stays as it is, sign included.
    if (below === 0) return 0
    const diagonal = at(a, k, k)
    const length = Math.hypot(diagonal, below)
    const beta = diagonal < 0 ? length : -length
    for (let i = k + 1; i < a.rows; i++) put(a, i, k, at(a, i, k) / (diagonal - beta))
    const factor = (beta - diagonal) / beta
    reflect(a, a, factor, k, k + 1)
    put(a, k, k, beta)
    return factor
  })
  return { a, tau }
}

/** QR: q [rows, rows] and r [rows, columns], with the signs that LAPACK gives. */
export function qrOf(given: Dense): { readonly q: Dense; readonly r: Dense } {
  const { a, tau } = geqrfOf(given)
  const q = identity(a.rows)
  for (let k = tau.length - 1; k >= 0; k--) reflect(q, a, tau[k] ?? 0, k, k)
  return { q, r: dense(a.rows, a.columns, (i, j) => (i <= j ? at(a, i, j) : 0)) }
}

/** The rotation that makes the off-diagonal element of [[a, c], [c, b]] 0: [cosine, sine]. */
function rotation(a: number, b: number, c: number): readonly [number, number] {
  const theta = (b - a) / (2 * c)
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1))
  const cosine = 1 / Math.hypot(t, 1)
  return [cosine, t * cosine]
}

/** Turns columns p and q of a matrix. */
function turnColumns(a: Dense, p: number, q: number, cosine: number, sine: number): void {
  for (let i = 0; i < a.rows; i++) {
    const [x, y] = [at(a, i, p), at(a, i, q)]
    put(a, i, p, cosine * x - sine * y)
    put(a, i, q, sine * x + cosine * y)
  }
}

const column = (a: Dense, j: number): number[] => Array.from({ length: a.rows }, (_, i) => at(a, i, j))
const SWEEPS = 60

/** Eigenvalues of a symmetric matrix in ascending order, and the eigenvectors as columns, by Jacobi's rotations. */
export function eighOf(given: Dense): { readonly values: readonly number[]; readonly vectors: Dense } {
  const n = given.rows
  let a = copyOf(given)
  const vectors = identity(n)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let [off, all] = [0, 0]
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) [off, all] = [off + (i === j ? 0 : at(a, i, j) ** 2), all + at(a, i, j) ** 2]
    if (!(off > all * 1e-32)) break
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        if (at(a, p, q) === 0) continue
        const [cosine, sine] = rotation(at(a, p, p), at(a, q, q), at(a, p, q))
        turnColumns(a, p, q, cosine, sine)
        a = transposed(a)
        turnColumns(a, p, q, cosine, sine)
        turnColumns(vectors, p, q, cosine, sine)
      }
  }
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => at(a, i, i) - at(a, j, j))
  return { values: order.map((i) => at(a, i, i)), vectors: dense(n, n, (i, j) => at(vectors, i, order[j] ?? 0)) }
}

/** Replaces columns of length 0 by unit vectors that are orthogonal to all others. */
function completed(u: Dense, missing: readonly number[]): void {
  for (const j of missing)
    for (let unit = 0; unit < u.rows; unit++) {
      const v = Array.from({ length: u.rows }, (_, i) => Number(i === unit))
      for (let pass = 0; pass < 2; pass++)
        for (let k = 0; k < u.columns; k++) {
          const other = column(u, k)
          const along = v.reduce((total, x, i) => total + x * (other[i] ?? 0), 0)
          v.forEach((x, i) => (v[i] = x - along * (other[i] ?? 0)))
        }
      const length = Math.hypot(...v)
      if (length < 0.1 / Math.sqrt(u.rows)) continue
      v.forEach((x, i) => put(u, i, j, x / length))
      break
    }
}

/**
 * Singular values in descending order, and the vectors as columns of u [rows, k] and v [columns, k], by one-sided Jacobi rotations. With `full`, u and v are square.
 */
export function svdOf(a: Dense, full: boolean): { readonly u: Dense; readonly values: readonly number[]; readonly v: Dense } {
  if (a.rows < a.columns) {
    const { u, values, v } = svdOf(transposed(a), full)
    return { u: v, values, v: u }
  }
  const work = copyOf(a)
  const n = a.columns
  const right = identity(n)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let turned = false
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        let [pp, qq, pq] = [0, 0, 0]
        for (let i = 0; i < a.rows; i++) {
          const [x, y] = [at(work, i, p), at(work, i, q)]
          ;[pp, qq, pq] = [pp + x * x, qq + y * y, pq + x * y]
        }
        if (!(Math.abs(pq) > 1e-16 * Math.sqrt(pp * qq))) continue
        turned = true
        const [cosine, sine] = rotation(pp, qq, pq)
        turnColumns(work, p, q, cosine, sine)
        turnColumns(right, p, q, cosine, sine)
      }
    if (!turned) break
  }
  const lengths = Array.from({ length: n }, (_, j) => Math.hypot(...column(work, j)))
  const order = lengths.map((_, j) => j).sort((i, j) => (lengths[j] ?? 0) - (lengths[i] ?? 0))
  const values = order.map((j) => lengths[j] ?? 0)
  const small = (values[0] ?? 0) * 1e-15
  const width = full ? a.rows : n
  const u = dense(a.rows, width, (i, j) => ((values[j] ?? 0) > small ? at(work, i, order[j] ?? 0) / (values[j] ?? 1) : 0))
  completed(
    u,
    Array.from({ length: width }, (_, j) => j).filter((j) => !((values[j] ?? 0) > small)),
  )
  return { u, values, v: dense(n, n, (i, j) => at(right, i, order[j] ?? 0)) }
}

/** The pseudo-inverse: singular values up to the limit count as 0. */
export function pinvOf(a: Dense, limitOf: (greatest: number) => number): Dense {
  const { u, values, v } = svdOf(a, false)
  const limit = limitOf(values[0] ?? 0)
  const scaled = dense(v.rows, v.columns, (i, j) => ((values[j] ?? 0) > limit ? at(v, i, j) / (values[j] ?? 1) : 0))
  return product(scaled, transposed(u))
}

/** The exponential of a square matrix, by Taylor's series of a fraction of it, which is then squared. */
export function expOf(a: Dense): Dense {
  const norm = Math.max(
    0,
    ...Array.from({ length: a.rows }, (_, i) => Array.from({ length: a.rows }, (__, j) => Math.abs(at(a, i, j))).reduce((x, y) => x + y, 0)),
  )
  const halvings = Number.isFinite(norm) && norm > 0.5 ? Math.ceil(Math.log2(norm)) + 1 : 0
  const part = dense(a.rows, a.rows, (i, j) => at(a, i, j) / 2 ** halvings)
  let term = identity(a.rows)
  let sum = identity(a.rows)
  for (let k = 1; k <= 18; k++) {
    term = product(term, part)
    term.data.forEach((value, i) => (term.data[i] = value / k))
    sum = dense(a.rows, a.rows, (i, j) => at(sum, i, j) + at(term, i, j))
  }
  for (let k = 0; k < halvings; k++) sum = product(sum, sum)
  return sum
}
