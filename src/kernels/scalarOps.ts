// The scalar operations of the loop IR: one record per operation, with every fact about it. The verifier, the printer, the reference interpreter, the
// emitter and the schedulers read this table. To add an operation, add its name to ScalarOp and a record; code of more than one instruction belongs in
// wasm/scalarCode.ts, wasm/float32Math.ts or wasm/vectorFunctions.ts.
import type { DType } from './dtype.ts'
import { erf, floorDiv, integerFloorDiv, integerPower, nearest, pow, remainder, rounded, saturated, sigmoid } from './numbers.ts'
import * as float32 from './wasm/float32Math.ts'
import type { HostFunction } from './wasm/moduleFunctions.ts'
import {
  callHost,
  callVector,
  code,
  floatSign,
  inline,
  integerDivision,
  integerFloorDivision,
  integerRemainder,
  integerSign,
  inverse,
  powers,
  same,
  shift,
  upperProduct,
} from './wasm/scalarCode.ts'
import type { WasmScalar } from './wasm/scalarCode.ts'
import type { Val, VectorCode } from './wasm/vectorCode.ts'
import { floatFloorDiv, floatRemainder, integerPowers, power, sine } from './wasm/vectorFunctions.ts'

/**
 * Operations on scalars. Comparisons and logic yield bool; `where(cond, a, b)` takes a bool first. Integer `div` truncates; `floorDiv` and `remainder` round
 * down, as in Python.
 */
export type ScalarOp =
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
  | 'floorDiv'
  | 'remainder'
  | 'min'
  | 'max'
  | 'pow'
  | 'neg'
  | 'abs'
  | 'sign'
  | 'floor'
  | 'ceil'
  | 'round'
  | 'trunc'
  | 'sqrt'
  | 'rsqrt'
  | 'reciprocal'
  | 'exp'
  | 'expm1'
  | 'log'
  | 'log1p'
  | 'sin'
  | 'cos'
  | 'tanh'
  | 'erf'
  | 'sigmoid'
  | 'eq'
  | 'ne'
  | 'lt'
  | 'le'
  | 'gt'
  | 'ge'
  | 'and'
  | 'or'
  | 'not'
  | 'isnan'
  | 'where'
  | 'bitAnd'
  | 'bitOr'
  | 'bitXor'
  | 'shl'
  | 'shrU'
  | 'mulHiU'

/** Computes an operation on numbers of a dtype; the caller rounds the result to the dtype. Operands beyond the operation's arity are NaN. */
type Reference = (dtype: DType, a: number, b: number, c: number) => number

/** The facts about a scalar operation. */
export interface ScalarOpRecord {
  /** Number of operands. */
  readonly arity: 1 | 2 | 3
  /** How many leading operands are conditions, which are bools whatever the dtype. */
  readonly conditions: 0 | 1
  /** The dtypes for which it is defined. Its operands all have the same one, except for conditions. */
  readonly dtypes: readonly DType[]
  /** Whether the result is a bool. Otherwise it has the operands' dtype. */
  readonly yieldsBool: boolean
  /** What it costs, compared with an addition. */
  readonly cost: number
  /** The infix operator that prints it, or null when it prints as a call. */
  readonly symbol: string | null
  /** Its definition. Bools are 0 and 1. */
  readonly reference: Reference
  /** Its WebAssembly code for each of `dtypes`. */
  readonly wasm: Readonly<Partial<Record<DType, WasmScalar>>>
}

/** A record as the table writes it: each emitter's column must have an entry for every dtype in `dtypes`. */
interface Definition<D extends DType> extends Omit<ScalarOpRecord, 'dtypes' | 'wasm'> {
  readonly dtypes: readonly D[]
  readonly wasm: Readonly<Record<D, WasmScalar>>
}

const operation = <D extends DType>(definition: Definition<D>): ScalarOpRecord => definition

const ALL = ['bool', 'int32', 'float32', 'float64'] as const
const NUMBERS = ['int32', 'float32', 'float64'] as const
const FLOATS = ['float32', 'float64'] as const

