// What schedules write often: indices, loops inside each other, sizes in whole vectors.
import { at, constant, declareArray, element, forLoop, localArray, loopVar, setElement } from '../ir/loopIr.ts'
import type { Expr, Index, LoopMode, LoopVar, Size, Stmt } from '../ir/loopIr.ts'
import { sizeProduct } from '../ir/sizes.ts'

/** Elements of a vector of float32, and lines of a block that is transposed in registers. */
export const QUAD = 4

export const up = (n: number, to: number): number => Math.ceil(n / to) * to
export const down = (n: number, to: number): number => n - (n % to)

/** The largest divisor of `n` that fits; 1 if none does. */
export function largestDivisor(n: number, fits: (divisor: number) => boolean): number {
  let divisor = n
  while (divisor > 1 && (n % divisor !== 0 || !fits(divisor))) divisor--
  return divisor
}

/** `most`, or a half, a quarter … of it: the largest that fits; `least` if none above it does. */
export function halved(most: number, least: number, fits: (width: number) => boolean): number {
  let width = most
  while (width > least && !fits(width)) width /= 2
  return Math.max(width, least)
}

/** Loops with their strides in an index. */
export type Terms = readonly (readonly [LoopVar, Size])[]

/** The same, with strides that are known. */
export type Strides = readonly (readonly [LoopVar, number])[]

/** Loops with the stride 1. */
export const ones = (...loops: readonly LoopVar[]): Terms => loops.map((loop) => [loop, 1])

/** Terms whose strides are `stride` times as large. */
export const along = (terms: Terms, stride: Size): Terms => terms.map(([loop, times]) => [loop, sizeProduct(stride, times)])

/** The index base + sum of loop * stride. */
export const from = (base: Size, ...terms: Terms): Index => ({ ...at(...terms), base })

/** Loops of one mode inside each other, the outermost first. */
export const nest = (mode: LoopMode, loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] =>
  loops.reduceRight((inner: readonly Stmt[], loop) => [forLoop(loop, mode, inner)], body)

/** A block of 4x4 that is transposed in registers: `read` gives the elements of a line in lanes, and `write` stores those of a column. */
export function turned(
  read: (line: LoopVar, column: LoopVar) => Expr,
  write: (line: LoopVar, column: LoopVar, value: Expr) => Stmt,
): readonly Stmt[] {
  const [line, column] = [loopVar('line', QUAD), loopVar('column', QUAD)]
  const block = localArray('block', 'float32', [QUAD, QUAD])
  return [
    declareArray(block, constant('float32', 0)),
    forLoop(line, 'unroll', [forLoop(column, 'lanes', [setElement(block, [line, column], read(line, column))])]),
    forLoop(column, 'unroll', [forLoop(line, 'lanes', [write(line, column, element(block, line, column))])]),
  ]
}

/** Loops inside each other whose iterations come one after the other. */
export const serial = (loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] => nest('serial', loops, body)

/** Iterations that are enough for threads. Loops inside keep to what is near in memory. */
export const ENOUGH = 4

/** Independent loops inside each other. Threads share one of them, which becomes the outermost: the first that has enough iterations, or the one that has most. */
export function shared(loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] {
  const trips = ({ extent, step }: LoopVar): number => Math.min(ENOUGH, Number(extent) / step)
  const most = Math.max(...loops.map(trips))
  const one = loops.find((loop) => trips(loop) === most)
  return one === undefined
    ? body
    : nest(
        'parallel',
        [one],
        serial(
          loops.filter((loop) => loop !== one),
          body,
        ),
      )
}
