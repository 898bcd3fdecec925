// Lines of another length, four elements at a time: where the parts of four neighbours lie within four neighbours of the line, one load and one swizzle bring them into
// their lanes, and nothing is fetched one by one. Float32.
import type { CompiledKernel } from '../boundedCache.ts'
import { compiledKernel } from '../compile.ts'
import { bufferParam, sizeParam } from '../loopIr.ts'
import { ModuleBuilder } from '../wasm/assembler.ts'
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

/**
 * The kernel for tables of `taps` parts: its parameters are the result, the lines, the table, the number of lines, and the lengths of a line and of one of the result.
 */
export function compileSwizzledLines(taps: number, weighted: boolean): CompiledKernel {
  const params = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('a', 'float32'),
    bufferParam('table', 'int32'),
    sizeParam('lines'),
    sizeParam('n'),
    sizeParam('m'),
  ]
  const [out, a, table, lines, n, m] = [0, 1, 2, 3, 4, 5]
  const module = new ModuleBuilder()
  module.importMemory()
  const f = module.function(['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], [], 'run')
  const w = new LoopWriter(f)
  const [mask, weights, entry] = [f.local('v128'), f.local('v128'), f.local('i32')]
  const sums = Array.from({ length: TOGETHER }, () => f.local('v128'))
  /** The addresses of a line and of its result. */
  const ends = sums.map(() => ({ from: f.local('i32'), to: f.local('i32') }))

  /** Pushes the sum of a local and what the entry holds at `offset`. */
  const atEntry = (base: number, offset: number): void => {
    f.get(base)
    f.get(entry)
    f.memory('i32.load', offset)
    f.op('i32.add')
  }
  const load = (local: number, offset: number): void => {
    f.get(entry)
    f.memory('v128.load', offset)
    f.set(local)
  }
  const part = (t: number, count: number): void => {
    const base = 4 * ENTRY * t
    load(mask, base + MASK)
    if (weighted) load(weights, base + WEIGHTS)
    for (const [line, sum] of sums.slice(0, count).entries()) {
      atEntry(ends[line]?.from ?? 0, base + FROM)
      f.memory('v128.load')
      f.get(mask)
      f.op('i8x16.swizzle')
      if (weighted) {
        f.get(weights)
        f.op('f32x4.mul')
      }
      if (t > 0) {
        f.get(sum)
        f.op('f32x4.add')
      }
      f.set(sum)
    }
  }
  /** `count` lines from the one in `first` on. */
  const together = (count: number, first: number): void => {
    for (const [line, { from, to }] of ends.slice(0, count).entries())
      for (const [start, length, address] of [
        [a, n, from],
        [out, m, to],
      ] as const) {
        f.get(first)
        f.i32Const(line)
        f.op('i32.add')
        f.get(length)
        f.i32Const(4)
        f.ops('i32.mul', 'i32.mul')
        f.get(start)
        f.op('i32.add')
        f.set(address)
      }
    f.get(table)
    f.set(entry)
    w.count({ local: m }, LANES, () => {
      for (let t = 0; t < taps; t++) part(t, count)
      for (const [line, sum] of sums.slice(0, count).entries()) {
        atEntry(ends[line]?.to ?? 0, TO)
        f.get(sum)
        f.memory('v128.store')
      }
      w.advance(entry, 4 * ENTRY * taps)
    })
  }
  const whole = w.let(() => {
    f.get(lines)
    f.i32Const(-TOGETHER)
    f.op('i32.and')
  })
  w.count({ local: whole }, TOGETHER, (first) => together(TOGETHER, first))
  w.count({ local: lines }, 1, (first) => together(1, first), { local: whole })
  return compiledKernel('resample_swizzled', params, null, module.finish())
}
