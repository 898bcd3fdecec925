// What schedules write, as WebAssembly against the reference interpreter: loops that are written out or take steps, local arrays, scratch memory, derived sizes.
import { describe, expect, test } from 'vitest'
import type { DType, StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import {
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  iota,
  load,
  local,
  localArray,
  lookup,
  loopVar,
  read,
  reduceLanes,
  scratch,
  setElement,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Size, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { sizeProduct } from '../../../src/kernels/ir/sizes.ts'
import { seeds } from '../../helpers/rotation.ts'
import { arrayOf, runBoth, valuesOf } from '../harness.ts'
import type { Args } from '../harness.ts'
import { RandomKernel } from '../problems/randomKernel.ts'

const from = (base: Size, ...terms: readonly (readonly [LoopVar, Size])[]): Index => ({ ...at(...terms), base })
const numbers = (dtype: DType, count: number, first = 1): StorageArray =>
  arrayOf(
    dtype,
    Array.from({ length: count }, (_, j) => ((j * 37 + first) % 101) - 50),
  )

/** Runs a kernel both ways: `out` must be the same. */
function same(kernel: Kernel, args: Args, dtype: DType = 'float32'): void {
  const { wasm, oracle } = runBoth(kernel, args)
  expect(valuesOf(dtype, wasm['out'])).toEqual(valuesOf(dtype, oracle['out']))
}

describe('transposed reads of local arrays', () => {
  // Vectors of four and of two elements; columns in vectors and left over; a dimension between others.
  test.each(['float32', 'int32', 'float64', 'int64', 'float16', 'uint8', 'bool'] as const)('of %s', (dtype) => {
    const [out, a] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype)]
    for (const [depth, rows, columns] of [
      [1, 4, 4],
      [2, 4, 6],
      [3, 9, 7],
      [2, 5, 1],
    ] as const) {
      const tile = localArray('tile', dtype, [depth, rows, columns])
      const [d, r, c] = [loopVar('d', depth), loopVar('r', rows), loopVar('c', columns)]
      const body = [
        declareArray(tile, constant(dtype, 0)),
        forLoop(d, 'unroll', [
          forLoop(r, 'unroll', [forLoop(c, 'lanes', [setElement(tile, [d, r, c], load(a, at([d, rows * columns], [r, columns], [c, 1])))])]),
        ]),
        forLoop(d, 'unroll', [
          forLoop(c, 'unroll', [forLoop(r, 'lanes', [store(out, at([d, rows * columns], [c, rows], [r, 1]), element(tile, d, r, c))])]),
        ]),
      ]
      const count = depth * rows * columns
      same({ name: 'transpose', params: [out, a], body }, { out: arrayOf(dtype, count), a: numbers(dtype, count) }, dtype)
    }
  })

  test('see what was set after the last one', () => {
    const out = bufferParam('out', 'float32', 'write')
    const tile = localArray('tile', 'float32', [4, 4])
    const [r, s, k, n] = [loopVar('r', 4), loopVar('s', 4), loopVar('k', 3), sizeParam('n')]
    const show = (base: number): Stmt => forLoop(r, 'lanes', [store(out, from(base, [k, 16], [r, 1]), element(tile, r, 2))])
    const [never, always] = [loopVar('never', n), bufferParam('before', 'float32', 'write')]
    const before = forLoop(r, 'lanes', [store(always, at([r, 1]), element(tile, r, 2))])
    const body = [
      declareArray(tile, constant('float32', 1)),
      forLoop(never, 'serial', [before]),
      before,
      forLoop(k, 'serial', [
        show(0),
        setElement(tile, [3, 2], cast(iota(k), 'float32')),
        show(4),
        forLoop(s, 'unroll', [setElement(tile, [s, s], constant('float32', 9)), show(8)]),
      ]),
    ]
    const { wasm, oracle } = runBoth({ name: 'k', params: [out, always, n], body }, { out: new Float32Array(64), before: new Float32Array(4), n: 0 })
    expect(wasm).toEqual(oracle)
  })
})

