// Accuracy of the operations: every ScalarOp against JavaScript's Math, on random and special values.
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { at, bufferParam, call, constant, forLoop, load, loopVar, sizeParam, store } from '../../../src/kernels/ir/loopIr.ts'
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { scalarOperation } from '../../../src/kernels/scalars/scalarOps.ts'
import { arrayOf, maxUlps, numbersOf, runWasm } from '../harness.ts'

const UNARY: readonly ScalarOp[] = ['neg', 'abs', 'sign', 'floor', 'ceil', 'round', 'trunc', 'sqrt', 'rsqrt', 'reciprocal']
const BINARY: readonly ScalarOp[] = ['add', 'sub', 'mul', 'div', 'min', 'max', 'floorDiv', 'remainder', 'pow']
const COMPARE: readonly ScalarOp[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge']

function kernelOf(op: ScalarOp, dtype: DType, arity: number, result: DType, mode: 'simd' | 'serial' = 'simd'): Kernel {
  const n = sizeParam('n')
  const i = loopVar('i', n)
  const out = bufferParam('out', result, 'write')
  const inputs = ['a', 'b'].slice(0, arity).map((name) => bufferParam(name, dtype))
  return {
    name: op,
    params: [out, ...inputs, n],
    body: [forLoop(i, mode, [store(out, at([i, 1]), call(op, ...inputs.map((b) => load(b, at([i, 1])))))])],
  }
}

const { next: random } = randomFrom(1)
const SPECIAL = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  2,
  3,
  -3,
  Infinity,
  -Infinity,
  NaN,
  1e-45,
  -1e-45,
  1.1754944e-38,
  1e-30,
  3.4028235e38,
  -3.4028235e38,
  88.7,
  88.8,
  -87.5,
  -103,
  -104.5,
  1e-8,
  16777216,
  4194304.5,
]
/** Random values of every scale that fits. */
const samples = (dtype: DType, scale: number): number[] => {
  const count = 3001
  if (dtype === 'bool') return Array.from({ length: count }, () => Number(random() < 0.5))
  if (dtype === 'int32')
    return [0, 1, -1, 2, 7, -7, 2147483647, -2147483648, ...Array.from({ length: count }, () => ((random() - 0.5) * 2 ** (1 + random() * 31)) | 0)]
  const round = (x: number): number => (dtype === 'float32' ? Math.fround(x) : x)
  return [...SPECIAL, ...Array.from({ length: count }, () => (random() - 0.5) * 2 * scale * (random() < 0.3 ? 10 ** (-6 * random()) : 1))].map(round)
}

function run(
  op: ScalarOp,
  dtype: Exclude<DType, 'int64'>,
  result: DType,
  inputs: readonly number[][],
  mode: 'simd' | 'serial',
): { actual: ArrayLike<number>; expected: number[] } {
  const kernel = kernelOf(op, dtype, inputs.length, result, mode)
  const n = (inputs[0] as number[]).length
  const out = runWasm(kernel, {
    out: arrayOf(result, n),
    a: arrayOf(dtype, inputs[0] as number[]),
    ...(inputs[1] === undefined ? {} : { b: arrayOf(dtype, inputs[1]) }),
    n,
  })
  return {
    actual: numbersOf(result, out['out']),
    expected: (inputs[0] as number[]).map((a, i) => scalarOperation(op, dtype, [a, ...inputs.slice(1).map((b) => b[i] as number)])),
  }
}

/** Every special value with every other, and random pairs. */
function pairs(dtype: DType, scale: number): [number[], number[]] {
  const special =
    dtype === 'bool'
      ? [0, 1]
      : dtype === 'int32'
        ? [0, 1, -1, 2, 7, -7, 2147483647, -2147483648]
        : SPECIAL.map((x) => (dtype === 'float32' ? Math.fround(x) : x))
  const cross = special.flatMap((a) => special.map((b) => [a, b] as const))
  const [a, b] = [samples(dtype, scale), samples(dtype, scale)]
  return [
    [...cross.map(([x]) => x), ...a],
    [...cross.map(([, y]) => y), ...b],
  ]
}

