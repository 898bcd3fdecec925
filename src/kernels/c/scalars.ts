// The C code of scalar operations. Where the table ../scalars/scalarOps.ts names one instruction, C has a function of that name; this file has the rest. Functions that JavaScript computes
// have none: such kernels stay with WebAssembly.
import { InternalError } from '../../errors/index.ts'
import { operandDType } from '../ir/analysis.ts'
import type { Combine, Expr } from '../ir/loopIr.ts'
import { constantIn } from '../numbers/constantCode.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { ComputeDType, DType } from '../numbers/dtype.ts'
import { scalarOp } from '../scalars/scalarOps.ts'
import type { ScalarOp } from '../scalars/scalarOps.ts'
import * as float32 from '../wasm/float32Math.ts'
import * as rare from '../wasm/float32Rare.ts'
import { roundToNarrow } from '../wasm/narrowTypes.ts'
import { simplePower } from '../wasm/scalarCode.ts'
import { powSpecial } from '../wasm/vectorFunctions.ts'
import type { CCode, CKind, CVal } from './cCode.ts'

/** Operands beyond the operation's arity repeat the last one. `right` is the second operand if that is a constant number. */
interface CSite {
  readonly code: CCode
  readonly right: number | null
}

/** Writes an operation for one dtype. */
type CScalar = (site: CSite, a: CVal, b: CVal, c: CVal) => CVal

type Column = Readonly<Partial<Record<ComputeDType, CScalar>>>

const KINDS: Readonly<Record<ComputeDType, CKind>> = { bool: 'i', int32: 'i', int64: 'l', float32: 'i', float64: 'd' }

/** The kind of elements that values of a dtype are. */
export const kindOf = (dtype: DType): CKind => KINDS[dtypeInfo[dtype].compute]

const call =
  (name: string, kind: CKind = 'i'): CScalar =>
  ({ code }, a, b) =>
    code.call(name, kind, a, b)
const inline =
  (write: (code: CCode, a: CVal, b: CVal) => CVal): CScalar =>
  ({ code }, a, b) =>
    write(code, a, b)
const same: CScalar = (_, a) => a
const never: CScalar = ({ code }) => code.i32(0)
const select: CScalar = ({ code }, mask, a, b) => code.select(mask, a, b)

/** Steps of floats: `type` is that of the instructions. */
const steps = (code: CCode, type: 'f32x4' | 'f64x2') => ({
  one: () => (type === 'f32x4' ? code.f32(1) : code.f64(1)),
  mul: (a: CVal, b: CVal) => code.instruction(`${type}.mul`, a, b),
  div: (a: CVal, b: CVal) => code.instruction(`${type}.div`, a, b),
  sqrt: (a: CVal) => code.instruction(`${type}.sqrt`, a),
})

const inverse =
  (type: 'f32x4' | 'f64x2', root: boolean): CScalar =>
  ({ code }, a) => {
    const { one, div, sqrt } = steps(code, type)
    return div(one(), root ? sqrt(a) : a)
  }
const inverses = (root: boolean): Column => ({ float32: inverse('f32x4', root), float64: inverse('f64x2', root) })

const power32: CScalar = ({ code, right }, a, b) =>
  (right === null ? null : simplePower(steps(code, 'f32x4'), right, a)) ?? powSpecial(code, a, b, code.call('powMagnitude', 'i', a, b))

/** The exponents of float64 that need no logarithm; JavaScript computes the others. */
const power64: CScalar = ({ code, right }, a) => {
  const value = right === null ? null : simplePower(steps(code, 'f64x2'), right, a)
  if (value === null) throw new InternalError('C has no pow of float64; whyNotInC should have refused the kernel')
  return value
}

const sign = (code: CCode, a: CVal): CVal => {
  const zero = code.f32(0)
  const positive = code.op2('v128.and', code.op2('f32x4.gt', a, zero), code.f32(1))
  return code.op2('v128.or', positive, code.op2('v128.and', code.op2('f32x4.lt', a, zero), code.f32(-1)))
}
const sign64 = (code: CCode, a: CVal): CVal => {
  const zero = code.f64(0)
  const negative = code.select(code.instruction('f64x2.lt', a, zero), code.f64(-1), zero)
  return code.select(code.instruction('f64x2.gt', a, zero), code.f64(1), negative)
}
const signOfInt = (code: CCode, a: CVal): CVal =>
  code.op2('v128.or', code.shift('i32x4.shr_s', a, 31), code.op2('v128.and', code.op2('i32x4.gt_s', a, code.i32(0)), code.i32(1)))
