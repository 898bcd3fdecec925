// What the kernels of attention share: keys and values packed in panels, once for a head, and products of a few rows with a panel, whose sums stay in registers.
import {
  at,
  bufferParam,
  call,
  constant,
  declareArray,
  element,
  forLoop,
  iota,
  load,
  localArray,
  loopVar,
  scalar,
  scalarParam,
  serialLoops,
  setElement,
  sizeOf,
  sizeParam,
  store,
} from '../ir/loopIr.ts'
import type { BufferParam, Expr, Index, Kernel, LoopVar, Memory, Param, ScalarParam, Size, Stmt } from '../ir/loopIr.ts'
import type { TileEngine } from '../engine/engine.ts'
import { roundedDown, roundedUp, sizeDifference, sizeProduct, sizeSum } from '../ir/sizes.ts'
import { machineTiles } from './machineTiles.ts'
import { from } from './notation.ts'
import { wholeParts } from './panels.ts'
import type { Terms } from './notation.ts'
import { transpose } from './transpose.ts'
import type { Nest } from './transpose.ts'

/** Keys of a panel, and columns of a panel of values. */
export const PANEL = 8
/** Query rows of a block. */
export const BLOCK = 16
/** Rows of a tile in registers; machine code has more. */
const ROWS = 4

/** Query rows of a tile, for an engine. */
export const attentionRows = (engine: TileEngine): number => machineTiles(engine).attention?.rows ?? ROWS

/** What scores are masked by: nothing, the place of the row (row r attends to keys 0 to r), or a matrix that is added. */
export type AttentionMask = 'none' | 'causal' | 'added'

/** The parameters that the kernels of a block have in common, forward and backward; `attend` says what they are. */
export const sharedParams = () => ({
  added: buffer('mask'),
  rows: sizeParam('rows'),
  keys: sizeParam('keys'),
  all: sizeParam('all'),
  depth: sizeParam('depth'),
  width: sizeParam('width'),
  room: sizeParam('room'),
  queryStride: sizeParam('queryStride'),
  maskStride: sizeParam('maskStride'),
  first: sizeParam('first'),
  scale: scalarParam('scale', 'float32'),
})

/** Those that a kernel with such a mask has, in their order: after its other ones. */
export const sharedOrder = (p: ReturnType<typeof sharedParams>, mask: AttentionMask): readonly Param[] => [
  ...(mask === 'added' ? [p.added] : []),
  ...[p.rows, p.keys, p.all, p.depth, p.width, p.room, p.queryStride],
  ...(mask === 'added' ? [p.maskStride] : []),
  ...(mask === 'causal' ? [p.first] : []),
  p.scale,
]

export const zero: Expr = constant('float32', 0)
export const one: Expr = constant('float32', 1)
export const lowest: Expr = constant('float32', -Infinity)

export const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, 'float32', access)

/**
 * Packs the keys of a head. Params: panels, keys, count, depth, and the elements from one key to the next. Panel p holds keys p to p + 7; element d of key p + j lies at
 * p * depth + d * 8 + j.
 */
export function packKeys(): Kernel {
  const [panels, keys] = [buffer('panels', 'write'), buffer('keys')]
  const [count, depth, stride] = [sizeParam('count'), sizeParam('depth'), sizeParam('stride')]
  const whole = roundedDown(count, PANEL)
  const nest = (first: Size, p: readonly LoopVar[], width: Size): Nest => {
    const [d, j] = [loopVar('d', depth), loopVar('j', width)]
    const along = (step: Size): Terms => p.map((loop) => [loop, step])
    const value = load(keys, from(sizeProduct(first, stride), ...along(stride), [j, stride], [d, 1]))
    const place = from(sizeProduct(first, depth), ...along(depth), [d, PANEL], [j, 1])
    return { name: 'pack_keys', params: [], loops: [...p, d, j], body: [store(panels, place, value)] }
  }
  const inTiles = transpose.build(transpose.spec(nest(0, [loopVar('p', whole, PANEL)], PANEL)), { along: 8, across: 8 })
  const rest = nest(whole, [], sizeDifference(count, whole))
  return {
    isPart: true,
    name: 'pack_keys',
    params: [panels, keys, count, depth, stride],
    body: [...inTiles.body, ...serialLoops(rest.loops, rest.body)],
  }
}

/**
 * Packs the values of a head, whose width is a multiple of 8. Params: panels, values, count, width, and the elements from one value to the next. Element j of value t in
 * panel e lies at e * count + t * 8 + j.
 */
export function packValues(): Kernel {
  const [panels, values] = [buffer('panels', 'write'), buffer('values')]
  const [count, width, stride] = [sizeParam('count'), sizeParam('width'), sizeParam('stride')]
  const [e, t, j] = [loopVar('e', width, PANEL), loopVar('t', count), loopVar('j', PANEL)]
  const copy = store(panels, at([e, count], [t, PANEL], [j, 1]), load(values, at([t, stride], [e, 1], [j, 1])))
  return {
    isPart: true,
    name: 'pack_values',
    params: [panels, values, count, width, stride],
    body: serialLoops([e, t], [forLoop(j, 'lanes', [copy])]),
  }
}

/**
 * Statements for `count` neighbours, `together` in lanes and those that are left one by one: with less code than a simd loop, which counts where it has costly functions.
 * `at0` says where a neighbour lies from the first one on.
 */
