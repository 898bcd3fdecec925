// Lines that shrink, whose elements are made of two neighbours: where these lie is written into the instructions, so that nothing but them is fetched, and no address is
// computed. For images both dimensions in one pass. Float32.
import type { CompiledKernel } from '../boundedCache.ts'
import { compiledKernel } from '../compile.ts'
import { bufferParam, sizeParam } from '../loopIr.ts'
import { ModuleBuilder } from '../wasm/assembler.ts'
import { paramType } from '../wasm/expressions.ts'
import { LoopWriter } from './loopWriter.ts'
import { LANES, PAIR_ENTRY } from './resampleTables.ts'

const PARAMS = [
  bufferParam('out', 'float32', 'write'),
  bufferParam('a', 'float32'),
  bufferParam('table', 'int32'),
  bufferParam('columns', 'int32'),
  sizeParam('images'),
  sizeParam('rows'),
  sizeParam('out_rows'),
]
const [OUT, A, TABLE, COLUMNS, IMAGES, ROWS, OUT_ROWS] = [0, 1, 2, 3, 4, 5, 6]

/** How many groups of four elements are written into one kernel; for longer lines there are more kernels. */
const GROUPS = 64
/** How many neighbouring groups are made of one row before the next row has its turn: their weights stay in registers, and memory is read in longer pieces. */
const CHUNK = 3

/**
 * The kernels, which together make the result, for lines of `n` elements, at least four, that shrink to elements with two parts, weighted. `places` are those of the first
 * parts in the line, and then those of the second parts: the same or the next. With `isImage` each line is made of two rows of an image, weighted, first. Their parameters
 * are the result, the images, the tables of pairs for the rows and of columns, the number of images, their rows, and the rows of the result, of which there are at least
 * two. Where there are lines only, they are the rows of one image.
 */
export function compileShrunk(isImage: boolean, n: number, places: Int32Array): readonly CompiledKernel[] {
  const groups = Math.ceil(places.length / 2 / LANES)
  return Array.from({ length: Math.ceil(groups / GROUPS) }, (_, i) =>
    compileGroups(isImage, n, places, i * GROUPS, Math.min(groups, (i + 1) * GROUPS)),
  )
}

function compileGroups(isImage: boolean, n: number, places: Int32Array, start: number, end: number): CompiledKernel {
  const module = new ModuleBuilder()
  module.importMemory()
  const f = module.function(PARAMS.map(paramType), [], 'run')
  const w = new LoopWriter(f)
  const m = places.length / 2
  // How many rows of the result share what is read of the table.
  const together = isImage ? 2 : 1
  const vector = (): number => f.local('v128')
  const rows = Array.from({ length: together }, (_, row) => ({
    to: 4 * m * row,
    parts: (isImage ? [0, 1] : [0]).map((t) => ({ entry: 16 * row + 8 * t, from: f.local('i32'), weight: vector() })),
  }))
  const halves = [vector(), vector()]
  const weights = Array.from({ length: CHUNK }, () => [vector(), vector()])
  /** Multiplies the vector on the stack by the weight of part `t`, and adds it to the one below unless it is the first. */
  const weighted = (weight: number, t: number): void => {
    f.get(weight)
    f.op('f32x4.mul')
    if (t > 0) f.op('f32x4.add')
  }
  /** How the parts of elements `k` and `k + 1` are fetched, at one place or two, and in which lanes the first parts are then, and the second. */
  const fetchOf = (k: number): { readonly starts: readonly number[]; readonly lanes: readonly (readonly number[])[] } => {
    const pairs = [k, k + 1].map((i): readonly [number, number] => [places[i] ?? 0, places[m + i] ?? 0])
    const [first = 0, second = 0] = pairs.map(([place]) => Math.min(place, n - 2))
    const whole = Math.min(first, n - LANES)
    const isOne = second + 2 - whole <= LANES
    const lanes = [0, 1].map((t) => pairs.map((pair, i) => (pair[t] ?? 0) - (isOne ? whole : i === 0 ? first : second - 2)))
    return { starts: isOne ? [whole] : [first, second], lanes }
  }
  /** Pushes the four elements of a row at the places of one fetch. */
  const load = (row: number, [first = 0, second]: readonly number[]): void => {
    if (second !== undefined) f.get(row)
    f.get(row)
    f.memory(second === undefined ? 'v128.load' : 'v128.load64_zero', 4 * first)
    if (second !== undefined) f.laneMemory('v128.load64_lane', 1, 4 * second)
  }
  /** Stores group `number` of a row. */
  const group = (to: number, row: (typeof rows)[number], number: number, groupWeights: readonly number[]): void => {
    // The last four may overlap those before.
    const k = Math.min(number * LANES, m - LANES)
    const fetches = [fetchOf(k), fetchOf(k + 2)]
    for (const [h, { starts }] of fetches.entries()) {
      for (const [t, { from, weight }] of row.parts.entries()) {
        load(from, starts)
        if (isImage) weighted(weight, t)
      }
      f.set(halves[h] ?? 0)
    }
    f.get(to)
    for (const [t, weight] of groupWeights.entries()) {
      for (const half of halves) f.get(half)
      const [a = 0, b = 0, c = 0, d = 0] = fetches.flatMap(({ lanes }, h) => (lanes[t] ?? []).map((lane) => lane + LANES * h))
      f.shuffle32(a, b, c, d)
      weighted(weight, t)
    }
    f.memory('v128.store', row.to + 4 * k)
  }
  /** Stores a few groups of all rows. */
  const chunk = (to: number, from: number): void => {
    const used = weights.slice(0, end - from)
    for (const [g, ofGroup] of used.entries())
      for (const [t, weight] of ofGroup.entries()) {
        f.get(TABLE)
        f.memory('v128.load', 4 * (PAIR_ENTRY * (from + g) + LANES * t))
        f.set(weight)
      }
    for (const row of rows) for (const [g, ofGroup] of used.entries()) group(to, row, from + g, ofGroup)
  }

  const [image, result, last, first] = [w.let(() => f.get(A)), w.let(() => f.get(OUT)), f.local('i32'), f.local('i32')]
  const product = (count: number, bytes: number): number =>
    w.let(() => {
      f.get(count)
      f.i32Const(bytes)
      f.op('i32.mul')
    })
  const [imageBytes, resultBytes] = [product(ROWS, 4 * n), product(OUT_ROWS, 4 * m)]
  f.get(OUT_ROWS)
  f.i32Const(together)
  f.op('i32.sub')
  f.set(last)
  w.count({ local: IMAGES }, 1, () => {
    w.count({ local: OUT_ROWS }, together, (next) => {
      // The last two may overlap those before.
      w.least({ local: next }, { local: last })
      f.set(first)
      const entry = w.address(COLUMNS, first, 16)
      const to = w.address(result, first, 4 * m)
      for (const { parts } of rows)
        for (const part of parts) {
          f.get(image)
          if (isImage) {
            f.get(entry)
            f.memory('i32.load', part.entry)
          } else f.get(first)
          f.i32Const(4 * n)
          f.ops('i32.mul', 'i32.add')
          f.set(part.from)
          if (!isImage) continue
          f.get(entry)
          f.memory('v128.load32_splat', part.entry + 4)
          f.set(part.weight)
        }
      for (let from = start; from < end; from += CHUNK) chunk(to, from)
    })
    w.advance(image, { local: imageBytes })
    w.advance(result, { local: resultBytes })
  })
  return compiledKernel({ name: 'resample_shrunk', params: PARAMS, body: null }, module.finish())
}
