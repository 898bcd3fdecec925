// The WebAssembly emitter against the reference interpreter: access patterns, masks, reductions, tails, memory shapes of every dtype, random kernels.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  accumulate,
  assign,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  forLoop,
  identityOf,
  iota,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeOf,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import { DTYPES } from '../../../src/kernels/numbers/dtype.ts'
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import type { Combine, Expr, Index, Kernel, LoopVar, Param, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { tenth, turn } from '../../helpers/rotation.ts'
import { arrayOf, numbersOf, runBoth } from '../harness.ts'
import type { Args } from '../harness.ts'

const f32 = (value: number): Expr => constant('float32', value)
const int = (value: number): Expr => constant('int32', value)

/** Those of the cases that run this time, for each dtype others: a case differs from the next one in its numbers. */
const chosen = <T>(dtype: DType, cases: readonly T[], nameOf: (one: T) => string): readonly T[] => tenth(cases, (one) => `${dtype} ${nameOf(one)}`)

/** Every pair of an element of each list. */
const pairs = <A, B>(first: readonly A[], second: readonly B[]): readonly (readonly [A, B])[] =>
  first.flatMap((a) => second.map((b) => [a, b] as const))

/** Small whole numbers, so that float sums are exact in any order (bfloat16 has all integers up to 256 only). */
const numbers = (dtype: DType, count: number, salt = 1): ReturnType<typeof arrayOf> => {
  const reach = dtype === 'bfloat16' ? 3 : 20
  return arrayOf(
    dtype,
    Array.from({ length: count }, (_, i) =>
      dtype === 'bool'
        ? Number((Math.imul(i + salt, 2654435761) >>> 7) % 3 === 0)
        : ((Math.imul(i + salt, 2654435761) >>> 9) % (2 * reach + 1)) - reach,
    ),
  )
}

function same(kernel: Kernel, args: Args): Record<string, ArrayLike<number>> {
  const { wasm, oracle } = runBoth(kernel, args)
  for (const name of Object.keys(oracle)) expect(wasm[name], name).toEqual(oracle[name])
  return Object.fromEntries(kernel.params.flatMap((p) => (p.kind === 'buffer' ? [[p.name, numbersOf(p.dtype, wasm[p.name])]] : [])))
}

const index = (base: Index['base'], terms: Index['terms'], dynamic: Index['dynamic'] = []): Index => ({ base, terms, dynamic })

for (const dtype of DTYPES) {
  describe(`elements of ${dtype}`, () => {
    const [out, a, b] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype), bufferParam('b', dtype)]
    const op: ScalarOp = dtype === 'bool' ? 'or' : 'sub'

    test('every length from 0 to 17 and 63 to 65 is right, known when compiled or not, and nothing past the end is touched', () => {
      const lengths = pairs([...Array(18).keys(), 63, 64, 65], [true, false])
      for (const [n, known] of chosen(dtype, lengths, ([length, isKnown]) => `length ${length} ${isKnown}`)) {
        const extent = known ? n : sizeParam('n')
        const i = loopVar('i', extent)
        const body = [forLoop(i, 'simd', [store(out, at([i, 1]), call(op, load(a, at([i, 1])), load(b, at([i, 1]))))])]
        const params: Param[] = [out, a, b, ...(typeof extent === 'number' ? [] : [extent])]
        same({ name: 'tail', params, body }, { out: arrayOf(dtype, n), a: numbers(dtype, n), b: numbers(dtype, n, 7), n })
      }
    })

    test('transposed, broadcast, reversed, offset and strided operands are read and written', () => {
      const [rows, cols] = [5, 21]
      const [s, t] = [sizeParam('s'), sizeParam('t')]
      const [i, j] = [loopVar('i', rows), loopVar('j', cols)]
      const views: readonly Index[] = [
        at([i, 1], [j, rows]),
        at([i, cols], [j, 1]),
        at([j, 1]),
        at([i, 1]),
        at([j, 0]),
        index(cols - 1, [{ loop: j, stride: -1 }]),
        index(3, [{ loop: j, stride: 2 }]),
        index(t, [
          { loop: i, stride: s },
          { loop: j, stride: 1 },
        ]),
        index(0, [{ loop: j, stride: s }]),
        index(1, [
          { loop: j, stride: 1 },
          { loop: j, stride: 1 },
        ]),
      ]
      const targets: readonly Index[] = [
        at([i, cols], [j, 1]),
        at([i, 1], [j, rows]),
        index(rows * cols - 1, [
          { loop: i, stride: -cols },
          { loop: j, stride: -1 },
        ]),
        index(0, [
          { loop: i, stride: cols },
          { loop: j, stride: t },
        ]),
      ]
      for (const [view, target] of chosen(dtype, pairs(views, targets), ([from, to]) => `view ${views.indexOf(from)} to ${targets.indexOf(to)}`)) {
        const body = [forLoop(i, 'serial', [forLoop(j, 'simd', [store(out, target, call(op, load(a, view), load(b, at([i, cols], [j, 1]))))])])]
        same(
          { name: 'views', params: [out, a, b, s, t], body },
          { out: arrayOf(dtype, rows * cols), a: numbers(dtype, 200), b: numbers(dtype, rows * cols, 3), s: 4, t: 1 },
        )
      }
    })

    test('pairs are read and written at every length, also where the second side is computed from the memory that the first one changed', () => {
      const pairs = bufferParam('out', dtype, 'readwrite')
      for (const n of [...Array(10).keys(), 16, 17, 37])
        for (const source of [b, pairs])
          for (const base of [0, 1]) {
            const i = loopVar('i', n)
            const side = (first: number): Index => index(first, [{ loop: i, stride: 2 }])
            const [x, y] = [load(a, side(base)), load(source, side(base + 1))]
            const body = [
              forLoop(i, 'simd', [store(pairs, side(base), call(op, x, y)), store(pairs, side(base + 1), call(op, y, load(source, side(base))))]),
            ]
            const data = { out: numbers(dtype, 2 * n + 2, 5), a: numbers(dtype, 2 * n + 2), b: numbers(dtype, 2 * n + 2, 7) }
            same({ name: 'pairs', params: [pairs, a, b], body }, data)
          }
    })

    test('masked loads give 0 where the mask is false and never touch the address', () => {
      const n = 30
      const i = loopVar('i', n)
      // A window that hangs over both ends of `a`, as padding does; far outside, so that a touched address would trap.
      for (const [shift, length] of [
        [-3, 20],
        [0, 30],
        [2, 9],
        [-1000000, 20],
      ] as const) {
        const position = call('add', iota(i), int(shift))
        const inside = call('and', call('ge', position, int(0)), call('lt', position, int(length)))
        const contiguous = load(a, index(shift, [{ loop: i, stride: 1 }]), inside)
        const gathered = load(a, index(0, [], [{ value: position, stride: 1 }]), inside)
        const shared = load(a, at(), inside)
        for (const value of [contiguous, gathered, shared]) {
          same(
            { name: 'masked', params: [out, a], body: [forLoop(i, 'simd', [store(out, at([i, 1]), value)])] },
            { out: arrayOf(dtype, n), a: numbers(dtype, 30) },
          )
        }
      }
    })

    test('gathers, with run-time strides too, and scatters read and write the right elements', () => {
      const n = 19
      const i = loopVar('i', n)
      const [idx, s] = [bufferParam('idx', 'int32'), sizeParam('s')]
      const order = Array.from({ length: n }, (_, k) => (k * 7) % n)
      const args = { out: arrayOf(dtype, n * 3), a: numbers(dtype, n * 4), idx: arrayOf('int32', order), s: 3 }
      const gathered = load(a, index(1, [{ loop: i, stride: 1 }], [{ value: load(idx, at([i, 1])), stride: s }]))
      same({ name: 'gather', params: [out, a, idx, s], body: [forLoop(i, 'simd', [store(out, at([i, 1]), gathered)])] }, args)
      same(
        {
          name: 'scatter',
          params: [out, a, idx, s],
          body: [forLoop(i, 'simd', [store(out, index(0, [], [{ value: load(idx, at([i, 1])), stride: s }]), load(a, at([i, 2])))])],
        },
        args,
      )
      const row = local('row', 'int32')
      const j = loopVar('j', 6)
      const rows = [
        forLoop(i, 'serial', [
          declare(row, load(idx, at([i, 1]))),
          forLoop(j, 'simd', [store(out, at([i, 2], [j, 1]), load(a, index(0, [{ loop: j, stride: 1 }], [{ value: read(row), stride: s }])))]),
        ]),
      ]
      same({ name: 'rows', params: [out, a, idx, s], body: rows }, args)
    })

    test('reductions over the inner dimension, the outer one and both agree, for every combination and length', () => {
      const combines: readonly Combine[] = ['add', 'mul', 'min', 'max']
      const sizes = [
        [3, 0],
        [1, 1],
        [2, 3],
        [3, 4],
        [4, 15],
        [2, 16],
        [3, 37],
        [0, 5],
        [5, 64],
      ] as const
      for (const [combine, [rows, cols]] of chosen(dtype, pairs(combines, sizes), ([by, [m, n]]) => `${by} ${m}x${n}`)) {
        const data =
          combine === 'mul' && dtype !== 'bool'
            ? arrayOf(
                dtype,
                Array.from({ length: rows * cols }, (_, k) => (k % 5 === 0 ? 2 : k % 3 === 0 ? -1 : 1)),
              )
            : numbers(dtype, rows * cols)
        const acc = local('acc', dtype)
        const [i, j] = [loopVar('i', rows), loopVar('j', cols)]
        const start = declare(acc, identityOf(combine, dtype))
        const element = load(a, at([i, cols], [j, 1]))
        const inner = [forLoop(i, 'serial', [start, forLoop(j, 'simd', [accumulate(acc, combine, element)]), store(out, at([i, 1]), read(acc))])]
        same({ name: 'inner', params: [out, a], body: inner }, { out: arrayOf(dtype, rows), a: data })
        const outer = [forLoop(j, 'simd', [start, forLoop(i, 'serial', [accumulate(acc, combine, element)]), store(out, at([j, 1]), read(acc))])]
        same({ name: 'outer', params: [out, a], body: outer }, { out: arrayOf(dtype, cols), a: data })
        const both = [start, forLoop(i, 'serial', [forLoop(j, 'simd', [accumulate(acc, combine, element)])]), store(out, at(), read(acc))]
        same({ name: 'both', params: [out, a], body: both }, { out: arrayOf(dtype, 1), a: data })
        const nested = [start, forLoop(j, 'simd', [forLoop(i, 'serial', [accumulate(acc, combine, element)])]), store(out, at(), read(acc))]
        same({ name: 'nested', params: [out, a], body: nested }, { out: arrayOf(dtype, 1), a: data })
      }
    })

    test('combining stores add to what is there', () => {
      const n = 23
      const io = bufferParam('io', dtype, 'readwrite')
      const idx = bufferParam('idx', 'int32')
      const i = loopVar('i', n)
      const args = {
        io: numbers(dtype, n * 2),
        a: numbers(dtype, n, 5),
        idx: arrayOf(
          'int32',
          Array.from({ length: n }, (_, k) => (k * k) % 4),
        ),
      }
      same(
        {
          name: 'scatterAdd',
          params: [io, a, idx],
          body: [forLoop(i, 'serial', [store(io, index(0, [], [{ value: load(idx, at([i, 1])), stride: 1 }]), load(a, at([i, 1])), 'add')])],
        },
        args,
      )
      same(
        {
          name: 'lanes',
          params: [io, a, idx],
          body: [
            forLoop(i, 'simd', [
              store(io, at([i, 1]), load(a, at([i, 1])), 'max'),
              store(io, index(n, [{ loop: i, stride: 1 }]), load(a, at([i, 1])), 'min'),
            ]),
          ],
        },
        args,
      )
      same({ name: 'strided', params: [io, a, idx], body: [forLoop(i, 'simd', [store(io, at([i, 2]), load(a, at([i, 1])), 'mul')])] }, args)
    })

    test('casts to every dtype truncate, saturate and normalise', () => {
      const values =
        dtype === 'bool'
          ? [0, 1, 1, 0, 1]
          : dtype === 'int32'
            ? [0, 1, -1, 2147483647, -2147483648, 77]
            : [0, -0, 1.9, -1.9, 3e9, -3e9, NaN, Infinity, -Infinity, 0.25, 1e-40]
      for (const to of DTYPES) {
        const target = bufferParam('out', to, 'write')
        const i = loopVar('i', values.length)
        for (const mode of ['simd', 'serial'] as const) {
          same(
            { name: 'cast', params: [target, a], body: [forLoop(i, mode, [store(target, at([i, 1]), cast(load(a, at([i, 1])), to))])] },
            { out: arrayOf(to, values.length), a: arrayOf(dtype, values) },
          )
        }
      }
    })

    test('a scalar parameter of that dtype reaches every lane', () => {
      const s = scalarParam('s', dtype)
      const i = loopVar('i', 21)
      for (const value of dtype === 'bool' ? [0, 1] : [0, 3, -7]) {
        same(
          { name: 'scalar', params: [out, a, s], body: [forLoop(i, 'simd', [store(out, at([i, 1]), call(op, load(a, at([i, 1])), scalar(s)))])] },
          { out: arrayOf(dtype, 21), a: numbers(dtype, 21), s: value },
        )
      }
    })
  })
}

