// float32 convolutions as products of matrices with windows of the images. Sizes are run-time parameters: a few kernels do for all shapes that have none of their own (convScheduled.ts).
import {
  at,
  bufferParam,
  call,
  compileScheduled,
  gathered,
  gatheredScratchBytes,
  gatheredSide,
  load,
  loopVar,
  store,
} from '../../../kernels/index.ts'
import type { CompiledKernel, Expr, GatheredSide, Stmt } from '../../../kernels/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { sizeParams } from '../../eager/sizes.ts'
import { kernelCache, launch, scratchMemory } from '../../eager/launch.ts'
import { quadrupleOf } from '../../shared/shapes.ts'
import { transpose } from '../../view/permute.ts'
import { contiguous, reshape } from '../../view/reshape.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'

type Direction = ConvOperands['direction']

/** The size parameters of all kernels, in the order in which they take them. */
const SIZES = [
  ...(['batch', 'groups', 'm', 'n', 'k', 'a0', 'aGroup', 'aRow', 'b0', 'bGroup', 'c0', 'cGroup'] as const),
  ...(['channels', 'channelStride', 'rowStride', 'colStride'] as const),
  ...(['height', 'kernelHeight', 'outHeight', 'copyHeight', 'firstRow', 'spreadRows', 'startRow', 'stepRows', 'tapRows'] as const),
  ...(['width', 'kernelWidth', 'outWidth', 'copyWidth', 'firstCol', 'spreadCols', 'startCol', 'stepCols', 'tapCols'] as const),
] as const

// C[batch, group][row, col] = A[batch, group][row, k] * windows of B[batch, group][k, col]; the weight gradient sums over the batch. `isDense`: pixels of a row that are read one after the other are neighbours.
const kernelOf = kernelCache((direction: Direction, hasBias: boolean, isDense: boolean): CompiledKernel => {
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
  const epilogue = (acc: Expr): readonly Stmt[] => {
    const index = reduced ? at([groups, s.cGroup], [rows, s.n], [cols, 1]) : at([images, s.c0], [groups, s.cGroup], [rows, s.n], [cols, 1])
    return [store(c, index, hasBias ? call('add', acc, load(bias, at([groups, s.m], [rows, 1]))) : acc)]
  }
  const sides: { readonly rows: GatheredSide; readonly cols: GatheredSide } = {
    rows: {
      ...{ size: s.height, kernel: s.kernelHeight, out: s.outHeight, copy: s.copyHeight },
      ...{ first: s.firstRow, spread: s.spreadRows, start: s.startRow, step: s.stepRows, tap: s.tapRows },
    },
    cols: {
      ...{ size: s.width, kernel: s.kernelWidth, out: s.outWidth, copy: s.copyWidth },
      ...{ first: s.firstCol, spread: isDense ? 1 : s.spreadCols, start: s.startCol, step: isDense ? 1 : s.stepCols, tap: s.tapCols },
    },
  }
  const product = {
    ...{ name: `conv_${direction}`, batch: reduced ? [groups, images] : [images, groups], rows, cols, depth: s.k, epilogue },
    a: { buffer: a, rowStride: s.aRow, colStride: 1, batchStrides: reduced ? [s.aGroup, s.a0] : [s.a0, s.aGroup] },
    b: { buffer: b, rowStride: 0, colStride: 0, batchStrides: reduced ? [s.bGroup, s.b0] : [s.b0, s.bGroup] },
    reduceBatch: reduced ? 1 : 0,
    params: [c, a, b, ...(hasBias ? [bias] : []), ...Object.values(s), bufferParam('scratch', 'float32', 'readwrite')],
  }
  const strides = { channelStride: s.channelStride, rowStride: s.rowStride, colStride: isDense ? 1 : s.colStride }
  return compileScheduled(gathered, { product, windows: { channels: s.channels, ...sides, ...strides, swapped: reduced } })
})

/** Runs one direction. */
export function runConvGemm(g: ConvGeometry, operands: ConvOperands): void {
  const { direction, out } = operands
  const { batch, groups, channels, features, height, width, kernelHeight, kernelWidth, outHeight, outWidth } = g
  const area = kernelHeight * kernelWidth
  const outPlane = outHeight * outWidth
  const inPlane = height * width
  const bias = direction === 'forward' ? operands.bias : null
  const isInput = direction === 'input'
  const rows = isInput
    ? gatheredSide(outHeight, kernelHeight, height, g.strideH, g.padH, g.dilationH, true)
    : gatheredSide(height, kernelHeight, outHeight, g.strideH, g.padH, g.dilationH, false)
  const cols = isInput
    ? gatheredSide(outWidth, kernelWidth, width, g.strideW, g.padW, g.dilationW, true)
    : gatheredSide(width, kernelWidth, outWidth, g.strideW, g.padW, g.dilationW, false)
  /** `sizes` are those from m to colStride in {@link SIZES}. */
  const run = (a: Tensor, b: Tensor, m: number, n: number, k: number, sizes: readonly number[], colStride: number, copied: number): void => {
    const kernel = kernelOf(direction, bias !== null, colStride === 1 && cols.spread === 1 && cols.step === 1)
    const scratch = scratchMemory(gatheredScratchBytes(m, n, k, copied * rows.copy * cols.copy))
    const numbers = [batch, groups, m, n, k, ...sizes]
    for (const { size, kernel: window, out: results, copy, first, spread, start, step, tap } of [rows, cols])
      numbers.push(size, window, results, copy, first, spread, start, step, tap)
    numbers.push(scratch)
    launch(kernel, bias === null ? [out, a, b] : [out, a, b, bias], numbers)
  }
  if (direction === 'input') {
    // Rows are input channels: the weight is needed as [group, channel, feature, kernel].
    const turned = contiguous(transpose(reshape(operands.weight, [groups, features, channels, area]), 1, 2))
    const k = features * area
    const ofB = [groups * features * outPlane, features * outPlane]
    const sizes = [0, channels * k, k, ...ofB, groups * channels * inPlane, channels * inPlane, features, outPlane, outWidth, 1]
    run(turned, operands.gradOut, channels, inPlane, k, sizes, 1, features)
    return
  }
  const { input } = operands
  const [s0, s1, s2, s3] = quadrupleOf(input.steps)
  const k = channels * area
  const image = [channels, s1, s2, s3]
  const [plane, group] = [groups * features * outPlane, features * outPlane]
  if (direction === 'forward')
    run(operands.weight, input, features, outPlane, k, [0, features * k, k, s0, channels * s1, plane, group, ...image], s3, channels)
  else run(operands.gradOut, input, features, k, outPlane, [plane, group, outPlane, s0, channels * s1, 0, features * k, ...image], s3, channels)
}
