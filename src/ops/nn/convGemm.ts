// float32 convolutions as matrix products whose right operand is gathered from the image (im2col inside the packing). Sizes are run-time parameters: three
// kernels do for all shapes.
import { at, bufferParam, call, compileGemm, gemmScratchBytes, load, loopVar, store } from '../../kernels/index.ts'
import type { CompiledKernel, ConvGather, Expr, Stmt } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { sizeParams } from '../eager/sizes.ts'
import { kernelCache, launch, scratchMemory } from '../eager/launch.ts'
import { quadrupleOf } from '../shapes.ts'
import { transpose } from '../view/permute.ts'
import { contiguous, reshape } from '../view/reshape.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'
import { runScheduled } from './convScheduled.ts'

type Direction = ConvOperands['direction']

/** The size parameters of all three kernels, in the order in which the calls below pass them. */
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
  const s = sizeParams(SIZES)
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
    params: [c, a, b, ...(hasBias ? [bias] : []), ...Object.values(s), bufferParam('scratch', 'float32', 'readwrite')],
  })
})

/** Runs one direction. */
export function runConvGemm(g: ConvGeometry, operands: ConvOperands): void {
  const { direction, out } = operands
  if (out.numel === 0 || runScheduled(g, operands)) return
  const { batch, groups, channels, features, height, width, kernelHeight, kernelWidth, outHeight, outWidth } = g
  const area = kernelHeight * kernelWidth
  const outPlane = outHeight * outWidth
  const inPlane = height * width
  const window = [g.strideH, g.strideW, g.padH, g.padW, g.dilationH, g.dilationW]
  const bias = direction === 'forward' ? operands.bias : null
  const call = (a: Tensor, b: Tensor, m: number, n: number, k: number, sizes: readonly number[]): void => {
    const scratch = scratchMemory(gemmScratchBytes(m, n, k))
    launch(kernelOf(direction, bias !== null), bias === null ? [out, a, b] : [out, a, b, bias], [batch, groups, m, n, k, ...sizes, scratch])
  }
  if (direction === 'input') {
    // Rows are input channels: the weight is needed as [group, channel, feature, kernel].
    const turned = contiguous(transpose(reshape(operands.weight, [groups, features, channels, area]), 1, 2))
    const k = features * area
    const aSizes = [0, channels * k, k]
    const bSizes = [groups * features * outPlane, features * outPlane]
    const cSizes = [groups * channels * inPlane, channels * inPlane]
    const image = [features, outHeight, outWidth, kernelHeight, kernelWidth, height, width, ...window, outPlane, outWidth, 1]
    call(turned, operands.gradOut, channels, inPlane, k, [...aSizes, ...bSizes, ...cSizes, ...image])
    return
  }
  const { input } = operands
  const [s0, s1, s2, s3] = quadrupleOf(input.steps)
  const image = [channels, height, width, kernelHeight, kernelWidth, outHeight, outWidth, ...window, s1, s2, s3]
  const k = channels * area
  const bSizes = [s0, channels * s1]
  const plane = [groups * features * outPlane, features * outPlane]
  if (direction === 'forward') call(operands.weight, input, features, outPlane, k, [0, features * k, k, ...bSizes, ...plane, ...image])
  else call(operands.gradOut, input, features, k, outPlane, [...plane, outPlane, ...bSizes, 0, features * k, ...image])
}
