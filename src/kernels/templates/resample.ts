// Lines of another length, four elements at a time: where the parts of four neighbours lie within four neighbours of the line, one load and one swizzle bring them into
// their lanes, and nothing is fetched one by one. Float32.
import type { CompiledKernel } from '../boundedCache.ts'
import { compiledKernel } from '../compile.ts'
import { bufferParam, sizeParam } from '../loopIr.ts'
import type { Param } from '../loopIr.ts'
import { ModuleBuilder } from '../wasm/assembler.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import { paramType } from '../wasm/expressions.ts'
import { LoopWriter } from './loopWriter.ts'

const LANES = 4
/**
 * The table has an entry for each part of each four elements, of so many words: bytes for the swizzle, weights, where the four elements of the line begin and where
 * those of the result go, in bytes; filled up to whole vectors.
 */
const ENTRY = 12
/** Where they are in an entry, in bytes. */
const [MASK, WEIGHTS, FROM, TO] = [0, 16, 32, 36]
/** So many lines share what is read of the table. */
const TOGETHER = 4

/** The parts of the elements of a line: entry t * out + k is part t of element k. `weights` is null if all are 1. */
export interface LineParts {
  readonly out: number
  readonly taps: number
  readonly positions: Int32Array
  readonly weights: Float64Array | null
}

/** The table for lines of `size` elements; null if the parts of four neighbours do not lie within four of the line. */
export function swizzleTable({ out, taps, positions, weights }: LineParts, size: number): Int32Array | null {
  if (size < LANES || out < LANES) return null
  const words = new Int32Array(Math.ceil(out / LANES) * taps * ENTRY)
  const floats = new Float32Array(words.buffer)
  const bytes = new Uint8Array(words.buffer)
  let entry = 0
  for (let group = 0; group < out; group += LANES) {
    // The last four may overlap those before.
    const first = Math.min(group, out - LANES)
    for (let t = 0; t < taps; t++, entry += ENTRY) {
      const places = Array.from(positions.subarray(t * out + first, t * out + first + LANES))
      const start = Math.min(...places, size - LANES)
      if (Math.max(...places) - start >= LANES) return null
      words[entry + FROM / 4] = 4 * start
      words[entry + TO / 4] = 4 * first
      for (const [lane, place] of places.entries()) {
        floats[entry + WEIGHTS / 4 + lane] = weights?.[t * out + first + lane] ?? 1
        for (let byte = 0; byte < 4; byte++) bytes[4 * (entry + lane) + MASK + byte] = 4 * (place - start) + byte
      }
    }
  }
  return words
}

/** The table for columns: for each element and part how far the row is from the first, in bytes, and its weight. `width` is the length of a row. */
export function columnTable({ out, taps, positions, weights }: LineParts, width: number): Int32Array {
  const words = new Int32Array(2 * out * taps)
  const floats = new Float32Array(words.buffer)
  for (let k = 0; k < out; k++)
    for (let t = 0; t < taps; t++) {
      words[2 * (k * taps + t)] = 4 * width * (positions[t * out + k] ?? 0)
      floats[2 * (k * taps + t) + 1] = weights?.[t * out + k] ?? 1
    }
  return words
}

/** Locals with addresses, and with counts of lines and elements. */
interface Lines {
  readonly out: number
  readonly a: number
  readonly table: number
  readonly lines: number
  readonly n: number
  readonly m: number
}

class ResampleWriter {
  readonly f: FunctionBuilder
  readonly w: LoopWriter
  readonly #taps: number
  readonly #weighted: boolean
  readonly #mask: number
  readonly #weights: number
  readonly #entry: number
  readonly #place: number
  readonly #sums: readonly number[]

  constructor(f: FunctionBuilder, taps: number, weighted: boolean) {
    this.f = f
    this.w = new LoopWriter(f)
    this.#taps = taps
    this.#weighted = weighted
    this.#mask = f.local('v128')
    this.#weights = f.local('v128')
    this.#entry = f.local('i32')
    this.#place = f.local('i32')
    this.#sums = Array.from({ length: TOGETHER }, () => f.local('v128'))
  }

