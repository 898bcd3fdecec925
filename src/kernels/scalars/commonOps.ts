// The scalar operations of the loop IR that every program has: one record per operation, with every fact about it. To add an operation, add its name to scalarOpNames.ts and a record; code
// of more than one instruction belongs in ../wasm/: scalarCode.ts, float32Math.ts or vectorFunctions.ts. Operations that are seldom used are in rareOps.ts.
import { bigFloorDiv, bigPower, bigQuotient, bigRemainder } from '../numbers/bigints.ts'
import type { ElementValue } from '../numbers/dtype.ts'
import {
  erf,
  floorDiv,
  integerFloorDiv,
  integerPower,
  integerRemainderOf,
  nearest,
  pow,
  remainder,
  rounded,
  saturated,
  sigmoid,
} from '../numbers/numbers.ts'
import type { RareOp, ScalarOp } from './scalarOpNames.ts'
import { FUNCTION, operation } from './scalarOpRecord.ts'
import type { ScalarOpRecord } from './scalarOpRecord.ts'
import * as float32 from '../wasm/float32Math.ts'
import { extreme64, division64, floorDivision64, remainder64, shift64, sign64 } from '../wasm/int64Code.ts'
import type { HostFunction } from '../wasm/moduleFunctions.ts'
import {
  callHost,
  callVector,
  code,
  floatSign,
  inline,
  inlineOr,
  integerDivision,
  integerFloorDivision,
  integerRemainder,
  integerSign,
  inverse,
  powers,
  same,
  shift,
  upperProduct,
} from '../wasm/scalarCode.ts'
import type { WasmScalar } from '../wasm/scalarCode.ts'
import type { Val, VectorCode } from '../wasm/vectorCode.ts'
import { floatFloorDiv, floatRemainder, integerPowers, integerPowers64, power, sineOfLong } from '../wasm/vectorFunctions.ts'

const ALL = ['bool', 'int32', 'int64', 'float32', 'float64'] as const
const NUMBERS = ['int32', 'int64', 'float32', 'float64'] as const
const FLOATS = ['float32', 'float64'] as const
const BITS = ['bool', 'int32', 'int64'] as const
const INTEGERS = ['int32', 'int64'] as const

/** The cost of a division that rounds down, with its corrections. */
const FLOOR_DIVISION = 16

const unary = { arity: 1, conditions: 0, narrow: 'rounded', yieldsBool: false, cost: 1, symbol: null, bigint: null } as const
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
const trigonometric = (name: 'sin' | 'cos', run: (x: number) => number, inlined: (code: VectorCode, x: Val) => Val): ScalarOpRecord => {
  const far = host(name, run)
  return operation({
    ...unary,
    dtypes: FLOATS,
    cost: FUNCTION,
    reference: (_, a) => run(a),
    wasm: { float32: inlineOr(inlined, float32.isLong, sineOfLong(name, far)), float64: callHost(far) },
  })
}

/** Rounding to an integer; integers stay as they are. */
const rounding = (instruction: 'floor' | 'ceil' | 'nearest' | 'trunc', run: (x: number) => number): ScalarOpRecord =>
  operation({
    ...unary,
    dtypes: NUMBERS,
    narrow: 'closed',
    reference: (_, a) => run(a),
    bigint: (a) => a,
    wasm: { int32: same, int64: same, float32: `f32x4.${instruction}`, float64: `f64x2.${instruction}` },
  })

/** A comparison. True is -1 in registers, so bools are compared by the opposite instruction of int32. */
const comparison = (
  symbol: string,
  run: <T extends ElementValue>(a: T, b: T) => boolean,
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
    bigint: run,
    wasm: { bool: `i32x4.${bool}`, int32: `i32x4.${integer}`, int64: `i64x2.${integer}`, float32: `f32x4.${float}`, float64: `f64x2.${float}` },
  })

const select = code(({ code }, mask, a, b) => code.select(mask, a, b))
const never: WasmScalar = code(({ code }) => code.i32(0))
const unequalToItself = (instruction: 'f32x4.ne' | 'f64x2.ne'): WasmScalar => code(({ code }, a) => code.op2(instruction, a, a))

