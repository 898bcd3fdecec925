// Padded copies of images in a kernel's scratch memory, for convolutions that read windows of them without a test at the borders:
// constant sizes, stride 1, dilation 1.
import type { ConvGather, GemmSpec } from '../contracts.ts'
import type { LoopWriter } from './loopWriter.ts'

/** The sizes of a convolution in numbers. */
export type ConvSizes = { readonly [K in keyof ConvGather]: ConvGather[K] extends boolean ? boolean : number }

/** Windows beyond this would unroll into too much code. */
const MAX_WINDOW = 25

/** The sizes when they are constant, stride and dilation are 1 and rows of pixels come in whole vectors; else null. */
export function plainConvSizes(spec: GemmSpec, swapped: boolean): ConvSizes | null {
  const { gather } = spec.b
  if (gather === undefined || Object.values(gather).some((v) => typeof v === 'object')) return null
  const g = gather as ConvSizes
  const sizes = [spec.rows.extent, spec.cols.extent, spec.depth, spec.a.rowStride, spec.a.colStride, ...spec.a.batchStrides, ...spec.b.batchStrides]
  if (sizes.some((s) => typeof s !== 'number') || spec.batch.length !== 1 || typeof spec.batch[0]?.extent !== 'number') return null
  if (g.transposed || g.swapped !== swapped || g.colStride !== 1) return null
  if (g.strideH !== 1 || g.strideW !== 1 || g.dilationH !== 1 || g.dilationW !== 1) return null
  return g.outWidth % 4 === 0 && g.kernelHeight * g.kernelWidth <= MAX_WINDOW ? g : null
}

const paddedWidth = (g: ConvSizes): number => g.outWidth + g.kernelWidth - 1
const paddedHeight = (g: ConvSizes): number => g.outHeight + g.kernelHeight - 1

/** Bytes of one padded image. */
export const paddedBytes = (g: ConvSizes): number => 4 * g.channels * paddedHeight(g) * paddedWidth(g)

/** Writes the code that keeps padded images. */
export class PaddedImages {
  readonly #w: LoopWriter
  readonly #g: ConvSizes

  constructor(writer: LoopWriter, sizes: ConvSizes) {
    this.#w = writer
    this.#g = sizes
  }

  /** Zeroes `count` images at `to` (a local), up to 12 bytes more; copies leave the borders alone. */
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

  /** Pushes where the window of pixel `position` (a local: row * outWidth + column) starts, in bytes from the image's start. */
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

  /** Writes at `table` (a local) where each element (channel, y, x) of the window lies relative to a pixel, in bytes. */
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
