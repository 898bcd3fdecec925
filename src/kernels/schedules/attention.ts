// Attention by blocks of query rows, for one head at a time. Keys and values are packed in panels once for a head. Then each block of rows makes its scores in scratch memory, takes
// their softmax in place, and multiplies them with the values: the matrix of all scores is never in memory.
import {
  accumulate,
  at,
  bufferParam,
  call,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  iota,
  load,
  local,
  localArray,
  loopVar,
  read,
  scalar,
  scalarParam,
  serialLoops,
  setElement,
  sizeOf,
  sizeParam,
  store,
} from '../loopIr.ts'
import type { BufferParam, Expr, Index, Kernel, LoopVar, Size, Stmt } from '../loopIr.ts'
import { roundedDown, roundedUp, sizeDifference, sizeProduct, sizeSum } from '../sizes.ts'
import { transpose } from './transpose.ts'
import type { Nest } from './transpose.ts'

/** Keys of a panel, and columns of a panel of values. */
export const PANEL = 8
/** Query rows of a block. */
export const BLOCK = 16
/** Query rows of a tile in registers. */
const ROWS = 4

const from = (base: Size, ...terms: readonly (readonly [LoopVar, Size])[]): Index => ({ ...at(...terms), base })
const [zero, one, lowest] = [constant('float32', 0), constant('float32', 1), constant('float32', -Infinity)]

/** Packs the keys of a head. Params: panels, keys, count, depth. Panel p holds keys p to p + 7; element d of key p + j lies at p * depth + d * 8 + j. */
export function packKeys(): Kernel {
  const [panels, keys] = [bufferParam('panels', 'float32', 'write'), bufferParam('keys', 'float32')]
  const [count, depth] = [sizeParam('count'), sizeParam('depth')]
  const whole = roundedDown(count, PANEL)
  const nest = (first: Size, p: readonly LoopVar[], width: Size): Nest => {
    const [d, j] = [loopVar('d', depth), loopVar('j', width)]
    const start = sizeProduct(first, depth)
    const along = p.map((loop) => [loop, depth] as const)
    const value = load(keys, from(start, ...along, [j, depth], [d, 1]))
    return { name: 'pack_keys', params: [], loops: [...p, d, j], body: [store(panels, from(start, ...along, [d, PANEL], [j, 1]), value)] }
  }
  const inTiles = transpose.build(transpose.spec(nest(0, [loopVar('p', whole, PANEL)], PANEL)), { along: 8, across: 8 })
  const rest = nest(whole, [], sizeDifference(count, whole))
  return { name: 'pack_keys', params: [panels, keys, count, depth], body: [...inTiles.body, ...serialLoops(rest.loops, rest.body)] }
}

/** Packs the values of a head, whose width is a multiple of 8. Params: panels, values, count, width. Element j of value t in panel e lies at e * count + t * 8 + j. */
export function packValues(): Kernel {
  const [panels, values] = [bufferParam('panels', 'float32', 'write'), bufferParam('values', 'float32')]
  const [count, width] = [sizeParam('count'), sizeParam('width')]
  const [e, t, j] = [loopVar('e', width, PANEL), loopVar('t', count), loopVar('j', PANEL)]
  const copy = store(panels, at([e, count], [t, PANEL], [j, 1]), load(values, at([t, width], [e, 1], [j, 1])))
  return { name: 'pack_values', params: [panels, values, count, width], body: serialLoops([e, t], [forLoop(j, 'lanes', [copy])]) }
}

/** What scores are masked by: nothing, the place of the row (row r attends to keys 0 to r), or a matrix that is added. */
export type AttentionMask = 'none' | 'causal' | 'added'

/** What the kernel of a block takes. `stride` is that of rows of scores. */
function blockParams() {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, 'float32', access)
  const all = sizeParam('all')
  return {
    out: buffer('out', 'write'),
    query: buffer('query'),
    keyPanels: buffer('keyPanels'),
    valuePanels: buffer('valuePanels'),
    scores: buffer('scores', 'readwrite'),
    inverse: buffer('inverse', 'readwrite'),
    added: buffer('mask'),
    rows: sizeParam('rows'),
    keys: sizeParam('keys'),
    all,
    depth: sizeParam('depth'),
    width: sizeParam('width'),
    first: sizeParam('first'),
    scale: scalarParam('scale', 'float32'),
    stride: roundedUp(all, PANEL),
  }
}

type BlockParams = ReturnType<typeof blockParams>

/**
 * A block of query rows. Params: out, query, panels of keys, panels of values, scores (16 rows of the keys rounded up to panels), inverse sums (16), the mask if one is added, rows, the
 * keys that the block attends to, all keys, depth, width, the first row if the mask is causal, and the scale.
 */
export function attend(mask: AttentionMask): Kernel {
  const params = blockParams()
  const { out, query, keyPanels, valuePanels, scores, inverse, added, rows, keys, all, depth, width, first, scale } = params
  const [matrix, row] = [mask === 'added' ? [added] : [], mask === 'causal' ? [first] : []]
  return {
    name: `attend_${mask}`,
    params: [out, query, keyPanels, valuePanels, scores, inverse, ...matrix, rows, keys, all, depth, width, ...row, scale],
    body: [scoresOf(params, mask), softmaxOf(params, mask), weighted(params)],
  }
}