test('loop variables and sizes are values, in lanes and outside', () => {
  const n = sizeParam('n')
  const [i, j] = [loopVar('i', 3), loopVar('j', n)]
  const out = bufferParam('out', 'int32', 'write')
  const value = call('add', call('mul', iota(i), sizeOf(n)), call('mul', iota(j), int(10)))
  same(
    {
      name: 'iota',
      params: [out, n],
      body: [
        forLoop(i, 'serial', [
          forLoop(j, 'simd', [
            store(
              out,
              index(0, [
                { loop: i, stride: n },
                { loop: j, stride: 1 },
              ]),
              value,
            ),
          ]),
        ]),
      ],
    },
    { out: arrayOf('int32', 69), n: 23 },
  )
})

test('a softmax of three passes agrees with the interpreter to rounding', () => {
  const [rows, cols] = [4, 37]
  const [a, out] = [bufferParam('a', 'float32'), bufferParam('out', 'float32', 'write')]
  const [i, j] = [loopVar('i', rows), loopVar('j', cols)]
  const [m, s] = [local('m', 'float32'), local('s', 'float32')]
  const shifted = call('exp', call('sub', load(a, at([i, cols], [j, 1])), read(m)))
  const body = [
    forLoop(i, 'serial', [
      declare(m, f32(-Infinity)),
      forLoop(j, 'simd', [accumulate(m, 'max', load(a, at([i, cols], [j, 1])))]),
      declare(s, f32(0)),
      forLoop(j, 'simd', [accumulate(s, 'add', shifted)]),
      forLoop(j, 'simd', [store(out, at([i, cols], [j, 1]), call('div', shifted, read(s)))]),
    ]),
  ]
  const { wasm, oracle } = runBoth(
    { name: 'softmax', params: [out, a], body },
    { out: arrayOf('float32', rows * cols), a: numbers('float32', rows * cols) },
  )
  for (let k = 0; k < rows * cols; k++) expect(wasm['out']?.[k]).toBeCloseTo(oracle['out']?.[k] as number, 6)
})

