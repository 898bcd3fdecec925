// Direct convolution: for constant sizes, stride 1 and dilation 1, the register tile of the matrix product reads the (padded) image itself, where
// the general template first lays it out as a matrix. Four output channels by eight pixels; a table has the offsets of the window's elements.
import type { CompiledKernel, GemmSpec } from '../contracts.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { LoopWriter } from './loopWriter.ts'
import { PaddedImages, paddedBytes, plainConvSizes } from './paddedImages.ts'
import type { ConvSizes } from './paddedImages.ts'
import { TemplateWriter, compileTemplate, hasWideEpilogue } from './template.ts'

const ROWS = 4
const COLS = 8

/** The problem in numbers, or null when the template does not fit it. */
function constants(spec: GemmSpec): { readonly g: ConvSizes; readonly m: number; readonly k: number } | null {
  const g = plainConvSizes(spec, false)
  if (g === null || spec.reduceBatch !== 0 || spec.a.batchStrides[0] !== 0 || (g.outHeight * g.outWidth) % COLS !== 0) return null
  return { g, m: spec.rows.extent as number, k: spec.depth as number }
}

/** Whether {@link compileDirectConv} can take the problem. */
export const fitsDirectConv = (spec: GemmSpec): boolean => constants(spec) !== null && hasWideEpilogue(spec)

/** Bytes of scratch that the kernel needs: packed weights, one padded image, the offsets. 0 when the template does not fit. */
export function directConvScratchBytes(spec: GemmSpec): number {
  const problem = constants(spec)
  if (problem === null) return 0
  const { g, m, k } = problem
  return 4 * (Math.ceil(m / ROWS) * ROWS * k + k) + paddedBytes(g) + 256
}

/** Compiles the convolution; the same problem is compiled once. */
export const compileDirectConv = (spec: GemmSpec): CompiledKernel =>
  compileTemplate('direct convolution', spec, () => new DirectConvEmitter(spec).emit())

class DirectConvEmitter {
  readonly #spec: GemmSpec
  readonly #g: ConvSizes
  readonly #m: number
  readonly #k: number
  readonly #t: TemplateWriter
  readonly #f: FunctionBuilder
  readonly #w: LoopWriter
  readonly #images: PaddedImages
  readonly #weights: number
  readonly #image: number
  readonly #table: number

