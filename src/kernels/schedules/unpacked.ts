// Products of matrices that take no memory beside their operands: for calls that have no room to pack them. Tiles of sums stay in registers as in the product schedule, but both operands
// are read where they lie: rows of B as vectors, and where its columns have the neighbours, blocks of four by four are transposed in registers. Sums are in the order of the depth, as those
// of the product schedule are.
import type { GemmSpec, MatrixOperand } from './gemmSpec.ts'
import { call, constant, declareArray, element, forLoop, load, localArray, loopVar, serialLoops, setElement } from '../ir/loopIr.ts'
import type { Expr, Kernel, LocalArray, LoopVar, Size, Stmt } from '../ir/loopIr.ts'
import { roundedDown, sizeDifference, sizeProduct, sizeSum } from '../ir/sizes.ts'
import { hasShortEpilogue } from './gemm.ts'
import { QUAD, from } from './notation.ts'
import type { Terms } from './notation.ts'
import { wholeParts } from './panels.ts'
import type { Part } from './panels.ts'
import { substituted } from './substitute.ts'

/** The rows of a tile. A long epilogue, which is written out for each vector of a tile, gets one row. */
const ROWS = 4

/** The kernel of a product. It has the parameters of the product, but that for scratch memory. */
export function unpackedProduct(spec: GemmSpec): Kernel {
  const { name, batch, rows, cols, b, reduceBatch, params } = spec
  const height = hasShortEpilogue(spec) ? ROWS : 1
  const width = b.colStride === 1 ? 2 * QUAD : QUAD
  const tiles = wholeParts(cols.extent, [width, 1]).flatMap((columns) =>
    wholeParts(rows.extent, [height, 1]).map((lines) => new UnpackedTile(spec, lines, columns).stmt()),
  )
  return { name: `${name}_unpacked`, params: params.slice(0, -1), body: serialLoops(batch.slice(0, batch.length - reduceBatch), tiles) }
}

/** A tile that runs over a part of the rows and a part of the columns. */
class UnpackedTile {
  readonly #spec: GemmSpec
  readonly #rows: Part
  readonly #columns: Part
  readonly #row: LoopVar
  readonly #column: LoopVar
  /** Within the tile. */
  readonly #i: LoopVar
  readonly #j: LoopVar
  readonly #sums: LocalArray

  constructor(spec: GemmSpec, rows: Part, columns: Part) {
    this.#spec = spec
    this.#rows = rows
    this.#columns = columns
    this.#row = loopVar('i0', rows.extent, rows.width)
    this.#column = loopVar('j0', columns.extent, columns.width)
    this.#i = loopVar('i', rows.width)
    this.#j = loopVar('j', columns.width)
    this.#sums = localArray('sum', 'float32', [rows.width, columns.width])
  }

  stmt(): Stmt {
    const { batch, reduceBatch, rows, cols, epilogue, depth, b } = this.#spec
    const inBlocks = b.colStride !== 1 && b.rowStride === 1 && this.#columns.width === QUAD
    const summed = inBlocks
      ? [...this.#blocks(), ...this.#depths(roundedDown(depth, QUAD), sizeDifference(depth, roundedDown(depth, QUAD)))]
      : this.#depths(0, depth)
    const place = new Map([
      [rows, from(this.#rows.first, [this.#row, 1], [this.#i, 1])],
      [cols, from(this.#columns.first, [this.#column, 1], [this.#j, 1])],
    ])
    return forLoop(this.#column, 'parallel', [
      forLoop(this.#row, 'serial', [
        declareArray(this.#sums, constant('float32', 0)),
        ...serialLoops(batch.slice(batch.length - reduceBatch), summed),
        this.#each(substituted(epilogue(element(this.#sums, this.#i, this.#j)), place)),
      ]),
    ])
  }

  /** The statements for each element of the tile. */
  #each(stmts: readonly Stmt[]): Stmt {
    return forLoop(this.#i, 'unroll', [forLoop(this.#j, 'lanes', stmts)])
  }

  #batch({ batchStrides }: MatrixOperand): Terms {
    return this.#spec.batch.map((loop, z) => [loop, batchStrides[z] ?? 0])
  }

  /** Adds the products at a depth, which is the sum of a size and of loops. */
  #add(depth: Size, depths: readonly LoopVar[], right: Expr): Stmt {
    const { a } = this.#spec
    const base = sizeSum(sizeProduct(this.#rows.first, a.rowStride), sizeProduct(depth, a.colStride))
    const along: Terms = [[this.#row, a.rowStride], [this.#i, a.rowStride], ...depths.map((loop) => [loop, a.colStride] as const)]
    const left = load(a.buffer, from(base, ...this.#batch(a), ...along))
    return this.#each([setElement(this.#sums, [this.#i, this.#j], call('mulAdd', left, right, element(this.#sums, this.#i, this.#j)))])
  }

  #right(depth: Size, depths: readonly LoopVar[]): Expr {
    const { b } = this.#spec
    const base = sizeSum(sizeProduct(this.#columns.first, b.colStride), sizeProduct(depth, b.rowStride))
    const along: Terms = [[this.#column, b.colStride], [this.#j, b.colStride], ...depths.map((loop) => [loop, b.rowStride] as const)]
    return load(b.buffer, from(base, ...this.#batch(b), ...along))
  }

  /** That many depths from the first one on, one after the other. */
  #depths(first: Size, extent: Size): readonly Stmt[] {
    if (extent === 0) return []
    const k = loopVar('k', extent)
    return [forLoop(k, 'serial', [this.#add(first, [k], this.#right(first, [k]))])]
  }

  /** Four depths at a time of columns whose neighbours are along the depth. */
  #blocks(): readonly Stmt[] {
    const whole = roundedDown(this.#spec.depth, QUAD)
    if (whole === 0) return []
    const [k0, k] = [loopVar('k0', whole, QUAD), loopVar('k', QUAD)]
    const block = localArray('block', 'float32', [QUAD, QUAD])
    return [
      forLoop(k0, 'serial', [
        declareArray(block, constant('float32', 0)),
        forLoop(this.#j, 'unroll', [forLoop(k, 'lanes', [setElement(block, [this.#j, k], this.#right(0, [k0, k]))])]),
        forLoop(k, 'unroll', [this.#add(0, [k0, k], element(block, this.#j, k))]),
      ]),
    ]
  }
}
