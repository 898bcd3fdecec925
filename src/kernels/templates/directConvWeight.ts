// The weight gradient of a convolution, for constant sizes, stride 1 and dilation 1: each element of the gradient is a dot product of
// the output's gradient with the (padded) images, shifted by its place in the window. Four features by two window elements at a time, lanes along
// pixels; the general template would first lay every image out as a matrix.
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { GemmSpec } from '../gemmSpec.ts'
import type { LoopWriter } from './loopWriter.ts'
import { PaddedImages, paddedBytes, plainConvolution } from './paddedImages.ts'
import type { PlainConvolution } from './paddedImages.ts'
import { RegisterTile, TILE_ROWS } from './registerTile.ts'
import { TemplateWriter, compileTemplate, hasWideEpilogue } from './template.ts'
import type { SpareKernel } from './template.ts'

/** Features of a tile. */
const ROWS = TILE_ROWS
/** Window elements of a tile. */
const COLS = 2
/** Images are processed in groups whose copies fit into this many bytes, so that they stay in the cache. */
const GROUP_BYTES = 128 * 1024

/** The convolution's `rows` are features and its `cols` elements of the window: channels * kernel height * kernel width. */
interface Problem extends PlainConvolution {
  /** Images of a group; it divides `images`. */
  readonly group: number
  /** Vectors of pixels of an image. */
  readonly vectors: number
}

function problemOf(spec: GemmSpec): Problem | null {
  const plain = plainConvolution(spec, true)
  if (plain === null || spec.reduceBatch !== 1 || plain.left.col !== 1 || plain.images === 0 || plain.rows === 0) return null
  const { sizes, rows, images } = plain
  const pixels = sizes.outHeight * sizes.outWidth
  const perImage = paddedBytes(sizes) + packedRows(rows) * pixels * 4
  let group = Math.max(1, Math.min(images, Math.floor(GROUP_BYTES / perImage)))
  while (images % group !== 0) group--
  return { ...plain, group, vectors: pixels / 4 }
}

const packedRows = (rows: number): number => Math.ceil(rows / ROWS) * ROWS
const packedCols = (cols: number): number => Math.ceil(cols / COLS) * COLS

/** Scratch memory, in bytes: gradients of a group as panels of four features, its padded images, the offsets of windows and pixels, the sums. */
function layout(p: Problem): {
  readonly images: number
  readonly windows: number
  readonly pixels: number
  readonly sums: number
  readonly end: number
} {
  const images = packedRows(p.rows) * p.vectors * 16 * p.group
  const windows = images + paddedBytes(p.sizes) * p.group + 16
  const pixels = windows + 4 * packedCols(p.cols)
  const sums = pixels + 4 * p.vectors * p.group
  return { images, windows, pixels, sums, end: sums + 4 * packedRows(p.rows) * packedCols(p.cols) + 16 }
}

/** The kernel of the weight gradient, or null when this template does not fit. The same problem is compiled only once. */
export function directConvWeight(spec: GemmSpec): SpareKernel | null {
  const problem = problemOf(spec)
  if (problem === null || !hasWideEpilogue(spec)) return null
  const emit = (): Uint8Array<ArrayBuffer> => new WeightGradientEmitter(spec, problem).emit()
  return { compile: () => compileTemplate('weight gradient of a convolution', spec, emit), scratchBytes: layout(problem).end + 64 }
}

class WeightGradientEmitter {
  readonly #spec: GemmSpec
  readonly #p: Problem
  readonly #t: TemplateWriter
  readonly #f: FunctionBuilder
  readonly #w: LoopWriter
  readonly #grads: number
  readonly #images: number
  readonly #windows: number
  readonly #pixels: number
  readonly #sums: number

