// The weight gradient of a convolution, directly: for constant sizes, stride 1 and dilation 1, each element of the gradient is a dot product of
// the output's gradient with the (padded) images, shifted by its place in the window. Four features by two window elements at a time, lanes along
// pixels; the general template would first lay every image out as a matrix.
import type { CompiledKernel, GemmSpec } from '../contracts.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { LoopWriter } from './loopWriter.ts'
import { PaddedImages, paddedBytes, plainConvSizes } from './paddedImages.ts'
import type { ConvSizes } from './paddedImages.ts'
import { TemplateWriter, compileTemplate, hasWideEpilogue } from './template.ts'

/** Features of a tile. */
const ROWS = 4
/** Window elements of a tile. */
const COLS = 2
/** Images are taken in groups whose copies stay within this many bytes, so that they stay near. */
const GROUP_BYTES = 128 * 1024

interface Problem {
  readonly g: ConvSizes
  /** Features. */
  readonly m: number
  /** Elements of the window: channels * kernel height * kernel width. */
  readonly k: number
  readonly images: number
  /** Images of a group; it divides `images`. */
  readonly group: number
  /** Vectors of pixels of an image. */
  readonly vectors: number
}

function problemOf(spec: GemmSpec): Problem | null {
  const g = plainConvSizes(spec, true)
  if (g === null || spec.reduceBatch !== 1 || spec.a.colStride !== 1) return null
  const m = spec.rows.extent as number
  const images = (spec.batch[0] as GemmSpec['batch'][number]).extent as number
  if (images === 0 || m === 0) return null
  const perImage = paddedBytes(g) + packedRows(m) * g.outHeight * g.outWidth * 4
  let group = Math.max(1, Math.min(images, Math.floor(GROUP_BYTES / perImage)))
  while (images % group !== 0) group--
  return { g, m, k: spec.cols.extent as number, images, group, vectors: (g.outHeight * g.outWidth) / 4 }
}

const packedRows = (m: number): number => Math.ceil(m / ROWS) * ROWS
const packedCols = (k: number): number => Math.ceil(k / COLS) * COLS

/** Scratch, in bytes: gradients of a group as panels of four features, its padded images, the offsets of windows and pixels, the sums. */
function layout(p: Problem): {
  readonly images: number
  readonly windows: number
  readonly pixels: number
  readonly sums: number
  readonly end: number
} {
  const images = packedRows(p.m) * p.vectors * 16 * p.group
  const windows = images + paddedBytes(p.g) * p.group + 16
  const pixels = windows + 4 * packedCols(p.k)
  const sums = pixels + 4 * p.vectors * p.group
  return { images, windows, pixels, sums, end: sums + 4 * packedRows(p.m) * packedCols(p.k) + 16 }
}

/** Whether {@link compileDirectConvWeight} can take the problem. */
export const fitsDirectConvWeight = (spec: GemmSpec): boolean => problemOf(spec) !== null && hasWideEpilogue(spec)

/** Bytes of scratch that the kernel needs; 0 when the template does not fit. */
export function directConvWeightScratchBytes(spec: GemmSpec): number {
  const problem = problemOf(spec)
  return problem === null ? 0 : layout(problem).end + 64
}

