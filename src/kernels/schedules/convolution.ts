// The problem that schedules of convolutions solve: images in any layout, one group, sizes that are known when the kernel is built, and an epilogue.
import type { BufferParam, Expr, LoopVar, Param, Stmt } from '../ir/loopIr.ts'

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

/** out[feature, c, ky, kx] = epilogue(sum over images and pixels of gradient[image, feature, y, x] * image[image, c, y * strideH + ky * dilationH - padH, …]) in float32. */
export interface WeightGradientProblem {
  readonly name: string
  /** Those of the convolution. */
  readonly sizes: ConvolutionSizes
  /** The loops over the result, for which the epilogue is written: features, and the elements of a feature's weight ((c * kernelHeight + ky) * kernelWidth + kx). */
  readonly features: LoopVar
  readonly elements: LoopVar
  readonly image: ConvolutionOperand
  /** Its channels are features. */
  readonly gradient: ConvolutionOperand
  readonly epilogue: (sum: Expr) => readonly Stmt[]
  readonly params: readonly Param[]
}

/** The elements of a window along one side that results read: `count` of them, from the weight's element `first` on, each `step` further; the first reads at `offset`, each other one `offsetStep` further. */
export interface Taps {
  readonly first: number
  readonly step: number
  readonly count: number
  readonly offset: number
  readonly offsetStep: number
}

/** Results along one side whose windows have the same elements: `count` of them from `first` on, each `step` further. Result i reads the image at i * `read` + the offset of an element. */
export interface AxisPart {
  readonly first: number
  readonly step: number
  readonly count: number
  readonly read: number
  readonly taps: Taps
}

interface Axis {
  readonly count: number
  readonly kernel: number
  readonly stride: number
  readonly pad: number
  readonly dilation: number
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b))

/** The parts of a side: one, or for a transposed convolution one for each remainder by the stride. */
function partsOf({ count, kernel, stride, pad, dilation }: Axis, transposed: boolean): readonly AxisPart[] {
  if (!transposed) return [{ first: 0, step: 1, count, read: stride, taps: { first: 0, step: 1, count: kernel, offset: -pad, offsetStep: dilation } }]
  // Element k reads result r at (r + pad - k * dilation) / stride, where that is whole.
  const step = stride / greatestCommonDivisor(stride, dilation)
  return Array.from({ length: Math.min(stride, count) }, (_, first) => {
    let k = 0
    while (k < step && (first + pad - k * dilation) % stride !== 0) k++
    const taps = {
      ...{ first: k, step, count: k === step ? 0 : Math.max(0, Math.ceil((kernel - k) / step)) },
      ...{ offset: (first + pad - k * dilation) / stride, offsetStep: (-step * dilation) / stride },
    }
    return { first, step: stride, count: Math.ceil((count - first) / stride), read: 1, taps }
  })
}

/** The parts along y and along x. */
export const axisParts = (s: ConvolutionSizes, transposed: boolean): readonly [readonly AxisPart[], readonly AxisPart[]] => [
  partsOf({ count: s.outHeight, kernel: s.kernelHeight, stride: s.strideH, pad: s.padH, dilation: s.dilationH }, transposed),
  partsOf({ count: s.outWidth, kernel: s.kernelWidth, stride: s.strideW, pad: s.padW, dilation: s.dilationW }, transposed),
]
