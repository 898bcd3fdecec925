// The transforms of Winograd's algorithms F(m,3) as expressions: of a window of pixels, of 3x3 weights, and of the products of a tile, which give its m x m pixels.
//
// A row of m results is a product of polynomials: it is known from its values at m + 2 points, and at each point the value is one product. The points are 0, infinity and pairs of p and -p,
// whose values share their even and their odd terms. Points near 1 whose powers and sums are exact in float32 keep errors small: 5/8 and 3/2 in place of the usual 1 and 2 halve those of F(4,3).
import { present } from '../../errors/index.ts'
import { call, constant } from '../ir/loopIr.ts'
import type { Expr } from '../ir/loopIr.ts'
import type { Transform } from './bothSides.ts'

/** Rows of coefficients by point. Those of -p are those of p with the other sign at odd places. */
interface Matrix {
  readonly zero: readonly number[]
  readonly pairs: readonly (readonly number[])[]
  readonly infinity: readonly number[]
}

/** F(m,3): tiles, and the transforms of both their sides. */
export interface WinogradAlgorithm {
  /** Pixels of a tile along a side, and those of the window that it is computed from. */
  readonly side: number
  readonly window: number
  readonly products: number
  /** What is multiplied, of a window and of the weights. */
  readonly windows: Transform
  readonly weights: Transform
  /** The pixels of a tile, of its products. */
  readonly tiles: Transform
  /** For the gradient of the weights: what is multiplied of the gradient of a tile's pixels, and the weights of the summed products. */
  readonly pixels: Transform
  readonly weightSums: Transform
}

/** Weights of a window along a side. */
const WEIGHTS = 3

const range = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

/** The coefficients of the product of x - root, that of the lowest power first. */
const polynomial = (roots: readonly number[]): readonly number[] =>
  roots.reduce<readonly number[]>((product, root) => range(product.length + 1, (i) => (product[i - 1] ?? 0) - root * (product[i] ?? 0)), [1])

/** The algorithm whose points are 0, infinity, and p and -p for each of `halves`. */
function algorithm(halves: readonly number[]): WinogradAlgorithm {
  const finite = [0, ...halves.flatMap((p) => [p, -p])]
  const window = finite.length + 1
  const side = window - WEIGHTS + 1
  const others = (point: number): readonly number[] => finite.filter((other) => other !== point)
  /** The product of the distances to the other points, by which a value is divided: weights by its size, results by its sign. */
  const distance = (point: number): number => others(point).reduce((product, other) => product * (point - other), 1)
  const matrix = (row: (point: number) => readonly number[], infinity: readonly number[]): Matrix => ({
    ...{ zero: row(0), pairs: halves.map(row), infinity },
  })
  const powers = (count: number, scale: (point: number) => number): Matrix =>
    matrix(
      (point) => range(count, (i) => point ** i * scale(point)),
      range(count, (i) => (i === count - 1 ? 1 : 0)),
    )
  const windows = matrix((point) => polynomial(others(point)), polynomial(finite))
  const weights = powers(WEIGHTS, (point) => 1 / Math.abs(distance(point)))
  const pixels = powers(side, (point) => Math.sign(distance(point)))
  return {
    ...{ side, window, products: window * window },
    windows: { size: window, results: window, of: (values) => times(windows, values) },
    weights: { size: WEIGHTS, results: window, of: (values) => times(weights, values) },
    tiles: { size: window, results: side, of: (values) => timesTransposed(pixels, side, values) },
    pixels: { size: side, results: window, of: (values) => times(pixels, values) },
    weightSums: { size: window, results: WEIGHTS, of: (values) => timesTransposed(weights, WEIGHTS, values) },
  }
}

/** Tiles of 2x2 pixels, for which 16 products take the place of 36. */
export const F23: WinogradAlgorithm = algorithm([1])
/** Tiles of 4x4 pixels, for which 36 products take the place of 144. Its errors are larger. */
export const F43: WinogradAlgorithm = algorithm([5 / 8, 3 / 2])

const isEven = (i: number): boolean => i % 2 === 0

/** The matrix times a vector. */
function times({ zero, pairs, infinity }: Matrix, values: readonly Expr[]): readonly Expr[] {
  const part = (row: readonly number[], isTaken: (i: number) => boolean): Expr =>
    combined(values.map((value, i) => ({ value, factor: isTaken(i) ? (row[i] ?? 0) : 0 })))
  const all = (): boolean => true
  const ofPairs = pairs.flatMap((row) => {
    const [even, odd] = [part(row, isEven), part(row, (i) => !isEven(i))]
    return [call('add', even, odd), call('sub', even, odd)]
  })
  return [part(zero, all), ...ofPairs, part(infinity, all)]
}

/** The transposed matrix, which has `size` rows, times a vector. */
function timesTransposed({ zero, pairs, infinity }: Matrix, size: number, values: readonly Expr[]): readonly Expr[] {
  const at = (point: number): Expr => present(values.at(point), 'a value')
  const columns = [
    { row: zero, even: at(0), odd: at(0) },
    ...pairs.map((row, k) => {
      const [plus, minus] = [at(2 * k + 1), at(2 * k + 2)]
      return { row, even: call('add', plus, minus), odd: call('sub', plus, minus) }
    }),
    { row: infinity, even: at(-1), odd: at(-1) },
  ]
  return range(size, (i) => combined(columns.map(({ row, even, odd }) => ({ value: isEven(i) ? even : odd, factor: row[i] ?? 0 }))))
}

interface Term {
  readonly value: Expr
  readonly factor: number
}

/** The sum of the terms whose factor is not 0. A factor that all share multiplies once; a term without a factor, if there is any, comes first. */
function combined(all: readonly Term[]): Expr {
  const terms = all.filter(({ factor }) => factor !== 0)
  const first = terms.find(({ factor }) => factor === 1) ?? terms.find(({ factor }) => factor > 0)
  if (first === undefined) return call('neg', combined(terms.map(({ value, factor }) => ({ value, factor: -factor }))))
  const { factor: shared } = first
  if (shared !== 1 && terms.every(({ factor }) => Math.abs(factor) === shared)) {
    const sum = combined(terms.map(({ value, factor }) => ({ value, factor: Math.sign(factor) })))
    return call('mul', sum, constant('float32', shared))
  }
  const start = shared === 1 ? first.value : call('mul', first.value, constant('float32', shared))
  return terms.filter((term) => term !== first).reduce(plus, start)
}

function plus(sum: Expr, { value, factor }: Term): Expr {
  if (factor === 1) return call('add', sum, value)
  if (factor === -1) return call('sub', sum, value)
  return call('mulAdd', value, constant('float32', factor), sum)
}