describe('rows of local arrays are combined', () => {
  test.each(['float32', 'int32', 'float64', 'bool'] as const)('of %s, in vectors and left over', (dtype) => {
    const [out, a] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype)]
    for (const columns of [1, 2, 3, 4, 5, 8, 12, 19]) {
      const sums = localArray('sums', dtype, [3, columns])
      const [r, c] = [loopVar('r', 3), loopVar('c', columns)]
      for (const combine of ['add', 'mul', 'min', 'max'] as const) {
        const body = [
          declareArray(sums, constant(dtype, 1)),
          forLoop(r, 'unroll', [forLoop(c, 'lanes', [setElement(sums, [r, c], load(a, at([r, columns], [c, 1])))])]),
          forLoop(r, 'unroll', [store(out, at([r, 1]), reduceLanes(combine, sums, r))]),
        ]
        // Small integers: sums and products are exact in any order.
        const data = arrayOf(
          dtype,
          Array.from({ length: 3 * columns }, (_, j) => (combine === 'mul' ? 1 + (j % 7 === 3 ? 1 : 0) : (j * 5) % 11)),
        )
        same({ name: combine, params: [out, a], body }, { out: arrayOf(dtype, 3), a: data }, dtype)
      }
    }
  })
})

test.each(['float32', 'int32', 'float64', 'int64', 'float16', 'uint8'] as const)(
  'tables choose which elements of memory and of local arrays lanes have: %s',
  (dtype) => {
    const [out, a, rows] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype), bufferParam('rows', 'int32')]
    // Neighbours, pairs of them, the same element, and others; of one register, of two and of all, also of elements that are left over.
    const tables = [
      [5, 6, 7, 8, 0, 1, 9, 10, 3, 3],
      [2, 3, 2, 3, 4, 5, 9, 2, 11, 0],
      [0, 7, 3, 9, 11, 10, 1, 8, 6, 5],
    ]
    for (const [size, width] of [
      [10, 12],
      [4, 12],
      [7, 12],
    ] as const) {
      const [g, k, i] = [loopVar('g', tables.length), loopVar('k', size), loopVar('i', 2)]
      const values = localArray('values', dtype, [2, width])
      const [row, column] = [loopVar('row', 2), loopVar('column', width)]
      const number = lookup(tables.flat(), at([g, 10], [k, 1]))
      const further = local('further', 'int32')
      const body = [
        forLoop(i, 'serial', [
          declare(further, load(rows, at([i, 1]))),
          declareArray(values, constant(dtype, 0)),
          forLoop(row, 'unroll', [forLoop(column, 'lanes', [setElement(values, [row, column], load(a, at([row, width], [column, 1])))])]),
          forLoop(g, 'unroll', [
            forLoop(k, 'lanes', [
              store(
                out,
                { ...at([i, 4 * size * tables.length], [k, 1]), dynamic: [{ value: lookup([0, 2, 1], at([g, 1])), stride: 2 * size }] },
                load(a, {
                  ...at(),
                  dynamic: [
                    { value: number, stride: 1 },
                    { value: read(further), stride: width },
                  ],
                }),
              ),
              store(
                out,
                from(size, [i, 4 * size * tables.length], [g, 2 * size], [k, 1]),
                element(
                  values,
                  { ...at(), dynamic: [{ value: lookup([1, 0, 0, 1, 1], from(1, [g, 1])), stride: 1 }] },
                  { ...at(), dynamic: [{ value: number, stride: 1 }] },
                ),
              ),
            ]),
            // The row as well is another one in each lane.
            forLoop(k, 'lanes', [
              store(
                out,
                from(2 * size * tables.length, [i, 4 * size * tables.length], [g, 2 * size], [k, 1]),
                element(
                  values,
                  { ...at(), dynamic: [{ value: lookup([0, 1, 1, 0, 1, 0, 0, 0, 1, 1], at([k, 1])), stride: 1 }] },
                  { ...at(), dynamic: [{ value: number, stride: 1 }] },
                ),
              ),
              store(out, from(2 * size * tables.length + size, [i, 4 * size * tables.length], [g, 2 * size], [k, 1]), cast(number, dtype)),
            ]),
          ]),
        ]),
      ]
      const args = { out: arrayOf(dtype, 8 * size * tables.length), a: numbers(dtype, 2 * width), rows: Int32Array.of(1, 0) }
      same({ name: 'tables', params: [out, a, rows], body }, args, dtype)
    }
  },
)

