// Every scalar operation on every dtype: emitted code against the reference interpreter, and both against formulas that share no code with them.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { DTYPES, dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue } from '../../../src/kernels/numbers/dtype.ts'
import {
  accumulate,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  forLoop,
  load,
  local,
  loopVar,
  read,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr } from '../../../src/kernels/ir/loopIr.ts'
import { bfloat16Bits, float16Bits } from '../../../src/kernels/numbers/halfPrecision.ts'
import { converted } from '../../../src/kernels/numbers/numbers.ts'
import { scalarOps } from '../../../src/kernels/scalars/rareOps.ts'
import { isDefinedFor, scalarOperation } from '../../../src/kernels/scalars/scalarOps.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { third } from '../../helpers/rotation.ts'
import { arrayOf, runBoth, runWasm, valuesOf } from '../harness.ts'

const OPS = Object.keys(scalarOps) as ScalarOp[]

const { next: random } = randomFrom(12345)
const randomBigint = (bits: number): bigint =>
  BigInt.asIntN(bits, (BigInt(Math.floor(random() * 2 ** 32)) << 32n) | BigInt(Math.floor(random() * 2 ** 32)))

const COUNT = 203
const EDGES: Readonly<Record<'integer' | 'floating', readonly number[]>> = {
  integer: [0, 1, -1, 2, 3, -3, 7, 127, -128, 128, 255],
  floating: [0, -0, 1, -1, 0.5, -2, 3, 65504, 2 ** -24, 1e-3, 88, Infinity, -Infinity, NaN],
}

/** Operands: every edge next to every other, then random values of all magnitudes. */
function operands(dtype: DType): readonly [readonly ElementValue[], readonly ElementValue[]] {
  const { kind, size, lowest, highest } = dtypeInfo[dtype]
  const edges: ElementValue[] = kind === 'bool' ? [0, 1] : kind === 'integer' ? [...EDGES.integer, lowest, highest] : [...EDGES.floating]
  const draw = (): ElementValue =>
    kind === 'bool'
      ? Number(random() < 0.5)
      : kind === 'integer'
        ? randomBigint(2 + Math.floor(random() * (8 * size - 1)))
        : (random() - 0.5) * 10 ** (4 * random())
  const left = [...edges.flatMap((a) => edges.map(() => a)), ...Array.from({ length: COUNT }, draw)]
  const right = [...edges.flatMap(() => edges), ...Array.from({ length: COUNT }, draw)]
  return [valuesOf(dtype, arrayOf(dtype, left)), valuesOf(dtype, arrayOf(dtype, right))]
}

/** Runs an operation on arrays of values; the conditions of `where` are drawn. */
function runOp(
  op: ScalarOp,
  dtype: DType,
  left: readonly ElementValue[],
  right: readonly ElementValue[],
): { readonly wasm: readonly ElementValue[]; readonly oracle: readonly ElementValue[] } {
  const { arity, conditions, yieldsBool } = scalarOps[op]
  const n = left.length
  const i = loopVar('i', n)
  const result = yieldsBool ? 'bool' : dtype
  const inputs = Array.from({ length: arity }, (_, k) => bufferParam(`a${k}`, k < conditions ? 'bool' : dtype))
  const out = bufferParam('out', result, 'write')
  const element = (k: number): Expr[] => inputs.slice(k, k + 1).map((input) => load(input, at([i, 1])))
  const body = [forLoop(i, 'simd', [store(out, at([i, 1]), call(op, ...element(0), ...element(1), ...element(2)))])]
  const data = conditions === 0 ? [left, right, right.toReversed()] : [left.map((_, k) => (k % 3) & 1), left, right]
  const buffers = Object.fromEntries(inputs.map((input, k) => [input.name, arrayOf(input.dtype, data[k] ?? [])]))
  const { wasm, oracle } = runBoth({ name: op, params: [out, ...inputs], body }, { ...buffers, out: arrayOf(result, n) })
  return { wasm: valuesOf(result, wasm['out']), oracle: valuesOf(result, oracle['out']) }
}

/** The place of a value in the order of its half precision, so that neighbours differ by 1. */
function order(dtype: DType, value: ElementValue): number {
  const bits = dtype === 'float16' ? float16Bits(Math.abs(Number(value))) : bfloat16Bits(Math.abs(Number(value)))
  return Number(value) < 0 ? -bits : bits
}

/** Whether values are the same or, with `steps`, at most that many values of their half precision apart. */
const isClose = (dtype: DType, a: ElementValue, b: ElementValue, steps: number): boolean =>
  Object.is(a, b) || (steps > 0 && Math.abs(order(dtype, a) - order(dtype, b)) <= steps)

/** Elementary functions of float32 are approximations: near the middle of two half-precision values the other one may come out. */
const stepsOf = (op: ScalarOp, dtype: DType): number => ((dtype === 'float16' || dtype === 'bfloat16') && scalarOps[op].cost > 1 ? 1 : 0)

