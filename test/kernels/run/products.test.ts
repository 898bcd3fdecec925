// Products of matrices on the heap, against plain loops in JavaScript: sizes around their tiles, layouts, epilogues, and memory: nothing outside the result and the scratch memory may change.
import { afterEach, describe, expect, test } from 'vitest'
import {
  allocate,
  at,
  bufferParam,
  call,
  cast,
  compilePacked,
  compileProduct,
  constant,
  free,
  heapBytes,
  heapView,
  kernelCacheStats,
  load,
  loopVar,
  packedBytes,
  packedScratchBytes,
  sizeParam,
  store,
} from '../../../src/kernels/index.ts'
import type { CompiledKernel, Expr, GemmSpec, Param, Stmt } from '../../../src/kernels/index.ts'

const GUARD = 256
let taken: { address: number; bytes: number }[] = []

/** Memory between guards, filled with a pattern. */
function memory(bytes: number): number {
  const whole = bytes + 2 * GUARD
  const address = allocate(whole)
  heapBytes().fill(0xa5, address, address + whole)
  taken.push({ address, bytes })
  return address + GUARD
}

function floats(values: readonly number[]): number {
  const address = memory(values.length * 4)
  heapView('float32').set(values, address / 4)
  return address
}

/** Small whole numbers: sums are exact in any order. */
const numbers = (count: number, salt: number): number[] => Array.from({ length: count }, (_, k) => ((Math.imul(k + salt, 2654435761) >>> 9) % 9) - 4)
const range = (count: number): number[] => Array.from({ length: count }, (_, k) => k)

afterEach(() => {
  for (const { address, bytes } of taken) {
    const untouched = (from: number): boolean =>
      heapBytes()
        .subarray(from, from + GUARD)
        .every((byte) => byte === 0xa5)
    expect([untouched(address), untouched(address + GUARD + bytes)]).toEqual([true, true])
    free(address, bytes + 2 * GUARD)
  }
  taken = []
})

const [out, a, b, bias] = [
  bufferParam('out', 'float32', 'readwrite'),
  bufferParam('a', 'float32'),
  bufferParam('b', 'float32'),
  bufferParam('bias', 'float32'),
]
const scratch = bufferParam('scratch', 'float32', 'readwrite')

const run = ({ run: kernel }: CompiledKernel, args: readonly number[], scratchBytes: number): void => kernel(...args, memory(scratchBytes))
const result = (address: number, count: number): number[] => Array.from(heapView('float32').slice(address / 4, address / 4 + count))

