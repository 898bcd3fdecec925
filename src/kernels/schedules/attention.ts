// Attention by blocks of query rows, for one head at a time. Keys and values are packed in panels once for a head. Then each block of rows makes its scores in scratch memory, takes
// their softmax in place, and multiplies them with the values: the matrix of all scores is never in memory. Where even the scores of one block are many, the keys come in pieces:
// each piece corrects the sums of those before it by how much the greatest score has grown.
import { accumulate, assign, at, call, constant, declare, forLoop, load, local, loopVar, read, store } from '../ir/loopIr.ts'
import type { Expr, Kernel, Local, LoopVar, Param, Stmt } from '../ir/loopIr.ts'
import type { TileEngine } from '../engine/engine.ts'
import {
  PANEL,
  attentionRows,
  buffer,
  inLanes,
  inRows,
  lowest,
  one,
  productOf,
  rowTiles,
  scoresOf,
  sharedOrder,
  sharedParams,
  zero,
} from './attentionPanels.ts'
import { QUAD } from './notation.ts'
import type { AttentionMask } from './attentionPanels.ts'

const infinity = constant('float32', Infinity)

/** What the kernel of a block takes, and what it keeps for each row: with all keys at once the inverse of the sum, with pieces what {@link beginPieces} begins. */
function blockParams() {
  return {
    out: buffer('out', 'readwrite'),
    logs: buffer('logs', 'readwrite'),
    query: buffer('query'),
    keyPanels: buffer('keyPanels'),
    valuePanels: buffer('valuePanels'),
    scores: buffer('scores', 'readwrite'),
    factors: buffer('factors', 'readwrite'),
    greatest: buffer('greatest', 'readwrite'),
    sums: buffer('sums', 'readwrite'),
    ...sharedParams(),
  }
}

type BlockParams = ReturnType<typeof blockParams>

/** Whether a kernel gets all keys of a head or a piece of them. */
export type AttentionKeys = 'all' | 'piece'

/**
 * A block of query rows. Params: out; with all keys at once the logarithms of the rows' sums of exponentials; query, panels of keys, panels of values, scores (16 rows of `room`), factors
 * (16); with pieces of keys the greatest scores and the sums so far (16 each); the mask if one is added; the rows, the keys that the block attends to, all keys of the head, depth, width,
 * room, the elements from one query to the next, the same of the mask if there is one, the first row less the first key if the mask is causal, and the scale.
 * `engine`: whose tiles it has.
 */
export function attend(mask: AttentionMask, given: AttentionKeys, engine: TileEngine = 'wasm'): Kernel {
  const p = blockParams()
  const isWhole = given === 'all'
  const most = attentionRows(engine)
  const params: Param[] = [p.out, ...(isWhole ? [p.logs] : []), p.query, p.keyPanels, p.valuePanels, p.scores, p.factors]
  if (!isWhole) params.push(p.greatest, p.sums)
  params.push(...sharedOrder(p, mask))
  return {
    isPart: true,
    name: `attend_${mask}${isWhole ? '' : '_piece'}`,
    params,
    body: [scoresOf(p, mask, most), softmaxOf(p, mask, isWhole), ...(isWhole ? resultsOf(p, mask) : []), weighted(p, isWhole, most)],
  }
}

/** Begins a block whose keys come in pieces. Params: out, the greatest scores, the sums, rows, width. */
export function beginPieces(): Kernel {
  const { out, greatest, sums, rows, width } = blockParams()
  const [row, column] = [loopVar('row', rows), loopVar('column', width)]
  const place = at([row, 1])
  const begin = [store(greatest, place, lowest), store(sums, place, zero), forLoop(column, 'simd', [store(out, at([row, width], [column, 1]), zero)])]
  return { name: 'attend_begin', params: [out, greatest, sums, rows, width], body: [forLoop(row, 'serial', begin)] }
}

/** Ends a block whose keys came in pieces. Params: out, the logarithms of the rows' sums of exponentials, the greatest scores, the sums, rows, width. */
export function endPieces(mask: AttentionMask): Kernel {
  const { out, logs, greatest, sums, rows, width } = blockParams()
  const [row, column] = [loopVar('row', rows), loopVar('column', width)]
  const inverse = local('inverse', 'float32')
  const [sum, place] = [load(sums, at([row, 1])), at([row, width], [column, 1])]
  const end = [
    declare(inverse, inverseOf(sum, mask)),
    store(logs, at([row, 1]), logarithmOf(sum, load(greatest, at([row, 1])), mask)),
    forLoop(column, 'simd', [store(out, place, call('mul', load(out, place), read(inverse)))]),
  ]
  return { name: `attend_end_${mask}`, params: [out, logs, greatest, sums, rows, width], body: [forLoop(row, 'serial', end)] }
}

