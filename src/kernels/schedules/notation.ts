// What schedules write often: indices, loops inside each other, sizes in whole vectors.
import { at, forLoop } from '../ir/loopIr.ts'
import type { Index, LoopMode, LoopVar, Size, Stmt } from '../ir/loopIr.ts'
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

/** Loops with the stride 1. */
export const ones = (...loops: readonly LoopVar[]): Terms => loops.map((loop) => [loop, 1])

/** Terms whose strides are `stride` times as large. */
export const along = (terms: Terms, stride: Size): Terms => terms.map(([loop, times]) => [loop, sizeProduct(stride, times)])

/** The index base + sum of loop * stride. */
export const from = (base: Size, ...terms: Terms): Index => ({ ...at(...terms), base })

/** Loops of one mode inside each other, the outermost first. */
export const nest = (mode: LoopMode, loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] =>
  loops.reduceRight((inner: readonly Stmt[], loop) => [forLoop(loop, mode, inner)], body)
