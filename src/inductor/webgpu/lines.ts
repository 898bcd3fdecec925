// Operators along the lines of a tensor, as grids: what is written to positions or to a window, running sums, and values in order.
import { FakeTensorMode, withMode } from '../../dispatch/index.ts'
import {
  accumulationType,
  assign,
  call,
  cast,
  constant,
  declare,
  forLoop,
  iota,
  local,
  loopVar,
  read,
  serialLoops,
  store,
} from '../../kernels/index.ts'
import type { Combine, Expr, LoopVar, Stmt } from '../../kernels/index.ts'
import { asStrided, diagonal, select, slice } from '../../ops/index.ts'
import { Tensor, contiguousStrides } from '../../tensor/index.ts'
import type { GroupGrid } from '../emit/loops.ts'
import { GridWriter, addsUp, both, copied, indexOf, int, isView, lineOf, loopsOver, place, wrapped } from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'

/** What scatter does with the values that have one place; null: the last stays. */
const COMBINES: Readonly<Record<string, Combine | null>> = { set: null, mul: 'mul', min: 'min', max: 'max' }

/** A copy of the first tensor into which values go, each to the place that its index gives along a dimension. */
function scattered({ name, args: [self, dim, index, src], outs: [out] }: Call, combine: Combine | null): Grids {
  if (!isView(self) || !isView(index) || !isView(src) || out === undefined) return null
  if (combine !== null && !addsUp(out.dtype)) return null
  const [into, at, from] = [lineOf(self), lineOf(index), lineOf(src)]
  const along = wrapped(dim, into.shape.length)
  const strides = contiguousStrides(into.shape)
  const copy = copied(`${name}_copy`, into, out, strides, 0)
  if (at.shape.includes(0)) return [copy]
  const writer = new GridWriter()
  const loops = loopsOver(at.shape)
  const target = loops.map((loop, i) => (i === along ? indexOf(writer.load(at, loops), into.shape[along] ?? 1).at : loop))
  const written = store(writer.target(out), place(target, strides), writer.load(from, loops), combine)
  // Threads differ in the other dimensions, so that no two write to one element: along this one values are written in the order of the eager kernel.
  const [line, others] = [loops.filter((_, i) => i === along), loops.filter((_, i) => i !== along)]
  return [copy, writer.grid(name, others, serialLoops(line, [written]))]
}

export const scatterAdd = (call: Call): Grids => scattered(call, 'add')

export function scatterValues(call: Call): Grids {
  const combine = COMBINES[String(call.args[4])]
  return combine === undefined ? null : scattered(call, combine)
}

/** A copy of a tensor in which one of its views has other elements. */
const written =
  (viewOf: (whole: Tensor, args: readonly unknown[]) => Tensor) =>
  ({ name, args: [self, src, ...rest], outs: [out] }: Call): Grids => {
    if (!isView(self) || !isView(src) || out === undefined) return null
    const copy = copied(`${name}_copy`, self, out, contiguousStrides(out.shape), 0)
    if (src.shape.includes(0)) return [copy]
    const { strides, offset } = withMode(new FakeTensorMode(), () => viewOf(Tensor.fake({ shape: out.shape, dtype: out.dtype }), rest))
    return [copy, copied(name, src, out, strides, offset)]
  }

const sizes = (value: unknown): readonly number[] => (Array.isArray(value) ? value.map(Number) : [])
const orNull = (value: unknown): number | null => (value === null ? null : Number(value))

export const diagonalWritten: (call: Call) => Grids = written((whole, [offset, dim1, dim2]) =>
  diagonal(whole, Number(offset), Number(dim1), Number(dim2)),
)
export const selectWritten: (call: Call) => Grids = written((whole, [dim, index]) => select(whole, Number(dim), Number(index)))
export const sliceWritten: (call: Call) => Grids = written((whole, [dim, start, end, step]) =>
  slice(whole, Number(dim), orNull(start), orNull(end), Number(step)),
)
export const windowWritten: (call: Call) => Grids = written((whole, [size, stride, offset]) =>
  asStrided(whole, sizes(size), sizes(stride), orNull(offset)),
)

export function cumsum({ name, args: [self, dim], outs: [out] }: Call): Grids {
  if (!isView(self) || out === undefined) return null
  const from = lineOf(self)
  const along = wrapped(dim, from.shape.length)
  const writer = new GridWriter()
  const loops = loopsOver(from.shape)
  const wide = accumulationType(from.buffer.dtype)
  const total = local('total', wide)
  const body = [
    declare(total, constant(wide, 0)),
    ...serialLoops(
      loops.filter((_, i) => i === along),
      [
        assign(total, call('add', read(total), cast(writer.load(from, loops), wide))),
        store(writer.target(out), place(loops, contiguousStrides(from.shape)), cast(read(total), out.dtype)),
      ],
    ),
  ]
  return [
    writer.grid(
      name,
      loops.filter((_, i) => i !== along),
      body,
    ),
  ]
}

