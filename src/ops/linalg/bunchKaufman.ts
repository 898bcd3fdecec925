// The decomposition of a symmetric matrix as L D L^T, where D has blocks of one and of two rows: Bunch and Kaufman's pivoting, in the form that LAPACK's sytrf and sytrs have.
import { at, dense } from './dense.ts'
import type { Dense } from './dense.ts'

const put = (a: Dense, i: number, j: number, value: number): void => {
  a.data[i * a.columns + j] = value
}

function swap(a: Dense, [i, j]: readonly [number, number], [k, l]: readonly [number, number]): void {
  const value = at(a, i, j)
  put(a, i, j, at(a, k, l))
  put(a, k, l, value)
}

function swapRows(a: Dense, i: number, k: number): void {
  if (i !== k) for (let j = 0; j < a.columns; j++) swap(a, [i, j], [k, j])
}

/** The row of the greatest element of column `j` from row `from` on; -1 if there is none. */
function greatestRow(a: Dense, j: number, from: number): number {
  let row = from < a.rows ? from : -1
  for (let i = from + 1; i < a.rows; i++) if (Math.abs(at(a, i, j)) > Math.abs(at(a, row, j))) row = i
  return row
}

/** The bound on the growth of elements that decides between blocks of one and of two rows. */
const ALPHA = (1 + Math.sqrt(17)) / 8

interface Pivot {
  readonly row: number
  readonly size: 1 | 2
}

/** The pivot of column `k`; null if the column is 0. */
function pivotOf(a: Dense, k: number): Pivot | null {
  const diagonal = Math.abs(at(a, k, k))
  const below = greatestRow(a, k, k + 1)
  const greatest = below < 0 ? 0 : Math.abs(at(a, below, k))
  if (!(Math.max(diagonal, greatest) > 0)) return null
  if (diagonal >= ALPHA * greatest) return { row: k, size: 1 }
  let inRow = 0
  for (let j = k; j < below; j++) inRow = Math.max(inRow, Math.abs(at(a, below, j)))
  for (let i = below + 1; i < a.rows; i++) inRow = Math.max(inRow, Math.abs(at(a, i, below)))
  if (diagonal >= ALPHA * greatest * (greatest / inRow)) return { row: k, size: 1 }
  return Math.abs(at(a, below, below)) >= ALPHA * inRow ? { row: below, size: 1 } : { row: below, size: 2 }
}

/** Exchanges row and column `k` with row and column `row` of the symmetric matrix whose lower triangle is stored, from column `first` on. */
function exchange(a: Dense, k: number, row: number, first: number): void {
  for (let i = row + 1; i < a.rows; i++) swap(a, [i, k], [i, row])
  for (let i = k + 1; i < row; i++) swap(a, [i, k], [row, i])
  swap(a, [k, k], [row, row])
  if (first < k) swap(a, [k, first], [row, first])
}

function eliminateOne(a: Dense, k: number): void {
  const inverse = 1 / at(a, k, k)
  for (let j = k + 1; j < a.rows; j++) {
    const factor = inverse * at(a, j, k)
    for (let i = j; i < a.rows; i++) put(a, i, j, at(a, i, j) - at(a, i, k) * factor)
  }
  for (let i = k + 1; i < a.rows; i++) put(a, i, k, at(a, i, k) * inverse)
}

function eliminateTwo(a: Dense, k: number): void {
  const off = at(a, k + 1, k)
  const [d11, d22] = [at(a, k + 1, k + 1) / off, at(a, k, k) / off]
  const scale = 1 / (d11 * d22 - 1) / off
  for (let j = k + 2; j < a.rows; j++) {
    const first = scale * (d11 * at(a, j, k) - at(a, j, k + 1))
    const second = scale * (d22 * at(a, j, k + 1) - at(a, j, k))
    for (let i = j; i < a.rows; i++) put(a, i, j, at(a, i, j) - at(a, i, k) * first - at(a, i, k + 1) * second)
    put(a, j, k, first)
    put(a, j, k + 1, second)
  }
}

export interface Factors {
  /** L below D: the lower triangle. */
  readonly factors: Dense
  /** The row that each was exchanged with, counted from 1; negative for both rows of a block of two. */
  readonly pivots: readonly number[]
  /** The number of the first block of D that is 0, counted from 1, or 0. */
  readonly info: number
}

/** The factors of a symmetric matrix, of which the lower triangle counts. */
export function ldlOf(given: Dense): Factors {
  const n = given.rows
  const a = dense(n, n, (i, j) => (i >= j ? at(given, i, j) : 0))
  const pivots: number[] = []
  let info = 0
  for (let k = 0; k < n;) {
    const pivot = pivotOf(a, k)
    if (pivot === null && info === 0) info = k + 1
    const { row, size } = pivot ?? { row: k, size: 1 }
    const last = k + size - 1
    if (row !== last) exchange(a, last, row, k)
    if (pivot !== null) (size === 1 ? eliminateOne : eliminateTwo)(a, k)
    pivots.push(...(size === 1 ? [row + 1] : [-row - 1, -row - 1]))
    k += size
  }
  return { factors: a, pivots, info }
}

/** Row `k` of `x` minus the product of the column `column` of `a` from row `from` on with the rows of `x` there. */
function subtractBelow(a: Dense, x: Dense, k: number, column: number, from: number): void {
  for (let j = 0; j < x.columns; j++) {
    let value = at(x, k, j)
    for (let i = from; i < a.rows; i++) value -= at(a, i, column) * at(x, i, j)
    put(x, k, j, value)
  }
}

/** Takes multiples of row `k` of `x` off the rows from `from` on: those that the column `k` of `a` says. */
function eliminateRow(a: Dense, x: Dense, k: number, from: number): void {
  for (let i = from; i < a.rows; i++) for (let j = 0; j < x.columns; j++) put(x, i, j, at(x, i, j) - at(a, i, k) * at(x, k, j))
}

/** x with a x = b, from the factors of a. */
export function ldlSolveOf(a: Dense, pivots: readonly number[], b: Dense): Dense {
  const x: Dense = { ...b, data: b.data.slice() }
  const n = a.rows
  const pivotAt = (k: number): number => pivots[k] ?? k + 1
  for (let k = 0; k < n;) {
    const pivot = pivotAt(k)
    if (pivot > 0) {
      swapRows(x, k, pivot - 1)
      eliminateRow(a, x, k, k + 1)
      for (let j = 0; j < x.columns; j++) put(x, k, j, at(x, k, j) / at(a, k, k))
      k += 1
      continue
    }
    swapRows(x, k + 1, -pivot - 1)
    eliminateRow(a, x, k, k + 2)
    eliminateRow(a, x, k + 1, k + 2)
    const off = at(a, k + 1, k)
    const [first, second] = [at(a, k, k) / off, at(a, k + 1, k + 1) / off]
    const denominator = first * second - 1
    for (let j = 0; j < x.columns; j++) {
      const [upper, lower] = [at(x, k, j) / off, at(x, k + 1, j) / off]
      put(x, k, j, (second * upper - lower) / denominator)
      put(x, k + 1, j, (first * lower - upper) / denominator)
    }
    k += 2
  }
  for (let k = n - 1; k >= 0;) {
    const pivot = pivotAt(k)
    subtractBelow(a, x, k, k, k + 1)
    if (pivot < 0) subtractBelow(a, x, k - 1, k - 1, k + 1)
    swapRows(x, k, Math.abs(pivot) - 1)
    k -= pivot > 0 ? 1 : 2
  }
  return x
}
