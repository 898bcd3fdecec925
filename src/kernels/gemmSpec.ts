// The problem that matrix and convolution kernels solve: a product of two matrices, or of a matrix and a gathered image, with an epilogue.
import type { BufferParam, Expr, LoopVar, Param, Size, Stmt } from './loopIr.ts'

/** One operand of a matrix product: element (row, col) lies at base + row * rowStride + col * colStride, plus the batch loops times their strides. All in elements. */
export interface MatrixOperand {
  readonly buffer: BufferParam
  readonly rowStride: Size
  readonly colStride: Size
  /** Stride of each batch loop, aligned with GemmSpec.batch. */
  readonly batchStrides: readonly Size[]
  /** When given, the operand is not stored as a matrix: its elements are gathered from an image, as in the im2col matrix of a convolution. */
  readonly gather?: ConvGather
}

/** The im2col matrix of an image (channels, height, width): row k = (c, kh, kw), column = (oh, ow); zero where the window lies outside the image. */
export interface ConvGather {
  readonly channels: Size
  readonly height: Size
  readonly width: Size
  readonly kernelHeight: Size
  readonly kernelWidth: Size
  readonly outHeight: Size
  readonly outWidth: Size
  readonly strideH: Size
  readonly strideW: Size
  readonly padH: Size
  readonly padW: Size
  readonly dilationH: Size
  readonly dilationW: Size
  /** Strides of the image in elements. */
  readonly channelStride: Size
  readonly rowStride: Size
  readonly colStride: Size
  /** The form for the input's gradient (transposed convolution): the image is read at (oh + pad - kh * dilation) / stride, where the division is exact. */
  readonly transposed: boolean
  /** The transposed matrix, for the weight's gradient: row = (oh, ow), column = (c, kh, kw). */
  readonly swapped: boolean
}

/** C[batch][row, col] = epilogue(sum over k of A[row, k] * B[k, col]) in float32. All extents may be run-time sizes. */
export interface GemmSpec {
  readonly name: string
  readonly batch: readonly LoopVar[]
  readonly rows: LoopVar
  readonly cols: LoopVar
  readonly depth: Size
  readonly a: MatrixOperand
  readonly b: MatrixOperand
  /** How many of the last batch loops are summed over as well, e.g. 1 for a weight gradient, which sums over the images of a batch. */
  readonly reduceBatch: number
  /** The statements for one element of the result, whose value is `acc` and whose position is given by the loop variables. They store it. */
  readonly epilogue: (acc: Expr) => readonly Stmt[]
  /** All parameters in call order: every buffer and size that the spec uses and, last, a 'readwrite' float32 buffer of scratch memory. */
  readonly params: readonly Param[]
}
