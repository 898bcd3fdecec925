// Copies and pointwise kernels that read along other dimensions than they write along: a transposed tensor made contiguous, a permuted copy, x + y.t(). One element at a
// time, each would touch a cache line of its own. Tiles of 4x4 elements are loaded along the one dimension, transposed in registers, and stored along the other, in blocks
// whose cache lines are in the cache for as long as they are used.
import { forEachExpr, strideAlong } from '../ir/analysis.ts'
import { KernelError } from '../ir/errors.ts'
import { at, constant, declareArray, element, forLoop, localArray, loopVar, serialLoops, setElement } from '../ir/loopIr.ts'
import type { Index, Kernel, LoadExpr, LoopVar, Param, Size, Stmt, StoreStmt } from '../ir/loopIr.ts'
import { roundedDown, sizeDifference, sizeSum, sizeText } from '../ir/sizes.ts'
import type { Schedule } from './schedule.ts'
import { substituted, substitutedIndex } from './substitute.ts'

/** Statements inside loops whose iterations are independent. */
export interface Nest {
  readonly name: string
  readonly params: readonly Param[]
  /** The outermost first. */
  readonly loops: readonly LoopVar[]
  readonly body: readonly Stmt[]
}

interface TransposeSpec {
  readonly nest: Nest
  /** The loop along which neighbours are loaded. */
  readonly along: LoopVar
  /** The loop along which neighbours are stored. */
  readonly across: LoopVar
  /** The loads along `along`: what is transposed. */
  readonly turned: readonly LoadExpr[]
}

/** The sides of a block: multiples of 4. */
interface TransposeTile {
  readonly along: number
  readonly across: number
}

/** The side of a tile in registers. */
const SIDE = 4

export const transpose: Schedule<Nest, TransposeSpec, TransposeTile> = {
  name: 'transpose',
  match: (nest) => turnedIn(nest) !== null,
  spec: (nest) => {
    const spec = turnedIn(nest)
    if (spec === null) throw new KernelError(`the transpose schedule does not match the kernel ${nest.name}`)
    return spec
  },
  tiles: () => [
    { along: 8, across: 4 },
    { along: 16, across: 4 },
  ],
  build: (spec, tile) => {
    const { nest, along, across } = spec
    const outer = nest.loops.filter((loop) => loop !== along && loop !== across)
    const [rows, columns] = [partsOf(along, tile.along), partsOf(across, tile.across)]
    const body = rows.whole.flatMap((row) => columns.whole.map((column) => blocks(spec, row, column)))
    // What fills no tile: the last columns of all rows in tiles, and the last rows.
    const [beside, below] = [part(along, 0, rows.end), part(across, columns.end, sizeDifference(across.extent, columns.end))]
    if (below.extent !== 0) body.push(oneByOne(spec, below, beside))
    const last = part(along, rows.end, sizeDifference(along.extent, rows.end))
    if (last.extent !== 0) body.push(oneByOne(spec, last, part(across, 0, across.extent)))
    return { name: nest.name, params: nest.params, body: serialLoops(outer, body) } satisfies Kernel
  },
}

const isOne = (index: Index, loop: LoopVar): boolean => strideAlong(index.terms, loop) === 1

const indexText = ({ base, terms }: Index): string =>
  [sizeText(base), ...terms.map(({ loop, stride }) => `${loop.name}*${sizeText(stride)}`)].sort().join()