const signOfInt64 = (code: CCode, a: CVal): CVal => {
  const negative = code.select(code.instruction('i64x2.lt_s', a, code.i64(0n)), code.i64(-1n), code.i64(0n))
  return code.select(code.instruction('i64x2.gt_s', a, code.i64(0n)), code.i64(1n), negative)
}

/** sin or cos: the angle is reduced in float32, long ones in float64, and C's own function takes the longest. */
const trigonometric = (quarterTurns: 0 | 1): Column => ({
  float32: ({ code }, x) => {
    const short = (quarterTurns === 0 ? float32.sin : float32.cos)(code, x)
    const long = float32.sineOf(code, { turns: code.call('longTurns', 'i', x), rest: code.call('longRest', 'i', x) }, quarterTurns)
    const near = code.select(float32.isLong(code, x), long, short)
    return code.call(quarterTurns === 0 ? 'farSine' : 'farCosine', 'i', x, near)
  },
})
const function32 = (write: (code: CCode, a: CVal, b: CVal) => CVal): Column => ({ float32: inline(write) })
const extreme = (comparison: 'lt_s' | 'gt_s'): Column => ({
  int64: ({ code }, a, b) => code.select(code.instruction(`i64x2.${comparison}`, a, b), a, b),
})
const shift = (name: string): Column => ({ int32: call(name), int64: call(`l_${name}`, 'l') })
const whole: Column = { int32: same, int64: same }

/** What takes more than an instruction. */
const columns: Readonly<Partial<Record<ScalarOp, Column>>> = {
  mulAdd: {
    float32: ({ code }, a, b, c) => code.mulAdd(a, b, c),
    float64: ({ code }, a, b, c) => code.instruction('f64x2.add', code.instruction('f64x2.mul', a, b), c),
  },
  div: { int32: call('div'), int64: call('l_div', 'l') },
  floorDiv: { int32: call('floorDiv'), int64: call('l_floorDiv', 'l'), float32: call('fFloorDiv') },
  remainder: { int32: call('remainder'), int64: call('l_remainder', 'l'), float32: call('fRemainder') },
  min: extreme('lt_s'),
  max: extreme('gt_s'),
  pow: { int32: call('power'), int64: call('l_power', 'l'), float32: power32, float64: power64 },
  sign: { int32: inline(signOfInt), int64: inline(signOfInt64), float32: inline(sign), float64: inline(sign64) },
  ...{ floor: whole, ceil: whole, round: whole, trunc: whole },
  rsqrt: inverses(true),
  reciprocal: inverses(false),
  exp: function32(float32.exp),
  expm1: function32(float32.expm1),
  log: function32(float32.log),
  log1p: function32(float32.log1p),
  tanh: function32(float32.tanh),
  erf: function32(float32.erf),
  sigmoid: function32(float32.sigmoid),
  sin: trigonometric(0),
  cos: trigonometric(1),
  atan2: function32(rare.atan2),
  sinh: function32(rare.sinh),
  cosh: function32(rare.cosh),
  hypot: { float32: call('hypot') },
  isnan: {
    ...{ int32: never, int64: never },
    float32: ({ code }, a) => code.op2('f32x4.ne', a, a),
    float64: ({ code }, a) => code.instruction('f64x2.ne', a, a),
  },
  where: { bool: select, int32: select, int64: select, float32: select, float64: select },
  shl: shift('shl'),
  shrS: shift('shrS'),
  shrU: shift('shrU'),
  mulHiU: { int32: call('mulHigh') },
}

const rightOf = (args: readonly Expr[]): number | null => {
  const right = args[1]
  return right?.kind === 'const' && typeof right.value === 'number' ? right.value : null
}

