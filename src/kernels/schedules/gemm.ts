// Products of matrices: sums of a few rows by a few columns stay in registers while the depth goes by. B is packed into panels as wide as such a tile; A is read where it
// lies if the depth runs along its rows and the tile has no gain from packing it too. Each sum adds its products in the order of the depth, as one loop over it would.
import { machineTiles, widestColumns } from './machineTiles.ts'
import { accessesOf, forEachExpr, touches64Bits } from '../ir/analysis.ts'
import type { GemmSpec, MatrixOperand } from './gemmSpec.ts'
import {
  bufferParam,
  call,
  constant,
  declareArray,
  element,
  forLoop,
  load,
  localArray,
  loopVar,
  scratch,
  serialLoops,
  setElement,
  store,
} from '../ir/loopIr.ts'
import type { Expr, Kernel, LoopVar, Memory, Scratch, Size, Stmt } from '../ir/loopIr.ts'
import { roundedUp, sizeProduct, sizeSum } from '../ir/sizes.ts'
import { from, up } from './notation.ts'
import type { Terms } from './notation.ts'
import { packing, paddedParts, wholeParts } from './panels.ts'
import type { Lines, Part } from './panels.ts'
import type { Schedule } from './schedule.ts'
import { substituted } from './substitute.ts'

/** Sums in registers: that many rows by that many columns. */
export interface GemmTile {
  readonly rows: number
  readonly columns: number
  /** Panels of B that are packed side by side. */
  readonly together: number
  /** Whether A is packed also where the depth runs along its rows: rows that lie apart take a pointer each. */
  readonly packsRows: boolean
}

/** An epilogue of at most that many expressions is written out for each tile; others get their sums from memory, a panel at a time, so that their code is there once. */
const SHORT_EPILOGUE = 8

const COLUMNS = 8

/** Whether the epilogue of a product is written out for each tile. */
export function hasShortEpilogue(spec: GemmSpec): boolean {
  const epilogue = spec.epilogue(constant('float32', 0))
  let expressions = 0
  forEachExpr(epilogue, () => expressions++)
  // In a loop with 64-bit elements, half of the sums would find room in registers.
  return expressions <= SHORT_EPILOGUE && !touches64Bits(epilogue)
}

export const gemm: Schedule<GemmSpec, GemmSpec, GemmTile> = {
  name: 'gemm',
  match: () => true,
  spec: (problem) => problem,
  tiles: (engine) => [{ rows: 4, columns: COLUMNS, together: 4, packsRows: engine === 'wasm', ...machineTiles(engine).product }],
  build: (spec, tile) => new Product(spec, tile).kernel(),
}

/** A B that statements write in each batch, before it is packed. */
interface WrittenB {
  readonly memory: Scratch
  readonly write: readonly Stmt[]
}

/** The kernel of a product whose B is written by statements. */
export const productOf = (spec: GemmSpec, tile: GemmTile, b: WrittenB): Kernel => new Product(spec, tile, null, b).kernel()

/** The most bytes of scratch memory for a product of these sizes. `k` is that of one batch where batches are summed over. */
export function gemmScratchBytes(m: number, n: number, k: number): number {
  const columns = widestColumns(COLUMNS)
  return 4 * (m * k + up(n, columns) * k + m * Math.max(up(n, columns), columns)) + 5 * 64
}

/** With more rows than that, packing B in each call takes less than a fiftieth of the time: it is not worth a copy of B. */
const MOST_ROWS = 128
/** A smaller B is not worth memory of its own. */
const LEAST_ELEMENTS = 1024

/** A product whose B was packed before: the kernel that packs it (from B's parameter to another), and the product, whose parameter for B points to the packed elements. */
export interface PackedGemm {
  readonly pack: Kernel
  readonly product: Kernel
}

/** Whether a product with those rows gains from a B that was packed before. */
export const paysPacked = (m: number, n: number, k: number): boolean => m <= MOST_ROWS && n * k >= LEAST_ELEMENTS

/** The bytes of a B that is packed before. */
export const packedBytes = (n: number, k: number): number => 4 * up(n, widestColumns(COLUMNS)) * k

/** The most bytes of scratch memory for a product of these sizes whose B was packed before. */
export const packedScratchBytes = (m: number, k: number): number => 4 * m * (k + widestColumns(COLUMNS)) + 3 * 64

