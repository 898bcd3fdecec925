// The transforms of Winograd's F(2,3) as expressions: of a window of 4x4 pixels, of 3x3 weights, and of the 4x4 products of a tile, which give its 2x2 pixels. The transposed ones
// compute the gradient of the weights. Each works along one side, then along the other.
import { call, constant } from '../loopIr.ts'
import type { Expr } from '../loopIr.ts'

/** Pixels of a tile along a side, and those of the window that it is computed from. */
export const TILE = 2
export const WINDOW = TILE + 2
export const PRODUCTS = WINDOW * WINDOW

export type Two<T> = readonly [T, T]
export type Three<T> = readonly [T, T, T]
export type Four<T> = readonly [T, T, T, T]
export const two = <T>(make: (i: 0 | 1) => T): Two<T> => [make(0), make(1)]
export const three = <T>(make: (i: 0 | 1 | 2) => T): Three<T> => [make(0), make(1), make(2)]
export const four = <T>(make: (i: 0 | 1 | 2 | 3) => T): Four<T> => [make(0), make(1), make(2), make(3)]

const add = (a: Expr, b: Expr): Expr => call('add', a, b)
const sub = (a: Expr, b: Expr): Expr => call('sub', a, b)
const half = (a: Expr): Expr => call('mul', a, constant('float32', 0.5))

const windowSums = ([a, b, c, d]: Four<Expr>): Four<Expr> => [sub(a, c), add(b, c), sub(c, b), sub(b, d)]

function weightSums([a, b, c]: Three<Expr>): Four<Expr> {
  const [ends, middle] = [half(add(a, c)), half(b)]
  return [a, add(ends, middle), sub(ends, middle), c]
}

const pixelsOf = ([a, b, c, d]: Four<Expr>): Two<Expr> => [add(add(a, b), c), sub(sub(b, c), d)]

/** `pixelsOf` transposed. */
const pixelSums = ([a, b]: Two<Expr>): Four<Expr> => [a, add(a, b), sub(a, b), call('neg', b)]

/** `weightSums` transposed. */
function weightsOf([a, b, c, d]: Four<Expr>): Three<Expr> {
  const ends = half(add(b, c))
  return [add(a, ends), half(sub(b, c)), add(ends, d)]
}

/** What is multiplied of a window: by row, then by column. */
export function transformedWindow(pixel: (y: number, x: number) => Expr): Four<Four<Expr>> {
  const columns = four((x) => windowSums(four((y) => pixel(y, x))))
  return four((y) => windowSums(four((x) => columns[x][y])))
}

/** What is multiplied of the weights. */
export function transformedWeights(weight: (y: number, x: number) => Expr): Four<Four<Expr>> {
  const columns = three((x) => weightSums(three((y) => weight(y, x))))
  return four((y) => weightSums(three((x) => columns[x][y])))
}

/** The pixels of a tile, of its products. */
export function tilePixels(product: (y: number, x: number) => Expr): Two<Two<Expr>> {
  const columns = four((x) => pixelsOf(four((y) => product(y, x))))
  return two((y) => pixelsOf(four((x) => columns[x][y])))
}

/** What is multiplied of the gradient of a tile's pixels, for the gradient of the weights. */
export function transformedPixels(pixel: (y: number, x: number) => Expr): Four<Four<Expr>> {
  const columns = two((x) => pixelSums(two((y) => pixel(y, x))))
  return four((y) => pixelSums(two((x) => columns[x][y])))
}

/** The gradient of the weights, of the summed products. */
export function weightsOfProducts(product: (y: number, x: number) => Expr): Three<Three<Expr>> {
  const columns = four((x) => weightsOf(four((y) => product(y, x))))
  return three((y) => weightsOf(four((x) => columns[x][y])))
}
