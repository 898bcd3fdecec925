// float32 convolutions as products of matrices with windows of the images. Sizes are run-time parameters: a few kernels do for all shapes that have none of their own (convScheduled.ts).
import { at, bufferParam, call, compileScheduled, gathered, gatheredSide, load, loopVar, scratchBytes, store } from '../../kernels/index.ts'
import type { CompiledKernel, Expr, GatheredSide, Stmt } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { sizeParams } from '../eager/sizes.ts'
import { kernelCache, launch, scratchMemory } from '../eager/launch.ts'
import { quadrupleOf } from '../shapes.ts'
import { transpose } from '../view/permute.ts'
import { contiguous, reshape } from '../view/reshape.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'
import { runScheduled } from './convScheduled.ts'

type Direction = ConvOperands['direction']

/** The size parameters of all kernels, in the order in which they take them. */
const SIZES = [
  ...(['batch', 'groups', 'm', 'n', 'k', 'a0', 'aGroup', 'aRow', 'b0', 'bGroup', 'c0', 'cGroup'] as const),
  ...(['channels', 'channelStride', 'rowStride', 'colStride'] as const),
  ...(['height', 'kernelHeight', 'outHeight', 'copyHeight', 'firstRow', 'spreadRows', 'startRow', 'stepRows', 'tapRows'] as const),
  ...(['width', 'kernelWidth', 'outWidth', 'copyWidth', 'firstCol', 'spreadCols', 'startCol', 'stepCols', 'tapCols'] as const),
] as const

type Sizes = Readonly<Record<(typeof SIZES)[number], number>>
type WindowSizes = Pick<
  Sizes,
  | 'height'
  | 'kernelHeight'
  | 'outHeight'
  | 'copyHeight'
  | 'firstRow'
  | 'spreadRows'
  | 'startRow'
  | 'stepRows'
  | 'tapRows'
  | 'width'
  | 'kernelWidth'
  | 'outWidth'
  | 'copyWidth'
  | 'firstCol'
  | 'spreadCols'
  | 'startCol'
  | 'stepCols'
  | 'tapCols'
>

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
  if (out.numel === 0 || runScheduled(g, operands)) return
  const { batch, groups, channels, features, height, width, kernelHeight, kernelWidth, outHeight, outWidth } = g
  const area = kernelHeight * kernelWidth
  const outPlane = outHeight * outWidth
  const inPlane = height * width
  const bias = direction === 'forward' ? operands.bias : null
  const run = (a: Tensor, b: Tensor, sizes: Omit<Sizes, 'batch' | 'groups'>): void => {
    const values: Sizes = { batch, groups, ...sizes }
    const isDense = values.colStride === 1 && values.spreadCols === 1 && values.stepCols === 1
    const kernel = kernelOf(direction, bias !== null, isDense)
    const scratch = scratchMemory(scratchBytes(kernel.kernel, ({ name }) => Number(Object.entries(values).find(([key]) => key === name)?.[1])))
    launch(kernel, bias === null ? [out, a, b] : [out, a, b, bias], [...SIZES.map((name) => values[name]), scratch])
  }
  if (direction === 'input') {
    // Rows are input channels: the weight is needed as [group, channel, feature, kernel].
    const turned = contiguous(transpose(reshape(operands.weight, [groups, features, channels, area]), 1, 2))
    const k = features * area
    run(turned, operands.gradOut, {
      ...{ m: channels, n: inPlane, k, a0: 0, aGroup: channels * k, aRow: k, b0: groups * features * outPlane, bGroup: features * outPlane },
      ...{ c0: groups * channels * inPlane, cGroup: channels * inPlane, ...windowsOf(g, direction) },
      ...{ channels: features, channelStride: outPlane, rowStride: outWidth, colStride: 1 },
    })
    return
  }
  const { input } = operands
  const [b0, channelStride, rowStride, colStride] = quadrupleOf(input.steps)
  const k = channels * area
  const image = { channels, channelStride, rowStride, colStride, b0, bGroup: channels * channelStride, ...windowsOf(g, direction) }
  const [plane, group] = [groups * features * outPlane, features * outPlane]
  if (direction === 'forward')
    run(operands.weight, input, { m: features, n: outPlane, k, a0: 0, aGroup: features * k, aRow: k, c0: plane, cGroup: group, ...image })
  else
    run(operands.gradOut, input, {
      ...{ m: features, n: k, k: outPlane, a0: plane, aGroup: group, aRow: outPlane, c0: 0, cGroup: features * k },
      ...image,
    })
}

/** What kernels take of the windows: of a gradient of images, those in the result's gradient. */
function windowsOf(g: ConvGeometry, direction: Direction): WindowSizes {
  const { kernelHeight, kernelWidth } = g
  const isInput = direction === 'input'
  const [height, outHeight] = isInput ? [g.outHeight, g.height] : [g.height, g.outHeight]
  const [width, outWidth] = isInput ? [g.outWidth, g.width] : [g.width, g.outWidth]
  const rows = gatheredSide({ size: height, kernel: kernelHeight, out: outHeight, stride: g.strideH, pad: g.padH, dilation: g.dilationH }, isInput)
  const cols = gatheredSide({ size: width, kernel: kernelWidth, out: outWidth, stride: g.strideW, pad: g.padW, dilation: g.dilationW }, isInput)
  return {
    ...{ height, kernelHeight, outHeight, copyHeight: rows.copy, firstRow: rows.first, spreadRows: rows.spread },
    ...{ startRow: rows.start, stepRows: rows.step, tapRows: rows.tap },
    ...{ width, kernelWidth, outWidth, copyWidth: cols.copy, firstCol: cols.first, spreadCols: cols.spread },
    ...{ startCol: cols.start, stepCols: cols.step, tapCols: cols.tap },
  }
}
