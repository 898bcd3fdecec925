// Compiling: the cache, the heap's memory, epilogues inside other people's loops, and the promise about bits.
import { describe, expect, test } from 'vitest'
import {
  accumulate,
  allocate,
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  forLoop,
  heapView,
  iota,
  kernelCacheStats,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
  withStrict,
} from '../../../src/kernels/index.ts'
import type { Expr, Kernel } from '../../../src/kernels/index.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { erf } from '../../../src/kernels/numbers/numbers.ts'
import { arrayOf, runWasm } from '../harness.ts'

const [out, a] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32')]
const n = sizeParam('n')
const pointwise = (value: (x: Expr) => Expr): Kernel => {
  const i = loopVar('i', n)
  return { name: 'pointwise', params: [out, a, n], body: [forLoop(i, 'simd', [store(out, at([i, 1]), value(load(a, at([i, 1]))))])] }
}

test('a kernel runs on the heap, and an equal one is not compiled again', () => {
  const [x, y] = [allocate(40), allocate(40)]
  for (let k = 0; k < 10; k++) heapView('float32')[x / 4 + k] = k
  const kernel = compileKernel(pointwise((v) => call('mul', v, constant('float32', 3))))
  kernel.run(y, x, 10)
  expect(Array.from(heapView('float32').subarray(y / 4, y / 4 + 10))).toEqual([0, 3, 6, 9, 12, 15, 18, 21, 24, 27])
  const { compiled } = kernelCacheStats()
  expect(compileKernel(pointwise((v) => call('mul', v, constant('float32', 3))))).toBe(kernel)
  expect(kernelCacheStats().compiled).toBe(compiled)
  expect(WebAssembly.validate(kernel.wasm as BufferSource)).toBe(true)
})

test('the bits of an element do not depend on its place: four vectors, one vector, a single element', () => {
  for (const op of ['exp', 'expm1', 'log', 'log1p', 'tanh', 'sigmoid', 'erf', 'sin', 'cos', 'rsqrt'] as const) {
    const kernel = pointwise((v) => call(op, v))
    for (const x of [0.3, 1.7, 9.1]) {
      const results = new Set(
        runWasm(kernel, { out: arrayOf('float32', 23), a: arrayOf('float32', Array<number>(23).fill(x)), n: 23 })['out'] as Float32Array,
      )
      expect(results.size, op).toBe(1)
    }
  }
})

describe('vectors in flight', () => {
  /** How often the module stores a whole vector: once for each vector in flight, and once in the loop of single vectors. */
  const stores = (body: (x: Expr, i: ReturnType<typeof loopVar>) => ReturnType<typeof store>, extent: number | typeof n = n): number => {
    const i = loopVar('i', extent)
    const kernel: Kernel = { name: 'k', params: [out, a, n], body: [forLoop(i, 'simd', [body(load(a, at([i, 1])), i)])] }
    // v128.store, with the alignment of an element.
    return emitKernel(kernel).reduce((count, byte, k, bytes) => count + Number(byte === 0xfd && bytes[k + 1] === 11 && bytes[k + 2] === 2), 0)
  }
  const exps = (count: number) => (x: Expr, i: ReturnType<typeof loopVar>) => {
    let value = x
    for (let k = 0; k < count; k++) value = call('exp', value)
    return store(out, at([i, 1]), value)
  }

  test('are four where loads are plain and the chain is short', () => {
    expect(stores(exps(0))).toBe(5)
    expect(stores(exps(4))).toBe(5)
    expect(stores(exps(5))).toBe(1)
    expect(stores((x, i) => store(out, at([i, 1]), call('add', x, load(a, at()))))).toBe(5)
    expect(stores((_, i) => store(out, at([i, 1]), load(a, at([i, 2]))))).toBe(5)
  })

  test('are one where loads are strided, gathered or masked', () => {
    expect(stores((_, i) => store(out, at([i, 1]), load(a, at([i, 3]))))).toBe(1)
    const index = (i: ReturnType<typeof loopVar>) => ({ base: 0, terms: [], dynamic: [{ value: iota(i), stride: 1 }] })
    expect(stores((_, i) => store(out, at([i, 1]), load(a, index(i))))).toBe(1)
    expect(stores((_, i) => store(out, at([i, 1]), load(a, at([i, 1]), call('lt', iota(i), constant('int32', 5)))))).toBe(1)
  })

  test('are no more than a loop of known length fills', () => {
    expect([stores(exps(0), 3), stores(exps(0), 4), stores(exps(0), 15), stores(exps(0), 16)]).toEqual([0, 1, 1, 5])
  })

  test('have a sum each, but one for all where values are costly, unless the code is strict', () => {
    const [i, total] = [loopVar('i', n), local('total', 'float32')]
    const x = load(a, at([i, 1]))
    // x times e^0: costly, and exact.
    const kernel = (value: Expr): Kernel => ({
      name: 'k',
      params: [out, a, n],
      body: [declare(total, constant('float32', 0)), forLoop(i, 'simd', [accumulate(total, 'add', value)]), store(out, at(), read(total))],
    })
    const costly = call('mul', x, call('exp', call('mul', x, constant('float32', 0))))
    const values = Float32Array.from({ length: 64 }, (_, k) => Math.sin(k) * 10 ** (k % 7))
    const add = (p: readonly number[], q: readonly number[]): number[] => p.map((v, lane) => Math.fround(v + (q[lane] ?? NaN)))
    const pairs = ([p = [], q = [], r = [], s = []]: readonly number[][]): number[] => add(add(p, q), add(r, s))
    const [each, one] = [[0, 1, 2, 3].map(() => [0, 0, 0, 0]), [0, 0, 0, 0]]
    for (let k = 0; k < 64; k += 16) {
      const vectors = [0, 4, 8, 12].map((v) => [...values.subarray(k + v, k + v + 4)])
      each.forEach((sum, v) => sum.splice(0, 4, ...add(sum, vectors[v] ?? [])))
      one.splice(0, 4, ...add(one, pairs(vectors)))
    }
    const lanes = ([p = 0, q = 0, r = 0, s = 0]: readonly number[]): number => Math.fround(Math.fround(p + r) + Math.fround(q + s))
    const sumOf = (value: Expr, isStrict: boolean): number =>
      withStrict(isStrict, () => Number(runWasm(kernel(value), { out: new Float32Array(1), a: values, n: 64 })['out']?.[0]))
    expect([sumOf(x, false), sumOf(costly, true), sumOf(costly, false)]).toEqual([lanes(pairs(each)), lanes(pairs(each)), lanes(one)])
    expect(lanes(one)).not.toBe(lanes(pairs(each)))
  })
})

test('erf of float64 is right to 1e-14', () => {
  // Values from tables to 16 digits.
  for (const [x, value] of [
    [0.5, 0.5204998778130465],
    [1, 0.8427007929497149],
    [2, 0.9953222650189527],
    [2.9, 0.9999589021219005],
    [3.5, 0.9999992569016276],
    [-1, -0.8427007929497149],
  ] as const) {
    expect(Math.abs(erf(x) - value)).toBeLessThan(1e-14)
  }
})
