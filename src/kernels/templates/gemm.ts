// The product with a gathered operand (a convolution): C = epilogue(A x B) in float32, with a register tile of 4 rows by 8 columns over packed operands. Other products are
// the schedule gemm.
//
// A is packed into panels of 4 rows, B into panels of 8 columns, so that the inner loop reads both sequentially. A convolution's B is first laid out
// by rows (im2col) in scratch memory. Rows of the result are written to a row buffer, from which the epilogue reads them.
import type { CompiledKernel } from '../boundedCache.ts'
import type { LoopVar, Size } from '../loopIr.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { Val } from '../wasm/vectorCode.ts'
import type { GemmSpec, MatrixOperand } from '../gemmSpec.ts'
import { writeIm2col } from './im2col.ts'
import type { Count, LoopWriter } from './loopWriter.ts'
import { writePacking } from './panels.ts'
import { RegisterTile, TILE_ROWS } from './registerTile.ts'
import { TemplateWriter, compileTemplate, hasWideEpilogue } from './template.ts'
import type { Counter } from './template.ts'

const ROWS = TILE_ROWS
const COLS = 8
/** Columns per block: their packed panels stay in the second-level cache while the rows of A are processed. */
const COLUMN_BLOCK = 128

const up = (n: number, to: number): number => Math.ceil(n / to) * to

/** Bytes of scratch memory that a product of these sizes needs. `k` is that of one batch where batches are summed over. */
export function gemmScratchBytes(m: number, n: number, k: number): number {
  return 4 * (up(m, ROWS) * k + 2 * up(n, COLS) * k + up(Math.max(n, 1), COLS) * k + up(m, ROWS) * up(n, COLS)) + 256
}

/** Compiles a product. The same problem is compiled only once. */
export const compileGemm = (spec: GemmSpec): CompiledKernel => compileTemplate('gemm', spec, () => new Gemm(spec).emit())

class Gemm {
  readonly #spec: GemmSpec
  readonly #t: TemplateWriter
  readonly #w: LoopWriter
  readonly #f: FunctionBuilder
  readonly #wide: boolean
  readonly #m: number
  readonly #n: number
  readonly #k: number
  /** Columns rounded up to whole panels, in bytes: a line of the row buffer. */
  readonly #lineBytes: number
  readonly #packedA: number
  readonly #packedB: number
  readonly #gathered: number
  readonly #rowBuffer: number