/** A row that an added mask hides as a whole attends to nothing: its weights are 0, and so is what a backward computes from an infinite logarithm. */
const ifHidden = (sum: Expr, mask: AttentionMask, hidden: Expr, value: Expr): Expr =>
  mask === 'added' ? call('where', call('eq', sum, zero), hidden, value) : value

const inverseOf = (sum: Expr, mask: AttentionMask): Expr => call('div', one, ifHidden(sum, mask, one, sum))

const logarithmOf = (sum: Expr, greatest: Expr, mask: AttentionMask): Expr => ifHidden(sum, mask, infinity, call('add', greatest, call('log', sum)))

/** The exponentials in the place of the scores, and their sums. */
function softmaxOf(p: BlockParams, mask: AttentionMask, isWhole: boolean): Stmt {
  const { scores, added, keys, room, maskStride, rows } = p
  const row = loopVar('row', rows)
  const [top, shift, sum] = [local('top', 'float32'), local('shift', 'float32'), local('sum', 'float32')]
  const [c0, c1] = [loopVar('c0', keys), loopVar('c1', keys)]
  const [place0, place1] = [at([row, room], [c0, 1]), at([row, room], [c1, 1])]
  const masked = call('add', load(scores, place0), load(added, at([row, maskStride], [c0, 1])))
  const power = call('exp', call('sub', load(scores, place1), read(shift)))
  const isAdded = mask === 'added'
  const mayHide = isAdded || !isWhole
  return forLoop(row, 'serial', [
    declare(top, lowest),
    forLoop(c0, 'simd', isAdded ? [store(scores, place0, masked), accumulate(top, 'max', masked)] : [accumulate(top, 'max', load(scores, place0))]),
    ...(isWhole ? [] : [assign(top, call('max', read(top), load(p.greatest, at([row, 1]))))]),
    declare(shift, mayHide ? call('where', call('eq', read(top), lowest), zero, read(top)) : read(top)),
    declare(sum, zero),
    forLoop(c1, 'simd', [store(scores, place1, power), accumulate(sum, 'add', power)]),
    ...(isWhole ? [store(p.factors, at([row, 1]), read(sum)), store(p.logs, at([row, 1]), read(top))] : correctionsOf(p, row, top, shift, sum)),
  ])
}

/** The inverse sums and the logarithms, for a few rows at once, in the places of the sums and of the greatest scores. */
function resultsOf({ factors, logs, rows }: BlockParams, mask: AttentionMask): readonly Stmt[] {
  return inLanes('row', rows, QUAD, (at0) => {
    const sum = local('sum', 'float32')
    return [
      declare(sum, load(factors, at0)),
      store(factors, at0, inverseOf(read(sum), mask)),
      store(logs, at0, logarithmOf(read(sum), load(logs, at0), mask)),
    ]
  })
}

/** What the sums of the pieces before are multiplied with, and the sums so far. */
function correctionsOf({ factors, greatest, sums }: BlockParams, row: LoopVar, top: Local, shift: Local, sum: Local): readonly Stmt[] {
  const place = at([row, 1])
  const factor = local('factor', 'float32')
  return [
    declare(factor, call('exp', call('sub', load(greatest, place), read(shift)))),
    store(factors, place, read(factor)),
    store(sums, place, call('add', call('mul', load(sums, place), read(factor)), read(sum))),
    store(greatest, place, read(top)),
  ]
}

function weighted({ out, valuePanels, scores, factors, rows, keys, all, width, room }: BlockParams, isWhole: boolean, most: number): Stmt {
  const column0 = loopVar('column0', width, PANEL)
  const tiles = rowTiles(rows, most, (tile) =>
    productOf(
      tile,
      { matrix: scores, stride: room, count: keys },
      (k, j) => load(valuePanels, at([column0, all], [k, PANEL], [j, 1])),
      (sum, i, j) => {
        const [place, factor] = [inRows(tile, i, width, [column0, 1], [j, 1]), load(factors, inRows(tile, i, 1))]
        return store(out, place, isWhole ? call('mul', sum, factor) : call('add', call('mul', load(out, place), factor), sum))
      },
    ),
  )
  return forLoop(column0, 'serial', tiles)
}