test('a shared expression follows its locals, and a shared load keeps the value it had', () => {
  const io = bufferParam('io', 'float32', 'readwrite')
  const i = loopVar('i', 9)
  const x = local('x', 'float32')
  const element = load(io, at([i, 1]))
  const sum = call('add', read(x), element)
  const body = [
    forLoop(i, 'simd', [
      declare(x, f32(1)),
      store(io, index(9, [{ loop: i, stride: 1 }]), sum),
      assign(x, sum),
      store(io, at([i, 1]), sum),
      store(io, index(18, [{ loop: i, stride: 1 }]), element),
    ]),
  ]
  const { io: result } = same({ name: 'shared', params: [io], body }, { io: numbers('float32', 27) })
  expect(result).toBeDefined()
})

test('what does not change in a loop is still right when the loop changes a local, runs no iteration, or stores to the buffer', () => {
  const [io, n] = [bufferParam('io', 'float32', 'readwrite'), sizeParam('n')]
  const [i, j] = [loopVar('i', 5), loopVar('j', n)]
  const x = local('x', 'float32')
  const twice = call('mul', read(x), f32(2))
  const first = load(io, at())
  const body = [
    declare(x, f32(1)),
    forLoop(i, 'serial', [forLoop(j, 'serial', [assign(x, call('add', twice, first))]), store(io, at([i, 1]), call('add', twice, f32(1)))]),
  ]
  for (const size of [0, 1, 3]) same({ name: 'invariant', params: [io, n], body }, { io: numbers('float32', 5), n: size })
})