  constructor(spec: GemmSpec) {
    this.#spec = spec
    this.#t = new TemplateWriter(spec)
    this.#wide = hasWideEpilogue(spec)
    const w = (this.#w = this.#t.w)
    const f = (this.#f = this.#t.f)
    const size = (s: Parameters<TemplateWriter['size']>[0]): number => w.let(() => w.push(this.#t.size(s)))
    this.#m = size(spec.rows.extent)
    this.#n = size(spec.cols.extent)
    this.#packedA = this.#t.scratch()
    this.#k = this.#unknown(spec.depth)
    const roundUp = (local: number, to: number): number =>
      w.let(() => {
        f.get(local)
        f.i32Const(to - 1)
        f.op('i32.add')
        f.i32Const(-to)
        f.op('i32.and')
      })
    const n8 = roundUp(this.#n, COLS)
    this.#lineBytes = this.#floats(n8)
    const depthBytes = this.#floats(this.#k)
    // Scratch: packed A, packed B, gathered B, row buffer.
    this.#packedB = w.address(this.#packedA, roundUp(this.#m, ROWS), { local: depthBytes })
    this.#gathered = w.address(this.#packedB, n8, { local: depthBytes })
    this.#rowBuffer = w.address(this.#gathered, n8, { local: depthBytes })
  }

  /** A new local with a size that V8 does not know when it compiles: where it knows how often the innermost loop runs, products take a tenth longer. */
  #unknown(size: Size): number {
    const f = this.#f
    f.get(this.#packedA)
    this.#w.push(this.#t.size(size))
    f.memory('i32.store')
    return this.#w.let(() => {
      f.get(this.#packedA)
      f.memory('i32.load')
    })
  }

  emit(): Uint8Array<ArrayBuffer> {
    const { batch, reduceBatch, a } = this.#spec
    const kept = batch.slice(0, batch.length - reduceBatch)
    const summed = batch.slice(batch.length - reduceBatch)
    const packOnce = a.batchStrides.every((stride) => stride === 0)
    if (packOnce) this.#packA([])
    this.#nest(kept, [], (counters) => {
      if (summed.length === 0) {
        if (!packOnce) this.#packA(counters)
        this.#packB(counters)
        this.#product(counters, false)
        return
      }
      const rows = this.#w.let(() => {
        this.#f.get(this.#m)
        this.#f.i32Const(ROWS - 1)
        this.#f.op('i32.add')
        this.#f.i32Const(-ROWS)
        this.#f.op('i32.and')
        this.#f.get(this.#lineBytes)
        this.#f.op('i32.mul')
      })
      this.#w.clear(this.#rowBuffer, { local: rows })
      this.#nest(summed, counters, (all) => {
        if (!packOnce) this.#packA(all)
        this.#packB(all)
        this.#product(all, true)
      })
      this.#finish(counters, 0, { local: this.#m }, 0, { local: this.#n })
    })
    return this.#t.finish()
  }

  /** A new local with the size in bytes of that many floats. */
  #floats(count: number): number {
    return this.#w.let(() => {
      this.#f.get(count)
      this.#f.i32Const(2)
      this.#f.op('i32.shl')
    })
  }

  #nest(loops: readonly LoopVar[], outer: readonly Counter[], body: (counters: readonly Counter[]) => void): void {
    const [first, ...rest] = loops
    if (first === undefined) return body(outer)
    this.#w.count(this.#t.size(first.extent), 1, (counter) => this.#nest(rest, [...outer, { loop: first, counter }], body))
  }

  // ---- operands ----

  /** A new local with the address of an operand's element (0, 0) in the current batch. */
  #base(operand: MatrixOperand, counters: readonly Counter[]): number {
    const f = this.#f
    return this.#w.let(() => {
      f.get(this.#t.param(operand.buffer))
      operand.batchStrides.forEach((stride, i) => {
        const at = counters.find(({ loop }) => loop === this.#spec.batch[i])
        if (stride === 0 || at === undefined) return
        this.#w.push(this.#t.size(stride))
        f.get(at.counter)
        f.op('i32.mul')
        f.i32Const(2)
        f.op('i32.shl')
        f.op('i32.add')
      })
    })
  }

  #packA(counters: readonly Counter[]): void {
    const { a } = this.#spec
    const strides = { lineStride: this.#t.size(a.rowStride), depthStride: this.#t.size(a.colStride) }
    writePacking(this.#w, { base: this.#base(a, counters), lines: { local: this.#m }, depth: { local: this.#k }, ...strides }, ROWS, this.#packedA)
  }

  #packB(counters: readonly Counter[]): void {
    const { b } = this.#spec
    const { gather } = b
    const base = this.#base(b, counters)
    const pack = (from: number, lineStride: Count, depthStride: Count): void =>
      writePacking(this.#w, { base: from, lines: { local: this.#n }, depth: { local: this.#k }, lineStride, depthStride }, COLS, this.#packedB)
    if (gather === undefined) return pack(base, this.#t.size(b.colStride), this.#t.size(b.rowStride))
    writeIm2col(this.#w, gather, (s) => this.#t.size(s), base, this.#gathered)
    const plane: Count = {
      local: this.#w.let(() => {
        this.#w.push(this.#t.size(gather.outHeight))
        this.#w.push(this.#t.size(gather.outWidth))
        this.#f.op('i32.mul')
      }),
    }
    if (gather.swapped) pack(this.#gathered, plane, 1)
    else pack(this.#gathered, 1, plane)
  }

  // ---- the product ----

  /** Computes all of C from the packed operands. With `add` it is added to the row buffer, which holds all rows; otherwise rows are finished four at a time. */
  #product(counters: readonly Counter[], add: boolean): void {
    const w = this.#w
    const f = this.#f
    const panelBytes = (width: number): number =>
      w.let(() => {
        f.get(this.#k)
        f.i32Const(width * 4)
        f.op('i32.mul')
      })
    const [bytesA, bytesB] = [panelBytes(ROWS), panelBytes(COLS)]
    const depthBytes = this.#floats(this.#k)
    w.count({ local: this.#n }, COLUMN_BLOCK, (first) => {
      const end = w.let(() => {
        const next = w.let(() => {
          f.get(first)
          f.i32Const(COLUMN_BLOCK)
          f.op('i32.add')
        })
        w.least({ local: next }, { local: this.#n })
      })
      const panelA = w.let(() => f.get(this.#packedA))
      w.count({ local: this.#m }, ROWS, (row) => {
        const panelB = w.address(this.#packedB, first, { local: depthBytes })
        const line = add ? w.address(this.#rowBuffer, row, { local: this.#lineBytes }) : this.#rowBuffer
        w.count(
          { local: end },
          COLS,
          (col) => {
            this.#tile(panelA, panelB, w.address(line, col, 4), add)
            w.advance(panelB, { local: bytesB })
          },
          { local: first },
        )
        if (!add) {
          const last = w.let(() => {
            const next = w.let(() => {
              f.get(row)
              f.i32Const(ROWS)
              f.op('i32.add')
            })
            w.least({ local: next }, { local: this.#m })
          })
          this.#finish(counters, { local: row }, { local: last }, { local: first }, { local: end })
        }
        w.advance(panelA, { local: bytesA })
      })
    })
  }

  /** Computes a tile of 4 x 8 sums over the whole depth and stores it at `target`, or adds it to what is there. */
  #tile(panelA: number, panelB: number, target: number, add: boolean): void {
    const f = this.#f
    const tile = new RegisterTile(f)
    const a = this.#w.let(() => f.get(panelA))
    const b = this.#w.let(() => f.get(panelB))
    // The loop is counted by the address, which saves an instruction. It is not unrolled: the engine would then spill registers.
    const endA = this.#w.let(() => {
      f.get(panelA)
      f.get(this.#k)
      f.i32Const(ROWS * 4)
      f.op('i32.mul')
      f.op('i32.add')
    })
    f.block((end) => {
      f.get(this.#k)
      f.op('i32.eqz')
      f.brIf(end)
      f.loop((again) => {
        tile.loadRight(() => f.get(b), [0, 16])
        tile.addProducts(a, 'v128.load32_splat', 4)
        this.#w.advance(b, COLS * 4)
        f.get(a)
        f.i32Const(ROWS * 4)
        f.op('i32.add')
        f.tee(a)
        f.get(endA)
        f.op('i32.ne')
        f.brIf(again)
      })
    })
    const row = this.#w.let(() => f.get(target))
    for (const sums of tile.sums) {
      sums.forEach((sum, h) => {
        f.get(row)
        f.get(sum)
        if (add) {
          f.get(row)
          f.memory('v128.load', h * 16)
          f.op('f32x4.add')
        }
        f.memory('v128.store', h * 16)
      })
      this.#w.advance(row, { local: this.#lineBytes })
    }
  }

  /** Runs the epilogue for the rows and columns from first to last. Their sums start at the first line of the row buffer. */
  #finish(counters: readonly Counter[], firstRow: Count, lastRow: Count, firstCol: Count, lastCol: Count): void {
    const w = this.#w
    const f = this.#f
    const line = w.let(() => f.get(this.#rowBuffer))
    const element = f.local('v128')
    w.count(
      lastRow,
      1,
      (row) => {
        const done = w.let(() => w.push(firstCol))
        const some = (vectors: Val): void => {
          const columns = vectors.length * 4
          const end = w.let(() => {
            w.push(lastCol)
            f.i32Const(columns - 1)
            f.op('i32.sub')
          })
          w.count(
            { local: end },
            columns,
            (col) => {
              const from = w.address(line, col, 4)
              vectors.forEach((vector, v) => {
                f.get(from)
                f.memory('v128.load', v * 16)
                f.set(vector)
              })
              this.#t.epilogue(counters, row, col, vectors, true)
              w.advance(done, columns)
            },
            { local: done },
          )
        }
        if (this.#wide) some([element, f.local('v128')])
        w.count(
          lastCol,
          1,
          (col) => {
            w.offset(line, col, 4)
            f.memory('v128.load32_splat')
            f.set(element)
            this.#t.epilogue(counters, row, col, [element], false)
          },
          { local: done },
        )
        w.advance(line, { local: this.#lineBytes })
      },
      firstRow,
    )
  }
}
