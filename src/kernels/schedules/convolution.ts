// The problem that schedules of convolutions solve: images in any layout, one group, sizes that are known when the kernel is built, and an epilogue.
import type { BufferParam, Expr, LoopVar, Param, Stmt } from '../loopIr.ts'

/** Strides of a 4-dimensional operand in elements; `start` is where its first element lies in the buffer. */
export interface Strides4 {
  readonly start: number
  /** From one image, or from one feature, to the next. */
  readonly outer: number
  readonly channel: number
  readonly row: number
  readonly col: number
}

/** out[image, feature, y, x] = epilogue(sum over channels, ky, kx of image[.., y * stride + ky * dilation - pad, ..] * weight[feature, channel, ky, kx]) in float32. */
export interface ConvolutionProblem {
  readonly name: string
  /** The loops of the result: images, features, and the pixels of a plane (y * outWidth + x). The epilogue is written for them. */
  readonly images: LoopVar
  readonly features: LoopVar
  readonly pixels: LoopVar
  readonly channels: number
  readonly height: number
  readonly width: number
  readonly outHeight: number
  readonly outWidth: number
  /** Sizes along y and x. */
  readonly kernel: readonly [number, number]
  readonly stride: readonly [number, number]
  readonly pad: readonly [number, number]
  readonly dilation: readonly [number, number]
  readonly image: { readonly buffer: BufferParam; readonly strides: Strides4 }
  readonly weight: { readonly buffer: BufferParam; readonly strides: Strides4 }
  /** The statements for one element of the result, whose value is `sum`. They store it. */
  readonly epilogue: (sum: Expr) => readonly Stmt[]
  readonly params: readonly Param[]
}