export function inLanes(name: string, count: Size, together: number, body: (at0: Index) => readonly Stmt[]): readonly Stmt[] {
  const whole = roundedDown(count, together)
  const [first, lane, rest] = [loopVar(`${name}0`, whole, together), loopVar(name, together), loopVar(`${name}1`, sizeDifference(count, whole))]
  return [
    forLoop(first, 'serial', [forLoop(lane, 'lanes', body(from(0, [first, 1], [lane, 1])))]),
    forLoop(rest, 'serial', body(from(whole, [rest, 1]))),
  ]
}

/** Some rows of a product: `height` at a time from row `start` on. */
export interface RowTile {
  readonly start: Size
  readonly row0: LoopVar
  readonly height: number
}

/** Tiles of `most` rows, of those that are left tiles of four, and then one by one. */
export function rowTiles(rows: Size, most: number, body: (tile: RowTile) => readonly Stmt[]): readonly Stmt[] {
  const parts = wholeParts(rows, [most, ROWS])
  const whole = parts.reduce((sum: Size, { extent }) => sizeSum(sum, extent), 0)
  const tile = (start: Size, extent: Size, height: number): Stmt => {
    const row0 = loopVar(height === 1 ? 'row1' : 'row0', extent, height)
    return forLoop(row0, 'serial', body({ start, row0, height }))
  }
  return [...parts.map(({ first, extent, width }) => tile(first, extent, width)), tile(whole, sizeDifference(rows, whole), 1)]
}

/** The places of a tile in a matrix whose rows are `stride` apart; `i` walks over its rows. */
export const inRows = ({ start, row0 }: RowTile, i: LoopVar, stride: Size, ...terms: Terms): Index =>
  from(sizeProduct(start, stride), [row0, stride], [i, stride], ...terms)

/** The left operand of a product: element k of a row. `stride` leads from row to row, `step` from element to element. */
export interface Rows {
  readonly matrix: Memory
  readonly stride: Size
  readonly step?: Size
  readonly count: Size
}

/** The products of a tile's rows and a panel in registers, and then for each `finish`, in lanes along j. */
export function productOf(
  tile: RowTile,
  { matrix, stride, step = 1, count }: Rows,
  panel: (k: LoopVar, j: LoopVar) => Expr,
  finish: (sum: Expr, i: LoopVar, j: LoopVar) => Stmt,
): readonly Stmt[] {
  const { height } = tile
  const sums = localArray('sums', 'float32', [height, PANEL])
  const [k, i, j] = [loopVar('k', count), loopVar('i', height), loopVar('j', PANEL)]
  const factor = load(matrix, inRows(tile, i, stride, [k, step]))
  const add = setElement(sums, [i, j], call('mulAdd', factor, panel(k, j), element(sums, i, j)))
  const [i1, j1] = [loopVar('i', height), loopVar('j', PANEL)]
  return [
    declareArray(sums, zero),
    forLoop(k, 'serial', [forLoop(i, 'unroll', [forLoop(j, 'lanes', [add])])]),
    forLoop(i1, 'unroll', [forLoop(j1, 'lanes', [finish(element(sums, i1, j1), i1, j1)])]),
  ]
}

/** A block of queries and the keys that it attends to. */
export interface ScoreParams {
  readonly query: BufferParam
  /** Elements from one query to the next. */
  readonly queryStride: Size
  readonly keyPanels: BufferParam
  readonly scores: BufferParam
  /** Elements from one row of scores to the next. */
  readonly room: Size
  readonly rows: Size
  readonly keys: Size
  readonly depth: Size
  /** Under a causal mask, row r sees the keys up to `first` + r. */
  readonly first: Size
  readonly scale: ScalarParam
}

/** Writes the scores, in tiles of `most` rows: products, scaled, and -Infinity where a causal mask hides the key. */
export function scoresOf(
  { query, queryStride, keyPanels, scores, room, rows, keys, depth, first, scale }: ScoreParams,
  mask: AttentionMask,
  most: number,
): Stmt {
  const panel0 = loopVar('panel0', roundedUp(keys, PANEL), PANEL)
  const tiles = rowTiles(rows, most, (tile) => {
    // How far the keys of the panel are beyond the last one that the first row of the tile sees.
    const [beyond, key] = [localArray('beyond', 'int32', [PANEL]), loopVar('j', PANEL)]
    const last = call('add', iota(tile.row0), sizeOf(sizeSum(first, tile.start)))
    const begin = [
      declareArray(beyond, constant('int32', 0)),
      forLoop(key, 'lanes', [setElement(beyond, [key], call('sub', call('add', iota(panel0), iota(key)), last))]),
    ]
    const products = productOf(
      tile,
      { matrix: query, stride: queryStride, count: depth },
      (k, j) => load(keyPanels, at([panel0, depth], [k, PANEL], [j, 1])),
      (sum, i, j) => {
        const score = call('mul', sum, scalar(scale))
        const value = mask === 'causal' ? call('where', call('le', element(beyond, j), iota(i)), score, lowest) : score
        return store(scores, inRows(tile, i, room, [panel0, 1], [j, 1]), value)
      },
    )
    return [...(mask === 'causal' ? begin : []), ...products]
  })
  return forLoop(panel0, 'serial', tiles)
}
