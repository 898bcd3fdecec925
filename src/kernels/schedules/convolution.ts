// The problem that schedules of convolutions solve: images in any layout, one group, sizes that are known when the kernel is built, and an epilogue.
import type { BufferParam, Expr, LoopVar, Param, Stmt } from '../loopIr.ts'

/** The sizes of a convolution of one group, and how its window moves. */
export interface ConvolutionSizes {
  readonly batch: number
  readonly channels: number
  readonly features: number
  readonly height: number
  readonly width: number
  readonly outHeight: number
  readonly outWidth: number
  readonly kernelHeight: number
  readonly kernelWidth: number
  readonly strideH: number
  readonly strideW: number
  readonly padH: number
  readonly padW: number
  readonly dilationH: number
  readonly dilationW: number
}

/** A 4-dimensional operand: where its first element lies in the buffer, and its strides, in elements. */
export interface ConvolutionOperand {
  readonly buffer: BufferParam
  readonly start: number
  /** From one image, or from one feature of the weight, to the next. */
  readonly outer: number
  readonly channel: number
  readonly row: number
  readonly col: number
}

/** out[image, feature, y, x] = epilogue(sum over c, ky, kx of image[image, c, y * strideH + ky * dilationH - padH, …] * weight[feature, c, ky, kx]) in float32. */
export interface ConvolutionProblem {
  readonly name: string
  readonly sizes: ConvolutionSizes
  /** The loops over the result, for which the epilogue is written: images, features, and the pixels of a plane (y * outWidth + x). */
  readonly images: LoopVar
  readonly features: LoopVar
  readonly pixels: LoopVar
  readonly image: ConvolutionOperand
  readonly weight: ConvolutionOperand
  /** The statements for one element of the result, whose value is `sum`. They store it. */
  readonly epilogue: (sum: Expr) => readonly Stmt[]
  readonly params: readonly Param[]
}