/** An operation on each bit. */
const bitwise = (
  instruction: 'and' | 'or' | 'xor',
  run: (a: number, b: number) => number,
  bigint: (a: bigint, b: bigint) => bigint,
): ScalarOpRecord =>
  operation({
    ...binary,
    dtypes: BITS,
    narrow: 'closed',
    reference: (_, a, b) => run(a, b),
    bigint,
    wasm: { bool: `v128.${instruction}`, int32: `v128.${instruction}`, int64: `v128.${instruction}` },
  })

/** The operations that every program has. */
export const commonOps: Readonly<Record<Exclude<ScalarOp, RareOp>, ScalarOpRecord>> = {
  add: operation({
    ...binary,
    dtypes: ALL,
    symbol: '+',
    reference: (dtype, a, b) => (dtype === 'bool' ? a | b : a + b),
    bigint: (a, b) => a + b,
    wasm: { bool: 'v128.or', int32: 'i32x4.add', int64: 'i64x2.add', float32: 'f32x4.add', float64: 'f64x2.add' },
  }),
  sub: operation({
    ...binary,
    dtypes: NUMBERS,
    symbol: '-',
    reference: (_, a, b) => a - b,
    bigint: (a, b) => a - b,
    wasm: { int32: 'i32x4.sub', int64: 'i64x2.sub', float32: 'f32x4.sub', float64: 'f64x2.sub' },
  }),
  mul: operation({
    ...binary,
    dtypes: ALL,
    symbol: '*',
    reference: (dtype, a, b) => (dtype === 'int32' ? Math.imul(a, b) : a * b),
    bigint: (a, b) => a * b,
    wasm: { bool: 'v128.and', int32: 'i32x4.mul', int64: 'i64x2.mul', float32: 'f32x4.mul', float64: 'f64x2.mul' },
  }),
  mulAdd: operation({
    ...unary,
    arity: 3,
    dtypes: FLOATS,
    cost: 2,
    reference: (_, a, b, c) => a * b + c,
    wasm: {
      float32: code(({ code: vectors }, a, b, c) => vectors.mulAdd(a, b, c)),
      float64: code(({ code: vectors }, a, b, c) => vectors.op2('f64x2.add', vectors.op2('f64x2.mul', a, b), c)),
    },
  }),
  div: operation({
    ...binary,
    dtypes: NUMBERS,
    symbol: '/',
    reference: (dtype, a, b) => (dtype === 'int32' ? saturated(a / b) : a / b),
    bigint: bigQuotient,
    wasm: { int32: integerDivision, int64: division64, float32: 'f32x4.div', float64: 'f64x2.div' },
  }),
  floorDiv: operation({
    ...binary,
    dtypes: NUMBERS,
    cost: FLOOR_DIVISION,
    reference: (dtype, a, b) => (dtype === 'int32' ? integerFloorDiv(a, b) : floorDiv(a, b)),
    bigint: bigFloorDiv,
    wasm: {
      int32: integerFloorDivision,
      int64: floorDivision64,
      float32: callVector(floatFloorDiv),
      float64: callHost(host('floorDiv', floorDiv, 2)),
    },
  }),
  remainder: operation({
    ...binary,
    dtypes: NUMBERS,
    cost: FLOOR_DIVISION,
    reference: (dtype, a, b) => (dtype === 'int32' ? integerRemainderOf(a, b) : remainder(a, b)),
    bigint: bigRemainder,
    wasm: { int32: integerRemainder, int64: remainder64, float32: callVector(floatRemainder), float64: callHost(host('remainder', remainder, 2)) },
  }),
  min: operation({
    ...binary,
    dtypes: ALL,
    narrow: 'closed',
    reference: (_, a, b) => Math.min(a, b),
    bigint: (a, b) => (a < b ? a : b),
    wasm: { bool: 'v128.and', int32: 'i32x4.min_s', int64: extreme64('i64x2.lt_s'), float32: 'f32x4.min', float64: 'f64x2.min' },
  }),
  max: operation({
    ...binary,
    dtypes: ALL,
    narrow: 'closed',
    reference: (_, a, b) => Math.max(a, b),
    bigint: (a, b) => (a > b ? a : b),
    wasm: { bool: 'v128.or', int32: 'i32x4.max_s', int64: extreme64('i64x2.gt_s'), float32: 'f32x4.max', float64: 'f64x2.max' },
  }),
  pow: operation({
    ...binary,
    dtypes: NUMBERS,
    cost: FUNCTION,
    reference: (dtype, a, b) => (dtype === 'int32' ? integerPower(a, b) : pow(a, b)),
    bigint: bigPower,
    wasm: {
      int32: callVector(integerPowers),
      int64: callVector(integerPowers64),
      float32: powers('f32x4', callVector(power)),
      float64: powers('f64x2', callHost(host('pow', pow, 2))),
    },
  }),
  neg: operation({
    ...unary,
    dtypes: NUMBERS,
    reference: (_, a) => -a,
    bigint: (a) => -a,
    wasm: { int32: 'i32x4.neg', int64: 'i64x2.neg', float32: 'f32x4.neg', float64: 'f64x2.neg' },
  }),
  abs: operation({
    ...unary,
    dtypes: NUMBERS,
    reference: (_, a) => Math.abs(a),
    bigint: (a) => (a < 0n ? -a : a),
    wasm: { int32: 'i32x4.abs', int64: 'i64x2.abs', float32: 'f32x4.abs', float64: 'f64x2.abs' },
  }),
  sign: operation({
    ...unary,
    dtypes: NUMBERS,
    narrow: 'closed',
    reference: (_, a) => Number(a > 0) - Number(a < 0),
    bigint: (a) => BigInt(a > 0n) - BigInt(a < 0n),
    wasm: { int32: integerSign, int64: sign64, float32: floatSign('f32x4'), float64: floatSign('f64x2') },
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
  sin: trigonometric('sin', Math.sin, float32.sin),
  cos: trigonometric('cos', Math.cos, float32.cos),
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
    bigint: () => false,
    wasm: { int32: never, int64: never, float32: unequalToItself('f32x4.ne'), float64: unequalToItself('f64x2.ne') },
  }),
  where: operation({
    ...unary,
    arity: 3,
    conditions: 1,
    dtypes: ALL,
    narrow: 'closed',
    reference: (_, condition, a, b) => (condition === 0 ? b : a),
    bigint: (condition, a, b) => (condition === 0n ? b : a),
    wasm: { bool: select, int32: select, int64: select, float32: select, float64: select },
  }),
  bitAnd: bitwise(
    'and',
    (a, b) => a & b,
    (a, b) => a & b,
  ),
  bitOr: bitwise(
    'or',
    (a, b) => a | b,
    (a, b) => a | b,
  ),
  bitXor: bitwise(
    'xor',
    (a, b) => a ^ b,
    (a, b) => a ^ b,
  ),
  shl: operation({
    ...binary,
    dtypes: INTEGERS,
    reference: (_, a, b) => a << b,
    bigint: (a, b) => a << (b & 63n),
    wasm: { int32: shift('shl'), int64: shift64('shl') },
  }),
  shrS: operation({
    ...binary,
    dtypes: INTEGERS,
    narrow: 'closed',
    reference: (_, a, b) => a >> b,
    bigint: (a, b) => a >> (b & 63n),
    wasm: { int32: shift('shr_s'), int64: shift64('shr_s') },
  }),
  shrU: operation({
    ...binary,
    dtypes: INTEGERS,
    narrow: 'none',
    reference: (_, a, b) => a >>> b,
    bigint: (a, b) => BigInt.asUintN(64, a) >> (b & 63n),
    wasm: { int32: shift('shr_u'), int64: shift64('shr_u') },
  }),
  mulHiU: operation({
    ...binary,
    dtypes: ['int32'],
    narrow: 'none',
    reference: (_, a, b) => Number((BigInt(a >>> 0) * BigInt(b >>> 0)) >> 32n),
    wasm: { int32: upperProduct },
  }),
}