/** The elements that B takes when it is packed before; null where that does not pay, or cannot be: sizes are not known, there are several B, or the epilogue reads B too. */
export function packedElements({ rows, cols, depth, a, b, reduceBatch, epilogue }: GemmSpec): number | null {
  const { extent: n } = cols
  if (typeof rows.extent !== 'number' || typeof n !== 'number' || typeof depth !== 'number') return null
  if (reduceBatch > 0 || !b.batchStrides.every((stride) => stride === 0)) return null
  const isReadOtherwise = b.buffer === a.buffer || accessesOf(epilogue(constant('float32', 0))).some(([memory]) => memory === b.buffer)
  return isReadOtherwise || !paysPacked(rows.extent, n, depth) ? null : up(n, widestColumns(COLUMNS)) * depth
}

/** The kernels for a B that is packed before. */
export function packedGemm(spec: GemmSpec, tile: GemmTile): PackedGemm {
  const product = new Product(spec, tile, spec.b.buffer)
  return { pack: product.packs(), product: product.kernel() }
}

/** A tile that runs over a part of the rows and a part of the columns. */
interface RunningTile {
  readonly rows: Part
  readonly columns: Part
  readonly row: LoopVar
  readonly column: LoopVar
}

/** The rows in whole tiles, and what is left: at once where its number is known. */
const rowParts = (extent: Size, rows: number): readonly Part[] =>
  wholeParts(extent, typeof extent === 'number' ? [rows, extent % rows] : [rows, 2, 1])

class Product {
  readonly #spec: GemmSpec
  readonly #tile: GemmTile
  readonly #rows: readonly Part[]
  readonly #columns: readonly Part[]
  readonly #packedA: Scratch | null
  readonly #packedB: Memory
  readonly #written: WrittenB | null
  /** The columns, rounded up to whole panels. */
  readonly #line: Size
  /** Where batches are summed over: the sums, in lines of whole panels. */
  readonly #sums: Scratch | null
  /** The sums of a panel on their way to an epilogue that does not get them from registers. */
  readonly #panel: Scratch
  readonly #isShort: boolean

  /** `packed`: where B lies, packed before; `written`: what writes it. */
  constructor(spec: GemmSpec, tile: GemmTile, packed: Memory | null = null, written: WrittenB | null = null) {
    const { rows, cols, depth, a, reduceBatch } = spec
    this.#spec = spec
    this.#tile = tile
    this.#rows = rowParts(rows.extent, tile.rows)
    this.#columns = paddedParts(cols.extent, tile.columns)
    this.#line = roundedUp(cols.extent, tile.columns)
    this.#packedA = a.colStride === 1 && !tile.packsRows ? null : scratch('packedA', 'float32', sizeProduct(rows.extent, depth))
    this.#written = written
    this.#packedB = packed ?? scratch('packedB', 'float32', sizeProduct(this.#line, depth))
    this.#sums = reduceBatch === 0 ? null : scratch('sums', 'float32', sizeProduct(rows.extent, this.#line))
    this.#panel = scratch('panel', 'float32', sizeProduct(rows.extent, tile.columns), 'thread')
    this.#isShort = hasShortEpilogue(spec)
  }

