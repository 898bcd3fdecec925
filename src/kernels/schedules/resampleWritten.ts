// Groups of four neighbours of resized lines whose places are part of the code: vectors and pairs that hold their elements are loaded at known places, and shuffled into
// lanes. Where they repeat themselves along the line, as when it halves, the repetitions are a loop.
import { at, call, constant, declareArray, element, forLoop, load, localArray, lookup, loopVar, read, setElement, store } from '../ir/loopIr.ts'
import type { BufferParam, Expr, Index, LocalArray, LoopVar, Size, Stmt } from '../ir/loopIr.ts'
import { QUAD, from, ones } from './notation.ts'
import type { Group, Period } from './resampleGroups.ts'
import { elementsOf } from './resampleLines.ts'
import type { Line, Sources } from './resampleLines.ts'

/** The groups that a kernel makes of each line. */
export interface Written {
  /** In the order of the code. */
  readonly made: readonly Group[]
  /** The number of the first in its line. */
  readonly start: number
  readonly period: Period | null
  readonly taps: number
}

/** How many neighbouring groups are made of one line before the next line has its turn. */
const TOGETHER = 2

/** The groups of all lines. */
export function writtenGroups(written: Written, sources: Sources): readonly Stmt[] {
  const { made, period } = written
  const groups = (start: number, end: number, repeated: LoopVar | null = null): readonly Stmt[] => {
    const whole = end - ((end - start) % TOGETHER)
    const parts: readonly (readonly [first: number, end: number, count: number])[] = [
      [start, whole, TOGETHER],
      [whole, end, end - whole],
    ]
    return parts.flatMap(([first, to, count]) => (to === first ? [] : [chunks(written, sources, { first, to, count, repeated })]))
  }
  if (period === null) return groups(0, made.length)
  const { start, groups: length, count } = period
  const repeated = loopVar('repeated', count)
  return [...groups(0, start), forLoop(repeated, 'serial', groups(start, start + length, repeated)), ...groups(start + length * count, made.length)]
}

/** Groups in the order of the code, `count` of them together. */
interface Chunks {
  readonly first: number
  readonly to: number
  readonly count: number
  /** The loop in which they repeat themselves. */
  readonly repeated: LoopVar | null
}

/** Groups of each line that are made together, by the loops over them. */
interface Chunk {
  readonly made: readonly Group[]
  readonly g0: LoopVar
  readonly g: LoopVar
  readonly lane: LoopVar
  /** The weights of the groups from `g0` on; null where all are 1. */
  readonly weights: LocalArray | null
  /** The loop in which the groups repeat themselves. */
  readonly repeated: LoopVar | null
}

function chunks(written: Written, { a, weights, lines }: Sources, { first, to, count, repeated }: Chunks): Stmt {
  const { taps, period, start } = written
  const made = written.made.slice(first, to)
  const [g0, g, t, lane] = [loopVar('g0', made.length, count), loopVar('g', count), loopVar('t', taps), loopVar('lane', QUAD)]
  const body: Stmt[] = []
  const loaded = weights === null ? null : localArray('weight', 'float32', [count, taps, QUAD])
  if (weights !== null && loaded !== null) {
    const stride = taps * QUAD
    const again = repeated === null ? [] : [[repeated, stride * (period?.groups ?? 0)] as const]
    const weight = load(weights, from((start + first) * stride, ...again, [g0, stride], [g, stride], [t, QUAD], [lane, 1]))
    body.push(
      declareArray(loaded, constant('float32', 0)),
      forLoop(g, 'unroll', [forLoop(t, 'unroll', [forLoop(lane, 'lanes', [setElement(loaded, [g, t, lane], weight)])])]),
    )
  }
  const chunk: Chunk = { made, g0, g, lane, weights: loaded, repeated }
  body.push(...lines.map((line) => forLoop(g, 'unroll', groupOf(written, chunk, a, line))))
  return forLoop(g0, 'unroll', body)
}

/** Four elements of a line. */
function groupOf({ taps, period }: Written, { made, g0, g, lane, weights, repeated }: Chunk, a: BufferParam, line: Line): readonly Stmt[] {
  const { step = 0, groups: length = 0 } = period ?? {}
  const count = Math.max(...made.map(({ vectors }) => vectors.length))
  const vectors = localArray('vector', 'float32', [count, QUAD])
  const v = loopVar('v', count)
  // Of groups with fewer vectors the last is loaded again.
  const loaded = made.flatMap((group) => Array.from({ length: count }, (_, i) => group.vectors[i] ?? group.vectors.at(-1) ?? []).flat())
  const places = lookup(loaded, at([g0, count * QUAD], [g, count * QUAD], [v, QUAD], [lane, 1]))
  const along = (stride: Size): readonly (readonly [LoopVar, Size])[] => (repeated === null ? [] : [[repeated, stride]])
  const chosen = (t: number): Expr => {
    const table = (which: 0 | 1): Index => {
      const values = made.flatMap(({ chosen: choices }) => (choices[t] ?? []).map((place) => place[which]))
      return { ...at(), dynamic: [{ value: lookup(values, at([g0, QUAD], [g, QUAD], [lane, 1])), stride: 1 }] }
    }
    const value = element(vectors, table(0), table(1))
    return weights === null ? value : call('mul', value, element(weights, g, t, lane))
  }
  const starts = lookup(
    made.map(({ first }) => first),
    at(...ones(g0, g)),
  )
  const place = {
    ...at(...line.image, ...along(length * QUAD), [lane, 1]),
    dynamic: [
      { value: read(line.at), stride: 1 },
      { value: starts, stride: 1 },
    ],
  }
  const parts = Array.from({ length: taps }, (_, t) => chosen(t))
  return [
    declareArray(vectors, constant('float32', 0)),
    forLoop(v, 'unroll', [forLoop(lane, 'lanes', [setElement(vectors, [v, lane], elementsOf(line, a, along(step), { value: places, stride: 1 }))])]),
    forLoop(lane, 'lanes', [
      store(
        line.target,
        place,
        parts.reduce((total, part) => call('add', total, part)),
      ),
    ]),
  ]
}
