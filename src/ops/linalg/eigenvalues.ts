// Eigenvalues and eigenvectors of small square matrices, by QR steps with shifts on complex numbers: A = Q T Q^H with a triangular T.
import {
  addTimes,
  columnOf,
  conjugate,
  divide,
  get,
  identityLike,
  isZero,
  lengthOf,
  minus,
  negative,
  over,
  plus,
  product,
  put,
  rootOf,
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

const EPSILON = 2 ** -52
const STEPS = 60

/** The rotation of two rows that makes `y` 0 against `x`. */
function eliminating(x: Scalar, y: Scalar): Rotation {
  const [first, second] = [sizeOf(x), sizeOf(y)]
  if (second === 0) return { c: 1, s: ZERO }
  if (first === 0) return { c: 0, s: scalar(1) }
  const length = Math.hypot(first, second)
  // -(y / x) |x| / length: x keeps its direction.
  return { c: first / length, s: over(negative(times(y, over(conjugate(x), scalar(first)))), scalar(length)) }
}

/** A = Q T Q^H. */
interface Schur {
  readonly t: Dense
  readonly q: Dense
}

/** Turns rows k and l of T from column `from` on, its columns up to before row `to`, and those of Q. */
function similar({ t, q }: Schur, [k, l]: readonly [number, number], rotation: Rotation, from: number, to: number): void {
  turn(rowOf(t, k, from), rowOf(t, l, from), rotation)
  const back = turnedBack(rotation)
  turn(columnOf(t, k, 0, to), columnOf(t, l, 0, to), back)
  turn(columnOf(q, k), columnOf(q, l), back)
}

/** Makes all elements below those next to the diagonal 0. */
function toHessenberg(schur: Schur): void {
  const { t } = schur
  for (let k = 0; k + 2 < t.rows; k++)
    for (let i = t.rows - 1; i > k + 1; i--) {
      if (isZero(get(t, i, k))) continue
      similar(schur, [i - 1, i], eliminating(get(t, i - 1, k), get(t, i, k)), k, t.rows)
      put(t, i, k, ZERO)
    }
}

/** The eigenvalue of the last two rows and columns that is nearer to their last element. */
function shiftOf(t: Dense, last: number): Scalar {
  const [a, b, c, d] = [get(t, last - 1, last - 1), get(t, last - 1, last), get(t, last, last - 1), get(t, last, last)]
  const half = times(minus(a, d), scalar(0.5))
  const root = rootOf(plus(times(half, half), times(b, c)))
  const [one, other] = [plus(half, root), minus(half, root)]
  const greater = sizeOf(one) > sizeOf(other) ? one : other
  return isZero(greater) ? d : minus(d, over(times(b, c), greater))
}

/** The first row of the block that ends with row `last`, in which no element next to the diagonal is negligible. */
function startOf(t: Dense, last: number, norm: number): number {
  let first = last
  for (; first > 0; first--) {
    const around = sizeOf(get(t, first - 1, first - 1)) + sizeOf(get(t, first, first))
    if (!(sizeOf(get(t, first, first - 1)) > EPSILON * (around === 0 ? norm : around))) break
  }
  return first
}

/** One QR step on the rows `first` to `last`. */
function step(schur: Schur, first: number, last: number, shift: Scalar): void {
  const { t } = schur
  let [x, y] = [minus(get(t, first, first), shift), get(t, first + 1, first)]
  for (let k = first; k < last; k++) {
    similar(schur, [k, k + 1], eliminating(x, y), Math.max(k - 1, first), Math.min(k + 3, last + 1))
    if (k > first) put(t, k + 1, k - 1, ZERO)
    if (k + 1 < last) [x, y] = [get(t, k + 1, k), get(t, k + 2, k)]
  }
}

function schurOf(given: Dense): Schur {
  const n = given.rows
  const t: Dense = { ...given, data: given.data.slice(), imaginary: given.imaginary?.slice() ?? new Float64Array(n * n) }
  const schur = { t, q: identityLike(t, n) }
  const norm = lengthOf({ of: t, first: 0, step: 1, count: n * n })
  if (!Number.isFinite(norm)) return schur
  toHessenberg(schur)
  for (let last = n - 1, count = 0; last > 0;) {
    const first = startOf(t, last, norm)
    if (first > 0) put(t, first, first - 1, ZERO)
    if (first === last || count === STEPS) {
      last--
      count = 0
      continue
    }
    count++
    const below = get(t, last, last - 1)
    // A shift that repeats itself is broken now and then by one that is arbitrary.
    step(schur, first, last, count % 10 === 0 ? plus(get(t, last, last), scalar(sizeOf(below))) : shiftOf(t, last))
  }
  return schur
}

/** The eigenvectors of a triangular matrix, as columns. */
function triangularVectors(t: Dense): Dense {
  const n = t.rows
  const out = zerosLike(t, n, n)
  const least = Math.max(EPSILON * lengthOf({ of: t, first: 0, step: 1, count: n * n }), Number.MIN_VALUE)
  for (let k = 0; k < n; k++) {
    const value = get(t, k, k)
    put(out, k, k, scalar(1))
    const column = columnOf(out, k, 0, k)
    addTimes(column, scalar(-1), columnOf(t, k, 0, k))
    for (let i = k - 1; i >= 0; i--) {
      const gap = minus(get(t, i, i), value)
      const x = over(get(out, i, k), sizeOf(gap) < least ? scalar(least) : gap)
      put(out, i, k, x)
      addTimes(columnOf(out, k, 0, i), negative(x), columnOf(t, i, 0, i))
    }
  }
  return out
}

/** Gives each column length 1, and makes its greatest element real, as LAPACK does. */
function normalize(vectors: Dense): void {
  for (let j = 0; j < vectors.columns; j++) {
    const column = columnOf(vectors, j)
    const length = lengthOf(column)
    let greatest = 0
    for (let i = 1; i < vectors.rows; i++) if (sizeOf(get(vectors, i, j)) > sizeOf(get(vectors, greatest, j))) greatest = i
    const pivot = get(vectors, greatest, j)
    if (!(length > 0) || isZero(pivot)) continue
    divide(column, times(pivot, scalar(length / sizeOf(pivot))))
    put(vectors, greatest, j, scalar(get(vectors, greatest, j).re))
  }
}

/** For each eigenvalue of a real matrix the index of its conjugate: its own for a real one. */
function mates(values: readonly Scalar[]): readonly number[] {
  const mate: number[] = values.map((_, i) => i)
  const free = new Set(values.keys())
  for (const i of values.keys()) {
    if (!free.delete(i)) continue
    const value = values[i] ?? ZERO
    let [nearest, distance] = [i, 2 * Math.abs(value.im)]
    for (const j of free) {
      const gap = sizeOf(minus(values[j] ?? ZERO, conjugate(value)))
      if (gap < distance) [nearest, distance] = [j, gap]
    }
    free.delete(nearest)
    mate[i] = nearest
    mate[nearest] = i
  }
  return mate
}

/** The eigenvalues of a square matrix, and the eigenvectors as columns of length 1: complex ones. Those of a real matrix are real, or come in conjugate pairs. */
export function eigOf(given: Dense): { readonly values: readonly Scalar[]; readonly vectors: Dense } {
  const n = given.rows
  const { t, q } = schurOf(given)
  const vectors = product(q, triangularVectors(t))
  normalize(vectors)
  const values = Array.from({ length: n }, (_, k) => get(t, k, k))
  if (given.imaginary !== null) return { values, vectors }
  const mate = mates(values)
  const order = values.flatMap((value, k) => {
    const other = mate[k] ?? k
    return other === k ? [k] : other < k ? [] : value.im > 0 ? [k, other] : [other, k]
  })
  const out = zerosLike(vectors, n, n)
  const exact: Scalar[] = []
  for (const [j, k] of order.entries()) {
    const other = mate[k] ?? k
    const isSecond = other !== k && order[j - 1] === other
    const before = exact[j - 1] ?? ZERO
    const value = values[k] ?? ZERO
    exact.push(other === k ? scalar(value.re) : isSecond ? conjugate(before) : value)
    for (let i = 0; i < n; i++) {
      const element = get(vectors, i, k)
      put(out, i, j, other === k ? scalar(element.re) : isSecond ? conjugate(get(out, i, j - 1)) : element)
    }
  }
  return { values: exact, vectors: out }
}