/** Rows of a block: `height` at a time from row `start` on. */
interface RowTile {
  readonly start: Size
  readonly row0: LoopVar
  readonly height: number
}

/** Tiles of four rows, and the rows that are left one by one. */
function rowTiles(rows: Size, body: (tile: RowTile) => readonly Stmt[]): readonly Stmt[] {
  const whole = roundedDown(rows, ROWS)
  const [many, single] = [loopVar('row0', whole, ROWS), loopVar('row1', sizeDifference(rows, whole))]
  return [
    forLoop(many, 'serial', body({ start: 0, row0: many, height: ROWS })),
    forLoop(single, 'serial', body({ start: whole, row0: single, height: 1 })),
  ]
}

/** The places of a tile in a matrix whose rows are `stride` apart; `i` walks over its rows. */
const inRows = ({ start, row0 }: RowTile, i: LoopVar, stride: Size, ...terms: readonly (readonly [LoopVar, Size])[]): Index =>
  from(sizeProduct(start, stride), [row0, stride], [i, stride], ...terms)

/** The products of a tile's rows of a matrix and a panel in registers, and then for each `finish`, in lanes along j. */
function productOf(
  tile: RowTile,
  rows: { readonly matrix: BufferParam; readonly stride: Size; readonly count: Size },
  panel: (k: LoopVar, j: LoopVar) => Expr,
  finish: (sum: Expr, i: LoopVar, j: LoopVar) => Stmt,
): readonly Stmt[] {
  const { height } = tile
  const sums = localArray('sums', 'float32', [height, PANEL])
  const [k, i, j] = [loopVar('k', rows.count), loopVar('i', height), loopVar('j', PANEL)]
  const factor = load(rows.matrix, inRows(tile, i, rows.stride, [k, 1]))
  const step = setElement(sums, [i, j], call('mulAdd', factor, panel(k, j), element(sums, i, j)))
  const [i1, j1] = [loopVar('i', height), loopVar('j', PANEL)]
  return [
    declareArray(sums, zero),
    forLoop(k, 'serial', [forLoop(i, 'unroll', [forLoop(j, 'lanes', [step])])]),
    forLoop(i1, 'unroll', [forLoop(j1, 'lanes', [finish(element(sums, i1, j1), i1, j1)])]),
  ]
}

function scoresOf({ query, keyPanels, scores, rows, keys, depth, first, scale, stride }: BlockParams, mask: AttentionMask): Stmt {
  const panel0 = loopVar('panel0', roundedUp(keys, PANEL), PANEL)
  const tiles = rowTiles(rows, (tile) =>
    productOf(
      tile,
      { matrix: query, stride: depth, count: depth },
      (k, j) => load(keyPanels, at([panel0, depth], [k, PANEL], [j, 1])),
      (sum, i, j) => {
        const score = call('mul', sum, scalar(scale))
        const row = call('add', call('add', iota(tile.row0), iota(i)), sizeOf(sizeSum(first, tile.start)))
        const isSeen = call('le', call('add', iota(panel0), iota(j)), row)
        const value = mask === 'causal' ? call('where', isSeen, score, lowest) : score
        return store(scores, inRows(tile, i, stride, [panel0, 1], [j, 1]), value)
      },
    ),
  )
  return forLoop(panel0, 'serial', tiles)
}

/** The exponentials in the place of the scores, and the inverse of their sums. A row that an added mask hides as a whole attends to nothing: its weights are 0. */
function softmaxOf({ scores, inverse, added, rows, keys, all, stride }: BlockParams, mask: AttentionMask): Stmt {
  const row = loopVar('row', rows)
  const [top, greatest, sum] = [local('top', 'float32'), local('greatest', 'float32'), local('sum', 'float32')]
  const [c0, c1] = [loopVar('c0', keys), loopVar('c1', keys)]
  const [place0, place1] = [at([row, stride], [c0, 1]), at([row, stride], [c1, 1])]
  const masked = call('add', load(scores, place0), load(added, at([row, all], [c0, 1])))
  const power = call('exp', call('sub', load(scores, place1), read(greatest)))
  const isAdded = mask === 'added'
  return forLoop(row, 'serial', [
    declare(top, lowest),
    forLoop(c0, 'simd', isAdded ? [store(scores, place0, masked), accumulate(top, 'max', masked)] : [accumulate(top, 'max', load(scores, place0))]),
    declare(greatest, isAdded ? call('where', call('eq', read(top), lowest), zero, read(top)) : read(top)),
    declare(sum, zero),
    forLoop(c1, 'simd', [store(scores, place1, power), accumulate(sum, 'add', power)]),
    store(inverse, at([row, 1]), call('div', one, isAdded ? call('where', call('eq', read(sum), zero), one, read(sum)) : read(sum))),
  ])
}

function weighted({ out, valuePanels, scores, inverse, rows, keys, all, width, stride }: BlockParams): Stmt {
  const column0 = loopVar('column0', width, PANEL)
  const tiles = rowTiles(rows, (tile) =>
    productOf(
      tile,
      { matrix: scores, stride, count: keys },
      (k, j) => load(valuePanels, at([column0, all], [k, PANEL], [j, 1])),
      (sum, i, j) => store(out, inRows(tile, i, width, [column0, 1], [j, 1]), call('mul', sum, load(inverse, inRows(tile, i, 1)))),
    ),
  )
  return forLoop(column0, 'serial', tiles)
}
