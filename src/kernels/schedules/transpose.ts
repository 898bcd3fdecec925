// Copies and pointwise kernels that read along other dimensions than they write along: a transposed tensor made contiguous, a permuted copy, x + y.t(). One element at a
// time, each would touch a cache line of its own. Tiles of 4x4 elements are loaded along the one dimension, transposed in registers, and stored along the other, in blocks
// whose cache lines are in the cache for as long as they are used. Where lines lie pages apart, a cache has room for a few of them only: there, blocks of whole lines are collected in
// scratch memory, so that each line of memory is read once and written once.
import { dtypeInfo } from '../numbers/dtype.ts'
import { forEachExpr, strideAlong } from '../ir/analysis.ts'
import { KernelError } from '../ir/errors.ts'
import { at, constant, declareArray, element, forLoop, load, localArray, loopVar, scratch, serialLoops, setElement, store } from '../ir/loopIr.ts'
import type { Index, Kernel, LoadExpr, LoopMode, LoopVar, Param, Scratch, Size, Stmt, StoreStmt } from '../ir/loopIr.ts'
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
  /** Whether whole blocks are collected in scratch memory. */
  readonly collected?: boolean
}

/** The side of a tile in registers. */
const SIDE = 4

const SMALL: TransposeTile = { along: 8, across: 4 }
/** Blocks of whole cache lines of 4-byte elements. */
export const COLLECTED: TransposeTile = { along: 16, across: 16, collected: true }

/** Lines whose distance in bytes is a multiple of this compete for the same few places of a cache. */
const PAGE = 4096
/** Fewer lines than that all find a place in the second cache. */
const MANY_LINES = 64

/** Whether that many lines of a side, with that many bytes between them, drive each other out of a cache. */
export const compete = (lines: number, bytes: number): boolean => lines >= MANY_LINES && bytes > 0 && bytes % PAGE === 0

/** The tile for a problem: blocks are collected where lines of what is loaded compete. Sizes that are not known count as harmless. */
export function tileFor({ across, turned }: TransposeSpec): TransposeTile {
  const isCrowded = turned.some(({ dtype, index }) =>
    compete(knownSize(across.extent), dtypeInfo[dtype].size * knownSize(strideAlong(index.terms, across))),
  )
  return isCrowded ? COLLECTED : SMALL
}

const knownSize = (size: Size | readonly Size[]): number => (typeof size === 'number' ? size : 0)

export const transpose: Schedule<Nest, TransposeSpec, TransposeTile> = {
  name: 'transpose',
  match: (nest) => turnedIn(nest) !== null,
  spec: (nest) => {
    const spec = turnedIn(nest)
    if (spec === null) throw new KernelError(`the transpose schedule does not match the kernel ${nest.name}`)
    return spec
  },
  tiles: () => [SMALL, { along: 16, across: 4 }, COLLECTED],
  build: (spec, given) => {
    const { nest, along, across, turned } = spec
    const tile = given.collected === true && !isCopy(spec) ? SMALL : given
    const outer = nest.loops.filter((loop) => loop !== along && loop !== across)
    const memories = new Map(
      tile.collected === true ? turned.map((from) => [from, scratch('block', from.dtype, tile.along * tile.across, 'thread')]) : [],
    )
    const [rows, columns] = [partsOf(along, tile.along), partsOf(across, tile.across)]
    const body = rows.whole.flatMap((row) =>
      columns.whole.map((column) =>
        memories.size > 0 && row.side === tile.along && column.side === tile.across
          ? collectedBlocks(spec, row, column, memories)
          : blocks(spec, row, column),
      ),
    )
    // What fills no tile: the last columns of all rows in tiles, and the last rows.
    const [beside, below] = [part(along, 0, rows.end), part(across, columns.end, sizeDifference(across.extent, columns.end))]
    if (below.extent !== 0) body.push(oneByOne(spec, below, beside))
    const last = part(along, rows.end, sizeDifference(along.extent, rows.end))
    if (last.extent !== 0) body.push(oneByOne(spec, last, part(across, 0, across.extent)))
    return { name: nest.name, params: nest.params, scratch: [...memories.values()], body: serialLoops(outer, body) } satisfies Kernel
  },
}