describe('the matrix product', () => {
  interface Sizes {
    readonly batch: number
    readonly m: number
    readonly n: number
    readonly k: number
  }

  // Sizes and strides are parameters of each call.
  const s = {
    batch: sizeParam('batch'),
    m: sizeParam('m'),
    n: sizeParam('n'),
    k: sizeParam('k'),
    a0: sizeParam('a0'),
    aRow: sizeParam('aRow'),
    aCol: sizeParam('aCol'),
    b0: sizeParam('b0'),
    bRow: sizeParam('bRow'),
    bCol: sizeParam('bCol'),
  }
  const [batchLoop, rows, cols] = [loopVar('batch', s.batch), loopVar('row', s.m), loopVar('col', s.n)]
  const c0 = sizeParam('c0')
  const dynamicSpec = (reduceBatch: number): GemmSpec => ({
    name: 'product',
    batch: [batchLoop],
    rows,
    cols,
    depth: s.k,
    a: { buffer: a, rowStride: s.aRow, colStride: s.aCol, batchStrides: [s.a0] },
    b: { buffer: b, rowStride: s.bRow, colStride: s.bCol, batchStrides: [s.b0] },
    reduceBatch,
    epilogue: (acc) => [store(out, reduceBatch === 0 ? at([batchLoop, c0], [rows, s.n], [cols, 1]) : at([rows, s.n], [cols, 1]), acc)],
    params: [out, a, b, c0, ...Object.values(s), scratch],
  })

  /** The product in JavaScript. */
  function product({ batch, m, n, k }: Sizes, x: readonly number[], y: readonly number[], layout: readonly number[], sum: boolean): number[] {
    const [a0 = 0, aRow = 0, aCol = 0, b0 = 0, bRow = 0, bCol = 0] = layout
    const one = (p: number, i: number, j: number): number =>
      range(k).reduce((total, q) => total + (x[p * a0 + i * aRow + q * aCol] ?? NaN) * (y[p * b0 + q * bRow + j * bCol] ?? NaN), 0)
    const all = (p: number): number[] => range(m).flatMap((i) => range(n).map((j) => one(p, i, j)))
    const products = range(batch).map(all)
    return sum ? range(m * n).map((e) => products.reduce((total, own) => total + (own[e] ?? NaN), 0)) : products.flat()
  }

  const SHAPES: readonly (readonly [number, number, number])[] = [
    [1, 1, 1],
    [4, 8, 4],
    [3, 7, 5],
    [5, 9, 1],
    [8, 33, 6],
    [13, 4, 9],
    [9, 131, 3],
    [2, 16, 0],
    [0, 5, 2],
    [5, 0, 2],
  ]

  for (const sum of [false, true]) {
    test(`is right for sizes around its tile${sum ? ', summed over the batch' : ' and for each of a batch'}, with any operand transposed`, () => {
      const { compiled, scratchBytes } = compileProduct(dynamicSpec(sum ? 1 : 0))
      for (const [m, n, k] of SHAPES) {
        for (const batch of [1, 3]) {
          for (const turned of [0, 1, 2, 3]) {
            const [x, y] = [numbers(batch * m * k, 1), numbers(batch * k * n, 2)]
            const layout = [m * k, ...((turned & 1) === 0 ? [k, 1] : [1, m]), k * n, ...((turned & 2) === 0 ? [n, 1] : [1, k])]
            const count = (sum ? 1 : batch) * m * n
            const target = floats(range(count).map(() => 77))
            run(compiled, [target, floats(x), floats(y), m * n, batch, m, n, k, ...layout], scratchBytes(m, n, k))
            const expected = product({ batch, m, n, k }, x, y, layout, sum)
            expect(result(target, count), `${m} ${n} ${k} ${batch} ${turned}`).toEqual(expected)
          }
        }
      }
    })
  }

  test('is the same where B was packed before, with as much memory as its sizes say', () => {
    const { pack, product: packed } = compilePacked(dynamicSpec(0))
    for (const [m, n, k] of SHAPES) {
      for (const turned of [0, 1, 2, 3]) {
        const [x, y] = [numbers(2 * m * k, 1), numbers(k * n, 2)]
        const layout = [m * k, ...((turned & 1) === 0 ? [k, 1] : [1, m]), 0, ...((turned & 2) === 0 ? [n, 1] : [1, k])]
        const target = floats(range(2 * m * n).map(() => 77))
        const sizes = [m * n, 2, m, n, k, ...layout]
        const panels = memory(packedBytes(n, k))
        pack.run(floats(y), panels, ...sizes)
        run(packed, [target, floats(x), panels, ...sizes], packedScratchBytes(m, k))
        expect(result(target, 2 * m * n), `${m} ${n} ${k} ${turned}`).toEqual(product({ batch: 2, m, n, k }, x, y, layout, false))
      }
    }
  })

  test('broadcasts an operand over the batch, and packs it once', () => {
    const epilogue = (acc: Expr): Stmt[] => [store(out, at([images, 6], [fixedRows, 3], [fixedCols, 1]), acc)]
    const [images, fixedRows, fixedCols] = [loopVar('image', 2), loopVar('r', 2), loopVar('c', 3)]
    const operand = (batchStrides: readonly number[]) => ({ rowStride: 4, colStride: 1, batchStrides })
    for (const [left, right] of [
      [0, 12],
      [8, 0],
      [0, 0],
    ] as const) {
      const spec: GemmSpec = {
        name: 'broadcast',
        batch: [images],
        rows: fixedRows,
        cols: fixedCols,
        depth: 4,
        a: { ...operand([left]), buffer: a },
        b: { rowStride: 3, colStride: 1, batchStrides: [right], buffer: b },
        reduceBatch: 0,
        epilogue,
        params: [out, a, b, scratch],
      }
      const [x, y] = [numbers(16, 3), numbers(24, 4)]
      const target = floats(numbers(12, 0))
      const { compiled, scratchBytes } = compileProduct(spec)
      run(compiled, [target, floats(x), floats(y)], scratchBytes(2, 3, 4))
      expect(result(target, 12)).toEqual(product({ batch: 2, m: 2, n: 3, k: 4 }, x, y, [left, 4, 1, right, 3, 1], false))
    }
  })

  const fixed = (epilogue: (acc: Expr) => readonly Stmt[], params: readonly Param[]): GemmSpec => ({
    name: 'fixed',
    batch: [],
    rows: loopVar('r', 5),
    cols: loopVar('c', 11),
    depth: 3,
    a: { buffer: a, rowStride: 3, colStride: 1, batchStrides: [] },
    b: { buffer: b, rowStride: 11, colStride: 1, batchStrides: [] },
    reduceBatch: 0,
    epilogue,
    params: [...params, scratch],
  })

  test('passes each element through the epilogue, in vectors or, with float64, one at a time', () => {
    const [x, y, biases] = [numbers(15, 5), numbers(33, 6), numbers(11, 7)]
    const plain = product({ batch: 1, m: 5, n: 11, k: 3 }, x, y, [0, 3, 1, 0, 11, 1], false)
    for (const wide of [true, false]) {
      const [r, c] = [loopVar('r', 5), loopVar('c', 11)]
      const added = (acc: Expr): Expr => call('add', acc, load(bias, at([c, 1])))
      const value = (acc: Expr): Expr => (wide ? added(acc) : cast(call('mul', cast(added(acc), 'float64'), constant('float64', 1)), 'float32'))
      const spec = {
        ...fixed((acc) => [store(out, at([r, 11], [c, 1]), call('max', value(acc), constant('float32', 0)))], [out, a, b, bias]),
        rows: r,
        cols: c,
      }
      const target = floats(range(55).map(() => 77))
      const { compiled, scratchBytes } = compileProduct(spec)
      run(compiled, [target, floats(x), floats(y), floats(biases)], scratchBytes(5, 11, 3))
      expect(result(target, 55)).toEqual(plain.map((value_, e) => Math.max(0, value_ + (biases[e % 11] ?? NaN))))
    }
  })

  test('is compiled once for a problem, and again for another epilogue or layout', () => {
    const [r, c] = [loopVar('r', 5), loopVar('c', 11)]
    const spec = (factor: number, colStride = 1): GemmSpec => ({
      ...fixed((acc) => [store(out, at([r, 11], [c, 1]), call('mul', acc, constant('float32', factor)))], [out, a, b]),
      rows: r,
      cols: c,
      a: { buffer: a, rowStride: 3, colStride, batchStrides: [] },
    })
    const first = compileProduct(spec(3)).compiled
    const { compiled } = kernelCacheStats()
    expect(compileProduct(spec(3)).compiled).toBe(first)
    expect(kernelCacheStats().compiled).toBe(compiled)
    expect(compileProduct(spec(4)).compiled).not.toBe(first)
    expect(compileProduct(spec(3, 2)).compiled).not.toBe(first)
    expect(kernelCacheStats().compiled).toBe(compiled + 2)
  })
})
