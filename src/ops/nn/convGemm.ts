// float32 convolutions as matrix products whose right operand is gathered from the image (im2col inside the packing). Run-time sizes: three kernels for all shapes.
import { at, bufferParam, call, compileGemm, gemmScratchBytes, load, loopVar, sizeParam, store } from '../../kernels/index.ts'
import type { CompiledKernel, ConvGather, Expr, SizeParam, Stmt } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { contiguous, reshape, transpose } from '../view/index.ts'
import type { ConvGeometry } from './convShapes.ts'
import { kernelCache, launch, scratchMemory } from '../eager/launch.ts'

type Direction = 'forward' | 'input' | 'weight'

const SIZES = [
  'batch',
  'groups',
  'm',
  'n',
  'k',
  'a0',
  'aGroup',
  'aRow',
  'b0',
  'bGroup',
  'c0',
  'cGroup',
  'channels',
  'height',
  'width',
  'kernelHeight',
  'kernelWidth',
  'outHeight',
  'outWidth',
  'strideH',
  'strideW',
  'padH',
  'padW',
  'dilationH',
  'dilationW',
  'channelStride',
  'rowStride',
  'colStride',
] as const

// C[batch, group][row, col] = A[batch, group][row, k] * gathered B[batch, group][k, col]; the weight gradient sums over the batch.
const kernelOf = kernelCache((direction: Direction, hasBias: boolean): CompiledKernel => {
  const s = Object.fromEntries(SIZES.map((name) => [name, sizeParam(name)])) as Record<(typeof SIZES)[number], SizeParam>
  const c = bufferParam('c', 'float32', 'write')
  const a = bufferParam('a', 'float32')
  const b = bufferParam('b', 'float32')
  const bias = bufferParam('bias', 'float32')
  const images = loopVar('image', s.batch)
  const groups = loopVar('group', s.groups)
  const rows = loopVar('row', s.m)
  const cols = loopVar('col', s.n)
  const reduced = direction === 'weight'
  const gather: ConvGather = {
    channels: s.channels,
    height: s.height,
    width: s.width,
    kernelHeight: s.kernelHeight,
    kernelWidth: s.kernelWidth,
    outHeight: s.outHeight,
    outWidth: s.outWidth,
    strideH: s.strideH,
    strideW: s.strideW,
    padH: s.padH,
    padW: s.padW,
    dilationH: s.dilationH,
    dilationW: s.dilationW,
    channelStride: s.channelStride,
    rowStride: s.rowStride,
    colStride: s.colStride,
    transposed: direction === 'input',
    swapped: reduced,
  }
  const epilogue = (acc: Expr): readonly Stmt[] => {
    const index = reduced ? at([groups, s.cGroup], [rows, s.n], [cols, 1]) : at([images, s.c0], [groups, s.cGroup], [rows, s.n], [cols, 1])
    return [store(c, index, hasBias ? call('add', acc, load(bias, at([groups, s.m], [rows, 1]))) : acc)]
  }
  return compileGemm({
    name: `conv_${direction}`,
    batch: reduced ? [groups, images] : [images, groups],
    rows,
    cols,
    depth: s.k,
    a: { buffer: a, rowStride: s.aRow, colStride: 1, batchStrides: reduced ? [s.aGroup, s.a0] : [s.a0, s.aGroup] },
    b: { buffer: b, rowStride: 0, colStride: 0, batchStrides: reduced ? [s.bGroup, s.b0] : [s.b0, s.bGroup], gather },
    reduceBatch: reduced ? 1 : 0,
    epilogue,
    params: [c, a, b, ...(hasBias ? [bias] : []), ...SIZES.map((name) => s[name]), bufferParam('scratch', 'float32', 'readwrite')],
  })
})

/** Runs one direction. `tensors`: forward [out, input, weight, bias?], input gradient [gradInput, gradOut, weight], weight gradient [gradWeight, gradOut, input]. */
export function runConvGemm(direction: Direction, g: ConvGeometry, tensors: readonly Tensor[], input: Tensor): void {
  const { batch, groups, channels, features, height, width, kernelHeight, kernelWidth, outHeight, outWidth } = g
  const area = kernelHeight * kernelWidth
  const outPlane = outHeight * outWidth
  const inPlane = height * width
  const window = [g.strideH, g.strideW, g.padH, g.padW, g.dilationH, g.dilationW]
  const [first, second, third, bias] = tensors as [Tensor, Tensor, Tensor, Tensor | undefined]
  const call = (c: Tensor, a: Tensor, b: Tensor, m: number, n: number, k: number, sizes: readonly number[]): void =>
    launch(kernelOf(direction, bias !== undefined), bias === undefined ? [c, a, b] : [c, a, b, bias], [
      batch,
      groups,
      m,
      n,
      k,
      ...sizes,
      scratchMemory(gemmScratchBytes(m, n, k)),
    ])
  if (direction === 'input') {
    if (first.numel === 0) return
    // Rows are input channels: the weight is needed as [group, channel, feature, kernel].
    const turned = contiguous(transpose(reshape(third, [groups, features, channels, area]), 1, 2))
    const k = features * area
    call(first, turned, second, channels, inPlane, k, [
      0,
      channels * k,
      k,
      groups * features * outPlane,
      features * outPlane,
      groups * channels * inPlane,
      channels * inPlane,
      features,
      outHeight,
      outWidth,
      kernelHeight,
      kernelWidth,
      height,
      width,
      ...window,
      outPlane,
      outWidth,
      1,
    ])
    return
  }
  const [s0, s1, s2, s3] = input.strides as [number, number, number, number]
  const image = [channels, height, width, kernelHeight, kernelWidth, outHeight, outWidth, ...window, s1, s2, s3]
  const k = channels * area
  if (direction === 'forward') {
    if (first.numel === 0) return
    call(first, third, second, features, outPlane, k, [
      0,
      features * k,
      k,
      s0,
      channels * s1,
      groups * features * outPlane,
      features * outPlane,
      ...image,
    ])
  } else {
    if (first.numel === 0) return
    call(first, second, third, features, k, outPlane, [
      groups * features * outPlane,
      features * outPlane,
      outPlane,
      s0,
      channels * s1,
      0,
      features * k,
      ...image,
    ])
  }
}