  /** Lines of n elements become lines of m. */
  lines(given: Lines): void {
    const { f, w } = this
    const whole = w.let(() => {
      f.get(given.lines)
      f.i32Const(-TOGETHER)
      f.op('i32.and')
    })
    w.count({ local: whole }, TOGETHER, (first) => this.#together(given, TOGETHER, first))
    w.count({ local: given.lines }, 1, (first) => this.#together(given, 1, first), { local: whole })
  }

  /** `count` lines from the one in `first` on. */
  #together({ out, a, table, n, m }: Lines, count: number, first: number): void {
    const { f, w } = this
    const starts = this.#sums.slice(0, count).map((_, line) => {
      const number = w.let(() => {
        f.get(first)
        f.i32Const(line)
        f.op('i32.add')
      })
      return { from: w.address(a, number, this.#bytes(n)), to: w.address(out, number, this.#bytes(m)) }
    })
    f.get(table)
    f.set(this.#entry)
    w.count({ local: m }, LANES, () => {
      for (let t = 0; t < this.#taps; t++) this.#part(t, starts)
      this.#loadPlace(TO)
      for (const [line, { to }] of starts.entries()) {
        f.get(to)
        f.get(this.#place)
        f.op('i32.add')
        f.get(this.#sums[line] ?? 0)
        f.memory('v128.store')
      }
      w.advance(this.#entry, 4 * ENTRY * this.#taps)
    })
  }

  #part(t: number, starts: readonly { readonly from: number }[]): void {
    const { f } = this
    const base = 4 * ENTRY * t
    this.#load(this.#mask, this.#entry, base + MASK)
    if (this.#weighted) this.#load(this.#weights, this.#entry, base + WEIGHTS)
    this.#loadPlace(base + FROM)
    for (const [line, { from }] of starts.entries()) {
      f.get(from)
      f.get(this.#place)
      f.op('i32.add')
      f.memory('v128.load')
      f.get(this.#mask)
      f.op('i8x16.swizzle')
      this.#add(this.#sums[line] ?? 0, this.#weights, t > 0)
    }
  }

  /** Adds the vector on the stack, times `weights`, to the sum; or sets the sum to it. */
  #add(sum: number, weights: number, isMore: boolean): void {
    const { f } = this
    if (this.#weighted) {
      f.get(weights)
      f.op('f32x4.mul')
    }
    if (isMore) {
      f.get(sum)
      f.op('f32x4.add')
    }
    f.set(sum)
  }

  /** `m` columns of rows at `a` become `rows` elements each, at `out`, which is advanced. There are at least four columns. */
  columns({ out, a, table, lines: rows, m }: Omit<Lines, 'n'>): void {
    const { f, w } = this
    const entry = w.let(() => f.get(table))
    const width = this.#bytes(m)
    const parts = Array.from({ length: this.#taps }, () => ({ row: f.local('i32'), weight: f.local('v128'), at: f.local('i32') }))
    /** So many vectors of a row, the first at `at`. */
    const vectors = (count: number, at: number): void => {
      for (const { row, at: place } of parts) {
        f.get(row)
        f.get(at)
        f.op('i32.add')
        f.set(place)
      }
      for (const [v, sum] of this.#sums.slice(0, count).entries())
        for (const [t, { weight, at: place }] of parts.entries()) {
          f.get(place)
          f.memory('v128.load', 4 * LANES * v)
          this.#add(sum, weight, t > 0)
        }
      for (const [v, sum] of this.#sums.slice(0, count).entries()) {
        f.get(out)
        f.get(at)
        f.op('i32.add')
        f.get(sum)
        f.memory('v128.store', 4 * LANES * v)
      }
    }
    const block = 4 * LANES * TOGETHER
    const blocks = w.let(() => {
      w.push(width)
      f.i32Const(-block)
      f.op('i32.and')
    })
    const last = w.let(() => {
      w.push(width)
      f.i32Const(-4 * LANES)
      f.op('i32.add')
    })
    w.count({ local: rows }, 1, () => {
      for (const [t, { row, weight }] of parts.entries()) {
        f.get(a)
        f.get(entry)
        f.memory('i32.load', 8 * t)
        f.op('i32.add')
        f.set(row)
        f.get(entry)
        f.memory('v128.load32_splat', 8 * t + 4)
        f.set(weight)
      }
      w.count({ local: blocks }, block, (at) => vectors(TOGETHER, at))
      w.count({ local: last }, 4 * LANES, (at) => vectors(1, at), { local: blocks })
      vectors(1, last)
      w.advance(entry, 8 * this.#taps)
      w.advance(out, width)
    })
  }

  /** A local with the bytes of so many elements. */
  #bytes(elements: number): { readonly local: number } {
    const { f } = this
    return {
      local: this.w.let(() => {
        f.get(elements)
        f.i32Const(2)
        f.op('i32.shl')
      }),
    }
  }

  #load(local: number, base: number, offset: number): void {
    this.f.get(base)
    this.f.memory('v128.load', offset)
    this.f.set(local)
  }

  #loadPlace(offset: number): void {
    this.f.get(this.#entry)
    this.f.memory('i32.load', offset)
    this.f.set(this.#place)
  }
}

function kernelOf(name: string, params: readonly Param[], taps: number, weighted: boolean, write: (writer: ResampleWriter) => void): CompiledKernel {
  const module = new ModuleBuilder()
  module.importMemory()
  write(new ResampleWriter(module.function(params.map(paramType), [], 'run'), taps, weighted))
  return compiledKernel(name, params, null, module.finish())
}

const [OUT, A, TABLE] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32'), bufferParam('table', 'int32')]

/**
 * The kernel for tables of `taps` parts. Its parameters are the result, the lines, the table, the number of lines, and the lengths of a line and of one of the result.
 */
export function compileSwizzledLines(taps: number, weighted: boolean): CompiledKernel {
  const params = [OUT, A, TABLE, sizeParam('lines'), sizeParam('n'), sizeParam('m')]
  return kernelOf('resample_lines', params, taps, weighted, (writer) => writer.lines({ out: 0, a: 1, table: 2, lines: 3, n: 4, m: 5 }))
}

/**
 * The kernel for images: their rows become rows of `m` elements in scratch memory, and then their columns columns of `out_rows`. Its parameters are the result, the
 * images, the tables of rows and of columns, the number of images, their rows, the lengths of a row and of one of the result, the rows of the result, and the address of
 * memory for rows * m elements.
 */
export function compileSwizzledImages(taps: number, weighted: boolean): CompiledKernel {
  const sizes = ['images', 'rows', 'n', 'm', 'out_rows', 'scratch'].map(sizeParam)
  const [out, a, table, columns, images, rows, n, m, outRows, scratch] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
  return kernelOf('resample_images', [OUT, A, TABLE, bufferParam('columns', 'int32'), ...sizes], taps, weighted, (writer) => {
    const { f, w } = writer
    const [from, to] = [w.let(() => f.get(a)), w.let(() => f.get(out))]
    const imageBytes = w.let(() => {
      f.get(rows)
      f.get(n)
      f.op('i32.mul')
      f.i32Const(2)
      f.op('i32.shl')
    })
    w.count({ local: images }, 1, () => {
      writer.lines({ out: scratch, a: from, table, lines: rows, n, m })
      writer.columns({ out: to, a: scratch, table: columns, lines: outRows, m })
      w.advance(from, { local: imageBytes })
    })
  })
}
