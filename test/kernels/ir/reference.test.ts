// The reference interpreter: what it checks, and the parts of the loop IR that have a meaning of their own.
import { describe, expect, test } from 'vitest'
import { KernelError } from '../../../src/kernels/ir/errors.ts'
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
import type { Expr, Kernel, Param, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { TypedArray } from '../../../src/kernels/numbers/dtype.ts'
import { runReference } from '../../../src/kernels/ir/reference.ts'
import type { ReferenceArgs } from '../../../src/kernels/ir/reference.ts'

const [out, a, n] = [bufferParam('out', 'float32', 'readwrite'), bufferParam('a', 'float32'), sizeParam('n')]
const [i, j] = [loopVar('i', n), loopVar('j', 3)]
const acc = local('acc', 'float32')
const f32 = (value: number): Expr => constant('float32', value)

/** Runs the statements; returns `out`. */
function run(body: readonly Stmt[], args: ReferenceArgs = {}, params: readonly Param[] = [out, a, n]): number[] {
  const kernel: Kernel = { name: 'k', params, body }
  const all: Record<string, TypedArray | number> = { out: new Float32Array(6), a: Float32Array.of(1, 2, 3, 4, 5, 6), n: 4, ...args }
  runReference(kernel, all)
  return Array.from(all['out'] as TypedArray)
}

describe('loops', () => {
  test('run from 0 to their extent, and not at all for 0', () => {
    expect(run([forLoop(i, 'serial', [store(out, at([i, 1]), cast(iota(i), 'float32'))])])).toEqual([0, 1, 2, 3, 0, 0])
    expect(run([forLoop(i, 'simd', [store(out, at([i, 1]), f32(9))])], { n: 0 })).toEqual([0, 0, 0, 0, 0, 0])
    expect(
      run([forLoop(i, 'serial', [forLoop(j, 'serial', [store(out, at([i, 3], [j, 1]), cast(call('add', iota(i), iota(j)), 'float32'))])])], { n: 2 }),
    ).toEqual([0, 1, 2, 1, 2, 3])
  })

  test('accumulate from the identity of each combination', () => {
    const reduced = (combine: 'add' | 'mul' | 'min' | 'max'): number | undefined =>
      run([
        declare(acc, identityOf(combine, 'float32')),
        forLoop(i, 'simd', [accumulate(acc, combine, load(a, at([i, 1])))]),
        store(out, at(), read(acc)),
      ])[0]
    expect([reduced('add'), reduced('mul'), reduced('min'), reduced('max')]).toEqual([10, 24, 1, 4])
    for (const dtype of ['float32', 'float64', 'int32', 'bool'] as const) {
      const { lowest, highest } = dtypeInfo[dtype]
      expect((['add', 'mul', 'min', 'max'] as const).map((combine) => identityOf(combine, dtype))).toEqual(
        [0, 1, highest, lowest].map((value) => constant(dtype, value)),
      )
    }
  })
})

describe('indices', () => {
  test('add base, loops and dynamic parts, with sizes as strides', () => {
    const index = { base: n, terms: [{ loop: j, stride: n }], dynamic: [{ value: iota(j), stride: -3 }] }
    // 4 + 4j - 3j
    expect(run([forLoop(j, 'serial', [store(out, at([j, 1]), load(a, index, call('lt', iota(j), constant('int32', 2))))])])).toEqual([
      5, 6, 0, 0, 0, 0,
    ])
    expect(at([i, 2], [j, 0])).toEqual({ base: 0, terms: [{ loop: i, stride: 2 }], dynamic: [] })
  })

  test('must stay inside the buffer', () => {
    const reading =
      (base: number): (() => unknown) =>
      () =>
        run([store(out, at(), load(a, { base, terms: [], dynamic: [] }))])
    expect(reading(5)).not.toThrow()
    for (const base of [6, -1]) {
      expect(reading(base)).toThrow(KernelError)
      expect(reading(base)).toThrow(`kernel k: element ${base} of a lies outside its 6 elements`)
    }
    expect(() => run([store(out, { base: 6, terms: [], dynamic: [] }, f32(1))])).toThrow('element 6 of out lies outside its 6 elements')
  })

  test('are not computed where the mask is false', () => {
    const masked = load(a, { base: 100, terms: [], dynamic: [] }, constant('bool', 0))
    expect(run([store(out, at(), call('add', masked, f32(1)))])[0]).toBe(1)
  })
})

describe('shared expressions', () => {
  test('are evaluated once an iteration, and again after a local that they read has changed', () => {
    const element = load(out, at())
    const twice = call('mul', read(acc), f32(2))
    const body = [
      store(out, at(), f32(5)),
      declare(acc, f32(1)),
      // The load keeps what it first saw.
      store(out, { base: 1, terms: [], dynamic: [] }, call('add', element, twice)),
      store(out, at(), f32(7)),
      assign(acc, f32(10)),
      store(out, { base: 2, terms: [], dynamic: [] }, call('add', element, twice)),
    ]
    expect(run(body).slice(0, 3)).toEqual([7, 7, 25])
  })

  test('are evaluated again in a loop that changes what they read', () => {
    const next = call('add', read(acc), f32(1))
    const body = [
      declare(acc, f32(0)),
      store(out, at(), next),
      forLoop(j, 'serial', [assign(acc, next)]),
      store(out, { base: 1, terms: [], dynamic: [] }, next),
    ]
    expect(run(body).slice(0, 2)).toEqual([1, 4])
  })
})

describe('values', () => {
  test('of constants, scalars and sizes are converted to their dtypes', () => {
    const s = scalarParam('s', 'int32')
    expect(run([store(out, at(), cast(scalar(s), 'float32'))], { s: 2.9 }, [out, s])[0]).toBe(2)
    expect(run([store(out, at(), cast(sizeOf(n), 'float32'))])[0]).toBe(4)
    expect(sizeOf(3)).toEqual(constant('int32', 3))
    expect(run([store(out, at(), f32(0.1))])[0]).toBe(Math.fround(0.1))
    expect(run([store(out, at(), cast(call('and', constant('bool', 5), constant('bool', 1)), 'float32'))])[0]).toBe(1)
    const d = bufferParam('d', 'float64', 'write')
    const data = new Float64Array(1)
    run([store(d, at(), cast({ kind: 'const', dtype: 'float32', value: 0.1 }, 'float64'))], { d: data }, [out, d])
    expect(data[0]).toBe(Math.fround(0.1))
  })

  test('are combined with what a store finds', () => {
    const combining = (combine: 'add' | 'mul' | 'min' | 'max', value: number): number | undefined =>
      run([store(out, at(), f32(3)), store(out, at(), f32(value), combine)])[0]
    expect([combining('add', 4), combining('mul', 4), combining('min', 2), combining('max', 2)]).toEqual([7, 12, 2, 3])
  })

  test('of casts are folded for constants, and left out where nothing changes', () => {
    expect(cast(f32(2.7), 'int32')).toEqual(constant('int32', 2))
    expect(cast(f32(0), 'bool')).toEqual(constant('bool', 0))
    expect(cast(constant('float64', 0.1), 'float32')).toEqual(constant('float32', Math.fround(0.1)))
    const x = load(a, at())
    expect(cast(x, 'float32')).toBe(x)
    expect(cast(x, 'int32')).toEqual({ kind: 'cast', dtype: 'int32', value: x })
  })
})

describe('arguments', () => {
  test('that are missing or of the wrong kind are named', () => {
    const body = [forLoop(i, 'serial', [store(out, at([i, 1]), load(a, at([i, 1])))])]
    const with_ =
      (args: ReferenceArgs): (() => void) =>
      () =>
        runReference({ name: 'k', params: [], body }, args)
    const array = new Float32Array(2)
    expect(with_({ out: array, a: array })).toThrow('kernel k: the argument n must be a number, got nothing')
    expect(with_({ out: array, a: array, n: array })).toThrow('kernel k: the argument n must be a number, got an array')
    expect(with_({ out: array, n: 1 })).toThrow('kernel k: the argument a must be a typed array, got nothing')
    expect(with_({ out: array, a: 3, n: 1 })).toThrow('kernel k: the argument a must be a typed array, got 3')
  })

  test('and names used before they are there are errors', () => {
    expect(() => run([store(out, at(), read(acc))])).toThrow('kernel k: the local acc is used before it is declared')
    expect(() => run([accumulate(acc, 'add', f32(1))])).toThrow('the local acc is used before it is declared')
    expect(() => run([store(out, at([i, 1]), f32(1))])).toThrow('kernel k: the loop variable i is used outside its loop')
    expect(() => run([store(out, at(), cast(iota(i), 'float32'))])).toThrow('the loop variable i is used outside its loop')
  })
})