test.each(['float32', 'int32', 'float64', 'int64', 'float16', 'uint8'] as const)(
  'numbers that a kernel reads choose which elements of a local array lanes have: %s',
  (dtype) => {
    const [out, a, places] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype), bufferParam('places', 'int32')]
    // Rows of one vector and of many, with elements that are left over, and of those alone.
    for (const width of [1, 3, 4, 7, 8, 13, 16]) {
      const values = localArray('values', dtype, [2, width])
      const [i, row, column, k] = [loopVar('i', 5), loopVar('row', 2), loopVar('column', width), loopVar('k', 6)]
      const computed = (value: Expr): Index => ({ ...at(), dynamic: [{ value, stride: 1 }] })
      const inLanes = computed(load(places, at([i, 6], [k, 1])))
      const shared = computed(load(places, at([i, 6])))
      const body = [
        forLoop(i, 'serial', [
          declareArray(values, constant(dtype, 0)),
          forLoop(row, 'unroll', [forLoop(column, 'lanes', [setElement(values, [row, column], load(a, at([row, width], [column, 1])))])]),
          forLoop(row, 'unroll', [
            forLoop(k, 'lanes', [store(out, at([i, 14], [row, 7], [k, 1]), element(values, row, inLanes))]),
            store(out, from(6, [i, 14], [row, 7]), element(values, row, shared)),
          ]),
        ]),
      ]
      const args = {
        out: arrayOf(dtype, 70),
        a: numbers(dtype, 2 * width),
        places: Int32Array.from({ length: 30 }, (_, j) => (j * 7 + (j >> 2)) % width),
      }
      same({ name: 'places', params: [out, a, places], body }, args, dtype)
    }
  },
)

test('loads in iterations that are written out see the stores of the iterations before', () => {
  const io = bufferParam('out', 'float32', 'readwrite')
  const [u, j] = [loopVar('u', 4), loopVar('j', 6)]
  const first = load(io, at())
  const sum = call('add', first, cast(iota(u), 'float32'))
  const body = [forLoop(u, 'unroll', [store(io, at([u, 1]), sum), store(io, at(), call('add', first, constant('float32', 1)))])]
  same({ name: 'k', params: [io], body }, { out: Float32Array.of(5, 6, 7, 8) })
  // In lanes they are independent, and keep what they have loaded in their own iteration.
  const mine = load(io, at([j, 1]))
  const lanes = [
    forLoop(j, 'lanes', [store(io, at([j, 1]), call('add', mine, constant('float32', 1))), store(io, at([j, 1]), call('mul', mine, mine))]),
  ]
  same({ name: 'k', params: [io], body: lanes }, { out: Float32Array.of(5, 6, 7, 8, 9, 10) })
})

test('parts of scratch memory do not overlap, wherever the block begins', () => {
  const out = bufferParam('out', 'float64', 'write')
  const n = sizeParam('n')
  const [a, b, c] = [scratch('a', 'int8', n), scratch('b', 'float64', sizeProduct(n, 2)), scratch('c', 'float32', n, 'thread')]
  const i = loopVar('i', n)
  const x = cast(iota(i), 'float32')
  const kernel: Kernel = {
    name: 'parts',
    params: [out, n],
    scratch: [a, b, c],
    body: [
      forLoop(i, 'serial', [
        store(a, at([i, 1]), cast(x, 'int8')),
        store(b, at([i, 2]), cast(x, 'float64')),
        store(b, from(1, [i, 2]), constant('float64', 0.5)),
        store(c, at([i, 1]), x),
      ]),
      forLoop(i, 'serial', [
        store(
          out,
          at([i, 1]),
          call(
            'add',
            cast(load(a, at([i, 1])), 'float64'),
            call('add', call('mul', load(b, at([i, 2])), load(b, from(1, [i, 2]))), cast(load(c, at([i, 1])), 'float64')),
          ),
        ),
      ]),
    ],
  }
  for (const count of [0, 1, 17, 100]) {
    expect(scratchBytes(kernel, () => count)).toBeGreaterThanOrEqual(count * 21)
    same(kernel, { out: new Float64Array(count), n: count }, 'float64')
  }
})

describe('random kernels', () => {
  test('the emitter and the interpreter agree', () => {
    const count = Number(process.env['TENSORFX_FUZZ'] ?? 80)
    const first = Number(process.env['TENSORFX_FUZZ_SEED'] ?? 1)
    for (const seed of seeds('TENSORFX_FUZZ', count, first)) {
      for (const n of [1, 4]) {
        const args = { out: numbers('float32', 400 * n, seed), a: numbers('float32', 400, seed + 5), n }
        const { wasm, oracle } = runBoth(new RandomKernel(seed).kernel(), args)
        expect(wasm['out'], `TENSORFX_FUZZ_SEED=${seed}, n = ${n}`).toEqual(oracle['out'])
      }
    }
  })
})