/** Whether it stores what it loads. More than that, twice in the kernel, is too much code. */
const isCopy = ({ nest: { body }, turned }: TransposeSpec): boolean =>
  body.length === 1 && body.every((stmt) => stmt.kind === 'store' && stmt.value === turned[0])

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
function blocks(spec: TransposeSpec, rows: LoopPart, columns: LoopPart): Stmt {
  const loops = blockLoops(rows, columns)
  return forLoop(loops.row0, 'serial', [forLoop(loops.column0, 'serial', [tilesOf(spec, loops, [rows.first, columns.first], spec.nest.body)])])
}

/** The same by way of memories, one for each load: a block is collected there, and then left line by line. */
function collectedBlocks(spec: TransposeSpec, rows: LoopPart, columns: LoopPart, memories: ReadonlyMap<LoadExpr, Scratch>): Stmt {
  const loops = blockLoops(rows, columns)
  const { row0, column0, row4, column4, row, column } = loops
  const [line, lane] = [loopVar('line', rows.side), loopVar('lane', columns.side)]
  const inBlock = at([row4, columns.side], [row, columns.side], [column4, 1], [column, 1])
  const collect = [...memories].map(([from, memory]) => store(memory, inBlock, from))
  const collected = new Map([...memories].map(([from, memory]) => [from, load(memory, at([line, columns.side], [lane, 1]))]))
  const place = new Map([
    [spec.along, indexOf(rows.first, row0, line)],
    [spec.across, indexOf(columns.first, column0, lane)],
  ])
  return forLoop(column0, 'parallel', [
    forLoop(row0, 'serial', [
      tilesOf(spec, loops, [rows.first, columns.first], collect),
      forLoop(line, 'serial', [forLoop(lane, 'lanes', substituted(spec.nest.body, place, collected))]),
    ]),
  ])
}

type BlockLoops = Readonly<Record<'row0' | 'column0' | 'row4' | 'column4' | 'row' | 'column', LoopVar>>

/** The loops over the blocks of a part of the rows and a part of the columns, over the tiles of a block, and over the elements of a tile. */
const blockLoops = (rows: LoopPart, columns: LoopPart): BlockLoops => ({
  ...{ row0: loopVar('row0', rows.extent, rows.side), column0: loopVar('column0', columns.extent, columns.side) },
  ...{ row4: loopVar('row4', rows.side, SIDE), column4: loopVar('column4', columns.side, SIDE) },
  ...{ row: loopVar('row', SIDE), column: loopVar('column', SIDE) },
})

const indexOf = (first: Size, ...loops: readonly LoopVar[]): Index => ({ ...at(...loops.map((loop) => [loop, 1] as const)), base: first })

/** The tiles of a block: the loads are transposed in registers, and the statements get them from there. */
function tilesOf(
  { along, across, turned }: TransposeSpec,
  loops: BlockLoops,
  first: readonly [row: Size, column: Size],
  stmts: readonly Stmt[],
): Stmt {
  const { row0, column0, row4, column4, row, column } = loops
  const place = new Map([
    [along, indexOf(first[0], row0, row4, row)],
    [across, indexOf(first[1], column0, column4, column)],
  ])
  const tiles = turned.map((from, i) => ({ from, tile: localArray(`tile${i}`, from.dtype, [SIDE, SIDE]) }))
  const transposed = new Map(tiles.map(({ from, tile }) => [from, element(tile, column, row)]))
  const mode = ({ extent }: LoopVar): LoopMode => (extent === SIDE ? 'unroll' : 'serial')
  const body = [
    ...tiles.map(({ from, tile }) => declareArray(tile, constant(from.dtype, 0))),
    forLoop(column, 'unroll', [
      forLoop(
        row,
        'lanes',
        tiles.map(({ from, tile }) => setElement(tile, [column, row], { ...from, index: substitutedIndex(from.index, place) })),
      ),
    ]),
    forLoop(row, 'unroll', [forLoop(column, 'lanes', substituted(stmts, place, transposed))]),
  ]
  return forLoop(column4, mode(column4), [forLoop(row4, mode(row4), body)])
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
