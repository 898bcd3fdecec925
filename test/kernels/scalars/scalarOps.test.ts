// The table of scalar operations: each row against its other columns, and definitions at the edges.
import { describe, expect, test } from 'vitest'
import { bufferParam, call, constant, load, at, loopVar, forLoop, store } from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { DTYPES, dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import { KernelError } from '../../../src/kernels/ir/errors.ts'
import { isCostly } from '../../../src/kernels/ir/analysis.ts'
import { converted, erf, nearest, rounded, saturated } from '../../../src/kernels/numbers/numbers.ts'
import { printKernel } from '../../../src/kernels/ir/print.ts'
import { scalarOps } from '../../../src/kernels/scalars/rareOps.ts'
import { hostFunctions, isDefinedFor, isExpensive, scalarOp, scalarOperation } from '../../../src/kernels/scalars/scalarOps.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { verifyKernel } from '../../../src/kernels/ir/verify.ts'
import { arrayOf, maxUlps, numbersOf, runBoth } from '../harness.ts'

const OPS = Object.keys(scalarOps) as ScalarOp[]

/** The functions that are seldom used, which JavaScript computes. */
const RARE = (
  'acos acosh airyAi asin asinh atan atan2 atanh besselJ0 besselJ1 besselK0 besselK1 besselY0 besselY1 chebyshevT chebyshevU chebyshevV ' +
  'chebyshevW cosh digamma erfc erfcx erfinv hermiteH hermiteHe hypot i0 i0e i1 i1e igamma igammac laguerre legendre lgamma log10 log2 ndtri ' +
  'polygamma scaledBesselK0 scaledBesselK1 shiftedChebyshevT shiftedChebyshevU shiftedChebyshevV shiftedChebyshevW sinh tan zeta'
).split(' ')

/** A kernel that applies `op` to the elements of its operands of a dtype. */
function kernelOf(op: ScalarOp, dtype: DType): Kernel {
  const { arity, conditions, yieldsBool } = scalarOps[op]
  const i = loopVar('i', 3)
  const inputs = Array.from({ length: arity }, (_, k) => bufferParam(`a${k}`, k < conditions ? 'bool' : dtype))
  const out = bufferParam('out', yieldsBool ? 'bool' : dtype, 'write')
  const value = call(op, ...inputs.map((input) => load(input, at([i, 1]))))
  return { name: op, params: [out, ...inputs], body: [forLoop(i, 'simd', [store(out, at([i, 1]), value)])] }
}

describe('each operation', () => {
  test.each(OPS)('%s verifies, prints and runs for the dtypes of its row, and is refused for the others', (op) => {
    const { dtypes, narrow, symbol, wasm, arity, conditions, yieldsBool } = scalarOps[op]
    expect(dtypes.length).toBeGreaterThan(0)
    expect(Object.keys(wasm).sort()).toEqual([...dtypes].sort())
    for (const dtype of DTYPES) {
      const kernel = kernelOf(op, dtype)
      const { compute } = dtypeInfo[dtype]
      if (!dtypes.includes(compute) || (narrow === 'none' && compute !== dtype)) {
        expect(() => verifyKernel(kernel)).toThrow(
          `${op} is not defined for ${dtype}, only for ${DTYPES.filter((d) => isDefinedFor(op, d)).join(', ')}`,
        )
        continue
      }
      const text = printKernel(kernel)
      expect(text).toContain(symbol === null ? ` = ${op}(a0[i]` : ` = (a0[i] ${symbol} a1[i])`)
      const buffers = Object.fromEntries(Array.from({ length: arity }, (_, k) => [`a${k}`, arrayOf(k < conditions ? 'bool' : dtype, [1, 0, 1])]))
      const { wasm: actual, oracle } = runBoth(kernel, { ...buffers, out: arrayOf(yieldsBool ? 'bool' : dtype, 3) })
      const result = yieldsBool ? 'bool' : dtype
      expect(maxUlps(numbersOf(result, actual['out']), numbersOf(result, oracle['out'])), dtype).toBeLessThanOrEqual(2)
    }
  })

  test('that a program does not have is refused, with the import that adds it', () => {
    expect(() => scalarOp('hardlyEver' as ScalarOp)).toThrow(
      "this program does not have the scalar operation hardlyEver; write import 'tensorfx/kernels'",
    )
  })

  test('that has an infix operator prints with it', () => {
    const symbols = Object.fromEntries(OPS.flatMap((op) => (scalarOps[op].symbol === null ? [] : [[op, scalarOps[op].symbol]])))
    expect(symbols).toEqual({
      add: '+',
      sub: '-',
      mul: '*',
      div: '/',
      eq: '==',
      ne: '!=',
      lt: '<',
      le: '<=',
      gt: '>',
      ge: '>=',
      and: '&&',
      or: '||',
    })
  })

  test('with a constant operand computes the same as with a variable one', () => {
    const constants: readonly (readonly [ScalarOp, DType, readonly number[]])[] = [
      ['pow', 'float32', [0, 1, 2, 3, 0.5, -0.5, -1, -2, 4, 1.5, -3]],
      ['pow', 'float64', [0, 1, 2, 3, 0.5, -0.5, -1, -2, 4]],
      ['remainder', 'int32', [1, 2, 8, 3, -4, 1 << 30, 0]],
      ['floorDiv', 'int32', [1, 2, 8, 3, -4, 1 << 30, 0]],
      ['div', 'int32', [1, 2, -3]],
      ['shl', 'int32', [0, 1, 31, 33]],
      ['shrU', 'int32', [0, 1, 31, 33]],
    ]
    for (const [op, dtype, rights] of constants) {
      const values = dtype === 'int32' ? [0, 1, -1, 7, -7, 100, 2147483647, -2147483648] : [0.25, 1, 2.5, 9, 0.1, 100]
      for (const right of rights) {
        const [input, out, i] = [bufferParam('a', dtype), bufferParam('out', dtype, 'write'), loopVar('i', values.length)]
        const body = [forLoop(i, 'simd', [store(out, at([i, 1]), call(op, load(input, at([i, 1])), constant(dtype, right)))])]
        const { wasm, oracle } = runBoth({ name: op, params: [out, input], body }, { a: arrayOf(dtype, values), out: arrayOf(dtype, values.length) })
        if (dtype === 'int32') expect(wasm['out'], `${op} ${right}`).toEqual(oracle['out'])
        else expect(maxUlps(numbersOf(dtype, wasm['out']), numbersOf(dtype, oracle['out'])), `${op} ${right}`).toBeLessThanOrEqual(1)
      }
    }
  })

  test('is costly where it is an elementary function, in any depth of an expression', () => {
    expect(OPS.filter(isExpensive).sort()).toEqual(['cos', 'erf', 'exp', 'expm1', 'log', 'log1p', 'pow', 'sigmoid', 'sin', 'tanh', ...RARE].sort())
    const x = load(bufferParam('a', 'float32'), at())
    expect(isCostly(call('neg', call('add', x, call('exp', x))))).toBe(true)
    expect(isCostly(call('floorDiv', call('sqrt', x), x))).toBe(false)
    for (const op of OPS) expect(scalarOps[op].cost).toBeGreaterThan(0)
  })

  test('that modules import from JavaScript has its function under its name', () => {
    expect(Object.keys(hostFunctions).sort()).toEqual(
      ['cos', 'erf', 'exp', 'expm1', 'floorDiv', 'log', 'log1p', 'pow', 'remainder', 'sigmoid', 'sin', 'tanh', ...RARE].sort(),
    )
    expect([hostFunctions['sin'], hostFunctions['cos'], hostFunctions['exp']]).toEqual([Math.sin, Math.cos, Math.exp])
  })
})

describe('call', () => {
  const [x, condition] = [load(bufferParam('a', 'float32'), at()), constant('bool', 1)]
  const f32 = (value: number): Expr => constant('float32', value)

  test('has the dtype of its operands, or bool', () => {
    expect([call('add', x, x).dtype, call('lt', x, x).dtype, call('isnan', x).dtype, call('where', condition, x, x).dtype]).toEqual([
      'float32',
      'bool',
      'bool',
      'float32',
    ])
  })

  test('leaves out what changes nothing: times 1, by 1, minus 0', () => {
    for (const op of ['mul', 'div'] as const) expect(call(op, x, f32(1))).toBe(x)
    expect(call('sub', x, f32(0))).toBe(x)
    // x - -0 and x + 0 change -0; 1 * x and 1 / x are other operations.
    for (const kept of [
      call('sub', x, f32(-0)),
      call('add', x, f32(0)),
      call('mul', x, f32(2)),
      call('mul', f32(1), x),
      call('pow', x, f32(1)),
      call('max', x, f32(1)),
    ])
      expect(kept.kind).toBe('call')
  })

  test('wants all operands', () => {
    expect(() => call('add', x)).toThrow(KernelError)
    expect(() => call('add', x)).toThrow('add takes 2 operands, not 1')
    expect(() => call('where', condition)).toThrow('where takes 3 operands, not 1')
    expect(() => call('neg')).toThrow('neg takes 1 operands, not 0')
  })
})

describe('definitions', () => {
  const value = (op: ScalarOp, dtype: Exclude<DType, 'int64'>, ...operands: number[]): number => scalarOperation(op, dtype, operands)

  test('round float32 and wrap int32', () => {
    expect(value('add', 'float32', 0.1, 0.2)).toBe(Math.fround(0.1 + 0.2))
    expect(value('add', 'float64', 0.1, 0.2)).toBe(0.1 + 0.2)
    expect(value('add', 'int32', 2147483647, 1)).toBe(-2147483648)
    expect(value('mul', 'int32', 65537, 65537)).toBe(131073)
    expect(value('neg', 'int32', -2147483648)).toBe(-2147483648)
    expect(value('abs', 'int32', -2147483648)).toBe(-2147483648)
    expect([rounded('bool', 0.1), rounded('bool', 0), rounded('float64', 0.1)]).toEqual([1, 0, 0.1])
  })

  test('combine bools as or and and', () => {
    const table = (op: ScalarOp): number[] => [value(op, 'bool', 0, 0), value(op, 'bool', 0, 1), value(op, 'bool', 1, 0), value(op, 'bool', 1, 1)]
    expect([table('add'), table('mul'), table('min'), table('max')]).toEqual([
      [0, 1, 1, 1],
      [0, 0, 0, 1],
      [0, 0, 0, 1],
      [0, 1, 1, 1],
    ])
    expect([table('and'), table('or'), table('bitXor'), table('lt'), table('ge')]).toEqual([
      [0, 0, 0, 1],
      [0, 1, 1, 1],
      [0, 1, 1, 0],
      [0, 1, 0, 0],
      [1, 0, 1, 1],
    ])
    expect([value('not', 'bool', 0), value('not', 'bool', 1)]).toEqual([1, 0])
  })

  test('divide integers as C and as Python do, and never fail', () => {
    expect([value('div', 'int32', -7, 2), value('floorDiv', 'int32', -7, 2), value('remainder', 'int32', -7, 2)]).toEqual([-3, -4, 1])
    expect([value('div', 'int32', 7, 0), value('div', 'int32', -7, 0), value('div', 'int32', 0, 0)]).toEqual([2147483647, -2147483648, 0])
    expect(value('floorDiv', 'int32', -2147483648, -1)).toBe(2147483647)
    expect([value('remainder', 'float64', -7.5, 2), value('floorDiv', 'float64', -7.5, 2), value('floorDiv', 'float64', 1, 0)]).toEqual([
      0.5,
      -4,
      Infinity,
    ])
    expect(value('remainder', 'float64', 1, -3)).toBe(-2)
    expect(value('floorDiv', 'float64', 6, -0.1)).toBe(-60)
  })

  test('raise to powers with C rules and, for integers, modulo 2^32', () => {
    expect([
      value('pow', 'float64', 1, NaN),
      value('pow', 'float64', -1, Infinity),
      value('pow', 'float64', -1, NaN),
      value('pow', 'float64', 2, 10),
    ]).toEqual([1, 1, NaN, 1024])
    expect([
      value('pow', 'int32', 3, 21),
      value('pow', 'int32', 2, -1),
      value('pow', 'int32', -1, -3),
      value('pow', 'int32', -1, -2),
      value('pow', 'int32', 1, -5),
    ]).toEqual([Math.imul((3 ** 20) | 0, 3), 0, -1, 1, 1])
    expect([value('pow', 'int32', 0, 0), value('pow', 'int32', -2, 3), value('pow', 'int32', 7, 1)]).toEqual([1, -8, 7])
  })

  test('round halves to even, convert by truncation and saturation', () => {
    expect([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6, -2.6].map(nearest)).toEqual([0, 2, 2, -0, -2, 2, 3, -3])
    expect([1.9, -1.9, 3e9, -3e9, NaN, Infinity, 2147483647.5].map(saturated)).toEqual([1, -1, 2147483647, -2147483648, 0, 2147483647, 2147483647])
    expect([converted('bool', NaN), converted('bool', 0), converted('bool', -0.1), converted('int32', -0.5), converted('float32', 0.1)]).toEqual([
      1,
      0,
      1,
      0,
      Math.fround(0.1),
    ])
  })

  test('take bits, shift modulo 32, and multiply unsigned', () => {
    expect([value('bitAnd', 'int32', 12, 10), value('bitOr', 'int32', 12, 10), value('bitXor', 'int32', 12, 10)]).toEqual([8, 14, 6])
    expect([value('shl', 'int32', 1, 33), value('shrU', 'int32', -1, 28), value('mulHiU', 'int32', -1, -1)]).toEqual([2, 15, -2])
  })

  test('choose, compare and classify', () => {
    expect([value('where', 'float32', 1, 5, 6), value('where', 'float32', 0, 5, 6)]).toEqual([5, 6])
    expect([value('isnan', 'float32', NaN), value('isnan', 'float32', Infinity), value('isnan', 'int32', 0)]).toEqual([1, 0, 0])
    expect([value('sign', 'float32', -3), value('sign', 'float32', 0), value('sign', 'float32', NaN), value('sign', 'int32', 9)]).toEqual([
      -1, 0, 0, 1,
    ])
    expect([value('eq', 'float32', NaN, NaN), value('ne', 'float32', NaN, NaN), value('le', 'float32', NaN, 1)]).toEqual([0, 1, 0])
    expect([value('min', 'float32', NaN, 1), value('max', 'float32', -0, 0)]).toEqual([NaN, 0])
  })

  test('are JavaScript Math where it has the function', () => {
    for (const op of ['exp', 'expm1', 'log', 'log1p', 'sin', 'cos', 'tanh', 'floor', 'ceil', 'trunc', 'sqrt'] as const)
      expect(value(op, 'float64', 1.3)).toBe(Math[op](1.3))
    expect(value('sigmoid', 'float64', 0.5)).toBe(1 / (1 + Math.exp(-0.5)))
    expect([value('reciprocal', 'float64', 4), value('rsqrt', 'float64', 16)]).toEqual([0.25, 0.25])
    expect(value('rsqrt', 'float32', 3)).toBe(Math.fround(1 / Math.fround(Math.sqrt(3))))
    expect([erf(0), erf(-0), erf(Infinity), erf(-7), erf(NaN)]).toEqual([0, -0, 1, -1, NaN])
    for (const x of [0.1, 1, 2.9, 3.1, 5.9]) expect(erf(-x)).toBe(-erf(x))
  })
})