describe('emitted code agrees with the reference interpreter', () => {
  // float32 and float64 have their own tests, with error bounds.
  const dtypes = DTYPES.filter((dtype) => dtype !== 'float32' && dtype !== 'float64')
  test.each(OPS)('%s', (op) => {
    for (const dtype of dtypes) {
      if (!isDefinedFor(op, dtype)) continue
      const [left, right] = operands(dtype)
      const { wasm, oracle } = runOp(op, dtype, left, right)
      wasm.forEach((value, k) => {
        const wanted = oracle[k] ?? NaN
        if (!isClose(dtype, value, wanted, stepsOf(op, dtype)))
          expect([left[k], right[k], value], `${op} of ${dtype}`).toEqual([left[k], right[k], wanted])
      })
    }
  })
})

/** Integer operations by their mathematical definition; null where the definition says nothing (division by zero, negative exponents, wide shifts). */
const floorMod = (a: bigint, b: bigint): bigint => ((a % b) + b) % b
const integerFormulas: Readonly<Partial<Record<ScalarOp, (a: bigint, b: bigint) => bigint | boolean | null>>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => (b === 0n ? null : a / b),
  floorDiv: (a, b) => (b === 0n ? null : (a - floorMod(a, b)) / b),
  remainder: (a, b) => (b === 0n ? null : floorMod(a, b)),
  min: (a, b) => [a, b].sort((x, y) => Number(x - y))[0] ?? null,
  max: (a, b) => [a, b].sort((x, y) => Number(y - x))[0] ?? null,
  pow: (a, b) => (b < 0n || b > 70n ? null : a ** b),
  neg: (a) => 0n - a,
  abs: (a) => (a.toString().startsWith('-') ? -a : a),
  sign: (a) => (a === 0n ? 0n : a / (a < 0n ? -a : a)),
  floor: (a) => a,
  ceil: (a) => a,
  round: (a) => a,
  trunc: (a) => a,
  eq: (a, b) => a - b === 0n,
  ne: (a, b) => a - b !== 0n,
  lt: (a, b) => a - b < 0n,
  le: (a, b) => a - b <= 0n,
  gt: (a, b) => a - b > 0n,
  ge: (a, b) => a - b >= 0n,
  isnan: () => false,
  bitAnd: (a, b) => a & b,
  bitOr: (a, b) => a | b,
  bitXor: (a, b) => a ^ b,
  shl: (a, b) => (b < 0n || b > 31n ? null : a * 2n ** b),
  shrS: (a, b) => (b < 0n || b > 31n ? null : (a - floorMod(a, 2n ** b)) / 2n ** b),
}

describe('the reference interpreter agrees with formulas', () => {
  const integers = DTYPES.filter((dtype) => dtypeInfo[dtype].kind === 'integer')

  test('of integers, modulo 2 to the number of bits', () => {
    for (const dtype of integers) {
      const { size, signed, lowest } = dtypeInfo[dtype]
      const wrap = (value: bigint): bigint => (signed ? BigInt.asIntN(8 * size, value) : BigInt.asUintN(8 * size, value))
      const [left, right] = operands(dtype)
      for (const op of OPS) {
        const formula = integerFormulas[op]
        if (formula === undefined) continue
        left.forEach((a, k) => {
          const b = right[k] ?? 0
          const wanted = formula(BigInt(a), BigInt(b))
          // The quotient 2^31 or 2^63 has no value in the dtype that it is computed in; it saturates, and what depends on it differs.
          if (wanted === null || (size >= 4 && a === lowest && Number(b) === -1 && ['div', 'floorDiv', 'remainder'].includes(op))) return
          const value = scalarOperation(op, dtype, [a, b])
          const expected = typeof wanted === 'boolean' ? Number(wanted) : dtype === 'int64' ? wrap(wanted) : Number(wrap(wanted))
          if (value !== expected) expect([dtype, op, a, b, value]).toEqual([dtype, op, a, b, expected])
        })
      }
    }
  })

  test('of division by zero and of the quotient that does not fit: both saturate before they wrap around', () => {
    const quotients = (dtype: DType): readonly ElementValue[] =>
      [
        [5, 0],
        [-5, 0],
        [0, 0],
        [dtypeInfo[dtype].lowest, -1],
      ].map(([a = 0, b = 0]) => scalarOperation('div', dtype, [a, b]))
    expect(quotients('int32')).toEqual([2147483647, -2147483648, 0, 2147483647])
    expect(quotients('int64')).toEqual([2n ** 63n - 1n, -(2n ** 63n), 0n, 2n ** 63n - 1n])
    expect(quotients('int8')).toEqual([-1, 0, 0, -128])
    expect(scalarOperation('remainder', 'int64', [7n, 0n])).toBe(7n)
    expect(scalarOperation('remainder', 'int64', [-(2n ** 63n), -1n])).toBe(0n)
  })

  test('of half precisions: the float32 result, rounded', () => {
    const formulas: Readonly<Partial<Record<ScalarOp, (a: number, b: number) => number>>> = {
      add: (a, b) => a + b,
      sub: (a, b) => a - b,
      mul: (a, b) => a * b,
      div: (a, b) => a / b,
      min: Math.min,
      max: Math.max,
      neg: (a) => -a,
      abs: Math.abs,
      floor: Math.floor,
      ceil: Math.ceil,
      trunc: Math.trunc,
      sqrt: Math.sqrt,
      exp: Math.exp,
      log: Math.log,
      tanh: Math.tanh,
    }
    for (const dtype of ['float16', 'bfloat16'] as const) {
      const [left, right] = operands(dtype)
      for (const op of OPS) {
        const formula = formulas[op]
        if (formula === undefined) continue
        left.forEach((value, k) => {
          const [a, b] = [Number(value), Number(right[k])]
          expect(scalarOperation(op, dtype, [a, b]), `${op}(${a}, ${b}) of ${dtype}`).toBe(converted(dtype, Math.fround(formula(a, b))))
        })
      }
    }
  })
})