/** The cost of an elementary function. It is higher than that of storing a value and loading it again. */
const FUNCTION = 20
/** The cost of a division that rounds down, with its corrections. */
const FLOOR_DIVISION = 16

const unary = { arity: 1, conditions: 0, yieldsBool: false, cost: 1, symbol: null } as const
const binary = { ...unary, arity: 2 } as const
const host = (name: string, run: HostFunction['run'], arity: HostFunction['arity'] = 1): HostFunction => ({ name, arity, run })

/** An elementary function: inline code for float32, a JavaScript function for float64. */
const elementary = (name: string, run: (x: number) => number, inlined: (code: VectorCode, x: Val) => Val): ScalarOpRecord =>
  operation({
    ...unary,
    dtypes: FLOATS,
    cost: FUNCTION,
    reference: (_, a) => run(a),
    wasm: { float32: inline(inlined), float64: callHost(host(name, run)) },
  })

/** sin or cos. */
const trigonometric = (name: 'sin' | 'cos', run: (x: number) => number): ScalarOpRecord => {
  const far = host(name, run)
  return operation({
    ...unary,
    dtypes: FLOATS,
    cost: FUNCTION,
    reference: (_, a) => run(a),
    wasm: { float32: callVector(sine(name, far)), float64: callHost(far) },
  })
}

/** Rounding to an integer; int32 stays as it is. */
const rounding = (instruction: 'floor' | 'ceil' | 'nearest' | 'trunc', run: (x: number) => number): ScalarOpRecord =>
  operation({
    ...unary,
    dtypes: NUMBERS,
    reference: (_, a) => run(a),
    wasm: { int32: same, float32: `f32x4.${instruction}`, float64: `f64x2.${instruction}` },
  })

/** A comparison. True is -1 in registers, so bools are compared by the opposite instruction of int32. */
const comparison = (
  symbol: string,
  run: (a: number, b: number) => boolean,
  float: 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge',
  integer: 'eq' | 'ne' | 'lt_s' | 'le_s' | 'gt_s' | 'ge_s',
  bool: 'eq' | 'ne' | 'lt_s' | 'le_s' | 'gt_s' | 'ge_s',
): ScalarOpRecord =>
  operation({
    ...binary,
    dtypes: ALL,
    yieldsBool: true,
    symbol,
    reference: (_, a, b) => Number(run(a, b)),
    wasm: { bool: `i32x4.${bool}`, int32: `i32x4.${integer}`, float32: `f32x4.${float}`, float64: `f64x2.${float}` },
  })

const select = code(({ code }, mask, a, b) => code.select(mask, a, b))
const unequalToItself = (instruction: 'f32x4.ne' | 'f64x2.ne'): WasmScalar => code(({ code }, a) => code.op2(instruction, a, a))

