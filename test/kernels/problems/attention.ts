// Random blocks of attention with their results, for the kernels that compute them: rows and keys around tiles and panels, every mask, keys at once and in pieces, forward and backward. What
// fills a panel beyond the last key is NaN, which must not reach a result.
import type { TileEngine } from '../../../src/kernels/engine/engine.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { attend, beginPieces, endPieces } from '../../../src/kernels/schedules/attention.ts'
import { attendBackward } from '../../../src/kernels/schedules/attentionBackward.ts'
import { BLOCK, PANEL, packKeys, packValues } from '../../../src/kernels/schedules/attentionPanels.ts'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import type { Args } from '../harness.ts'
import { floats } from './problem.ts'
import type { DrawProblem, Problem } from './problem.ts'

const up = (n: number): number => Math.ceil(n / PANEL) * PANEL
const MASKS = ['none', 'causal', 'added'] as const
/** Rounded exponents of scores up to 8. */
const TOLERANCE = 1e-5

const problemOf = (
  what: unknown,
  kernel: Kernel | ((engine: TileEngine) => Kernel),
  args: Args,
  expected: Problem['expected'],
  tolerance = TOLERANCE,
): Problem => ({
  ...{ what: JSON.stringify(what), args, expected, tolerance },
  kernels: (engine) => {
    const built = typeof kernel === 'function' ? kernel(engine) : kernel
    return [{ tile: built.name, kernel: built }]
  },
})

/** A matrix in memory: `at(row, column)`. */
interface Matrix {
  readonly data: Float32Array
  readonly at: (row: number, column: number) => number
}

const matrix = (rows: number, columns: number, stride: number, value: () => number): Matrix => {
  const data = floats(rows === 0 || columns === 0 ? 0 : (rows - 1) * stride + columns, value)
  return { data, at: (row, column) => data[row * stride + column] ?? NaN }
}

/** Keys in panels as `packKeys` packs them. */
function inKeyPanels({ at }: Matrix, count: number, depth: number): Float32Array {
  const panels = new Float32Array(up(count) * depth).fill(NaN)
  for (let k = 0; k < count; k++) for (let d = 0; d < depth; d++) panels[(k - (k % PANEL)) * depth + d * PANEL + (k % PANEL)] = at(k, d)
  return panels
}

/** Values in panels as `packValues` packs them. */
function inValuePanels({ at }: Matrix, count: number, width: number): Float32Array {
  const panels = new Float32Array(count * width)
  for (let t = 0; t < count; t++) for (let w = 0; w < width; w++) panels[(w - (w % PANEL)) * count + t * PANEL + (w % PANEL)] = at(t, w)
  return panels
}

/** What the kernels of a block get, forward and backward. */
function drawBlock({ int, pick, chance, next }: Random) {
  const mask = pick(MASKS)
  const rows = pick([1, 2, 3, 4, 5, 7, 8, 15, BLOCK])
  const keys = pick([1, 2, 3, 7, 8, 9, 15, 16, 17, 31])
  const [depth, width] = [pick([8, 16]), pick([8, 16, 24])]
  const [all, room] = [keys + int(3), up(keys) + PANEL * int(2)]
  const [queryStride, maskStride] = [pick([depth, depth + 3, 1, 0]), pick([keys, keys + 2, 0])]
  const first = mask === 'causal' ? int(keys + 1) : 0
  const scale = Math.fround(pick([0.5, 0.25, -0.5]))
  const isOdd = chance(1 / 4)
  const value = (): number => (isOdd && chance(1 / 60) ? pick([NaN, Infinity, -Infinity, -0, 1e-45, -1e-39]) : Math.fround(2 * next() - 1))
  const hidden = (): number => (chance(1 / 3) ? -Infinity : value())
  const query = matrix(rows, depth, queryStride, value)
  const [key, given] = [matrix(all, depth, depth, value), matrix(all, width, width, value)]
  const added = matrix(rows, keys, maskStride, chance(1 / 4) ? () => -Infinity : hidden)
  /** The score of a row and a key. */
  const score = (r: number, k: number): number => {
    if (mask === 'causal' && k > r + first) return -Infinity
    let sum = 0
    for (let d = 0; d < depth; d++) sum += query.at(r, d) * key.at(k, d)
    return sum * scale + (mask === 'added' ? added.at(r, k) : 0)
  }
  const sizes = {
    rows,
    keys,
    all,
    depth,
    width,
    room,
    queryStride,
    ...(mask === 'added' ? { maskStride } : {}),
    ...(mask === 'causal' ? { first } : {}),
  }
  const scratch = (): Float32Array => new Float32Array(BLOCK * room).fill(NaN)
  return {
    ...{ mask, rows, keys, all, depth, width, query, key, given, score, value, scratch },
    what: { mask, isOdd, ...sizes, scale },
    shared: { ...(mask === 'added' ? { mask: added.data } : {}), ...sizes, scale },
    scale,
  }
}