  constructor(spec: GemmSpec) {
    this.#spec = spec
    const { g, m, k } = constants(spec) as NonNullable<ReturnType<typeof constants>>
    this.#g = g
    this.#m = m
    this.#k = k
    this.#t = new TemplateWriter(spec)
    this.#f = this.#t.f
    this.#w = this.#t.w
    this.#images = new PaddedImages(this.#w, g)
    const after = (start: number, bytes: number): number =>
      this.#w.let(() => {
        this.#f.get(start)
        this.#f.i32Const(bytes)
        this.#f.op('i32.add')
      })
    this.#weights = this.#t.scratch()
    this.#image = after(this.#weights, Math.ceil(m / ROWS) * ROWS * k * 4)
    this.#table = after(this.#image, paddedBytes(g) + 64)
  }

  emit(): Uint8Array {
    const { batch, b } = this.#spec
    this.#packWeights()
    this.#images.writeWindowTable(this.#table)
    this.#images.clear(this.#image, 1)
    this.#w.count((batch[0] as GemmSpec['batch'][number]).extent as number, 1, (image) => {
      this.#images.copy(this.#w.address(this.#t.param(b.buffer), image, (b.batchStrides[0] as number) * 4), this.#image)
      this.#product(image)
    })
    return this.#t.finish()
  }

  /** Panels of four channels, depth-major; channels past the last are zero. */
  #packWeights(): void {
    const f = this.#f
    const { a } = this.#spec
    const source = this.#t.param(a.buffer)
    const to = this.#w.let(() => f.get(this.#weights))
    for (let row = 0; row < this.#m; row += ROWS) {
      this.#w.count(this.#k, 1, (depth) => {
        for (let r = 0; r < ROWS; r++) {
          f.get(to)
          if (row + r < this.#m) {
            this.#w.offset(source, depth, (a.colStride as number) * 4)
            f.memory('f32.load', (row + r) * (a.rowStride as number) * 4)
          } else f.f32Const(0)
          f.memory('f32.store', r * 4)
        }
        this.#w.advance(to, ROWS * 4)
      })
    }
  }

  #product(image: number): void {
    const whole = Math.floor(this.#m / ROWS) * ROWS
    this.#w.count(whole, ROWS, (row) => this.#columns(image, row, ROWS))
    if (whole < this.#m) {
      const row = this.#f.local('i32')
      this.#f.i32Const(whole)
      this.#f.set(row)
      this.#columns(image, row, this.#m - whole)
    }
  }

  #columns(image: number, row: number, valid: number): void {
    const f = this.#f
    const g = this.#g
    const panel = f.local('i32')
    this.#w.offset(this.#weights, row, this.#k * 4)
    f.set(panel)
    this.#w.count(g.outHeight * g.outWidth, COLS, (col) => {
      const starts = [0, 4].map((half) => {
        // The image address of four pixels that lie in one row.
        const start = f.local('i32')
        const position = f.local('i32')
        f.get(col)
        f.i32Const(half)
        f.op('i32.add')
        f.set(position)
        f.get(this.#image)
        this.#images.pixelOffset(position)
        f.op('i32.add')
        f.set(start)
        return start
      })
      const sums = this.#tile(panel, starts)
      for (let r = 0; r < valid; r++) {
        const at = f.local('i32')
        f.get(row)
        f.i32Const(r)
        f.op('i32.add')
        f.set(at)
        const loop = this.#spec.batch[0] as GemmSpec['batch'][number]
        this.#t.epilogue([{ loop, counter: image }], at, col, [sums[r * 2] as number, sums[r * 2 + 1] as number], true)
      }
    })
  }

  /** 4 channels by 8 pixels, summed over input channels and the window. The loop is not unrolled: unrolled, its sums no longer stay in registers. */
  #tile(panel: number, starts: readonly number[]): number[] {
    const f = this.#f
    const sums = Array.from({ length: 8 }, () => f.local('v128'))
    const [weights, value, b0, b1, entry, offset, left] = [
      f.local('i32'),
      f.local('v128'),
      f.local('v128'),
      f.local('v128'),
      f.local('i32'),
      f.local('i32'),
      f.local('i32'),
    ]
    for (const sum of sums) {
      f.f32x4Const(0)
      f.set(sum)
    }
    f.get(panel)
    f.set(weights)
    f.get(this.#table)
    f.set(entry)
    f.i32Const(this.#k)
    f.set(left)
    f.loop((again) => {
      f.get(entry)
      f.memory('i32.load')
      f.set(offset)
      for (const [half, target] of [
        [0, b0],
        [1, b1],
      ] as const) {
        f.get(starts[half] as number)
        f.get(offset)
        f.op('i32.add')
        f.memory('v128.load')
        f.set(target)
      }
      for (let r = 0; r < ROWS; r++) {
        f.get(weights)
        f.memory('v128.load32_splat', r * 4)
        f.set(value)
        for (let h = 0; h < 2; h++) {
          const sum = sums[r * 2 + h] as number
          f.get(sum)
          f.get(value)
          f.get(h === 0 ? b0 : b1)
          f.op('f32x4.mul')
          f.op('f32x4.add')
          f.set(sum)
        }
      }
      this.#w.advance(weights, ROWS * 4)
      this.#w.advance(entry, 4)
      f.get(left)
      f.i32Const(1)
      f.op('i32.sub')
      f.tee(left)
      f.brIf(again)
    })
    return sums
  }
}
