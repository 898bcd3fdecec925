// Factors of small dense matrices by elimination, and the systems of equations that they solve: LU, Cholesky, triangular matrices.
import {
  addTimes,
  at,
  copyOf,
  denseLike,
  divide,
  exchange,
  get,
  inner,
  isZero,
  minus,
  negative,
  over,
  put,
  rowOf,
  scalar,
  zerosLike,
} from './dense.ts'
import type { Dense, Line } from './dense.ts'

/** The sum of the absolute values of both parts: what LAPACK compares pivots by. */
const weight = (a: Dense, i: number, j: number): number => {
  const { re, im } = get(a, i, j)
  return Math.abs(re) + Math.abs(im)
}

/** LU, with partial pivoting if `pivoting`: both factors in one, the row that each was exchanged with, and the number of the first pivot that is 0, counted from 1, or 0. */
export function factorsOf(given: Dense, pivoting: boolean): { readonly lu: Dense; readonly pivots: readonly number[]; readonly info: number } {
  const lu = copyOf(given)
  const pivots: number[] = []
  let info = 0
  for (let k = 0; k < Math.min(given.rows, given.columns); k++) {
    let pivot = k
    if (pivoting) for (let i = k + 1; i < given.rows; i++) if (weight(lu, i, k) > weight(lu, pivot, k)) pivot = i
    pivots.push(pivot)
    if (pivot !== k) exchange(rowOf(lu, k), rowOf(lu, pivot))
    const diagonal = get(lu, k, k)
    if (isZero(diagonal)) {
      if (info === 0) info = k + 1
      continue
    }
    for (let i = k + 1; i < given.rows; i++) {
      const factor = over(get(lu, i, k), diagonal)
      put(lu, i, k, factor)
      addTimes(rowOf(lu, i, k + 1), negative(factor), rowOf(lu, k, k + 1))
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
    for (let k = upper ? i + 1 : 0; k < (upper ? n : i); k++) addTimes(rowOf(x, i), negative(get(a, i, k)), rowOf(x, k))
    if (!unit) divide(rowOf(x, i), get(a, i, i))
  }
  return x
}

/** x with a x = b, or null if `a` is singular. */
export function solveOf(a: Dense, b: Dense): Dense | null {
  const { lu, order } = luOf(a)
  for (let i = 0; i < a.rows; i++) if (isZero(get(lu, i, i))) return null
  const ordered = denseLike(b, b.rows, b.columns, (i, j) => get(b, order[i] ?? 0, j))
  return solveTriangularOf(lu, solveTriangularOf(lu, ordered, false, true), true, false)
}

/** The first numbers of a row. */
const startOf = (a: Dense, i: number, count: number): Line => ({ ...rowOf(a, i), count })

/**
 * The lower factor of a positive-definite matrix, Hermitian if complex, of which the lower triangle counts. `info` is 0, or the order of the first leading minor that is not positive,
 * at which the factor ends.
 */
export function choleskyOf(a: Dense): { readonly factor: Dense; readonly info: number } {
  const n = a.rows
  const out = zerosLike(a, n, n)
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++) {
      const value = minus(get(a, i, j), inner(startOf(out, j, j), startOf(out, i, j)))
      if (i === j && !(value.re > 0)) return { factor: out, info: i + 1 }
      put(out, i, j, i === j ? scalar(Math.sqrt(value.re)) : over(value, scalar(at(out, j, j))))
    }
  return { factor: out, info: 0 }
}
