// Operators that look for something, as grids: places in sorted lines, positions of what is not 0, a permutation, divisors.
import { assign, call, cast, constant, declare, dtypeInfo, forLoop, iota, load, local, loopVar, read, store } from '../../kernels/index.ts'
import type { DType, Expr, LoopVar } from '../../kernels/index.ts'
import { philoxBits } from '../../ops/index.ts'
import { contiguousStrides, numelOf } from '../../tensor/index.ts'
import type { GroupGrid } from '../emit/loops.ts'
import type { Buffer, BufferView } from '../ir.ts'
import { GridWriter, both, broadcastTo, digitsOf, filled, int, isView, loopsOver, place, temporary } from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'
import { comparable, isBefore } from './lines.ts'

const chosen = (condition: Expr, a: Expr, b: Expr): Expr => call('where', condition, a, b)

/** The dtype in which elements of both are compared exactly; null if there is none. */
function comparedIn(a: DType, b: DType): DType | null {
  if (a === b) return a
  const [x, y] = [dtypeInfo[a], dtypeInfo[b]]
  if (x.floating !== y.floating) return null
  return x.floating ? 'float32' : 'int64'
}

/** The places of values in sorted lines: a thread for each value halves the line. */
export function places({ name, args: [sequence, values, , right], outs: [out] }: Call): Grids {
  if (!isView(sequence) || !isView(values) || out === undefined) return null
  if (sequence.shape.includes(0)) return [filled(name, out, 0)]
  const dtype = comparedIn(sequence.dtype, values.dtype)
  if (dtype === null) return null
  const writer = new GridWriter()
  const loops = loopsOver(values.shape)
  const count = sequence.shape.at(-1) ?? 1
  const line = sequence.shape.length === 1 ? [] : loops.slice(0, -1)
  const value = comparable(cast(writer.load(values, loops), dtype))
  const [low, high, middle, isOpen, isLess] = [
    local('low', 'int32'),
    local('high', 'int32'),
    local('middle', 'int32'),
    local('isOpen', 'bool'),
    local('isLess', 'bool'),
  ]
  const element = comparable(cast(writer.load(sequence, [...line, read(middle)], read(isOpen)), dtype))
  const before = isBefore(element, value, false)
  const step = loopVar('step', Math.ceil(Math.log2(count + 1)))
  return [
    writer.grid(name, loops, [
      declare(low, int(0)),
      declare(high, int(count)),
      forLoop(step, 'serial', [
        declare(isOpen, call('lt', read(low), read(high))),
        declare(middle, call('floorDiv', call('add', read(low), read(high)), int(2))),
        declare(isLess, right === true ? call('or', before, call('not', isBefore(value, element, false))) : before),
        assign(low, chosen(both(read(isOpen), read(isLess)), call('add', read(middle), int(1)), read(low))),
        assign(high, chosen(both(read(isOpen), call('not', read(isLess))), read(middle), read(high))),
      ]),
      store(writer.target(out), place(loops, contiguousStrides(values.shape)), cast(read(low), out.dtype)),
    ]),
  ]
}

/** How many elements a thread counts. */
const COUNTED = 256

const isSet = (writer: GridWriter, view: BufferView, at: Expr, mask: Expr): Expr => {
  const value = writer.load(view, digitsOf(at, view.shape), mask)
  return both(mask, value.dtype === 'bool' ? value : call('ne', value, constant(value.dtype, 0)))
}

const one = (condition: Expr): Expr => chosen(condition, int(1), int(0))

/** How many elements of each part of a tensor are not 0. */
function countsOf(name: string, self: BufferView, counts: Buffer): GroupGrid {
  const writer = new GridWriter()
  const [part, k] = [loopVar('part', counts.numel), loopVar('k', COUNTED)]
  const counted = local('counted', 'int32')
  const at = call('add', call('mul', iota(part), int(COUNTED)), iota(k))
  const isCounted = isSet(writer, self, at, call('lt', at, int(numelOf(self.shape))))
  return writer.grid(
    name,
    [part],
    [
      declare(counted, int(0)),
      forLoop(k, 'serial', [assign(counted, call('add', read(counted), one(isCounted)))]),
      store(writer.target(counts), place([part], [1]), read(counted)),
    ],
  )
}

