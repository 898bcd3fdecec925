// Small dense matrices in float64, real or complex, and what is computed with whole lines of them. Algorithms are written once, with numbers and lines: a real matrix has no
// imaginary parts, and its lines take one loop over real numbers. A matrix is a row-major array; nothing is checked here.

/** A matrix of `rows` times `columns` numbers. */
export interface Dense {
  readonly rows: number
  readonly columns: number
  readonly data: Float64Array
  /** The imaginary parts; null for a real matrix. */
  readonly imaginary: Float64Array | null
}

/** A number of a matrix. */
export interface Scalar {
  readonly re: number
  readonly im: number
}

/** A number of its parts. */
export const scalar = (re: number, im = 0): Scalar => ({ re, im })
export const plus = (a: Scalar, b: Scalar): Scalar => scalar(a.re + b.re, a.im + b.im)
export const minus = (a: Scalar, b: Scalar): Scalar => scalar(a.re - b.re, a.im - b.im)
export const negative = (a: Scalar): Scalar => scalar(-a.re, -a.im)
export const conjugate = (a: Scalar): Scalar => scalar(a.re, -a.im)
/** Numbers without imaginary parts stay so: 0 times infinity is NaN. */
export const times = (a: Scalar, b: Scalar): Scalar =>
  a.im === 0 && b.im === 0 ? scalar(a.re * b.re) : scalar(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
/** The quotient, by Smith's formula. */
export function over(a: Scalar, b: Scalar): Scalar {
  if (b.im === 0) return scalar(a.re / b.re, a.im === 0 ? 0 : a.im / b.re)
  if (Math.abs(b.re) < Math.abs(b.im)) {
    const [ratio, length] = [b.re / b.im, b.re * (b.re / b.im) + b.im]
    return scalar((a.re * ratio + a.im) / length, (a.im * ratio - a.re) / length)
  }
  const [ratio, length] = [b.im / b.re, b.im * (b.im / b.re) + b.re]
  return scalar((a.re + a.im * ratio) / length, (a.im - a.re * ratio) / length)
}
/** The absolute value. */
export const sizeOf = (a: Scalar): number => (a.im === 0 ? Math.abs(a.re) : Math.hypot(a.re, a.im))
export const isZero = (a: Scalar): boolean => a.re === 0 && a.im === 0
/** The square root with a real part that is not negative. */
export function rootOf(a: Scalar): Scalar {
  const size = sizeOf(a)
  if (size === 0) return a
  const half = Math.sqrt((size + Math.abs(a.re)) / 2)
  const other = Math.abs(a.im) / (2 * half)
  const [re, im] = a.re >= 0 ? [half, other] : [other, half]
  return scalar(re, a.im < 0 ? -im : im)
}

/** A matrix of zeros: a complex one if `like` is complex. */
export const zerosLike = (like: Dense, rows: number, columns: number): Dense => ({
  rows,
  columns,
  data: new Float64Array(rows * columns),
  imaginary: like.imaginary === null ? null : new Float64Array(rows * columns),
})

/** A real matrix by its elements. */
export const dense = (rows: number, columns: number, fn: (i: number, j: number) => number): Dense => ({
  rows,
  columns,
  data: Float64Array.from({ length: rows * columns }, (_, k) => fn(Math.floor(k / columns), k % columns)),
  imaginary: null,
})

/** The real part of an element. */
export const at = (a: Dense, i: number, j: number): number => a.data[i * a.columns + j] ?? 0
export const get = (a: Dense, i: number, j: number): Scalar => {
  const k = i * a.columns + j
  return { re: a.data[k] ?? 0, im: a.imaginary?.[k] ?? 0 }
}
export const put = (a: Dense, i: number, j: number, value: Scalar): void => {
  const k = i * a.columns + j
  a.data[k] = value.re
  if (a.imaginary !== null) a.imaginary[k] = value.im
}

/** A matrix of elements that are made of those of `like`: complex if that is. */
export function denseLike(like: Dense, rows: number, columns: number, fn: (i: number, j: number) => Scalar): Dense {
  const out = zerosLike(like, rows, columns)
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) put(out, i, j, fn(i, j))
  return out
}

const ONE = scalar(1)
export const ZERO: Scalar = scalar(0)

export function identityLike(like: Dense, n: number): Dense {
  const out = zerosLike(like, n, n)
  for (let i = 0; i < n; i++) put(out, i, i, ONE)
  return out
}

/** The conjugate transpose. */
export const adjoint = (a: Dense): Dense => denseLike(a, a.columns, a.rows, (i, j) => conjugate(get(a, j, i)))
export const copyOf = (a: Dense): Dense => ({ ...a, data: a.data.slice(), imaginary: a.imaginary?.slice() ?? null })
/** The first rows and columns. */
export const corner = (a: Dense, rows: number, columns: number): Dense =>
  rows === a.rows && columns === a.columns ? a : denseLike(a, rows, columns, (i, j) => get(a, i, j))
