// Grids of operators, while they are written: the parameters that they take, and the loops over elements.
import { call, cast, constant, dtypeInfo, load, loopVar, store } from '../../kernels/index.ts'
import type { BufferParam, DType, Expr, Index, LoopVar, Stmt } from '../../kernels/index.ts'
import { contiguousStrides } from '../../tensor/index.ts'
import { Operands } from '../emit/operands.ts'
import type { GroupGrid } from '../emit/loops.ts'
import type { Buffer, BufferView, ScalarInput } from '../ir.ts'

export const int = (value: number): Expr => constant('int32', value)
export const both = (...conditions: readonly Expr[]): Expr => conditions.reduce((a, b) => call('and', a, b))
export const isInside = (value: Expr, size: number): Expr => both(call('ge', value, int(0)), call('lt', value, int(size)))

/** A number in an index: a loop, or an int32 value. */
export type Position = LoopVar | Expr

/** The index at positions times strides. */
export function place(positions: readonly Position[], strides: readonly number[], base = 0): Index {
  const all = positions.map((position, i) => ({ position, stride: strides[i] ?? 0 }))
  return {
    base,
    terms: all.flatMap(({ position, stride }) => (position.kind === 'loop' && stride !== 0 ? [{ loop: position, stride }] : [])),
    dynamic: all.flatMap(({ position, stride }) => (position.kind !== 'loop' && stride !== 0 ? [{ value: position, stride }] : [])),
  }
}

/** A grid while it is written. */
export class GridWriter {
  readonly #operands = new Operands()

  /** An element of a view. */
  load({ buffer, offset, strides }: BufferView, positions: readonly Position[], mask: Expr | null = null): Expr {
    return load(this.#operands.reading(buffer, offset), place(positions, strides), mask)
  }

  /** A number of the call, or one that is known. */
  number(value: unknown, dtype: DType): Expr {
    return isNumberOfCall(value) ? this.#operands.scalar(value, dtype) : constant(dtype, Number(value))
  }

  /** A table. */
  constants(buffer: Buffer): BufferParam {
    return this.#operands.reading(buffer, 0)
  }

  target(buffer: Buffer): BufferParam {
    return this.#operands.writing(buffer)
  }

  grid(name: string, loops: readonly LoopVar[], body: readonly Stmt[]): GroupGrid {
    return { grid: { name, params: this.#operands.params(), scratch: [], loops, body }, operands: this.#operands.operands() }
  }
}

export const loopsOver = (shape: readonly number[]): readonly LoopVar[] => shape.map((size, i) => loopVar(`i${i}`, size))

/** An operator's grids, in order; null if there are none for a call. */
export type Grids = readonly GroupGrid[] | null

/** What an operator gets: its tensors, and everything else as values. */
export interface Call {
  readonly name: string
  readonly args: readonly unknown[]
  readonly outs: readonly Buffer[]
}

export const isView = (value: unknown): value is BufferView => typeof value === 'object' && value !== null && 'buffer' in value
const isNumberOfCall = (value: unknown): value is ScalarInput => typeof value === 'object' && value !== null && 'placeholder' in value
export const numbersIn = (value: unknown): readonly number[] => (Array.isArray(value) ? value.map(Number) : [Number(value)])
export const pair = (value: unknown): readonly [number, number] => {
  const [first = 0, second = first] = numbersIn(value)
  return [first, second]
}
export const wrapped = (dim: unknown, rank: number): number => (Number(dim) < 0 ? Number(dim) + rank : Number(dim))

/** The view of a tensor without dimensions as a line of one element. */
export const lineOf = (view: BufferView): BufferView => (view.shape.length === 0 ? { ...view, shape: [1], strides: [1] } : view)

/** Memory between the grids of an operator. */
export const temporary = (name: string, shape: readonly number[], dtype: DType): Buffer => ({
  ...{ name, shape, dtype, input: -1, producer: null },
  numel: shape.reduce((n, size) => n * size, 1),
})

const tables = new WeakMap<Buffer, Uint32Array<ArrayBuffer>>()

/** A table that an operator's grids read: the GPU gets it once. */
export function constantBuffer(name: string, values: Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer>, dtype: 'int32' | 'float32'): Buffer {
  const buffer = temporary(name, [values.length], dtype)
  tables.set(buffer, new Uint32Array(values.buffer))
  return buffer
}

/** The words of a table; null for other buffers. */
export const wordsOfTable = (buffer: Buffer): Uint32Array<ArrayBuffer> | null => tables.get(buffer) ?? null

/** The positions of an element that is the `at`th of its tensor. */
export function digitsOf(at: Expr, shape: readonly number[]): readonly Expr[] {
  const strides = contiguousStrides(shape)
  return shape.map((size, i) => call('remainder', call('floorDiv', at, int(strides[i] ?? 1)), int(size)))
}

/** A view in a larger shape, along which its elements are repeated. */
export function broadcastTo(view: BufferView, shape: readonly number[]): BufferView {
  const missing = shape.length - view.shape.length
  const strides = shape.map((size, i) => (i < missing || (view.shape[i - missing] === 1 && size !== 1) ? 0 : (view.strides[i - missing] ?? 0)))
  return { ...view, shape, strides }
}

/** A tensor copied into a window of a result. */
export function copied(name: string, from: BufferView, out: Buffer, strides: readonly number[], base: number): GroupGrid {
  const writer = new GridWriter()
  const loops = loopsOver(from.shape)
  const value = cast(writer.load(from, loops), out.dtype)
  return writer.grid(name, loops, [store(writer.target(out), place(loops, strides, base), value)])
}

export function filled(name: string, out: Buffer, value: number): GroupGrid {
  const writer = new GridWriter()
  const i = loopVar('i', out.numel)
  return writer.grid(name, [i], [store(writer.target(out), place([i], [1]), constant(out.dtype, value))])
}

/** An index as an int32, and whether it is one of `count`. Those that are not never reach memory. */
export function indexOf(index: Expr, count: number): { readonly at: Expr; readonly isThere: Expr } {
  const isThere = both(call('ge', index, constant(index.dtype, 0)), call('lt', index, constant(index.dtype, count)))
  return { at: call('where', isThere, cast(index, 'int32'), int(0)), isThere }
}

/** Whether elements that are added up lie in memory as they are added: halves are rounded once, at the end. */
export const addsUp = (dtype: DType): boolean => dtypeInfo[dtype].size >= 4
