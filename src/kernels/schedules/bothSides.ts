// A transform of both sides of a square of values: of each column, then of each row of the results. Small squares stay in registers; larger ones, which registers could not hold and whose code
// would be long, lie in memory in between, and loops go over the columns and the rows.
import { present } from '../../errors/index.ts'
import { forLoop, load, loopVar, store } from '../ir/loopIr.ts'
import type { Expr, Index, LoopMode, LoopVar, Scratch, Stmt } from '../ir/loopIr.ts'
import { QUAD, from } from './notation.ts'

/** A linear transform of `size` values into `results` others. */
export interface Transform {
  readonly size: number
  readonly results: number
  readonly of: (values: readonly Expr[]) => readonly Expr[]
}

/** A row or a column: its number, or a loop over all of them. */
export type Line = number | LoopVar

/** The index base + sum of line * stride. */
export const fromLines = (base: number, ...lines: readonly (readonly [Line, number])[]): Index =>
  from(
    lines.reduce((sum, [line, stride]) => (typeof line === 'number' ? sum + line * stride : sum), base),
    ...lines.flatMap(([line, stride]) => (typeof line === 'number' ? [] : [[line, stride] as const])),
  )

const lines = <T>(count: number, make: (i: number) => T): readonly T[] => Array.from({ length: count }, (_, i) => make(i))

/** The results, row by row, all in registers. */
export function onBothSides({ size, of }: Transform, at: (y: number, x: number) => Expr): readonly (readonly Expr[])[] {
  const columns = lines(size, (x) => of(lines(size, (y) => at(y, x))))
  return present(columns[0], 'a column').map((_, y) => of(columns.map((column) => present(column[y], 'a value'))))
}

/** A transform of values in vectors. */
interface Transformed {
  readonly transform: Transform
  /** The loop over the elements of a vector. */
  readonly lane: LoopVar
  readonly at: (y: number, x: Line) => Expr
  /** How to go over the columns where memory is between: unrolled where `at` reads registers. Default: `serial`. */
  readonly columns?: LoopMode
}

/** What is done once for all rows, and the results of a row of a loop. */
interface ByRows {
  readonly columns: readonly Stmt[]
  readonly row: (y: LoopVar) => readonly Expr[]
}

/** By way of `half`, which has room for size x results vectors. */
export function byWayOfMemory({ transform, lane, half, at, columns = 'serial' }: Transformed & { readonly half: Scratch }): ByRows {
  const { size, of } = transform
  const column = (x: Line): Stmt =>
    forLoop(
      lane,
      'lanes',
      of(lines(size, (y) => at(y, x))).map((value, y) => store(half, fromLines(y * size * QUAD, [x, QUAD], [lane, 1]), value)),
    )
  const x = loopVar('x', size)
  return {
    columns: columns === 'unroll' ? lines(size, column) : [forLoop(x, columns, [column(x)])],
    row: (y) => of(lines(size, (i) => load(half, fromLines(i * QUAD, [y, size * QUAD], [lane, 1])))),
  }
}

/** What is stored by `put`: in registers without `half`, else by way of it. */
interface Stored extends Transformed {
  readonly half: Scratch | null
  readonly put: (y: Line, x: number, value: Expr) => Stmt
}

/** The results, stored row by row. */
export function transformed({ half, put, ...rest }: Stored): readonly Stmt[] {
  const { transform, lane, at } = rest
  const stores = (y: Line, values: readonly Expr[]): readonly Stmt[] => values.map((value, x) => put(y, x, value))
  if (half === null)
    return [
      forLoop(
        lane,
        'lanes',
        onBothSides(transform, at).flatMap((values, y) => stores(y, values)),
      ),
    ]
  const { columns, row } = byWayOfMemory({ ...rest, half })
  const y = loopVar('y', transform.results)
  return [...columns, forLoop(y, 'serial', [forLoop(lane, 'lanes', stores(y, row(y)))])]
}