for (const mode of ['simd', 'serial'] as const) {
  describe(`in ${mode} loops`, () => {
    for (const dtype of ['float32', 'float64', 'int32'] as const) {
      test(`exactly rounded unary operations of ${dtype} equal JavaScript's`, () => {
        for (const op of UNARY) {
          if (dtype === 'int32' && ['sqrt', 'rsqrt', 'reciprocal'].includes(op)) continue
          const { actual, expected } = run(op, dtype, dtype, [samples(dtype, 100)], mode)
          const withoutSign = (values: ArrayLike<number>): number[] => Array.from(values, (x) => (x === 0 ? 0 : x))
          expect(withoutSign(actual), op).toEqual(withoutSign(expected))
        }
      })
      test(`binary operations of ${dtype} equal JavaScript's`, () => {
        for (const op of BINARY) {
          const [a, b] = pairs(dtype, 50)
          const { actual, expected } = run(op, dtype, dtype, [a, b], mode)
          const limit = op === 'pow' && dtype === 'float32' ? 1 : 0
          const isWrong = (i: number): boolean => {
            // Quotients past 2^29 are not exact in float32's floorDiv and remainder.
            if (dtype === 'float32' && (op === 'floorDiv' || op === 'remainder') && Math.abs((a[i] as number) / (b[i] as number)) > 2 ** 23)
              return false
            const [x, e] = [actual[i] as number, expected[i] as number]
            return x !== e && !(Number.isNaN(x) && Number.isNaN(e)) && !(limit > 0 && maxUlps([x], [e]) <= limit)
          }
          // One comparison of all: an expectation for each of the numbers takes most of the time.
          const wrong = expected.flatMap((e, i) => (isWrong(i) ? [`${op}(${a[i]}, ${b[i]}) = ${actual[i]}, expected ${e}`] : []))
          expect(wrong).toEqual([])
        }
      })
    }
    test("comparisons, selection and logic of every dtype equal JavaScript's", () => {
      for (const dtype of ['float32', 'float64', 'int32', 'bool'] as const) {
        for (const op of COMPARE) {
          const { actual, expected } = run(op, dtype, 'bool', pairs(dtype, 2), mode)
          expect(Array.from(actual), `${op} ${dtype}`).toEqual(expected)
        }
      }
      for (const op of ['and', 'or', 'bitAnd', 'bitOr', 'bitXor', 'add', 'mul', 'min', 'max'] as const) {
        const { actual, expected } = run(op, 'bool', 'bool', pairs('bool', 1), mode)
        expect(Array.from(actual), op).toEqual(expected)
      }
      expect(Array.from(run('not', 'bool', 'bool', [[0, 1, 1, 0, 1]], mode).actual)).toEqual([1, 0, 0, 1, 0])
      for (const dtype of ['float32', 'float64'] as const) {
        const { actual, expected } = run('isnan', dtype, 'bool', [samples(dtype, 1)], mode)
        expect(Array.from(actual)).toEqual(expected)
      }
    })
    test("bit operations of int32 equal JavaScript's", () => {
      for (const op of ['bitAnd', 'bitOr', 'bitXor', 'shl', 'shrU', 'mulHiU'] as const) {
        const { actual, expected } = run(op, 'int32', 'int32', pairs('int32', 1), mode)
        expect(Array.from(actual), op).toEqual(expected)
      }
    })
  })
}

const FUNCTIONS: readonly (readonly [ScalarOp, number, number])[] = [
  ['exp', 100, 2],
  ['exp', 1, 2],
  ['expm1', 90, 3],
  ['expm1', 0.5, 3],
  ['log', 1000, 2],
  ['log', 1e38, 2],
  ['log', 2, 2],
  ['log1p', 100, 3],
  ['log1p', 0.01, 3],
  ['tanh', 12, 3],
  ['tanh', 0.5, 3],
  ['sigmoid', 80, 3],
  ['erf', 4, 8],
  ['erf', 0.1, 8],
  ['sinh', 88, 3],
  ['sinh', 0.5, 3],
  ['cosh', 88, 3],
  ['sin', 10, 4],
  ['cos', 10, 4],
  ['sin', 1000, 4],
  ['cos', 1000, 4],
  ['sin', 1e4, 4],
  ['cos', 1e4, 4],
  ['sin', 1e6, 4],
  ['cos', 1e7, 4],
]

