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
import { ENTRY, FROM, LANES, MASK, TO, WEIGHTS } from './resampleTables.ts'

/** How many lines share what is read of the table. */
const TOGETHER = 4

/** Locals with addresses, and with counts of lines and elements. */
interface Lines {
  readonly out: number
  readonly a: number
  readonly table: number
  readonly lines: number
  readonly n: number
  readonly m: number
}

/** The addresses of a line and of its result. */
interface Start {
  readonly from: number
  readonly to: number
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
  readonly #lanes: readonly number[]

  constructor(f: FunctionBuilder, [taps, weighted, lanes]: Kind) {
    this.f = f
    this.w = new LoopWriter(f)
    this.#taps = taps
    this.#lanes = lanes === '' ? [] : lanes.split(',').map(Number)
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
    const group = (): void => {
      for (let t = 0; t < this.#taps; t++) this.#part(t, starts)
      this.#loadPlace(TO)
      this.#store(starts)
    }
    if (this.#lanes.length > 0) {
      group()
      this.#middle({ table, m }, starts)
      group()
      return
    }
    w.count({ local: m }, LANES, () => {
      group()
      w.advance(this.#entry, 4 * ENTRY * this.#taps)
    })
  }

  /** The groups between the first and the last, whose entry is left as the present one: see {@link commonLanes}. */
  #middle({ table, m }: Pick<Lines, 'table' | 'm'>, starts: readonly Start[]): void {
    const { f, w } = this
    const [start = 0, step = 0, ...lanes] = this.#lanes
    const four = f.local('v128')
    const weights = Array.from({ length: this.#taps }, () => f.local('v128'))
    for (const [t, weight] of weights.entries()) this.#load(weight, this.#entry, 4 * ENTRY * (this.#taps + t) + WEIGHTS)
    const from = w.let(() => f.i32Const(4 * start))
    // The number of elements before the last group.
    const last = w.let(() => {
      f.get(m)
      f.i32Const(1)
      f.op('i32.sub')
      f.i32Const(-LANES)
      f.op('i32.and')
    })
    f.i32Const(4 * LANES)
    f.set(this.#place)
    w.count(
      { local: last },
      LANES,
      () => {
        for (const [line, { from: base }] of starts.entries()) {
          f.get(base)
          f.get(from)
          f.op('i32.add')
          f.memory('v128.load')
          f.set(four)
          for (const [t, weight] of weights.entries()) {
            f.get(four)
            f.get(four)
            const [a = 0, b = 0, c = 0, d = 0] = lanes.slice(t * LANES)
            f.shuffle32(a, b, c, d)
            this.#add(this.#sums[line] ?? 0, weight, t > 0)
          }
        }
        this.#store(starts)
        w.advance(from, 4 * step)
        w.advance(this.#place, 4 * LANES)
      },
      LANES,
    )
    f.get(table)
    f.get(last)
    f.i32Const(ENTRY * this.#taps)
    f.ops('i32.mul', 'i32.add')
    f.set(this.#entry)
  }

  #store(starts: readonly Start[]): void {
    const { f } = this
    for (const [line, { to }] of starts.entries()) {
      f.get(to)
      f.get(this.#place)
      f.op('i32.add')
      f.get(this.#sums[line] ?? 0)
      f.memory('v128.store')
    }
  }

  #part(t: number, starts: readonly Start[]): void {
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

  /** `m` columns of rows at `a` become `rows` elements each, at `out`. There are at least four columns. */
  columns({ out: start, a, table, lines: rows, m }: Omit<Lines, 'n'>): void {
    const { f, w } = this
    const out = w.let(() => f.get(start))
    const entry = w.let(() => f.get(table))
    const width = this.#bytes(m)
    const parts = Array.from({ length: this.#taps }, () => ({ row: f.local('i32'), weight: f.local('v128'), at: f.local('i32') }))
    /** That many vectors of a row, the first at `at`. */
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
        w.push(width)
        f.ops('i32.mul', 'i32.add')
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

  /** A local with the bytes of this many elements. */
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

/** How kernels differ: the number of parts, whether they have weights, and {@link commonLanes} as text. */
type Kind = readonly [taps: number, weighted: boolean, lanes: string]

function kernelOf(name: string, params: readonly Param[], kind: Kind, write: (writer: ResampleWriter) => void): CompiledKernel {
  const module = new ModuleBuilder()
  module.importMemory()
  write(new ResampleWriter(module.function(params.map(paramType), [], 'run'), kind))
  return compiledKernel({ name, params, body: null }, module.finish())
}

const [OUT, A, TABLE] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32'), bufferParam('table', 'int32')]

/**
 * The kernel for tables of `taps` parts. Its parameters are the result, the lines, the table, the number of lines, and the lengths of a line and of one of the result.
 */
export function compileSwizzledLines(...kind: Kind): CompiledKernel {
  const params = [OUT, A, TABLE, sizeParam('lines'), sizeParam('n'), sizeParam('m')]
  return kernelOf('resample_lines', params, kind, (writer) => writer.lines({ out: 0, a: 1, table: 2, lines: 3, n: 4, m: 5 }))
}

/**
 * The kernel for images: their rows become rows of `m` elements in scratch memory, and then their columns columns of `out_rows`; or with `columnsFirst` the columns and
 * then the rows. Its parameters are the result, the images, the tables of rows and of columns, the number of images, their rows, the lengths of a row and of one of the
 * result, the rows of the result, and the address of memory for rows * m elements, or n * out_rows.
 */
export function compileSwizzledImages(columnsFirst: boolean, ...kind: Kind): CompiledKernel {
  const sizes = ['images', 'rows', 'n', 'm', 'out_rows', 'scratch'].map(sizeParam)
  const [out, a, table, columns, images, rows, n, m, outRows, scratch] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
  return kernelOf('resample_images', [OUT, A, TABLE, bufferParam('columns', 'int32'), ...sizes], kind, (writer) => {
    const { f, w } = writer
    const [from, to] = [w.let(() => f.get(a)), w.let(() => f.get(out))]
    const bytes = (height: number, width: number): number =>
      w.let(() => {
        f.get(height)
        f.get(width)
        f.op('i32.mul')
        f.i32Const(2)
        f.op('i32.shl')
      })
    const [imageBytes, resultBytes] = [bytes(rows, n), bytes(outRows, m)]
    w.count({ local: images }, 1, () => {
      if (columnsFirst) {
        writer.columns({ out: scratch, a: from, table: columns, lines: outRows, m: n })
        writer.lines({ out: to, a: scratch, table, lines: outRows, n, m })
      } else {
        writer.lines({ out: scratch, a: from, table, lines: rows, n, m })
        writer.columns({ out: to, a: scratch, table: columns, lines: outRows, m })
      }
      w.advance(from, { local: imageBytes })
      w.advance(to, { local: resultBytes })
    })
  })
}