describe('random kernels', () => {
  const leaf = (a: readonly Expr[], i: LoopVar): fc.Arbitrary<Expr> =>
    fc.oneof(
      fc.constantFrom(...a),
      fc.integer({ min: -9, max: 9 }).map((v) => f32(v)),
      fc.constant(cast(iota(i), 'float32')),
    )
  const expression = (leaves: fc.Arbitrary<Expr>): fc.Arbitrary<Expr> =>
    fc.letrec<{ value: Expr; condition: Expr }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaves,
        fc.tuple(fc.constantFrom('add', 'sub', 'mul', 'min', 'max'), tie('value'), tie('value')).map(([op, a, b]) => call(op as ScalarOp, a, b)),
        fc.tuple(fc.constantFrom('neg', 'abs', 'floor', 'sign'), tie('value')).map(([op, a]) => call(op as ScalarOp, a)),
        fc.tuple(tie('condition'), tie('value'), tie('value')).map(([c, a, b]) => call('where', c, a, b)),
        tie('value').map((v) => cast(call('bitAnd', cast(v, 'int32'), int(63)), 'float32')),
        // With float64 or int64 anywhere, vectors have two elements.
        fc
          .tuple(fc.constantFrom(...DTYPES.filter((dtype) => dtype !== 'bool')), fc.constantFrom('add', 'mul'), tie('value'))
          .map(([dtype, op, v]) => cast(call(op as ScalarOp, cast(v, dtype), constant(dtype, 3)), 'float32')),
      ),
      condition: fc.tuple(fc.constantFrom('lt', 'ge', 'eq'), tie('value'), tie('value')).map(([op, a, b]) => call(op as ScalarOp, a, b)),
    })).value

  test('the emitter and the interpreter agree', () => {
    const shape = fc.record({
      rows: fc.integer({ min: 0, max: 4 }),
      cols: fc.integer({ min: 0, max: 40 }),
      dynamic: fc.boolean(),
      reduce: fc.boolean(),
      seed: fc.integer({ min: 1, max: 1000 }),
    })
    const [out, total, a, b] = [
      bufferParam('out', 'float32', 'write'),
      bufferParam('total', 'float32', 'write'),
      bufferParam('a', 'float32'),
      bufferParam('b', 'bool'),
    ]
    const [n, m] = [sizeParam('n'), sizeParam('m')]
    const kernels = shape.chain(({ rows, cols, dynamic, reduce, seed }) => {
      const [i, j] = [loopVar('i', dynamic ? n : rows), loopVar('j', dynamic ? m : cols)]
      const strideI = dynamic ? m : cols
      const accesses = [
        at([i, strideI], [j, 1]),
        at([j, 1]),
        at([i, 1]),
        at([j, 3]),
        index(2, [
          { loop: i, stride: 1 },
          { loop: j, stride: 1 },
        ]),
      ]
      const leaves = [
        ...accesses.map((x) => load(a, x)),
        cast(load(b, accesses[0] as Index), 'float32'),
        load(a, at([i, strideI], [j, 1]), load(b, at([j, 1]))),
      ]
      return expression(leaf(leaves, j)).map((value) => {
        const acc = local('acc', 'float32')
        const inner: Stmt[] = [store(out, at([i, strideI], [j, 1]), value), ...(reduce ? [accumulate(acc, 'max', value)] : [])]
        const body = [forLoop(i, 'serial', [declare(acc, f32(-1e9)), forLoop(j, 'simd', inner), store(total, at([i, 1]), read(acc))])]
        return { kernel: { name: 'random', params: [out, total, a, b, n, m], body }, rows, cols, seed }
      })
    })
    const property = fc.property(kernels, ({ kernel, rows, cols, seed }) => {
      same(kernel, {
        out: arrayOf('float32', rows * cols),
        total: arrayOf('float32', rows),
        a: numbers('float32', rows * cols + 3 * cols + rows + 8, seed),
        b: numbers('bool', rows * cols + cols, seed),
        n: rows,
        m: cols,
      })
    })
    for (const seed of turn([...Array(10).keys()])) fc.assert(property, { numRuns: 25, seed })
  })
})