/** The Hermitian matrix of which one triangle is given. */
export const mirrored = (a: Dense, lower: boolean): Dense =>
  denseLike(a, a.rows, a.rows, (i, j) => (i === j ? scalar(at(a, i, i)) : i > j === lower ? get(a, i, j) : conjugate(get(a, j, i))))

/** A row or a column of a matrix, or a part of it. */
export interface Line {
  readonly of: Dense
  readonly first: number
  readonly step: number
  readonly count: number
}

/** Row `i`, from column `from` on. */
export const rowOf = (of: Dense, i: number, from = 0): Line => ({ of, first: i * of.columns + from, step: 1, count: of.columns - from })
/** Column `j`, from row `from` on, to before row `to`. */
export const columnOf = (of: Dense, j: number, from = 0, to = of.rows): Line => ({
  of,
  first: from * of.columns + j,
  step: of.columns,
  count: to - from,
})

/** Adds a multiple of one line to another one of as many numbers. */
export function addTimes(target: Line, factor: Scalar, source: Line): void {
  const { data: a, imaginary: b } = target.of
  const { data: c, imaginary: d } = source.of
  let [p, q] = [target.first, source.first]
  for (let k = 0; k < target.count; k++) {
    const x = c[q] ?? 0
    if (b === null) a[p] = (a[p] ?? 0) + factor.re * x
    else {
      const y = d === null ? 0 : (d[q] ?? 0)
      a[p] = (a[p] ?? 0) + (factor.re * x - factor.im * y)
      b[p] = (b[p] ?? 0) + (factor.re * y + factor.im * x)
    }
    p += target.step
    q += source.step
  }
}

/** The sum of the products of the conjugate numbers of one line and those of another. */
export function inner(left: Line, right: Line): Scalar {
  const { data: a, imaginary: b } = left.of
  const { data: c, imaginary: d } = right.of
  let [p, q, re, im] = [left.first, right.first, 0, 0]
  for (let k = 0; k < left.count; k++) {
    re += (a[p] ?? 0) * (c[q] ?? 0)
    if (b !== null && d !== null) {
      re += (b[p] ?? 0) * (d[q] ?? 0)
      im += (a[p] ?? 0) * (d[q] ?? 0) - (b[p] ?? 0) * (c[q] ?? 0)
    }
    p += left.step
    q += right.step
  }
  return scalar(re, im)
}

/** The length of a line as a vector. */
export function lengthOf(line: Line): number {
  const { data, imaginary } = line.of
  let length = 0
  for (let k = 0, p = line.first; k < line.count; k++, p += line.step) {
    length = Math.hypot(length, data[p] ?? 0)
    if (imaginary !== null) length = Math.hypot(length, imaginary[p] ?? 0)
  }
  return length
}

/** Divides all numbers of a line. */
export function divide(line: Line, divisor: Scalar): void {
  const { data, imaginary } = line.of
  for (let k = 0, p = line.first; k < line.count; k++, p += line.step) {
    if (imaginary === null) data[p] = (data[p] ?? 0) / divisor.re
    else {
      const { re, im } = over({ re: data[p] ?? 0, im: imaginary[p] ?? 0 }, divisor)
      data[p] = re
      imaginary[p] = im
    }
  }
}

/** Exchanges two lines. */
export function exchange(one: Line, other: Line): void {
  for (const part of [one.of.data, one.of.imaginary])
    if (part !== null)
      for (let k = 0, p = one.first, q = other.first; k < one.count; k++, p += one.step, q += other.step) {
        const value = part[p] ?? 0
        part[p] = part[q] ?? 0
        part[q] = value
      }
}

/** A plane rotation: of numbers x and y it makes c x - conj(s) y and s x + c y. */
export interface Rotation {
  readonly c: number
  readonly s: Scalar
}

/** Turns two lines of a matrix. */
export function turn(one: Line, other: Line, { c, s }: Rotation): void {
  const { data, imaginary } = one.of
  let [p, q] = [one.first, other.first]
  for (let k = 0; k < one.count; k++) {
    const [x, y] = [data[p] ?? 0, data[q] ?? 0]
    if (imaginary === null) {
      data[p] = c * x - s.re * y
      data[q] = s.re * x + c * y
    } else {
      const [u, v] = [imaginary[p] ?? 0, imaginary[q] ?? 0]
      data[p] = c * x - (s.re * y + s.im * v)
      imaginary[p] = c * u - (s.re * v - s.im * y)
      data[q] = s.re * x - s.im * u + c * y
      imaginary[q] = s.re * u + s.im * x + c * v
    }
    p += one.step
    q += other.step
  }
}

/** The rotation whose factor `s` is conjugate: what turns rows by one turns columns back by the other. */
export const turnedBack = ({ c, s }: Rotation): Rotation => ({ c, s: conjugate(s) })

export function product(a: Dense, b: Dense): Dense {
  const out = zerosLike(a.imaginary === null ? b : a, a.rows, b.columns)
  for (let i = 0; i < a.rows; i++) for (let k = 0; k < a.columns; k++) addTimes(rowOf(out, i), get(a, i, k), rowOf(b, k))
  return out
}