/** The positions of the first elements that are not 0. The elements of each part are counted first; then a thread for each row looks for the part that its element is in. */
export function nonzeroStatic({ name, args: [self, , fill], outs: [out] }: Call): Grids {
  if (!isView(self) || out === undefined || self.shape.length === 0) return null
  if (self.shape.includes(0)) return [filled(name, out, Number(fill))]
  const numel = numelOf(self.shape)
  const parts = Math.ceil(numel / COUNTED)
  const counts = temporary(`${name}_counts`, [parts], 'int32')
  const writer = new GridWriter()
  const [row, p, j] = [loopVar('row', out.shape[0] ?? 0), loopVar('p', parts), loopVar('j', COUNTED)]
  const [before, inPart, seen, flat] = [local('before', 'int32'), local('inPart', 'int32'), local('seen', 'int32'), local('flat', 'int32')]
  const [isHere, isOne] = [local('isHere', 'bool'), local('isOne', 'bool')]
  const here = writer.load({ buffer: counts, shape: [parts], strides: [1], offset: 0, dtype: 'int32' }, [p])
  const findPart = forLoop(p, 'serial', [
    declare(isHere, both(call('lt', read(inPart), int(0)), call('gt', call('add', read(before), here), iota(row)))),
    assign(inPart, chosen(read(isHere), iota(p), read(inPart))),
    assign(seen, chosen(read(isHere), read(before), read(seen))),
    assign(before, call('add', read(before), here)),
  ])
  const position = call('add', call('mul', read(inPart), int(COUNTED)), iota(j))
  const findElement = forLoop(j, 'serial', [
    declare(isOne, isSet(writer, self, position, both(call('ge', read(inPart), int(0)), call('lt', position, int(numel))))),
    assign(flat, chosen(both(read(isOne), call('eq', read(seen), iota(row)), call('lt', read(flat), int(0))), position, read(flat))),
    assign(seen, call('add', read(seen), one(read(isOne)))),
  ])
  const target = writer.target(out)
  const columns = digitsOf(call('max', read(flat), int(0)), self.shape).map((column, d) => {
    const value = chosen(call('ge', read(flat), int(0)), cast(column, 'int64'), constant('int64', Number(fill)))
    return store(target, place([row], [self.shape.length], d), value)
  })
  const start = [declare(before, int(0)), declare(inPart, int(-1)), declare(seen, int(0)), declare(flat, int(-1))]
  return [countsOf(`${name}_counts`, self, counts), writer.grid(name, [row], [...start, findPart, findElement, ...columns])]
}

/** The longest permutation that one thread makes. The program makes longer ones faster. */
const PERMUTED = 2 ** 16

/** The numbers below n in random order, by Fisher and Yates as the eager kernel does it: one thread, since each exchange depends on those before it. */
export function permutation({ name, args: [n, ...draw], outs: [out] }: Call): Grids {
  const rule = philoxBits.op.pointwise
  if (out === undefined || rule === null || typeof n !== 'number' || n > PERMUTED) return null
  const filler = new GridWriter()
  const i = loopVar('i', n)
  const numbers = filler.grid(`${name}_numbers`, [i], [store(filler.target(out), place([i], [1]), iota(i))])
  if (n < 2) return [numbers]
  const writer = new GridWriter()
  const [thread, t] = [loopVar('thread', 1), loopVar('t', n - 1)]
  const target = writer.target(out)
  const [last, other, a, b] = [local('last', 'int32'), local('other', 'int32'), local('a', 'int32'), local('b', 'int32')]
  const keys = draw.slice(0, 4).map((value) => writer.number(value, 'int32'))
  // The upper word of the product: what the float64 product of the eager kernel is rounded down to, which is exact for that many numbers.
  const word = rule.compute(read(last), int(n), 0, 0, ...keys)
  const swap = forLoop(t, 'serial', [
    declare(last, call('sub', int(n - 1), iota(t))),
    declare(other, call('mulHiU', word, call('add', read(last), int(1)))),
    declare(a, load(target, place([read(last)], [1]))),
    declare(b, load(target, place([read(other)], [1]))),
    store(target, place([read(last)], [1]), read(b)),
    store(target, place([read(other)], [1]), read(a)),
  ])
  return [numbers, writer.grid(name, [thread], [swap])]
}

/** Steps of Euclid's algorithm that are enough for any two numbers: those for neighbours in Fibonacci's sequence. */
const EUCLID = { int32: 48, int64: 94 } as const

export function gcd({ name, args: [self, other], outs: [out] }: Call): Grids {
  if (!isView(self) || !isView(other) || out === undefined) return null
  const dtype = out.dtype === 'int64' ? 'int64' : 'int32'
  const writer = new GridWriter()
  const loops = loopsOver(out.shape)
  const given = (view: BufferView): Expr => call('abs', cast(writer.load(broadcastTo(view, out.shape), loops), dtype))
  const [a, b, rest, isOver] = [local('a', dtype), local('b', dtype), local('rest', dtype), local('isOver', 'bool')]
  const step: LoopVar = loopVar('step', EUCLID[dtype])
  const zero = constant(dtype, 0)
  return [
    writer.grid(name, loops, [
      declare(a, given(self)),
      declare(b, given(other)),
      forLoop(step, 'serial', [
        declare(isOver, call('eq', read(b), zero)),
        declare(rest, call('remainder', read(a), chosen(read(isOver), constant(dtype, 1), read(b)))),
        assign(a, chosen(read(isOver), read(a), read(b))),
        assign(b, chosen(read(isOver), zero, read(rest))),
      ]),
      store(writer.target(out), place(loops, contiguousStrides(out.shape)), cast(call('abs', read(a)), out.dtype)),
    ]),
  ]
}
