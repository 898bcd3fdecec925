// Which operators become kernel templates, and how: matrix products and convolutions.
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import { gemmScratchBytes, loopVar } from '../kernels/index.ts'
import type { ConvGather, GemmSpec, MatrixOperand } from '../kernels/index.ts'
import { add, reshape } from '../ops/index.ts'
import type { Tensor, TensorSpec } from '../tensor/index.ts'
import type { Access, BufferView, TemplateIo } from './ir.ts'

export interface TemplateRule {
  readonly spec: TensorSpec
  readonly iter: readonly number[]
  readonly reads: readonly Access[]
  readonly build: (io: TemplateIo) => GemmSpec
  readonly scratchBytes: number
  /** Operators that follow on the product (bias, reshape); they fuse into its epilogue. */
  readonly finish: ((product: Tensor) => Result) | null
}

type ViewOf = (tensor: Tensor) => BufferView

/** The template for a call, or null: the call then takes another way (decomposition or eager kernel). Only float32 has templates. */
export function templateFor(op: OpDef, args: readonly Arg[], viewOf: ViewOf): TemplateRule | null {
  const tensors = args.filter((a): a is Tensor => typeof a === 'object' && a !== null && !Array.isArray(a))
  if (tensors.some((t) => t.dtype !== 'float32')) return null
  switch (op.template) {
    case 'mm':
      return matmul(viewOf(args[0] as Tensor), viewOf(args[1] as Tensor), null)
    case 'bmm':
      return matmul(viewOf(args[0] as Tensor), viewOf(args[1] as Tensor), null)
    case 'linear':
      return linear(args[0] as Tensor, args[1] as Tensor, args[2] as Tensor | null, viewOf)
    case 'convolution':
      return convolution(args, viewOf)
    case 'convolution_weight_gradient':
      return weightGradient(args, viewOf)
    default:
      return null
  }
}

/** [.., M, K] x [.., K, N] with at most one batch dimension. */
function matmul(a: BufferView, b: BufferView, finish: TemplateRule['finish']): TemplateRule {
  const batched = a.shape.length === 3
  const [batch, m, k, n] = batched
    ? [[a.shape[0] as number], a.shape[1] as number, a.shape[2] as number, b.shape[2] as number]
    : [[], a.shape[0] as number, a.shape[1] as number, b.shape[1] as number]
  const operand = (view: BufferView, buffer: MatrixOperand['buffer']): MatrixOperand => ({
    buffer,
    rowStride: view.strides.at(-2) as number,
    colStride: view.strides.at(-1) as number,
    batchStrides: batched ? [view.strides[0] as number] : [],
  })
  return {
    spec: { shape: [...batch, m, n], dtype: 'float32' },
    iter: [...batch, m, n],
    reads: [a, b],
    scratchBytes: gemmScratchBytes(m, n, k),
    finish,
    build: (io) => ({
      name: io.name,
      batch: io.batch,
      rows: io.rows,
      cols: io.cols,
      depth: k,
      a: operand(a, io.buffers[0] as MatrixOperand['buffer']),
      b: operand(b, io.buffers[1] as MatrixOperand['buffer']),
      reduceBatch: 0,
      epilogue: io.epilogue,
      params: io.params,
    }),
  }
}

/** x @ weight.T + bias; leading dimensions of x are rows. */
function linear(input: Tensor, weight: Tensor, bias: Tensor | null, viewOf: ViewOf): TemplateRule | null {
  const x = viewOf(input)
  const w = viewOf(weight)
  const k = x.shape.at(-1) as number
  const rows = x.shape.slice(0, -1)
  // The leading dimensions must walk as one.
  const rowStride = x.strides.at(-2) ?? k
  let step = rowStride
  for (let i = rows.length - 1; i >= 0; i--) {
    if (rows[i] !== 1 && x.strides[i] !== step) return null
    step *= rows[i] as number
  }
  const flat: BufferView = { ...x, shape: [rows.reduce((p, q) => p * q, 1), k], strides: [rowStride, x.strides.at(-1) as number] }
  const transposed: BufferView = { ...w, shape: [k, w.shape[0] as number], strides: [w.strides[1] as number, w.strides[0] as number] }
  const out = [...rows, w.shape[0] as number]
  const finish = (product: Tensor): Result => {
    const shaped = out.length === 2 ? product : reshape(product, out)
    return bias === null ? shaped : add(shaped, bias)
  }
  return matmul(flat, transposed, finish)
}