/** Finds the two loops; null where nothing is gained, or where iterations in another order could read what others have stored. */
function turnedIn(nest: Nest): TransposeSpec | null {
  const stores: StoreStmt[] = []
  for (const stmt of nest.body) {
    if (stmt.kind === 'store' && stmt.combine === null && stmt.index.dynamic.length === 0) stores.push(stmt)
    else if (stmt.kind !== 'declare') return null
  }
  const across = nest.loops.find((loop) => stores.length > 0 && stores.every(({ index }) => isOne(index, loop)))
  if (across === undefined) return null
  const loads: LoadExpr[] = []
  forEachExpr(nest.body, (expr) => {
    if (expr.kind === 'load') loads.push(expr)
  })
  for (const { buffer, index } of stores)
    if (loads.some((load) => load.buffer === buffer && (load.index.dynamic.length > 0 || indexText(load.index) !== indexText(index)))) return null
  let best: TransposeSpec | null = null
  for (const along of nest.loops) {
    if (along === across) continue
    const turned = loads.filter(({ index, mask }) => {
      const stride = strideAlong(index.terms, across)
      return mask === null && index.dynamic.length === 0 && isOne(index, along) && stride !== 0 && stride !== 1
    })
    if (turned.length > (best?.turned.length ?? 0)) best = { nest, along, across, turned }
  }
  return best
}

/** A part of a loop: `extent` iterations from `first` on, `side` at a time. */
interface LoopPart {
  readonly loop: LoopVar
  readonly first: Size
  readonly extent: Size
  readonly side: number
}

const part = (loop: LoopVar, first: Size, extent: Size, side = 1): LoopPart => ({ loop, first, extent, side })

/** Whole blocks of a loop, then whole tiles, and where these end. */
function partsOf(loop: LoopVar, side: number): { readonly whole: readonly LoopPart[]; readonly end: Size } {
  const whole: LoopPart[] = []
  let end: Size = 0
  for (const width of side > SIDE ? [side, SIDE] : [SIDE]) {
    const extent = roundedDown(sizeDifference(loop.extent, end), width)
    if (extent !== 0) whole.push(part(loop, end, extent, width))
    end = sizeSum(end, extent)
  }
  return { whole, end }
}

/** The blocks of a part of the rows and a part of the columns. */
function blocks({ nest, along, across, turned }: TransposeSpec, rows: LoopPart, columns: LoopPart): Stmt {
  const [row0, column0] = [loopVar('row0', rows.extent, rows.side), loopVar('column0', columns.extent, columns.side)]
  const [row4, column4] = [loopVar('row4', rows.side, SIDE), loopVar('column4', columns.side, SIDE)]
  const [row, column] = [loopVar('row', SIDE), loopVar('column', SIDE)]
  const index = (first: Size, ...loops: readonly LoopVar[]): Index => ({ ...at(...loops.map((loop) => [loop, 1] as const)), base: first })
  const place = new Map([
    [along, index(rows.first, row0, row4, row)],
    [across, index(columns.first, column0, column4, column)],
  ])
  const tiles = turned.map((load, i) => ({ load, tile: localArray(`tile${i}`, load.dtype, [SIDE, SIDE]) }))
  const transposed = new Map(tiles.map(({ load, tile }) => [load, element(tile, column, row)]))
  const body = [
    ...tiles.map(({ load, tile }) => declareArray(tile, constant(load.dtype, 0))),
    forLoop(column, 'unroll', [
      forLoop(
        row,
        'lanes',
        tiles.map(({ load, tile }) => setElement(tile, [column, row], { ...load, index: substitutedIndex(load.index, place) })),
      ),
    ]),
    forLoop(row, 'unroll', [forLoop(column, 'lanes', substituted(nest.body, place, transposed))]),
  ]
  return forLoop(row0, 'serial', [
    forLoop(column0, 'serial', [
      forLoop(column4, columns.side === SIDE ? 'unroll' : 'serial', [forLoop(row4, rows.side === SIDE ? 'unroll' : 'serial', body)]),
    ]),
  ])
}

/** The statements for parts of two loops, with lanes along the second. */
function oneByOne({ nest }: TransposeSpec, outer: LoopPart, inner: LoopPart): Stmt {
  const [serial, simd] = [loopVar(outer.loop.name, outer.extent), loopVar(inner.loop.name, inner.extent)]
  const place = new Map([
    [outer.loop, { ...at([serial, 1]), base: outer.first }],
    [inner.loop, { ...at([simd, 1]), base: inner.first }],
  ])
  return forLoop(serial, 'serial', [forLoop(simd, 'simd', substituted(nest.body, place))])
}