  constructor(spec: GemmSpec, problem: Problem) {
    this.#spec = spec
    this.#p = problem
    this.#t = new TemplateWriter(spec)
    this.#f = this.#t.f
    this.#w = this.#t.w
    const at = layout(problem)
    const after = (bytes: number): number =>
      this.#w.let(() => {
        this.#f.get(this.#grads)
        this.#f.i32Const(bytes)
        this.#f.op('i32.add')
      })
    this.#grads = this.#t.scratch()
    this.#images = after(at.images)
    this.#windows = after(at.windows)
    this.#pixels = after(at.pixels)
    this.#sums = after(at.sums)
  }

  emit(): Uint8Array<ArrayBuffer> {
    const { sizes, rows, cols, images, group, left, imageStride } = this.#p
    const padded = new PaddedImages(this.#w, sizes)
    padded.writeWindowTable(this.#windows)
    this.#fillOddWindow()
    this.#writePixelTable(padded)
    padded.clear(this.#images, group)
    this.#w.clear(this.#sums, 4 * packedRows(rows) * packedCols(cols))
    const [gradient, source] = [this.#t.param(this.#spec.a.buffer), this.#t.param(this.#spec.b.buffer)]
    this.#w.count(images, group, (first) => {
      this.#w.count(group, 1, (slot) => {
        const image = this.#w.let(() => {
          this.#f.get(first)
          this.#f.get(slot)
          this.#f.op('i32.add')
        })
        padded.copy(this.#w.address(source, image, imageStride * 4), this.#w.address(this.#images, slot, paddedBytes(sizes)))
        this.#packGradient(this.#w.address(gradient, image, left.image * 4), slot)
      })
      this.#tiles()
    })
    this.#store()
    return this.#t.finish()
  }

  /** With an odd number of window elements, the last tile computes the first element again and its result is ignored. */
  #fillOddWindow(): void {
    const { cols } = this.#p
    if (cols === packedCols(cols)) return
    const f = this.#f
    f.get(this.#windows)
    f.i32Const(0)
    f.memory('i32.store', cols * 4)
  }

  /** Writes the table of where each vector of pixels of a group starts in the padded images, in the order of the packed gradients. */
  #writePixelTable(padded: PaddedImages): void {
    const f = this.#f
    const { sizes, group, vectors } = this.#p
    const to = this.#w.let(() => f.get(this.#pixels))
    this.#w.count(group, 1, (slot) => {
      this.#w.count(vectors * 4, 4, (pixel) => {
        f.get(to)
        padded.pixelOffset(pixel)
        f.get(slot)
        f.i32Const(paddedBytes(sizes))
        f.op('i32.mul')
        f.op('i32.add')
        f.memory('i32.store')
        this.#w.advance(to, 4)
      })
    })
  }

  /** Packs one image's gradient into panels: [four features][vector of pixels][feature]. Features past the last are zero. */
  #packGradient(source: number, slot: number): void {
    const f = this.#f
    const { rows, vectors, group, left } = this.#p
    const row = left.row * 4
    const panelBytes = vectors * group * ROWS * 16
    const panel = (from: number, to: number, valid: number): void => {
      this.#w.count(vectors, 1, () => {
        for (let r = 0; r < ROWS; r++) {
          f.get(to)
          if (r < valid) {
            f.get(from)
            f.memory('v128.load', r * row)
          } else f.f32x4Const(0)
          f.memory('v128.store', r * 16)
        }
        this.#w.advance(from, 16)
        this.#w.advance(to, ROWS * 16)
      })
    }
    const start = this.#w.address(this.#grads, slot, vectors * ROWS * 16)
    const whole = Math.floor(rows / ROWS)
    this.#w.count(whole, 1, (block) => panel(this.#w.address(source, block, ROWS * row), this.#w.address(start, block, panelBytes), ROWS))
    if (whole * ROWS === rows) return
    const after = (base: number, bytes: number): number =>
      this.#w.let(() => {
        f.get(base)
        f.i32Const(bytes)
        f.op('i32.add')
      })
    panel(after(source, whole * ROWS * row), after(start, whole * panelBytes), rows - whole * ROWS)
  }

  /** Computes all tiles of a group of images. Window elements are the outer loop, so that the images stay in the cache. */
  #tiles(): void {
    const f = this.#f
    const { rows, cols, vectors, group } = this.#p
    const lineBytes = packedCols(cols) * 4
    this.#w.count(packedCols(cols), COLS, (col) => {
      const entry = this.#w.address(this.#windows, col, 4)
      const base = (c: number): number =>
        this.#w.let(() => {
          f.get(this.#images)
          f.get(entry)
          f.memory('i32.load', c * 4)
          f.op('i32.add')
        })
      const bases = [base(0), base(1)] as const
      this.#w.count(packedRows(rows), ROWS, (row) => {
        const { sums } = this.#tile(this.#w.address(this.#grads, row, vectors * group * 16), bases)
        const to = this.#w.address(this.#sums, row, lineBytes)
        f.get(to)
        f.get(col)
        f.i32Const(2)
        f.op('i32.shl')
        f.op('i32.add')
        f.set(to)
        sums.forEach((columns, r) => columns.forEach((sum, c) => this.#addLanes(to, r * lineBytes + c * 4, sum)))
      })
    })
  }

  /** Four features by two window elements, over all pixels of the group. Lanes are pixels. */
  #tile(panel: number, bases: readonly [number, number]): RegisterTile {
    const f = this.#f
    const tile = new RegisterTile(f)
    const grad = this.#w.let(() => f.get(panel))
    const entry = this.#w.let(() => f.get(this.#pixels))
    const left = this.#w.let(() => f.i32Const(this.#p.vectors * this.#p.group))
    const offset = f.local('i32')
    f.loop((again) => {
      f.get(entry)
      f.memory('i32.load')
      f.set(offset)
      const push = (vector: 0 | 1): void => {
        f.get(bases[vector])
        f.get(offset)
        f.op('i32.add')
      }
      tile.loadRight(push, [0, 0])
      tile.addProducts(grad, 'v128.load', 16)
      this.#w.advance(grad, ROWS * 16)
      this.#w.advance(entry, 4)
      f.get(left)
      f.i32Const(1)
      f.op('i32.sub')
      f.tee(left)
      f.brIf(again)
    })
    return tile
  }

  /** [to + bytes] += the sum of the lanes. */
  #addLanes(to: number, bytes: number, sum: number): void {
    const f = this.#f
    const half = f.local('v128')
    f.get(sum)
    f.get(sum)
    f.get(sum)
    f.shuffle32(2, 3, 0, 1)
    f.op('f32x4.add')
    f.set(half)
    f.get(to)
    f.get(to)
    f.memory('f32.load', bytes)
    f.get(half)
    f.lane('f32x4.extract_lane', 0)
    f.get(half)
    f.lane('f32x4.extract_lane', 1)
    f.op('f32.add')
    f.op('f32.add')
    f.memory('f32.store', bytes)
  }

  /** The epilogue over the sums: vectors along the window, then single elements. */
  #store(): void {
    const f = this.#f
    const { rows, cols } = this.#p
    const whole = Math.floor(cols / 4) * 4
    const value = f.local('v128')
    this.#w.count(rows, 1, (row) => {
      const line = this.#w.address(this.#sums, row, packedCols(cols) * 4)
      const site = (col: number, wide: boolean): void => {
        this.#w.offset(line, col, 4)
        f.memory(wide ? 'v128.load' : 'v128.load32_splat')
        f.set(value)
        this.#t.epilogue([], row, col, [value], wide)
      }
      this.#w.count(whole, 4, (col) => site(col, true))
      this.#w.count(cols, 1, (col) => site(col, false), whole)
    })
  }
}