/** convolution(input, weight, bias, stride, padding, dilation, groups) on NCHW: per image, weight [O, C*KH*KW] times the im2col matrix [C*KH*KW, OH*OW]. */
function convolution(args: readonly Arg[], viewOf: ViewOf): TemplateRule | null {
  const [input, weight, bias, stride, padding, dilation, groups] = args as [
    Tensor,
    Tensor,
    Tensor | null,
    readonly number[],
    readonly number[],
    readonly number[],
    number,
  ]
  if (groups !== 1 || input.ndim !== 4 || !weight.contiguousLayout) return null
  const x = viewOf(input)
  const w = viewOf(weight)
  const [n, c] = x.shape as [number, number, number, number]
  const [o, , kh, kw] = w.shape as [number, number, number, number]
  const gather = im2col(x, [kh, kw], stride, padding, dilation, false)
  const { outHeight: oh, outWidth: ow } = gather as { outHeight: number; outWidth: number }
  const depth = c * kh * kw
  const shape = [n, o, oh, ow]
  return {
    spec: { shape, dtype: 'float32' },
    iter: [n, o, oh * ow],
    reads: [w, x],
    scratchBytes: gemmScratchBytes(o, oh * ow, depth),
    finish: bias === null ? null : (product) => add(product, reshape(bias, [1, o, 1, 1])),
    build: (io) => ({
      name: io.name,
      batch: io.batch,
      rows: io.rows,
      cols: io.cols,
      depth,
      a: { buffer: io.buffers[0] as MatrixOperand['buffer'], rowStride: depth, colStride: 1, batchStrides: [0] },
      b: { buffer: io.buffers[1] as MatrixOperand['buffer'], rowStride: 0, colStride: 0, batchStrides: [x.strides[0] as number], gather },
      reduceBatch: 0,
      epilogue: io.epilogue,
      params: io.params,
    }),
  }
}

/** convolution_backward(grad, input, weight, …) where only the weight's gradient is asked for: summed over images, grad [O, OH*OW] times the transposed im2col matrix. */
function weightGradient(args: readonly Arg[], viewOf: ViewOf): TemplateRule | null {
  const [grad, input, weight, stride, padding, dilation, groups, needInput, needWeight] = args as [
    Tensor,
    Tensor,
    Tensor,
    readonly number[],
    readonly number[],
    readonly number[],
    number,
    boolean,
    boolean,
  ]
  if (needInput || !needWeight || groups !== 1 || input.ndim !== 4) return null
  const y = viewOf(grad)
  const x = viewOf(input)
  const [n, o, oh, ow] = y.shape as [number, number, number, number]
  const [, c, kh, kw] = weight.shape as [number, number, number, number]
  const [s0, s1, s2, s3] = y.strides as [number, number, number, number]
  // A feature's pixels must lie one after the other.
  if (s3 !== 1 || s2 !== ow) return null
  const gather = im2col(x, [kh, kw], stride, padding, dilation, true)
  const k = c * kh * kw
  return {
    spec: { shape: weight.shape, dtype: 'float32' },
    iter: [o, k],
    reads: [y, x],
    scratchBytes: gemmScratchBytes(o, k, oh * ow),
    // The input's gradient, which nobody asked for, is not looked at.
    finish: (product) => [product, product],
    build: (io) => ({
      name: io.name,
      batch: [loopVar('image', n)],
      rows: io.rows,
      cols: io.cols,
      depth: oh * ow,
      a: { buffer: io.buffers[0] as MatrixOperand['buffer'], rowStride: s1, colStride: 1, batchStrides: [s0] },
      b: { buffer: io.buffers[1] as MatrixOperand['buffer'], rowStride: 0, colStride: 0, batchStrides: [x.strides[0] as number], gather },
      reduceBatch: 1,
      epilogue: io.epilogue,
      params: io.params,
    }),
  }
}

function im2col(
  x: BufferView,
  window: readonly [number, number],
  stride: readonly number[],
  padding: readonly number[],
  dilation: readonly number[],
  swapped: boolean,
): ConvGather {
  const pair = (v: readonly number[]): [number, number] => [v[0] as number, v[1] ?? (v[0] as number)]
  const [sh, sw] = pair(stride)
  const [ph, pw] = pair(padding)
  const [dh, dw] = pair(dilation)
  const [kh, kw] = window
  const [, c, h, w] = x.shape as [number, number, number, number]
  return {
    channels: c,
    height: h,
    width: w,
    kernelHeight: kh,
    kernelWidth: kw,
    outHeight: Math.floor((h + 2 * ph - dh * (kh - 1) - 1) / sh) + 1,
    outWidth: Math.floor((w + 2 * pw - dw * (kw - 1) - 1) / sw) + 1,
    strideH: sh,
    strideW: sw,
    padH: ph,
    padW: pw,
    dilationH: dh,
    dilationW: dw,
    channelStride: x.strides[1] as number,
    rowStride: x.strides[2] as number,
    colStride: x.strides[3] as number,
    transposed: false,
    swapped,
  }
}
