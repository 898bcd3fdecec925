// The gradients of attention, by blocks of query rows as in attention.ts. The weights are not kept: each block computes its scores once more, and from the logarithms of the sums that the
// forward pass has saved, the weights. Their gradients lie beside them in scratch memory, so that a block adds to all three gradients while both are in the cache.
import {
  at,
  call,
  declare,
  declareArray,
  element,
  forLoop,
  load,
  local,
  localArray,
  loopVar,
  read,
  reduceLanes,
  scalar,
  setElement,
  store,
} from '../ir/loopIr.ts'
import type { BufferParam, Index, Kernel, LoopVar, Param, Size, Stmt } from '../ir/loopIr.ts'
import { roundedUp } from '../ir/sizes.ts'
import type { TileEngine } from '../engine/engine.ts'
import { PANEL, attentionRows, buffer, inLanes, inRows, productOf, rowTiles, scoresOf, sharedOrder, sharedParams, zero } from './attentionPanels.ts'
import type { AttentionMask, Rows } from './attentionPanels.ts'

function blockParams() {
  return {
    gradQuery: buffer('gradQuery', 'readwrite'),
    gradKey: buffer('gradKey', 'readwrite'),
    gradValue: buffer('gradValue', 'readwrite'),
    grad: buffer('grad'),
    out: buffer('out'),
    logs: buffer('logs'),
    query: buffer('query'),
    keyPanels: buffer('keyPanels'),
    keyColumns: buffer('keyColumns'),
    valuePanels: buffer('valuePanels'),
    scores: buffer('scores', 'readwrite'),
    slopes: buffer('slopes', 'readwrite'),
    means: buffer('means', 'readwrite'),
    ...sharedParams(),
  }
}

type BlockParams = ReturnType<typeof blockParams>

/**
 * Adds what a block of query rows and a piece of the keys give to the gradients, which are contiguous and begin as 0. Params: the gradients of query, key and value; the gradient of the
 * result, the result, the logarithms of its rows' sums; the query; keys packed by `packKeys` and by `packValues`, values packed by `packKeys`; weights and their gradients (16 rows of
 * `room` each), 16 further elements; the mask if one is added; the rows, the keys of the piece that the block attends to, all keys of the head, depth and width (multiples of 8), room, the
 * elements from one query to the next, the same of the mask if there is one, the first row less the first key if the mask is causal, and the scale. `engine`: whose tiles it has.
 */
export function attendBackward(mask: AttentionMask, engine: TileEngine = 'wasm'): Kernel {
  const most = attentionRows(engine)
  const p = blockParams()
  const params: Param[] = [p.gradQuery, p.gradKey, p.gradValue, p.grad, p.out, p.logs, p.query, p.keyPanels, p.keyColumns, p.valuePanels]
  params.push(p.scores, p.slopes, p.means)
  params.push(...sharedOrder(p, mask))
  const { gradQuery, gradKey, gradValue, grad, query, keyColumns, scores, slopes, rows, keys, all, depth, width, room, queryStride } = p
  const inPanels: Right = { matrix: keyColumns, place: (column0, k, j) => at([column0, all], [k, PANEL], [j, 1]) }
  const inRowsOf = (matrix: BufferParam, stride: Size): Right => ({ matrix, place: (column0, k, j) => at([k, stride], [column0, 1], [j, 1]) })
  const inTiles = (count: Size): Lines => ({ count, most })
  const products = [
    addProduct(gradQuery, inTiles(rows), depth, { matrix: slopes, stride: room, count: keys }, inPanels),
    addProduct(gradValue, inTiles(keys), width, turned(scores), inRowsOf(grad, width)),
    addProduct(gradKey, inTiles(keys), depth, turned(slopes), inRowsOf(query, queryStride)),
  ]
  return {
    isPart: true,
    name: `attend_backward_${mask}`,
    params,
    body: [scoresOf(p, mask, most), weightsOf(p, mask), slopesOf(p, most), ...products],
  }

  function turned(matrix: BufferParam): Rows {
    return { matrix, stride: 1, step: room, count: rows }
  }
}

/** The weights in the place of the scores, and for each row the sum of its gradients times its results: what all its weights' gradients have in common. */
function weightsOf({ scores, added, logs, grad, out, means, rows, keys, width, room, maskStride }: BlockParams, mask: AttentionMask): Stmt {
  const row = loopVar('row', rows)
  const [c0, c] = [loopVar('c0', width, PANEL), loopVar('c', PANEL)]
  const [sums, logarithm] = [localArray('sums', 'float32', [PANEL]), local('logarithm', 'float32')]
  const result = at([row, width], [c0, 1], [c, 1])
  const inRow = (stride: Size, { base, terms }: Index): Index => ({ base, terms: [{ loop: row, stride }, ...terms], dynamic: [] })
  const weights = inLanes('key', keys, PANEL, (key) => {
    const score = load(scores, inRow(room, key))
    const masked = mask === 'added' ? call('add', score, load(added, inRow(maskStride, key))) : score
    return [store(scores, inRow(room, key), call('exp', call('sub', masked, read(logarithm))))]
  })
  return forLoop(row, 'serial', [
    declareArray(sums, zero),
    forLoop(c0, 'serial', [
      forLoop(c, 'lanes', [setElement(sums, [c], call('add', element(sums, c), call('mul', load(grad, result), load(out, result))))]),
    ]),
    store(means, at([row, 1]), reduceLanes('add', sums)),
    declare(logarithm, load(logs, at([row, 1]))),
    ...weights,
  ])
}

/** The gradients of the scores before they were scaled. */
function slopesOf({ slopes, scores, means, grad, valuePanels, rows, keys, width, room, scale }: BlockParams, most: number): Stmt {
  const panel0 = loopVar('panel0', roundedUp(keys, PANEL), PANEL)
  const tiles = rowTiles(rows, most, (tile) =>
    productOf(
      tile,
      { matrix: grad, stride: width, count: width },
      (k, j) => load(valuePanels, at([panel0, width], [k, PANEL], [j, 1])),
      (sum, i, j) => {
        const place = inRows(tile, i, room, [panel0, 1], [j, 1])
        const ofWeight = call('sub', sum, load(means, inRows(tile, i, 1)))
        return store(slopes, place, call('mul', call('mul', load(scores, place), ofWeight), scalar(scale)))
      },
    ),
  )
  return forLoop(panel0, 'serial', tiles)
}

/** A matrix, and where element (k, column0 + j) of it lies. */
interface Right {
  readonly matrix: BufferParam
  readonly place: (column0: LoopVar, k: LoopVar, j: LoopVar) => Index
}

/** How many rows a product has, and how many of them are in a tile. */
interface Lines {
  readonly count: Size
  readonly most: number
}

/** Adds the product of `rows` and a matrix of `columns` columns to `target`. */
function addProduct(target: BufferParam, { count, most }: Lines, columns: Size, rows: Rows, { matrix, place }: Right): Stmt {
  const column0 = loopVar('column0', columns, PANEL)
  const tiles = rowTiles(count, most, (tile) =>
    productOf(
      tile,
      rows,
      (k, j) => load(matrix, place(column0, k, j)),
      (sum, i, j) => {
        const to = inRows(tile, i, columns, [column0, 1], [j, 1])
        return store(target, to, call('add', load(target, to), sum))
      },
    ),
  )
  return forLoop(column0, 'serial', tiles)
}