  /** The kernel that packs B for this one. */
  packs(): Kernel {
    const { name, b, params } = this.#spec
    const to = bufferParam('packed', 'float32', 'write')
    return { name: `${name}_pack`, params: [b.buffer, to, ...params.filter(({ kind }) => kind === 'size')], body: this.#packB(to) }
  }

  #packB(to: Memory): readonly Stmt[] {
    const pack = packing(this.#right, this.#columns, { memory: to, depth: this.#spec.depth }, this.#tile.together)
    return this.#written === null ? pack : [...this.#written.write, ...pack]
  }

  kernel(): Kernel {
    const { name, params, batch, reduceBatch, a, b, depth } = this.#spec
    const kept = batch.slice(0, batch.length - reduceBatch)
    const summed = batch.slice(kept.length)
    const packed = this.#packedA
    const packA = packed === null ? [] : packing(this.#left, this.#rows, { memory: packed, depth })
    const packB = this.#packedB.kind === 'scratch' ? this.#packB(this.#packedB) : []
    const isShared = ({ batchStrides }: MatrixOperand): boolean => batchStrides.every((stride) => stride === 0)
    const before = [...(isShared(a) ? packA : []), ...(isShared(b) ? packB : [])]
    const product = [...(isShared(a) ? [] : packA), ...(isShared(b) ? [] : packB), ...this.#columns.map((part) => this.#panels(part))]
    const sums = this.#sums
    const body = sums === null ? product : [clear(sums), ...serialLoops(summed, product), this.#finish(sums)]
    const memories = [packed, this.#packedB, sums, this.#columns.some((part) => this.#passes(part)) ? this.#panel : null]
    // The parameter for scratch memory is not listed: it becomes that of the kernel's own.
    return {
      name,
      params: params.slice(0, -1),
      scratch: memories.filter((memory) => memory?.kind === 'scratch'),
      body: [...before, ...serialLoops(kept, body)],
    }
  }

  get #left(): Lines {
    const { a } = this.#spec
    return { memory: a.buffer, batch: this.#batch(a), stride: a.rowStride, depthStride: a.colStride }
  }

  get #right(): Lines {
    const { b } = this.#spec
    const from = this.#written === null ? { memory: b.buffer, batch: this.#batch(b) } : { memory: this.#written.memory, batch: [] }
    return { ...from, stride: b.colStride, depthStride: b.rowStride }
  }

  #batch({ batchStrides }: MatrixOperand): Terms {
    return this.#spec.batch.map((loop, i) => [loop, batchStrides[i] ?? 0])
  }

  /** All rows of one panel of B after the other. */
  #panels(columns: Part): Stmt {
    const column = loopVar('j0', columns.extent, columns.width)
    const tiles = this.#rows.map((rows) => {
      const row = loopVar('i0', rows.extent, rows.width)
      return forLoop(row, 'serial', this.#sum({ rows, columns, row, column }))
    })
    return forLoop(column, 'parallel', this.#passes(columns) ? [...tiles, this.#finishPanel(columns, column)] : tiles)
  }

  /** Whether the epilogue gets the sums of a panel from memory. */
  #passes(columns: Part): boolean {
    return this.#sums === null && (columns.padded || !this.#isShort)
  }

  /** The sums of a tile, and what becomes of them. */
  #sum(tile: RunningTile): readonly Stmt[] {
    const { rows, columns, row, column } = tile
    const { depth, a } = this.#spec
    const [k, i, j] = [loopVar('k', depth), loopVar('i', rows.width), loopVar('j', columns.width)]
    const sums = localArray('sum', 'float32', [rows.width, columns.width])
    const left =
      this.#packedA === null
        ? load(a.buffer, from(sizeProduct(rows.first, a.rowStride), ...this.#batch(a), [row, a.rowStride], [i, a.rowStride], [k, 1]))
        : load(this.#packedA, from(sizeProduct(rows.first, depth), [row, depth], [k, rows.width], [i, 1]))
    const right = load(this.#packedB, from(sizeProduct(columns.first, depth), [column, depth], [k, columns.width], [j, 1]))
    const add = setElement(sums, [i, j], call('mulAdd', left, right, element(sums, i, j)))
    return [
      declareArray(sums, constant('float32', 0)),
      forLoop(k, 'serial', [forLoop(i, 'unroll', [forLoop(j, 'lanes', [add])])]),
      forLoop(i, 'unroll', [forLoop(j, 'lanes', this.#leave(tile, element(sums, i, j), i, j))]),
    ]
  }

  /** Where the sum in row i and column j of a tile goes. */
  #leave({ rows, columns, row, column }: RunningTile, sum: Expr, i: LoopVar, j: LoopVar): readonly Stmt[] {
    const line = this.#line
    if (this.#sums !== null) {
      const place = from(sizeSum(sizeProduct(rows.first, line), columns.first), [row, line], [i, line], [column, 1], [j, 1])
      return [store(this.#sums, place, sum, 'add')]
    }
    const { width } = columns
    if (this.#passes(columns)) return [store(this.#panel, from(sizeProduct(rows.first, width), [row, width], [i, width], [j, 1]), sum)]
    const place = new Map([
      [this.#spec.rows, from(rows.first, [row, 1], [i, 1])],
      [this.#spec.cols, from(columns.first, [column, 1], [j, 1])],
    ])
    return substituted(this.#spec.epilogue(sum), place)
  }

  /** The epilogue for all rows of a panel. */
  #finishPanel({ first, extent, width, padded }: Part, column: LoopVar): Stmt {
    const { rows, cols, epilogue } = this.#spec
    const j = loopVar('j', padded ? extent : width)
    const place = new Map([[cols, from(first, [column, 1], [j, 1])]])
    const stmts = substituted(epilogue(load(this.#panel, from(0, [rows, width], [j, 1]))), place)
    return forLoop(rows, 'serial', [forLoop(j, padded ? 'simd' : 'lanes', stmts)])
  }

  /** The epilogue for sums over a part of the batch. */
  #finish(sums: Scratch): Stmt {
    const { rows, cols, epilogue } = this.#spec
    return forLoop(rows, 'serial', [forLoop(cols, 'simd', epilogue(load(sums, from(0, [rows, this.#line], [cols, 1]))))])
  }
}

function clear(sums: Scratch): Stmt {
  const e = loopVar('e', sums.elements)
  return forLoop(e, 'simd', [store(sums, from(0, [e, 1]), constant('float32', 0))])
}
