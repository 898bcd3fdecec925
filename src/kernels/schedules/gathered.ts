// Products of a matrix and the windows of images, for convolutions of any sizes, which may be parameters of each call: windows are laid out as the rows of a matrix (im2col), which the schedule gemm then
// takes. They are read from a copy of the image with a border of zeros, and for transposed convolutions with zeros between its pixels.
import type { GemmSpec } from './gemmSpec.ts'
import { constant, forLoop, load, loopVar, scratch, store } from '../ir/loopIr.ts'
import type { Kernel, Size, Stmt } from '../ir/loopIr.ts'
import { sizeProduct, sizeSum } from '../ir/sizes.ts'
import { gemm, gemmScratchBytes, productOf } from './gemm.ts'
import type { GemmTile } from './gemm.ts'
import { from, nest } from './notation.ts'
import type { Terms } from './notation.ts'
import type { Schedule } from './schedule.ts'

/** Where windows lie along one side of the image. */
export interface GatheredSide<S extends Size = Size> {
  /** Pixels of the image, elements of the window, and results. */
  readonly size: S
  readonly kernel: S
  readonly out: S
  /** Elements of the copy, its element that has the image's first pixel, and the distance of pixels in it. */
  readonly copy: S
  readonly first: S
  readonly spread: S
  /** The element of the copy that the first result reads with the first element of the window, and how much further the next result and the next element of the window read. */
  readonly start: S
  readonly step: S
  readonly tap: S
}

/** Where windows lie: result i reads pixel i * stride + k * dilation - pad; of a transposed convolution (i + pad - k * dilation) / stride, where that is whole. */
export function gatheredSide(
  size: number,
  kernel: number,
  out: number,
  stride: number,
  pad: number,
  dilation: number,
  transposed: boolean,
): GatheredSide<number> {
  const reach = (kernel - 1) * dilation
  // Without spreads: small convolutions take less time than objects made of others.
  if (!transposed) {
    const copy = Math.max(pad + size, (out - 1) * stride + reach + 1)
    return { size, kernel, out, copy, first: pad, spread: 1, start: 0, step: stride, tap: dilation }
  }
  const first = Math.max(0, reach - pad)
  const copy = first + Math.max((size - 1) * stride + 1, out + pad)
  return { size, kernel, out, copy, first, spread: stride, start: first + pad, step: 1, tap: -dilation }
}

/** The windows of an image: row k = (channel, y, x) of the window, column = (y, x) of the result. */
export interface Windows {
  readonly channels: Size
  readonly rows: GatheredSide
  readonly cols: GatheredSide
  /** Strides of the image, in elements. */
  readonly channelStride: Size
  readonly rowStride: Size
  readonly colStride: Size
  /** Whether the matrix is transposed: then its rows are results, and its columns elements of the window. */
  readonly swapped: boolean
}

/** A product whose B are the windows of the images in B's buffer. Strides of B other than those of batches say nothing. */
export interface GatheredProblem {
  readonly product: GemmSpec
  readonly windows: Windows
}

/** The schedule of products with windows of images. */
export const gathered: Schedule<GatheredProblem, GatheredProblem, GemmTile> = {
  name: 'product with windows',
  match: ({ product }) => gemm.match(product),
  spec: (problem) => problem,
  // Packing two panels at once instead of four keeps kernels of sizes that are parameters below 8 KB.
  tiles: (engine) => gemm.tiles(engine).map((tile) => ({ ...tile, together: 2 })),
  build: (problem, tile) => gatheredKernel(problem, tile),
}

/** The most bytes of scratch memory for a product of these sizes; `copied` is the number of elements in the copy of an image. */
export const gatheredScratchBytes = (m: number, n: number, k: number, copied: number): number =>
  4 * (copied + k * n) + 2 * 64 + gemmScratchBytes(m, n, k)

function gatheredKernel({ product, windows }: GatheredProblem, tile: GemmTile): Kernel {
  const { channels, rows, cols, channelStride, rowStride, colStride, swapped } = windows
  const [plane, outPlane] = [sizeProduct(rows.copy, cols.copy), sizeProduct(rows.out, cols.out)]
  const area = sizeProduct(rows.kernel, cols.kernel)
  const copy = scratch('bordered', 'float32', sizeProduct(channels, plane))
  const matrix = scratch('windows', 'float32', sizeProduct(sizeProduct(channels, area), outPlane))
  const [i, c, y, x] = [loopVar('i', copy.elements), loopVar('channel', channels), loopVar('y', rows.size), loopVar('x', cols.size)]
  const [ky, kx, oy, ox] = [loopVar('ky', rows.kernel), loopVar('kx', cols.kernel), loopVar('oy', rows.out), loopVar('ox', cols.out)]
  const alongRows = (stride: Size): Size => sizeProduct(stride, cols.copy)
  const { buffer, batchStrides } = product.b
  const batch: Terms = product.batch.map((loop, at) => [loop, batchStrides[at] ?? 0])
  const pixel = load(buffer, from(0, ...batch, [c, channelStride], [y, rowStride], [x, colStride]))
  const place = from(sizeSum(alongRows(rows.first), cols.first), [c, plane], [y, alongRows(rows.spread)], [x, cols.spread])
  const source = from(
    sizeSum(alongRows(rows.start), cols.start),
    ...([
      [c, plane],
      [ky, alongRows(rows.tap)],
      [kx, cols.tap],
    ] as const),
    ...([
      [oy, alongRows(rows.step)],
      [ox, cols.step],
    ] as const),
  )
  const target = from(
    0,
    ...([
      [c, sizeProduct(area, outPlane)],
      [ky, sizeProduct(cols.kernel, outPlane)],
      [kx, outPlane],
    ] as const),
    ...([
      [oy, cols.out],
      [ox, 1],
    ] as const),
  )
  const strides = swapped ? { rowStride: 1, colStride: outPlane } : { rowStride: outPlane, colStride: 1 }
  const before: readonly Stmt[] = [forLoop(i, 'simd', [store(copy, from(0, [i, 1]), constant('float32', 0))])]
  const write: readonly Stmt[] = [
    ...nest('serial', [c, y], [forLoop(x, 'simd', [store(copy, place, pixel)])]),
    ...nest('serial', [c, ky, kx, oy], [forLoop(ox, 'simd', [store(matrix, target, load(copy, source))])]),
  ]
  const kernel = productOf({ ...product, b: { ...product.b, ...strides } }, tile, { memory: matrix, write })
  return { ...kernel, scratch: [copy, matrix, ...(kernel.scratch ?? [])], body: [...before, ...kernel.body] }
}