test('a constant operand computes the same as a variable one', () => {
  const cases: readonly (readonly [ScalarOp, readonly number[]])[] = [
    ['pow', [0, 1, 2, 3, 5]],
    ['remainder', [1, 2, 8, 3, 100]],
    ['floorDiv', [1, 2, 8, 3, 100]],
    ['div', [1, 2, 3]],
    ['shl', [0, 1, 5, 7]],
    ['shrS', [0, 1, 5, 7]],
    ['mul', [1, 3]],
    ['sub', [0, 3]],
  ]
  for (const dtype of third(DTYPES.filter((d) => d !== 'bool' && d !== 'float32' && d !== 'float64'))) {
    const [left] = operands(dtype)
    const i = loopVar('i', left.length)
    const [out, input] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype)]
    for (const [op, rights] of cases) {
      if (!isDefinedFor(op, dtype)) continue
      for (const right of rights) {
        const body = [forLoop(i, 'simd', [store(out, at([i, 1]), call(op, load(input, at([i, 1])), constant(dtype, right)))])]
        const { wasm, oracle } = runBoth({ name: op, params: [out, input], body }, { a: arrayOf(dtype, left), out: arrayOf(dtype, left.length) })
        const wanted = runOp(
          op,
          dtype,
          left,
          left.map(() => right),
        ).oracle
        expect(valuesOf(dtype, oracle['out'])).toEqual(wanted)
        valuesOf(dtype, wasm['out']).forEach((value, k) => {
          const expected = wanted[k] ?? NaN
          if (!isClose(dtype, value, expected, stepsOf(op, dtype)))
            expect([left[k], value], `${op} ${right} of ${dtype}`).toEqual([left[k], expected])
        })
      }
    }
  }
})

/** Values as JSON has them: text for infinities, NaN and integers beyond 2^53. */
interface Arithmetic {
  readonly dtype: DType
  readonly op: string
  readonly a: readonly (number | string)[]
  readonly b?: readonly (number | string)[]
  readonly result: readonly (number | string)[]
}
const { arithmetic } = JSON.parse(readFileSync(new URL('../../goldens/dtypes/casts.json', import.meta.url), 'utf8')) as {
  readonly arithmetic: readonly Arithmetic[]
}
const NAMES: Readonly<Record<string, ScalarOp>> = {
  add: 'add',
  sub: 'sub',
  mul: 'mul',
  div: 'div',
  floor_divide: 'floorDiv',
  remainder: 'remainder',
  bitwise_and: 'bitAnd',
  bitwise_xor: 'bitXor',
  maximum: 'max',
  exp: 'exp',
  tanh: 'tanh',
  sigmoid: 'sigmoid',
  sqrt: 'sqrt',
}

test('kernels give the results of PyTorch', () => {
  let compared = 0
  for (const { dtype, op, a, b, result } of arithmetic) {
    const name = NAMES[op]
    if (name === undefined) continue
    const values = (list: readonly (number | string)[]): ElementValue[] =>
      list.map((value) => (dtype === 'int64' ? BigInt(value) : value === 'inf' ? Infinity : Number(value)))
    const { wasm } = runOp(name, dtype, values(a), values(b ?? a))
    expect(wasm, `${op} of ${dtype}`).toEqual(values(result))
    compared++
  }
  expect(compared).toBe(5 * 8 + 2 * 8)
})

test('a sum of half precisions in a float32 accumulator gives the result of PyTorch', () => {
  const sums = arithmetic.filter(({ op }) => op === 'sum')
  expect(sums).toHaveLength(2)
  for (const { dtype, result } of sums) {
    const i = loopVar('i', 4096)
    const [out, input, acc] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype), local('acc', 'float32')]
    const body = [
      declare(acc, constant('float32', 0)),
      forLoop(i, 'simd', [accumulate(acc, 'add', cast(load(input, at([i, 1])), 'float32'))]),
      store(out, at(), cast(read(acc), dtype)),
    ]
    const { out: sum } = runWasm(
      { name: 'sum', params: [out, input], body },
      { out: arrayOf(dtype, 1), a: arrayOf(dtype, Array<number>(4096).fill(0.1)) },
    )
    expect(valuesOf(dtype, sum)).toEqual(result)
  }
})
