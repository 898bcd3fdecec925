// Padded copies of images in a kernel's scratch memory, for convolutions that read windows of them without testing for the border:
// constant sizes, stride 1, dilation 1.
import type { LoopVar, Size } from '../loopIr.ts'
import type { ConvGather, GemmSpec } from '../gemmSpec.ts'
import type { LoopWriter } from './loopWriter.ts'

/** The sizes of a convolution in numbers. */
export type ConvSizes = { readonly [K in keyof ConvGather]: ConvGather[K] extends boolean ? boolean : number }

/** A product of a matrix with gathered images whose sizes are all constant. Strides are in elements. */
export interface PlainConvolution {
  readonly sizes: ConvSizes
  readonly rows: number
  readonly cols: number
  readonly depth: number
  /** The loop over images, and its extent. */
  readonly image: LoopVar
  readonly images: number
  /** Strides of the left operand. */
  readonly left: { readonly row: number; readonly col: number; readonly image: number }
  /** Elements from one image to the next. */
  readonly imageStride: number
}

/** Larger windows would unroll into too much code. */
const MAX_WINDOW = 25

const isConstant = (gather: ConvGather): gather is ConvSizes => Object.values(gather).every((size) => typeof size !== 'object')

/** The problem in numbers when its sizes are constant, stride and dilation are 1, and rows of pixels come in whole vectors; else null. */
export function plainConvolution(spec: GemmSpec, swapped: boolean): PlainConvolution | null {
  const { a, b, batch, depth } = spec
  const sizes = b.gather
  const [image] = batch
  if (sizes === undefined || !isConstant(sizes) || image === undefined || batch.length !== 1) return null
  const { extent: rows } = spec.rows
  const { extent: cols } = spec.cols
  const { extent: images } = image
  const [imageStride] = b.batchStrides
  const left = plainStrides(a.rowStride, a.colStride, a.batchStrides[0])
  if (left === null || typeof rows !== 'number' || typeof cols !== 'number' || typeof depth !== 'number') return null
  if (typeof images !== 'number' || typeof imageStride !== 'number') return null
  if (sizes.transposed || sizes.swapped !== swapped || sizes.colStride !== 1) return null
  if (sizes.strideH !== 1 || sizes.strideW !== 1 || sizes.dilationH !== 1 || sizes.dilationW !== 1) return null
  if (sizes.outWidth % 4 !== 0 || sizes.kernelHeight * sizes.kernelWidth > MAX_WINDOW) return null
  return { sizes, rows, cols, depth, image, images, left, imageStride }
}

function plainStrides(row: Size, col: Size, image: Size | undefined): PlainConvolution['left'] | null {
  return typeof row === 'number' && typeof col === 'number' && typeof image === 'number' ? { row, col, image } : null
}

const paddedWidth = (g: ConvSizes): number => g.outWidth + g.kernelWidth - 1
const paddedHeight = (g: ConvSizes): number => g.outHeight + g.kernelHeight - 1

/** Bytes of one padded image. */
export const paddedBytes = (g: ConvSizes): number => 4 * g.channels * paddedHeight(g) * paddedWidth(g)

/** Writes the code that handles padded images. */
export class PaddedImages {
  readonly #w: LoopWriter
  readonly #g: ConvSizes

  constructor(writer: LoopWriter, sizes: ConvSizes) {
    this.#w = writer
    this.#g = sizes
  }

  /** Zeroes `count` images at `to` (a local), and up to 12 bytes more. Copies leave the borders as they are. */
  clear(to: number, count: number): void {
    this.#w.clear(to, paddedBytes(this.#g) * count)
  }

  /** Copies the image at `source` into the padded one at `image` (both locals with addresses). */
  copy(source: number, image: number): void {
    const w = this.#w
    const { f } = w
    const g = this.#g
    // A convolution reads at most out + window - 1 rows and columns.
    const rows = Math.min(g.height, paddedHeight(g) - g.padH)
    const cols = Math.min(g.width, paddedWidth(g) - g.padW)
    w.count(g.channels, 1, (channel) => {
      const from = w.address(source, channel, g.channelStride * 4)
      const to = w.address(image, channel, paddedHeight(g) * paddedWidth(g) * 4)
      w.advance(to, (g.padH * paddedWidth(g) + g.padW) * 4)
      w.count(rows, 1, () => {
        let col = 0
        for (; col + 4 <= cols && col < 64; col += 4) {
          f.get(to)
          f.get(from)
          f.memory('v128.load', col * 4)
          f.memory('v128.store', col * 4)
        }
        const done = col
        w.count(cols - done, 1, (c) => {
          w.offset(to, c, 4)
          w.offset(from, c, 4)
          f.memory('f32.load', done * 4)
          f.memory('f32.store', done * 4)
        })
        w.advance(from, g.rowStride * 4)
        w.advance(to, paddedWidth(g) * 4)
      })
    })
  }

  /** Pushes the byte offset in an image at which the window of pixel `position` starts (a local: row * outWidth + column). */
  pixelOffset(position: number): void {
    const { f } = this.#w
    f.get(position)
    f.i32Const(this.#g.outWidth)
    f.op('i32.div_u')
    f.i32Const(paddedWidth(this.#g) * 4)
    f.op('i32.mul')
    f.get(position)
    f.i32Const(this.#g.outWidth)
    f.op('i32.rem_u')
    f.i32Const(2)
    f.op('i32.shl')
    f.op('i32.add')
  }

  /** Writes a table at `table` (a local): the byte offset of each element (channel, y, x) of the window from its pixel. */
  writeWindowTable(table: number): void {
    const w = this.#w
    const { f } = w
    const g = this.#g
    const [to, base] = [f.local('i32'), f.local('i32')]
    f.get(table)
    f.set(to)
    f.i32Const(0)
    f.set(base)
    w.count(g.channels, 1, () => {
      for (let y = 0; y < g.kernelHeight; y++) {
        for (let x = 0; x < g.kernelWidth; x++) {
          f.get(to)
          f.get(base)
          f.i32Const((y * paddedWidth(g) + x) * 4)
          f.op('i32.add')
          f.memory('i32.store', (y * g.kernelWidth + x) * 4)
        }
      }
      w.advance(to, g.kernelHeight * g.kernelWidth * 4)
      w.advance(base, paddedHeight(g) * paddedWidth(g) * 4)
    })
  }
}
