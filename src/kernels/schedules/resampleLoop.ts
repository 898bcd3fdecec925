// Groups of four neighbours of resized lines in a loop, which reads from tables where their elements lie: windows of four neighbours of the line are loaded, and elements of
// these chosen by numbers. So one kernel serves lines of every length.
import {
  at,
  bufferParam,
  call,
  constant,
  declareArray,
  element,
  forLoop,
  load,
  localArray,
  loopVar,
  read,
  setElement,
  sizeParam,
  store,
} from '../ir/loopIr.ts'
import type { BufferParam, Expr, Index, SizeParam, Stmt } from '../ir/loopIr.ts'
import { QUAD, from, ones } from './notation.ts'
import { elementsOf } from './resampleLines.ts'
import type { Sources } from './resampleLines.ts'

/** How many windows are loaded for a group, and of how many parts an element is made. */
export interface LoopShape {
  readonly windows: number
  readonly taps: number
}

/** The parameters of a kernel's own, beside those of every resizing: its {@link loopTables}, the number of groups, and the lengths of a line and of one of the result. */
export interface LoopParams {
  readonly starts: BufferParam
  readonly chosen: BufferParam
  readonly groups: SizeParam
  readonly size: SizeParam
  readonly out: SizeParam
}

export const loopParams = (): LoopParams => ({
  starts: bufferParam('starts', 'int32'),
  chosen: bufferParam('chosen', 'int32'),
  groups: sizeParam('groups'),
  size: sizeParam('size'),
  out: sizeParam('length'),
})

/** The groups of all lines, one after the other. */
export function groupsInLoop({ windows, taps }: LoopShape, { starts, chosen, groups }: LoopParams, { a, weights, lines }: Sources): Stmt {
  const [g, lane] = [loopVar('g', groups), loopVar('lane', QUAD)]
  const loaded = localArray('window', 'float32', [lines.length, windows, QUAD])
  const [begins, own] = [Array.from({ length: windows }, (_, window) => startAt(window)), startAt(windows)]
  const ofPart = (table: BufferParam, t: number): Expr => load(table, from(t * QUAD, [g, taps * QUAD], [lane, 1]))
  const parts = Array.from({ length: taps }, (_, t) => ({
    window: windows === 1 ? 0 : t,
    number: { ...at(), dynamic: [{ value: ofPart(chosen, t), stride: 1 }] },
    weight: weights === null ? null : ofPart(weights, t),
  }))
  const fetch = lines.flatMap((line, r) =>
    begins.map((begin, window) => setElement(loaded, [r, window, lane], elementsOf(line, a, ones(lane), begin))),
  )
  const finish = lines.map((line, r) => {
    const sum = parts
      .map(({ window, number, weight }) => {
        const part = element(loaded, r, window, number)
        return weight === null ? part : call('mul', part, weight)
      })
      .reduce((total, part) => call('add', total, part))
    return store(line.target, { ...at(...line.image, ...ones(lane)), dynamic: [{ value: read(line.at), stride: 1 }, own] }, sum)
  })
  return forLoop(g, 'serial', [declareArray(loaded, constant('float32', 0)), forLoop(lane, 'lanes', fetch), forLoop(lane, 'lanes', finish)])

  function startAt(i: number): Index['dynamic'][number] {
    return { value: load(starts, from(i, [g, windows + 1])), stride: 1 }
  }
}