/** Compiles the weight gradient; the same problem is compiled once. */
export const compileDirectConvWeight = (spec: GemmSpec): CompiledKernel =>
  compileTemplate('weight gradient of a convolution', spec, () => new WeightGradientEmitter(spec, problemOf(spec) as Problem).emit())

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

  emit(): Uint8Array {
    const { g, images, group } = this.#p
    const padded = new PaddedImages(this.#w, g)
    padded.writeWindowTable(this.#windows)
    this.#fillOddWindow()
    this.#writePixelTable(padded)
    padded.clear(this.#images, group)
    this.#w.clear(this.#sums, 4 * packedRows(this.#p.m) * packedCols(this.#p.k))
    this.#w.count(images, group, (first) => {
      this.#w.count(group, 1, (slot) => {
        const image = this.#f.local('i32')
        this.#f.get(first)
        this.#f.get(slot)
        this.#f.op('i32.add')
        this.#f.set(image)
        const { a, b } = this.#spec
        padded.copy(
          this.#w.address(this.#t.param(b.buffer), image, (b.batchStrides[0] as number) * 4),
          this.#w.address(this.#images, slot, paddedBytes(g)),
        )
        this.#packGradient(this.#w.address(this.#t.param(a.buffer), image, (a.batchStrides[0] as number) * 4), slot)
      })
      this.#tiles()
    })
    this.#store()
    return this.#t.finish()
  }

  /** An odd number of window elements: the last tile computes the first element again, and drops it. */
  #fillOddWindow(): void {
    const { k } = this.#p
    if (k === packedCols(k)) return
    const f = this.#f
    f.get(this.#windows)
    f.i32Const(0)
    f.memory('i32.store', k * 4)
  }

  /** Where each vector of pixels of a group starts in the padded images, in the order of the packed gradients. */
  #writePixelTable(padded: PaddedImages): void {
    const f = this.#f
    const { g, group, vectors } = this.#p
    const to = f.local('i32')
    f.get(this.#pixels)
    f.set(to)
    this.#w.count(group, 1, (slot) => {
      this.#w.count(vectors * 4, 4, (pixel) => {
        f.get(to)
        padded.pixelOffset(pixel)
        f.get(slot)
        f.i32Const(paddedBytes(g))
        f.op('i32.mul')
        f.op('i32.add')
        f.memory('i32.store')
        this.#w.advance(to, 4)
      })
    })
  }

  /** One image's gradient into the panels: [four features][vector of pixels][feature]; features past the last are zero. */
  #packGradient(source: number, slot: number): void {
    const f = this.#f
    const { m, vectors, group } = this.#p
    const row = (this.#spec.a.rowStride as number) * 4
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
    const whole = Math.floor(m / ROWS)
    this.#w.count(whole, 1, (block) => panel(this.#w.address(source, block, ROWS * row), this.#w.address(start, block, panelBytes), ROWS))
    if (whole * ROWS === m) return
    const [from, to] = [f.local('i32'), f.local('i32')]
    for (const [target, base, bytes] of [
      [from, source, whole * ROWS * row],
      [to, start, whole * panelBytes],
    ] as const) {
      f.get(base)
      f.i32Const(bytes)
      f.op('i32.add')
      f.set(target)
    }
    panel(from, to, m - whole * ROWS)
  }

  /** All tiles of one group of images: window elements outside, so that the images they read stay near. */
  #tiles(): void {
    const f = this.#f
    const { m, k, vectors, group } = this.#p
    const cols = packedCols(k)
    this.#w.count(cols, COLS, (col) => {
      const entry = this.#w.address(this.#windows, col, 4)
      const bases = [0, 1].map((c) => {
        const base = f.local('i32')
        f.get(this.#images)
        f.get(entry)
        f.memory('i32.load', c * 4)
        f.op('i32.add')
        f.set(base)
        return base
      })
      this.#w.count(packedRows(m), ROWS, (row) => {
        const sums = this.#tile(this.#w.address(this.#grads, row, vectors * group * 16), bases)
        const to = this.#w.address(this.#sums, row, cols * 4)
        f.get(to)
        f.get(col)
        f.i32Const(2)
        f.op('i32.shl')
        f.op('i32.add')
        f.set(to)
        sums.forEach((sum, i) => this.#addLanes(to, (Math.floor(i / COLS) * cols + (i % COLS)) * 4, sum))
      })
    })
  }

  /** Four features by two window elements, over all pixels of the group. Lanes are pixels. */
  #tile(panel: number, bases: readonly number[]): number[] {
    const f = this.#f
    const sums = Array.from({ length: ROWS * COLS }, () => f.local('v128'))
    const [value, b0, b1] = [f.local('v128'), f.local('v128'), f.local('v128')]
    const [grad, entry, offset, left] = [f.local('i32'), f.local('i32'), f.local('i32'), f.local('i32')]
    for (const sum of sums) {
      f.f32x4Const(0)
      f.set(sum)
    }
    f.get(panel)
    f.set(grad)
    f.get(this.#pixels)
    f.set(entry)
    f.i32Const(this.#p.vectors * this.#p.group)
    f.set(left)
    f.loop((again) => {
      f.get(entry)
      f.memory('i32.load')
      f.set(offset)
      for (const [c, target] of [
        [0, b0],
        [1, b1],
      ] as const) {
        f.get(bases[c] as number)
        f.get(offset)
        f.op('i32.add')
        f.memory('v128.load')
        f.set(target)
      }
      for (let r = 0; r < ROWS; r++) {
        f.get(grad)
        f.memory('v128.load', r * 16)
        f.set(value)
        for (let c = 0; c < COLS; c++) {
          const sum = sums[r * COLS + c] as number
          f.get(sum)
          f.get(value)
          f.get(c === 0 ? b0 : b1)
          f.op('f32x4.mul')
          f.op('f32x4.add')
          f.set(sum)
        }
      }
      this.#w.advance(grad, ROWS * 16)
      this.#w.advance(entry, 4)
      f.get(left)
      f.i32Const(1)
      f.op('i32.sub')
      f.tee(left)
      f.brIf(again)
    })
    return sums
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
    const { m, k } = this.#p
    const whole = Math.floor(k / 4) * 4
    const value = f.local('v128')
    this.#w.count(m, 1, (row) => {
      const line = this.#w.address(this.#sums, row, packedCols(k) * 4)
      const site = (col: number, wide: boolean): void => {
        this.#w.offset(line, col, 4)
        f.memory(wide ? 'v128.load' : 'v128.load32_splat')
        f.set(value)
        this.#t.epilogue([], row, col, [value], wide)
      }
      this.#w.count(whole, 4, (col) => site(col, true))
      this.#w.count(k - whole, 1, (left) => {
        const col = f.local('i32')
        f.get(left)
        f.i32Const(whole)
        f.op('i32.add')
        f.set(col)
        site(col, false)
      })
    })
  }
}