/** For each of some rows. */
const each = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i))

const sum = (values: readonly number[]): number => values.reduce((total, x) => total + x, 0)

export const attendProblem: DrawProblem = (random) => {
  const block = drawBlock(random)
  const { mask, rows, keys, all, depth, width, query, key, given, score, scratch, value } = block
  const isWhole = random.chance(1 / 2)
  const before = each(rows, () => (isWhole || random.chance(1 / 4) ? -Infinity : Math.fround(4 * random.next() - 2)))
  const sums = before.map((top) => (top === -Infinity ? 0 : Math.fround(1 + random.next())))
  const out = floats(rows * width, isWhole ? () => NaN : value)
  const lines = each(rows, (r) => {
    const scores = each(keys, (k) => score(r, k))
    const top = Math.max(before[r] ?? NaN, ...scores)
    // A row of which everything is hidden has weights of 0; without an added mask, and with all keys at once, there is none.
    const shift = top === -Infinity && (mask === 'added' || !isWhole) ? 0 : top
    const factor = Math.exp((before[r] ?? NaN) - shift)
    const powers = scores.map((x) => Math.exp(x - shift))
    const total = sum(powers) + (isWhole ? 0 : (sums[r] ?? NaN) * factor)
    const isHidden = mask === 'added' && total === 0
    const results = each(width, (w) => {
      const product = sum(powers.map((power, k) => power * given.at(k, w)))
      return isWhole ? product * (1 / (isHidden ? 1 : total)) : (out[r * width + w] ?? NaN) * factor + product
    })
    return { results, top, total, log: isHidden ? Infinity : top + Math.log(total) }
  })
  const state = isWhole ? { logs: new Float32Array(rows) } : { greatest: Float32Array.from(before), sums: Float32Array.from(sums) }
  return problemOf(
    { ...block.what, isWhole },
    (engine) => attend(mask, isWhole ? 'all' : 'piece', engine),
    {
      ...{ out, query: query.data, keyPanels: inKeyPanels(key, all, depth), valuePanels: inValuePanels(given, all, width) },
      ...{ scores: scratch(), factors: new Float32Array(BLOCK), ...state, ...block.shared },
    },
    {
      out: lines.flatMap(({ results }) => results),
      ...(isWhole ? { logs: lines.map(({ log }) => log) } : { greatest: lines.map(({ top }) => top), sums: lines.map(({ total }) => total) }),
    },
  )
}

export const beginPiecesProblem: DrawProblem = ({ pick }) => {
  const [rows, width] = [pick([0, 1, 7, BLOCK]), pick([0, 8, 24])]
  const old = (count: number): Float32Array => new Float32Array(count).fill(NaN)
  const [out, greatest, sums] = [old(rows * width), old(rows), old(rows)]
  const expected = { out: out.map(() => 0), greatest: greatest.map(() => -Infinity), sums: sums.map(() => 0) }
  return problemOf({ rows, width }, beginPieces(), { out, greatest, sums, rows, width }, expected, 0)
}

export const endPiecesProblem: DrawProblem = ({ pick, next, chance }) => {
  const [rows, width, mask] = [pick([0, 1, 7, BLOCK]), pick([0, 8, 24]), pick(MASKS)]
  const sums = floats(rows, () => (chance(1 / 4) ? 0 : 1 + next()))
  const [greatest, out] = [sums.map((total) => (total === 0 ? -Infinity : next())), floats(rows * width, () => (chance(1 / 20) ? NaN : next()))]
  const isHidden = (r: number): boolean => mask === 'added' && sums[r] === 0
  const expected = {
    out: Array.from(out, (x, i) => x * (1 / (isHidden(Math.floor(i / width)) ? 1 : (sums[Math.floor(i / width)] ?? NaN)))),
    logs: Array.from(sums, (total, r) => (isHidden(r) ? Infinity : (greatest[r] ?? NaN) + Math.log(total))),
  }
  return problemOf({ rows, width, mask }, endPieces(mask), { out, logs: new Float32Array(rows), greatest, sums, rows, width }, expected)
}

