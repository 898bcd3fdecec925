// What the rooms above use of kernels/: the compiled kernel, the heap, and the matrix and convolution templates. Implementations live beside this file.
import type { BufferParam, Expr, Kernel, LoopVar, Param, Size, Stmt } from './loopIr.ts'

/** A compiled kernel: call it with one number per parameter, in order (byte addresses for buffers). */
export interface CompiledKernel {
  readonly kernel: { readonly name: string; readonly params: readonly Param[] }
  readonly run: (...args: number[]) => void
  /** Bytes of the module, for dumps and tests. */
  readonly wasm: Uint8Array
}

/** Compiles a kernel for the heap, or returns the cached one (by content hash of its text form). */
export type CompileKernel = (kernel: Kernel) => CompiledKernel

/** One operand of a matrix product: element (row, col) lies at base + row*rowStride + col*colStride; `batch` strides walk the batch loops. All in elements. */
export interface MatrixOperand {
  readonly buffer: BufferParam
  readonly rowStride: Size
  readonly colStride: Size
  /** Stride of each batch loop, aligned with GemmSpec.batch. */
  readonly batchStrides: readonly Size[]
  /** When given, B is not stored as a matrix: its element (k, col) is gathered, e.g. the im2col matrix of a convolution. */
  readonly gather?: ConvGather
}

/** The im2col view of an input (channels, height, width) without materialising it: row k = (c, kh, kw), column = (oh, ow); zero outside. */
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
  /** Strides of the input in elements. */
  readonly channelStride: Size
  readonly rowStride: Size
  readonly colStride: Size
  /** The gradient form: the input is read at (oh + pad - kh*dilation) / stride where divisible (transposed convolution). */
  readonly transposed: boolean
  /** Swap roles: row = (oh, ow), column k = (c, kh, kw); used by the weight gradient. */
  readonly swapped: boolean
}

/** C[batch][row, col] = epilogue(sum over k of A[row, k] * B[k, col]) in float32. M, N, K and batch extents may be run-time sizes. */
export interface GemmSpec {
  readonly name: string
  readonly batch: readonly LoopVar[]
  readonly rows: LoopVar
  readonly cols: LoopVar
  readonly depth: Size
  readonly a: MatrixOperand
  readonly b: MatrixOperand
  /** Sum also over the last batch loop(s), e.g. a weight gradient over the images of a batch: how many trailing batch loops are reduced into C. */
  readonly reduceBatch: number
  /** Statements run for each result element with `acc` as its value; `simd` over cols. They store the result (loop variables: batch, rows, cols). */
  readonly epilogue: (acc: Expr) => readonly Stmt[]
  /** All parameters, in call order; must contain every buffer and size used above plus a 'readwrite' float32 scratch buffer for packing, which comes last. */
  readonly params: readonly Param[]
}

/** Bytes of scratch that a product of these sizes needs. */
export type GemmScratchBytes = (m: number, n: number, k: number) => number

/** Compiles a matrix product; cached like kernels. */
export type CompileGemm = (spec: GemmSpec) => CompiledKernel
