// Sizes of windows (kernel, stride, padding, dilation) as users give them: one number for every dimension, or a list.
import { valueText } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { sizeAdd, sizeAtMost, sizeCeilDiv, sizeFloorDiv, sizeMul, sizeSub } from '../../tensor/index.ts'

/** A number for both dimensions, or one each [height, width]. */
export type Pair = number | readonly number[]

export const isNumbers = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((v) => typeof v === 'number')

/** How the windows of a convolution or a pool move over planes. */
export interface WindowMoves {
  readonly strideH: number
  readonly strideW: number
  readonly padH: number
  readonly padW: number
  readonly dilationH: number
  readonly dilationW: number
}

/** The gradients of six arguments that are sizes, flags or modes, and so have none. */
export const NO_GRADIENTS: readonly [null, null, null, null, null, null] = [null, null, null, null, null, null]

/** Whether a value is a number or a list of numbers. */
export const isPair = (value: unknown): value is Pair => typeof value === 'number' || isNumbers(value)

/** [height, width] from a number or a list of one or two. Throws ArgumentError, naming `op` and the argument, unless they are integers of at least `least`. */
export function windowPair(op: string, name: string, value: unknown, least: number): readonly [number, number] {
  const [height, width = height] = typeof value === 'number' ? [value] : isNumbers(value) ? value : []
  const fits = (v: number | undefined): v is number => v !== undefined && Number.isInteger(v) && v >= least
  if ((Array.isArray(value) && value.length > 2) || !fits(height) || !fits(width)) {
    throw new ArgumentError(`${op}: ${name} must be an integer >= ${least}, or two of them [height, width], got ${valueText(value)}.`)
  }
  return [height, width]
}

/** Whether a stride is left to its default, the kernel size: null, or an empty list as in PyTorch. */
export const isKernelSize = (stride: unknown): boolean => stride === null || (Array.isArray(stride) && stride.length === 0)

/** The size along the only dimension, from a number or a list of one. Throws ArgumentError for anything else. */
export function windowSize(op: string, name: string, value: unknown, least: number): number {
  const size: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value
  if (typeof size !== 'number' || !Number.isInteger(size) || size < least)
    throw new ArgumentError(`${op}: ${name} must be an integer >= ${least}, or a list of one, got ${valueText(value)}.`)
  return size
}

/** The number of positions that a window takes along a dimension. */
export function windowCount(size: number, kernel: number, stride: number, pad: number, dilation: number, ceilMode?: boolean): number
export function windowCount(size: Size, kernel: Size, stride: number, pad: number, dilation: number, ceilMode?: boolean): Size
export function windowCount(size: Size, kernel: Size, stride: number, pad: number, dilation: number, ceilMode = false): Size {
  const span = sizeSub(sizeAdd(size, 2 * pad - 1), sizeMul(dilation, sizeSub(kernel, 1)))
  const steps = ceilMode ? sizeCeilDiv(span, stride) : sizeFloorDiv(span, stride)
  // A window that would start in the padding past the end is dropped.
  return ceilMode && sizeAtMost(sizeAdd(size, pad), sizeMul(steps, stride)) ? steps : sizeAdd(steps, 1)
}
