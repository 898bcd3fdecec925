// Direct convolution, for constant sizes, stride 1 and dilation 1: the register tile of the matrix product reads the (padded) image itself, which
// the general template first lays out as a matrix. Four output channels by eight pixels; a table has the offsets of the window's elements.
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { GemmSpec } from '../gemmSpec.ts'
import type { LoopWriter } from './loopWriter.ts'
import { PaddedImages, paddedBytes, plainConvolution } from './paddedImages.ts'
import type { PlainConvolution } from './paddedImages.ts'
import { RegisterTile, TILE_ROWS } from './registerTile.ts'
import { TemplateWriter, compileTemplate, hasWideEpilogue } from './template.ts'
import type { TemplateKernel } from './template.ts'

const ROWS = TILE_ROWS
const COLS = 8

/** Compiles the convolution, or returns null when this template does not fit. The same problem is compiled only once. */
export function compileDirectConv(spec: GemmSpec): TemplateKernel | null {
  const problem = plainConvolution(spec, false)
  if (problem === null || problem.depth === 0 || spec.reduceBatch !== 0 || problem.left.image !== 0) return null
  const { sizes, rows, depth } = problem
  if ((sizes.outHeight * sizes.outWidth) % COLS !== 0 || !hasWideEpilogue(spec)) return null
  const compiled = compileTemplate('direct convolution', spec, () => new DirectConvEmitter(spec, problem).emit())
  // Packed weights, one padded image, the offsets of the window's elements.
  return { compiled, scratchBytes: 4 * (Math.ceil(rows / ROWS) * ROWS * depth + depth) + paddedBytes(sizes) + 256 }
}

class DirectConvEmitter {
  readonly #spec: GemmSpec
  readonly #p: PlainConvolution
  readonly #t: TemplateWriter
  readonly #f: FunctionBuilder
  readonly #w: LoopWriter
  readonly #images: PaddedImages
  readonly #weights: number
  readonly #image: number
  readonly #table: number

  constructor(spec: GemmSpec, problem: PlainConvolution) {
    const { rows, depth, sizes } = problem
    this.#spec = spec
    this.#p = problem
    this.#t = new TemplateWriter(spec)
    this.#f = this.#t.f
    this.#w = this.#t.w
    this.#images = new PaddedImages(this.#w, sizes)
    const after = (start: number, bytes: number): number =>
      this.#w.let(() => {
        this.#f.get(start)
        this.#f.i32Const(bytes)
        this.#f.op('i32.add')
      })
    this.#weights = this.#t.scratch()
    this.#image = after(this.#weights, Math.ceil(rows / ROWS) * ROWS * depth * 4)
    this.#table = after(this.#image, paddedBytes(sizes) + 64)
  }

  emit(): Uint8Array<ArrayBuffer> {
    this.#packWeights()
    this.#images.writeWindowTable(this.#table)
    this.#images.clear(this.#image, 1)
    const source = this.#t.param(this.#spec.b.buffer)
    this.#w.count(this.#p.images, 1, (image) => {
      this.#images.copy(this.#w.address(source, image, this.#p.imageStride * 4), this.#image)
      this.#product(image)
    })
    return this.#t.finish()
  }

  /** Panels of four channels, depth-major; channels past the last are zero. */
  #packWeights(): void {
    const f = this.#f
    const { rows, depth, left } = this.#p
    const source = this.#t.param(this.#spec.a.buffer)
    const to = this.#w.let(() => f.get(this.#weights))
    for (let row = 0; row < rows; row += ROWS) {
      this.#w.count(depth, 1, (k) => {
        for (let r = 0; r < ROWS; r++) {
          f.get(to)
          if (row + r < rows) {
            this.#w.offset(source, k, left.col * 4)
            f.memory('f32.load', (row + r) * left.row * 4)
          } else f.f32Const(0)
          f.memory('f32.store', r * 4)
        }
        this.#w.advance(to, ROWS * 4)
      })
    }
  }

  #product(image: number): void {
    const { rows } = this.#p
    const whole = Math.floor(rows / ROWS) * ROWS
    this.#w.count(whole, ROWS, (row) => this.#columns(image, row, ROWS))
    if (whole < rows) {
      this.#columns(
        image,
        this.#w.let(() => this.#f.i32Const(whole)),
        rows - whole,
      )
    }
  }

  #columns(image: number, row: number, valid: number): void {
    const f = this.#f
    const { sizes, depth, image: loop } = this.#p
    const panel = this.#w.address(this.#weights, row, depth * 4)
    this.#w.count(sizes.outHeight * sizes.outWidth, COLS, (col) => {
      /** The address in the image of four pixels, which are in one row. */
      const start = (half: number): number => {
        const position = this.#w.let(() => {
          f.get(col)
          f.i32Const(half)
          f.op('i32.add')
        })
        return this.#w.let(() => {
          f.get(this.#image)
          this.#images.pixelOffset(position)
          f.op('i32.add')
        })
      }
      const { sums } = this.#tile(panel, [start(0), start(4)])
      sums.slice(0, valid).forEach((vectors, r) => {
        const at = this.#w.let(() => {
          f.get(row)
          f.i32Const(r)
          f.op('i32.add')
        })
        this.#t.epilogue([{ loop, counter: image }], at, col, vectors, true)
      })
    })
  }

  /** Four channels by eight pixels, summed over input channels and the window. The loop is not unrolled, because then the sums would not stay in registers. */
  #tile(panel: number, starts: readonly [number, number]): RegisterTile {
    const f = this.#f
    const tile = new RegisterTile(f)
    const weights = this.#w.let(() => f.get(panel))
    const entry = this.#w.let(() => f.get(this.#table))
    const left = this.#w.let(() => f.i32Const(this.#p.depth))
    const offset = f.local('i32')
    f.loop((again) => {
      f.get(entry)
      f.memory('i32.load')
      f.set(offset)
      const push = (vector: 0 | 1): void => {
        f.get(starts[vector])
        f.get(offset)
        f.op('i32.add')
      }
      tile.loadRight(push, [0, 0])
      tile.addProducts(weights, 'v128.load32_splat', 4)
      this.#w.advance(weights, ROWS * 4)
      this.#w.advance(entry, 4)
      f.get(left)
      f.i32Const(1)
      f.op('i32.sub')
      f.tee(left)
      f.brIf(again)
    })
    return tile
  }
}