/** Whether an operation has C code for a dtype, of whose second operand `right` is known. */
export function isInC(op: ScalarOp, dtype: DType, right: number | null = null): boolean {
  const { compute } = dtypeInfo[dtype]
  if (op === 'pow' && compute === 'float64') return right !== null && [0, 1, 2, 3, 0.5, -0.5, -1, -2].includes(right)
  return typeof scalarOp(op).wasm[compute] === 'string' || columns[op]?.[compute] !== undefined
}

/** Why an expression has no C code; null if it has. */
export function whyNotInC(expr: Expr): string | null {
  if (expr.kind !== 'call') return null
  const dtype = operandDType(expr)
  return isInC(expr.op, dtype, rightOf(expr.args)) ? null : `${expr.op} of ${dtype} is a function of JavaScript`
}

/** A call of the loop IR. `values` are its operands. */
export const emitCallIn = (code: CCode, expr: Extract<Expr, { kind: 'call' }>, values: readonly CVal[]): CVal =>
  emitOperation({ code, right: rightOf(expr.args) }, expr.op, operandDType(expr), values)

/** One step of an accumulation. */
export const emitCombineIn = (code: CCode, combine: Combine, dtype: DType, a: CVal, b: CVal): CVal =>
  emitOperation({ code, right: null }, combine, dtype, [a, b])

function emitOperation(site: CSite, op: ScalarOp, dtype: DType, values: readonly CVal[]): CVal {
  const { compute } = dtypeInfo[dtype]
  const { wasm, narrow, yieldsBool } = scalarOp(op)
  const instruction = wasm[compute]
  const [a, b = a, c = b] = values
  if (a === undefined || b === undefined || c === undefined) throw new InternalError(`the operation ${op} has no operands`)
  const write = columns[op]?.[compute]
  if (write === undefined && typeof instruction !== 'string')
    throw new InternalError(`${op} has no C code for ${dtype}; whyNotInC should have refused the kernel`)
  const result = typeof instruction === 'string' ? site.code.instruction(instruction, ...values) : (write?.(site, a, b, c) ?? a)
  return yieldsBool || narrow === 'closed' ? result : roundToNarrow(site.code, dtype, result)
}

/** A conversion, with the meaning of `emitCast` of WebAssembly. */
export function emitCastIn(code: CCode, value: CVal, from: DType, to: DType): CVal {
  const wide = converted(code, value, dtypeInfo[from].compute, dtypeInfo[to].compute)
  return from === to || from === 'bool' ? wide : roundToNarrow(code, to, wide)
}

/** The functions that change the dtype of registers. */
const CONVERSIONS: Readonly<Partial<Record<ComputeDType, Readonly<Partial<Record<ComputeDType, string>>>>>> = {
  float32: { float64: 'f64OfF32', int32: 'i32x4_trunc_sat_f32x4_s' },
  int32: { float32: 'f32x4_convert_i32x4_s', float64: 'f64OfI32', int64: 'i64OfI32' },
  int64: { int32: 'i32OfI64', float32: 'f32OfI64', float64: 'f64OfI64' },
  float64: { float32: 'f32OfF64', int32: 'i32OfF64', int64: 'i64OfF64' },
}

/** The instruction that tells values from zero. */
const NOT_EQUAL: Readonly<Record<ComputeDType, string>> = {
  float32: 'f32x4.ne',
  float64: 'f64x2.ne',
  int32: 'i32x4.ne',
  int64: 'i64x2.ne',
  bool: 'i32x4.ne',
}

function converted(code: CCode, value: CVal, from: ComputeDType, to: ComputeDType): CVal {
  if (from === to) return value
  if (from === 'bool') return code.select(value, constantIn(code, to, 1), constantIn(code, to, 0))
  if (to === 'bool') return code.instruction(NOT_EQUAL[from], value, constantIn(code, from, 0))
  // By way of float64, which has every float32.
  if (from === 'float32' && to === 'int64') return converted(code, converted(code, value, from, 'float64'), 'float64', to)
  const name = CONVERSIONS[from]?.[to]
  if (name === undefined) throw new InternalError(`there is no conversion from ${from} to ${to}`)
  return code.call(name, kindOf(to), value)
}