for (const [op, scale, limit] of FUNCTIONS) {
  test(`${op} of float32 up to ${scale} is within ${limit} units in the last place, and right at special values`, () => {
    const { actual, expected } = run(op, 'float32', 'float32', [samples('float32', scale)], 'simd')
    const worst = maxUlps(actual, expected)
    if (process.env['SHOW_ULPS'] !== undefined) console.log(op, scale, worst)
    const beyond = (allowed: (wanted: number) => number): string[] =>
      expected.flatMap((e, i) => {
        const a = actual[i] as number
        return (Number.isNaN(a) && Number.isNaN(e)) || Math.abs(a - e) <= allowed(Math.abs(e)) ? [] : [`${op}: ${a} instead of ${e}`]
      })
    if (op === 'sin' || op === 'cos') expect(beyond((wanted) => 1.5e-7 * Math.max(wanted, 1e-3))).toEqual([])
    else if (op === 'sigmoid' || op === 'erf') expect(beyond((wanted) => 1e-6 * wanted + 1e-37)).toEqual([])
    else expect(worst).toBeLessThanOrEqual(limit)
  })
  test(`${op} of float64 up to ${scale} is JavaScript's`, () => {
    const { actual, expected } = run(op, 'float64', 'float64', [samples('float64', scale)], 'simd')
    expect(Array.from(actual)).toEqual(expected)
  })
}

test('hypot of float32 is rounded once, atan2 is within 4 units in the last place, and both are right at special values', () => {
  const special = [0, -0, 1, -1, 1e-45, -1e-45, 3e38, 1e-20, 1e20, Infinity, -Infinity, NaN].map(Math.fround)
  const drawn = samples('float32', 100)
  const [xs, ys] = [
    [...special.flatMap((x) => special.map(() => x)), ...drawn],
    [...special.flatMap(() => special), ...drawn.toReversed()],
  ]
  for (const [op, limit] of [
    ['hypot', 0],
    ['atan2', 4],
  ] as const)
    for (const mode of ['simd', 'serial'] as const) {
      const { actual, expected } = run(op, 'float32', 'float32', [xs, ys], mode)
      expect(maxUlps(actual, expected), op).toBeLessThanOrEqual(limit)
    }
})

test('sinh and cosh of float32 are finite up to where they overflow, and infinite beyond', () => {
  for (const op of ['sinh', 'cosh'] as const) {
    const values = [88.8, 89.1, 89.3, 89.41, 89.5, 89.9, 200, Infinity, NaN, -89.41, -90].map(Math.fround)
    const { actual, expected } = run(op, 'float32', 'float32', [values], 'simd')
    expect(Array.from(actual, Number.isFinite), op).toEqual(expected.map(Number.isFinite))
    expect(Array.from(actual, Number.isNaN), op).toEqual(expected.map(Number.isNaN))
    expect(maxUlps(actual, expected), op).toBeLessThanOrEqual(3)
  }
})

test('functions keep the sign of zero', () => {
  for (const op of ['expm1', 'log1p', 'tanh', 'erf', 'sin', 'sinh'] as const) {
    const { actual } = run(op, 'float32', 'float32', [[-0, 0]], 'serial')
    expect([Object.is(actual[0], -0), Object.is(actual[1], 0)], op).toEqual([true, true])
  }
})

test('powers with a constant exponent are products, roots and quotients, bit for bit', () => {
  const exact: readonly (readonly [number, (x: number) => number])[] = [
    [0, () => 1],
    [1, (x) => x],
    [2, (x) => Math.fround(x * x)],
    [3, (x) => Math.fround(Math.fround(x * x) * x)],
    [0.5, (x) => Math.fround(Math.sqrt(x))],
    [-0.5, (x) => Math.fround(1 / Math.fround(Math.sqrt(x)))],
    [-1, (x) => Math.fround(1 / x)],
    [-2, (x) => Math.fround(1 / Math.fround(x * x))],
  ]
  const [i, out, a] = [loopVar('i', 203), bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32')]
  const values = Float32Array.from({ length: 203 }, () => 9 * random())
  for (const [exponent, power] of exact)
    for (const mode of ['simd', 'serial'] as const) {
      const body = [forLoop(i, mode, [store(out, at([i, 1]), call('pow', load(a, at([i, 1])), constant('float32', exponent)))])]
      const result = runWasm({ name: 'pow', params: [out, a], body }, { out: new Float32Array(203), a: values })['out']
      expect(numbersOf('float32', result), `to the ${exponent}, ${mode}`).toEqual(Array.from(values, power))
    }
})
