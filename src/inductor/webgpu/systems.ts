// Systems of linear equations with a triangular matrix, as grids.
import { assign, call, declare, forLoop, iota, load, local, loopVar, read, store } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { contiguousStrides } from '../../tensor/index.ts'
import type { GroupGrid } from '../emit/loops.ts'
import type { Buffer, BufferView } from '../ir.ts'
import { GridWriter, int, isView, loopsOver, place } from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'

/** How many rows a thread solves, one after the other. */
const ROWS = 128

/** A system a x = b: rows are numbered in the order in which they are solved. */
interface System {
  readonly name: string
  readonly a: BufferView
  readonly b: BufferView
  readonly out: Buffer
  readonly upper: boolean
  readonly unit: boolean
}

/** The row of the matrix that is solved as the `at`th. */
const rowOf = ({ upper, a }: System, at: Expr): Expr => (upper ? call('sub', int((a.shape.at(-1) ?? 0) - 1), at) : at)

/** The right sides of rows without what the rows that are solved already have of them: a thread for each element. */
function withoutSolved(system: System, first: number, count: number): GroupGrid {
  const { name, a, b, out } = system
  const writer = new GridWriter()
  const [row, column, k] = [loopVar('row', count), loopVar('column', b.shape.at(-1) ?? 1), loopVar('k', first)]
  const batch = loopsOver(b.shape.slice(0, -2))
  const strides = contiguousStrides(b.shape)
  const target = writer.target(out)
  const here = rowOf(system, call('add', iota(row), int(first)))
  const solved = rowOf(system, iota(k))
  const rest = local('rest', 'float32')
  const product = call('mul', writer.load(a, [...batch, here, solved]), load(target, place([...batch, solved, column], strides)))
  const body = [
    declare(rest, writer.load(b, [...batch, here, column])),
    ...(first === 0 ? [] : [forLoop(k, 'serial', [assign(rest, call('sub', read(rest), product))])]),
    store(target, place([...batch, here, column], strides), read(rest)),
  ]
  return writer.grid(`${name}_rest${first}`, [...batch, row, column], body)
}

/** Solves rows whose right sides are there: a thread for each column. */
function solvedRows(system: System, first: number, count: number): GroupGrid {
  const { name, a, b, out, unit } = system
  const writer = new GridWriter()
  const [column, step, k] = [loopVar('column', b.shape.at(-1) ?? 1), loopVar('step', count), loopVar('k', count)]
  const batch = loopsOver(b.shape.slice(0, -2))
  const strides = contiguousStrides(b.shape)
  const target = writer.target(out)
  const here = rowOf(system, call('add', iota(step), int(first)))
  const solved = rowOf(system, call('add', iota(k), int(first)))
  const isSolved = call('lt', iota(k), iota(step))
  const rest = local('rest', 'float32')
  const known = load(target, place([...batch, solved, column], strides), isSolved)
  const product = call('mul', writer.load(a, [...batch, here, solved], isSolved), known)
  const result = unit ? read(rest) : call('div', read(rest), writer.load(a, [...batch, here, here]))
  const body = forLoop(step, 'serial', [
    declare(rest, load(target, place([...batch, here, column], strides))),
    forLoop(k, 'serial', [assign(rest, call('where', isSolved, call('sub', read(rest), product), read(rest)))]),
    store(target, place([...batch, here, column], strides), result),
  ])
  return writer.grid(`${name}_solved${first}`, [...batch, column], [body])
}

/** x with a x = b, by rows in blocks: what a thread computes one after the other is bounded, whatever the size of the matrix. Sums are in float32, where the eager kernel has float64. */
export function triangularSolve({ name, args: [a, b, upper, unit], outs: [out] }: Call): Grids {
  if (!isView(a) || !isView(b) || out === undefined || out.dtype !== 'float32') return null
  const system: System = { name, a, b, out, upper: upper === true, unit: unit === true }
  const rows = b.shape.at(-2) ?? 0
  const firsts = Array.from({ length: Math.ceil(rows / ROWS) }, (_, i) => i * ROWS)
  return firsts.flatMap((first) => {
    const count = Math.min(ROWS, rows - first)
    return [withoutSolved(system, first, count), solvedRows(system, first, count)]
  })
}
