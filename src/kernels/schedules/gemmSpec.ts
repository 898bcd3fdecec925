// The problem that kernels of matrix products solve: a product of two matrices with an epilogue.
import type { BufferParam, Expr, LoopVar, Param, Size, Stmt } from '../ir/loopIr.ts'

/** One operand of a matrix product: element (row, col) lies at base + row * rowStride + col * colStride, plus the batch loops times their strides. All in elements. */
export interface MatrixOperand {
  readonly buffer: BufferParam
  readonly rowStride: Size
  readonly colStride: Size
  /** Stride of each batch loop, aligned with GemmSpec.batch. */
  readonly batchStrides: readonly Size[]
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