export const packKeysProblem: DrawProblem = ({ pick, next, int }) => {
  const [count, depth] = [pick([0, 1, 3, 7, 8, 9, 16, 17, 31, 40]), pick([1, 3, 4, 7, 8, 9, 16, 17])]
  const stride = pick([depth, depth + int(3), 1, 0])
  const keys = matrix(count, depth, stride, () => Math.fround(next()))
  const panels = inKeyPanels(keys, count, depth)
  return problemOf(
    { count, depth, stride },
    packKeys(),
    { panels: new Float32Array(panels.length).fill(NaN), keys: keys.data, count, depth, stride },
    { panels },
    0,
  )
}

export const packValuesProblem: DrawProblem = ({ pick, next, int }) => {
  const [count, width] = [pick([0, 1, 3, 7, 8, 9, 17]), pick([0, 8, 16, 24])]
  const stride = pick([width, width + int(3), 1, 0])
  const values = matrix(count, width, stride, () => Math.fround(next()))
  const panels = inValuePanels(values, count, width)
  return problemOf(
    { count, width, stride },
    packValues(),
    { panels: new Float32Array(panels.length), values: values.data, count, width, stride },
    { panels },
    0,
  )
}

export const attendBackwardProblem: DrawProblem = (random) => {
  const block = drawBlock(random)
  const { mask, rows, keys, all, depth, width, query, key, given, score, scratch, value, scale } = block
  const [gradient, result] = [matrix(rows, width, width, value), matrix(rows, width, width, value)]
  const scores = each(rows, (r) => each(keys, (k) => score(r, k)))
  const logs = scores.map((line) => {
    const total = Math.log(sum(line.map(Math.exp)))
    return Math.fround(total === -Infinity ? Infinity : total)
  })
  const weights = scores.map((line, r) => line.map((x) => Math.exp(x - (logs[r] ?? NaN))))
  const dot = (r: number, of: (w: number) => number): number => sum(each(width, (w) => gradient.at(r, w) * of(w)))
  const slopes = weights.map((line, r) => {
    const mean = dot(r, (w) => result.at(r, w))
    return line.map((weight, k) => weight * (dot(r, (w) => given.at(k, w)) - mean) * scale)
  })
  const begun = { gradQuery: floats(rows * depth, value), gradKey: floats(all * depth, value), gradValue: floats(all * width, value) }
  /** Element i of a matrix of `columns` columns, and what is added to it. */
  const plus = (to: Float32Array, columns: number, lines: number, add: (line: number, column: number) => number): number[] =>
    Array.from(to, (x, i) => (Math.floor(i / columns) < lines ? x + add(Math.floor(i / columns), i % columns) : x))
  const overRows = (of: (r: number) => number): number => sum(each(rows, of))
  const expected = {
    gradQuery: plus(begun.gradQuery, depth, rows, (r, d) => sum(each(keys, (k) => (slopes[r]?.[k] ?? NaN) * key.at(k, d)))),
    gradKey: plus(begun.gradKey, depth, keys, (k, d) => overRows((r) => (slopes[r]?.[k] ?? NaN) * query.at(r, d))),
    gradValue: plus(begun.gradValue, width, keys, (k, w) => overRows((r) => (weights[r]?.[k] ?? NaN) * gradient.at(r, w))),
  }
  return problemOf(
    block.what,
    (engine) => attendBackward(mask, engine),
    {
      ...begun,
      ...{ grad: gradient.data, out: result.data, logs: Float32Array.from(logs), query: query.data },
      ...{ keyPanels: inKeyPanels(key, all, depth), keyColumns: inValuePanels(key, all, depth), valuePanels: inKeyPanels(given, all, width) },
      ...{ scores: scratch(), slopes: scratch(), means: new Float32Array(BLOCK), ...block.shared },
    },
    expected,
  )
}