/** Whether a value comes before another in a sorted line, whatever their places: NaN is the greatest. */
export function isBefore(a: Expr, b: Expr, largest: boolean): Expr {
  const isNaN = (value: Expr): Expr => call('ne', value, value)
  if (largest) return call('or', call('gt', a, b), both(isNaN(a), call('eq', b, b)))
  return call('or', call('lt', a, b), both(isNaN(b), call('eq', a, a)))
}

/** The first `k` of a line in order. Whole lines: a thread for each element counts what comes before it. Parts: a thread for each line finds the first, then what comes next. */
export function topk({ name, args: [self, k, dim, largest], outs: [values, indices] }: Call): Grids {
  if (!isView(self) || values === undefined || indices === undefined) return null
  const from = lineOf(self)
  const along = wrapped(dim, from.shape.length)
  const make = Number(k) === from.shape[along] ? wholeLines : partsOfLines
  return [make({ name, from, along, count: Number(k), largest: Boolean(largest), values, indices })]
}

interface Ordering {
  readonly name: string
  readonly from: ReturnType<typeof lineOf>
  readonly along: number
  readonly count: number
  readonly largest: boolean
  readonly values: Call['outs'][number]
  readonly indices: Call['outs'][number]
}

/** Elements of bools are compared as integers. */
export const comparable = (value: Expr): Expr => (value.dtype === 'bool' ? cast(value, 'int32') : value)

function wholeLines({ name, from, along, largest, values, indices }: Ordering): GroupGrid {
  const writer = new GridWriter()
  const loops = loopsOver(from.shape)
  const other = loopVar('other', from.shape[along] ?? 1)
  const own = writer.load(from, loops)
  const [a, b] = [comparable(writer.load(from, loops.with(along, other))), comparable(own)]
  const rank = local('rank', 'int32')
  const here = loops[along] ?? other
  const isEarlier = both(call('not', isBefore(b, a, largest)), call('lt', iota(other), iota(here)))
  const counts = call('or', isBefore(a, b, largest), isEarlier)
  const target = place(
    loops.with(along, here).map((loop, i) => (i === along ? read(rank) : loop)),
    contiguousStrides(from.shape),
  )
  return writer.grid(name, loops, [
    declare(rank, int(0)),
    forLoop(other, 'serial', [assign(rank, call('add', read(rank), call('where', counts, int(1), int(0))))]),
    store(writer.target(values), target, own),
    store(writer.target(indices), target, cast(iota(here), 'int64')),
  ])
}

function partsOfLines({ name, from, along, count, largest, values, indices }: Ordering): GroupGrid {
  const writer = new GridWriter()
  const loops = loopsOver(from.shape)
  const [r, i] = [loopVar('r', count), loopVar('i', from.shape[along] ?? 1)]
  const others = loops.filter((_, d) => d !== along)
  const at = (loop: LoopVar): readonly LoopVar[] => loops.with(along, loop)
  const given = writer.load(from, at(i))
  const value = comparable(given)
  const wide = value.dtype
  const [last, lastAt, best, bestAt, wins] = [
    local('last', wide),
    local('lastAt', 'int32'),
    local('best', wide),
    local('bestAt', 'int32'),
    local('wins', 'bool'),
  ]
  const isAfterLast = call(
    'or',
    isBefore(read(last), value, largest),
    both(call('not', isBefore(value, read(last), largest)), call('gt', iota(i), read(lastAt))),
  )
  const isOpen = call('or', call('lt', read(lastAt), int(0)), isAfterLast)
  const isBetter = call('or', call('lt', read(bestAt), int(0)), isBefore(value, read(best), largest))
  const step: readonly Stmt[] = [
    declare(wins, both(isOpen, isBetter)),
    assign(best, call('where', read(wins), value, read(best))),
    assign(bestAt, call('where', read(wins), iota(i), read(bestAt))),
  ]
  const strides = contiguousStrides(from.shape.with(along, count))
  const target = place(at(r), strides)
  return writer.grid(name, others, [
    declare(last, constant(wide, 0)),
    declare(lastAt, int(-1)),
    forLoop(r, 'serial', [
      declare(best, constant(wide, 0)),
      declare(bestAt, int(-1)),
      forLoop(i, 'serial', step),
      assign(last, read(best)),
      assign(lastAt, read(bestAt)),
      store(writer.target(values), target, cast(read(best), given.dtype)),
      store(writer.target(indices), target, cast(read(bestAt), 'int64')),
    ]),
  ])
}