/** All scalar operations. */
export const scalarOps: Readonly<Record<ScalarOp, ScalarOpRecord>> = {
  add: operation({
    ...binary,
    dtypes: ALL,
    symbol: '+',
    reference: (dtype, a, b) => (dtype === 'bool' ? a | b : a + b),
    wasm: { bool: 'v128.or', int32: 'i32x4.add', float32: 'f32x4.add', float64: 'f64x2.add' },
  }),
  sub: operation({
    ...binary,
    dtypes: NUMBERS,
    symbol: '-',
    reference: (_, a, b) => a - b,
    wasm: { int32: 'i32x4.sub', float32: 'f32x4.sub', float64: 'f64x2.sub' },
  }),
  mul: operation({
    ...binary,
    dtypes: ALL,
    symbol: '*',
    reference: (dtype, a, b) => (dtype === 'int32' ? Math.imul(a, b) : a * b),
    wasm: { bool: 'v128.and', int32: 'i32x4.mul', float32: 'f32x4.mul', float64: 'f64x2.mul' },
  }),
  div: operation({
    ...binary,
    dtypes: NUMBERS,
    symbol: '/',
    reference: (dtype, a, b) => (dtype === 'int32' ? saturated(a / b) : a / b),
    wasm: { int32: integerDivision, float32: 'f32x4.div', float64: 'f64x2.div' },
  }),
  floorDiv: operation({
    ...binary,
    dtypes: NUMBERS,
    cost: FLOOR_DIVISION,
    reference: (dtype, a, b) => (dtype === 'int32' ? integerFloorDiv(a, b) : floorDiv(a, b)),
    wasm: { int32: integerFloorDivision, float32: callVector(floatFloorDiv), float64: callHost(host('floorDiv', floorDiv, 2)) },
  }),
  remainder: operation({
    ...binary,
    dtypes: NUMBERS,
    cost: FLOOR_DIVISION,
    reference: (dtype, a, b) => (dtype === 'int32' ? a - Math.imul(integerFloorDiv(a, b), b) : remainder(a, b)),
    wasm: { int32: integerRemainder, float32: callVector(floatRemainder), float64: callHost(host('remainder', remainder, 2)) },
  }),
  min: operation({
    ...binary,
    dtypes: ALL,
    reference: (_, a, b) => Math.min(a, b),
    wasm: { bool: 'v128.and', int32: 'i32x4.min_s', float32: 'f32x4.min', float64: 'f64x2.min' },
  }),
  max: operation({
    ...binary,
    dtypes: ALL,
    reference: (_, a, b) => Math.max(a, b),
    wasm: { bool: 'v128.or', int32: 'i32x4.max_s', float32: 'f32x4.max', float64: 'f64x2.max' },
  }),
  pow: operation({
    ...binary,
    dtypes: NUMBERS,
    cost: FUNCTION,
    reference: (dtype, a, b) => (dtype === 'int32' ? integerPower(a, b) : pow(a, b)),
    wasm: {
      int32: callVector(integerPowers),
      float32: powers('f32x4', callVector(power)),
      float64: powers('f64x2', callHost(host('pow', pow, 2))),
    },
  }),
  neg: operation({
    ...unary,
    dtypes: NUMBERS,
    reference: (_, a) => -a,
    wasm: { int32: 'i32x4.neg', float32: 'f32x4.neg', float64: 'f64x2.neg' },
  }),
  abs: operation({
    ...unary,
    dtypes: NUMBERS,
    reference: (_, a) => Math.abs(a),
    wasm: { int32: 'i32x4.abs', float32: 'f32x4.abs', float64: 'f64x2.abs' },
  }),
  sign: operation({
    ...unary,
    dtypes: NUMBERS,
    reference: (_, a) => Number(a > 0) - Number(a < 0),
    wasm: { int32: integerSign, float32: floatSign('f32x4'), float64: floatSign('f64x2') },
  }),
  floor: rounding('floor', Math.floor),
  ceil: rounding('ceil', Math.ceil),
  round: rounding('nearest', nearest),
  trunc: rounding('trunc', Math.trunc),
  sqrt: operation({
    ...unary,
    dtypes: FLOATS,
    reference: (_, a) => Math.sqrt(a),
    wasm: { float32: 'f32x4.sqrt', float64: 'f64x2.sqrt' },
  }),
  rsqrt: operation({
    ...unary,
    dtypes: FLOATS,
    // Both steps round.
    reference: (dtype, a) => 1 / rounded(dtype, Math.sqrt(a)),
    wasm: { float32: inverse('f32x4', true), float64: inverse('f64x2', true) },
  }),
  reciprocal: operation({
    ...unary,
    dtypes: FLOATS,
    reference: (_, a) => 1 / a,
    wasm: { float32: inverse('f32x4', false), float64: inverse('f64x2', false) },
  }),
  exp: elementary('exp', Math.exp, float32.exp),
  expm1: elementary('expm1', Math.expm1, float32.expm1),
  log: elementary('log', Math.log, float32.log),
  log1p: elementary('log1p', Math.log1p, float32.log1p),
  sin: trigonometric('sin', Math.sin),
  cos: trigonometric('cos', Math.cos),
  tanh: elementary('tanh', Math.tanh, float32.tanh),
  erf: elementary('erf', erf, float32.erf),
  sigmoid: elementary('sigmoid', sigmoid, float32.sigmoid),
  eq: comparison('==', (a, b) => a === b, 'eq', 'eq', 'eq'),
  ne: comparison('!=', (a, b) => a !== b, 'ne', 'ne', 'ne'),
  lt: comparison('<', (a, b) => a < b, 'lt', 'lt_s', 'gt_s'),
  le: comparison('<=', (a, b) => a <= b, 'le', 'le_s', 'ge_s'),
  gt: comparison('>', (a, b) => a > b, 'gt', 'gt_s', 'lt_s'),
  ge: comparison('>=', (a, b) => a >= b, 'ge', 'ge_s', 'le_s'),
  and: operation({
    ...binary,
    dtypes: ['bool'],
    yieldsBool: true,
    symbol: '&&',
    reference: (_, a, b) => Number(a !== 0 && b !== 0),
    wasm: { bool: 'v128.and' },
  }),
  or: operation({
    ...binary,
    dtypes: ['bool'],
    yieldsBool: true,
    symbol: '||',
    reference: (_, a, b) => Number(a !== 0 || b !== 0),
    wasm: { bool: 'v128.or' },
  }),
  not: operation({ ...unary, dtypes: ['bool'], yieldsBool: true, reference: (_, a) => Number(a === 0), wasm: { bool: 'v128.not' } }),
  isnan: operation({
    ...unary,
    dtypes: NUMBERS,
    yieldsBool: true,
    reference: (_, a) => Number(Number.isNaN(a)),
    wasm: { int32: code(({ code }) => code.i32(0)), float32: unequalToItself('f32x4.ne'), float64: unequalToItself('f64x2.ne') },
  }),
  where: operation({
    arity: 3,
    conditions: 1,
    dtypes: ALL,
    yieldsBool: false,
    cost: 1,
    symbol: null,
    reference: (_, condition, a, b) => (condition === 0 ? b : a),
    wasm: { bool: select, int32: select, float32: select, float64: select },
  }),
  bitAnd: operation({
    ...binary,
    dtypes: ['bool', 'int32'],
    reference: (_, a, b) => a & b,
    wasm: { bool: 'v128.and', int32: 'v128.and' },
  }),
  bitOr: operation({
    ...binary,
    dtypes: ['bool', 'int32'],
    reference: (_, a, b) => a | b,
    wasm: { bool: 'v128.or', int32: 'v128.or' },
  }),
  bitXor: operation({
    ...binary,
    dtypes: ['bool', 'int32'],
    reference: (_, a, b) => a ^ b,
    wasm: { bool: 'v128.xor', int32: 'v128.xor' },
  }),
  shl: operation({ ...binary, dtypes: ['int32'], reference: (_, a, b) => a << b, wasm: { int32: shift('shl') } }),
  shrU: operation({ ...binary, dtypes: ['int32'], reference: (_, a, b) => a >>> b, wasm: { int32: shift('shr_u') } }),
  mulHiU: operation({
    ...binary,
    dtypes: ['int32'],
    reference: (_, a, b) => Number((BigInt(a >>> 0) * BigInt(b >>> 0)) >> 32n),
    wasm: { int32: upperProduct },
  }),
}

/** The result of an operation on numbers of a dtype, as emitted code must compute it. Bools are 0 and 1. */
export function scalarOperation(op: ScalarOp, dtype: DType, operands: readonly number[]): number {
  const { reference, yieldsBool } = scalarOps[op]
  const [a = NaN, b = NaN, c = NaN] = operands
  const value = reference(dtype, a, b, c)
  return yieldsBool ? value : rounded(dtype, value)
}

/** Whether an operation is more expensive to compute than to store and load again. */
export const isExpensive = (op: ScalarOp): boolean => scalarOps[op].cost >= FUNCTION
