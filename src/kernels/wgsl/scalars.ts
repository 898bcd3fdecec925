// The shader code of scalar operations: the column `wgsl` of the table ../scalars/scalarOps.ts, in a file of its own so that programs without WebGPU do not carry it. Types demand an entry
// for every operation, and for every dtype of its group; a test holds the groups against the table. There is no float64 in shaders.
import { UnsupportedError } from '../../errors/index.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { ComputeDType, DType } from '../numbers/dtype.ts'
import { scalarOp } from '../scalars/scalarOps.ts'
import type { ScalarOp } from '../scalars/scalarOps.ts'
import type { LaneBinary, LaneUnary } from '../wasm/laneCode.ts'
import { roundToNarrow } from '../wasm/narrowTypes.ts'
import { simplePower } from '../wasm/scalarCode.ts'
import type { WgslCode } from './wgslCode.ts'

/** Operands are the names of values; those beyond the operation's arity repeat the last one. `right` is the second operand if that is a constant number. */
export interface WgslSite {
  readonly code: WgslCode
  readonly right: number | null
}

/** Writes an operation for one dtype. */
export type WgslScalar = (site: WgslSite, a: string, b: string, c: string) => string

type Column<D extends ComputeDType> = Readonly<Record<D, WgslScalar>>

const one =
  (name: LaneUnary): WgslScalar =>
  ({ code }, a) =>
    code.op1(name, a)
const two =
  (name: LaneBinary): WgslScalar =>
  ({ code }, a, b) =>
    code.op2(name, a, b)
/** A call of functions of the library: of one operand, of two, and of two in the other order. */
const call1 =
  (name: string): WgslScalar =>
  ({ code }, a) =>
    code.call(name, a)
const call2 =
  (name: string): WgslScalar =>
  ({ code }, a, b) =>
    code.call(name, a, b)
const turned =
  (name: string): WgslScalar =>
  ({ code }, a, b) =>
    code.call(name, b, a)
/** The opposite of a mask. */
const not =
  (condition: WgslScalar): WgslScalar =>
  (site, a, b, c) =>
    site.code.op1('v128.not', condition(site, a, b, c))
const same: WgslScalar = (_, a) => a
const never: WgslScalar = ({ code }) => code.i32(0)
const select: WgslScalar = ({ code }, mask, a, b) => code.select(mask, a, b)
const infix =
  (symbol: string): WgslScalar =>
  ({ code }, a, b) =>
    code.let(`${a} ${symbol} ${b}`)

const whole = (float: LaneUnary): Column<'int32' | 'int64' | 'float32'> => ({ int32: same, int64: same, float32: one(float) })
const bits = (symbol: '&' | '|' | '^'): Column<'bool' | 'int32' | 'int64'> => ({ bool: infix(symbol), int32: infix(symbol), int64: infix(symbol) })

/** A comparison; true is -1, so bools are compared by the opposite instruction. */
const comparison = (
  float: 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge',
  int: 'eq' | 'ne' | 'lt_s' | 'le_s' | 'gt_s' | 'ge_s',
  bool: 'eq' | 'ne' | 'lt_s' | 'le_s' | 'gt_s' | 'ge_s',
  int64: WgslScalar,
): Column<'bool' | 'int32' | 'int64' | 'float32'> => ({
  bool: two(`i32x4.${bool}`),
  int32: two(`i32x4.${int}`),
  int64,
  float32: two(`f32x4.${float}`),
})

const extreme64 =
  (isFirst: WgslScalar): WgslScalar =>
  (site, a, b, c) =>
    site.code.select(isFirst(site, a, b, c), a, b)

/** A shift; its count is taken modulo 32. */
const shift =
  (expression: (a: string, count: string) => string): WgslScalar =>
  ({ code }, a, b) =>
    code.let(expression(a, `(${b} & 31u)`))
const shift64 =
  (name: string): WgslScalar =>
  ({ code }, a, b) =>
    code.call(name, a, `${b}.x`)

const floatSign: WgslScalar = ({ code }, a) => {
  const unit = code.op2('v128.or', code.op2('v128.and', a, code.i32(-0x80000000)), code.f32(1))
  const isZero = code.op2('f32x4.eq', a, code.f32(0))
  const value = code.select(isZero, code.f32(0), unit)
  return code.select(code.op2('f32x4.eq', a, a), value, code.f32(0))
}

const intSign: WgslScalar = ({ code }, a) => code.let(`bitcast<u32>(sign(bitcast<i32>(${a})))`)

const floatPower: WgslScalar = ({ code, right }, a, b) => {
  const steps = {
    one: () => code.f32(1),
    mul: (x: string, y: string) => code.op2('f32x4.mul', x, y),
    div: (x: string, y: string) => code.op2('f32x4.div', x, y),
    sqrt: (x: string) => code.op1('f32x4.sqrt', x),
  }
  return (right === null ? null : simplePower(steps, right, a)) ?? code.call('fPow', a, b)
}

const inverseOf =
  (root: boolean): WgslScalar =>
  ({ code }, a) =>
    code.op2('f32x4.div', code.f32(1), root ? code.op1('f32x4.sqrt', a) : a)

const less = call2('l_lt')
const more = turned('l_lt')
const equal = call2('l_eq')

/** Operations of all dtypes. */
const ofAll = {
  add: { bool: infix('|'), int32: two('i32x4.add'), int64: call2('l_add'), float32: two('f32x4.add') },
  mul: { bool: infix('&'), int32: two('i32x4.mul'), int64: call2('l_mul'), float32: two('f32x4.mul') },
  min: { bool: infix('&'), int32: two('i32x4.min_s'), int64: extreme64(less), float32: two('f32x4.min') },
  max: { bool: infix('|'), int32: two('i32x4.max_s'), int64: extreme64(more), float32: two('f32x4.max') },
  where: { bool: select, int32: select, int64: select, float32: select },
  eq: comparison('eq', 'eq', 'eq', equal),
  ne: comparison('ne', 'ne', 'ne', not(equal)),
  lt: comparison('lt', 'lt_s', 'gt_s', less),
  le: comparison('le', 'le_s', 'ge_s', not(more)),
  gt: comparison('gt', 'gt_s', 'lt_s', more),
  ge: comparison('ge', 'ge_s', 'le_s', not(less)),
} as const satisfies Partial<Record<ScalarOp, Column<'bool' | 'int32' | 'int64' | 'float32'>>>

/** Operations of numbers. */
const ofNumbers = {
  sub: { int32: two('i32x4.sub'), int64: call2('l_sub'), float32: two('f32x4.sub') },
  div: { int32: call2('div'), int64: call2('l_div'), float32: two('f32x4.div') },
  floorDiv: { int32: call2('floorDiv'), int64: call2('l_floorDiv'), float32: call2('fFloorDiv') },
  remainder: { int32: call2('remainder'), int64: call2('l_remainder'), float32: call2('fRemainder') },
  pow: { int32: call2('pow'), int64: call2('l_pow'), float32: floatPower },
  neg: { int32: one('i32x4.neg'), int64: call1('l_neg'), float32: one('f32x4.neg') },
  abs: { int32: one('i32x4.abs'), int64: call1('l_abs'), float32: one('f32x4.abs') },
  sign: { int32: intSign, int64: call1('l_sign'), float32: floatSign },
  floor: whole('f32x4.floor'),
  ceil: whole('f32x4.ceil'),
  round: whole('f32x4.nearest'),
  trunc: whole('f32x4.trunc'),
  isnan: { int32: never, int64: never, float32: ({ code }, a) => code.op2('f32x4.ne', a, a) },
} as const satisfies Partial<Record<ScalarOp, Column<'int32' | 'int64' | 'float32'>>>

/** Operations of bits and of integers. */
const ofBits = { bitAnd: bits('&'), bitOr: bits('|'), bitXor: bits('^') } as const satisfies Partial<
  Record<ScalarOp, Column<'bool' | 'int32' | 'int64'>>
>
const ofIntegers = {
  shl: { int32: shift((a, n) => `${a} << ${n}`), int64: shift64('l_shl') },
  shrS: { int32: shift((a, n) => `bitcast<u32>(bitcast<i32>(${a}) >> ${n})`), int64: shift64('l_shrS') },
  shrU: { int32: shift((a, n) => `${a} >> ${n}`), int64: shift64('l_shrU') },
} as const satisfies Partial<Record<ScalarOp, Column<'int32' | 'int64'>>>
const ofInt32 = { mulHiU: { int32: call2('mulHigh') } } as const satisfies Partial<Record<ScalarOp, Column<'int32'>>>
const ofConditions = {
  and: { bool: infix('&') },
  or: { bool: infix('|') },
  not: { bool: one('v128.not') },
} as const satisfies Partial<Record<ScalarOp, Column<'bool'>>>

/** Functions of floats. */
const ofFloats = {
  mulAdd: { float32: ({ code }, a, b, c) => code.freeMulAdd(a, b, c) },
  sqrt: { float32: one('f32x4.sqrt') },
  rsqrt: { float32: inverseOf(true) },
  reciprocal: { float32: inverseOf(false) },
  exp: { float32: call1('exp') },
  expm1: { float32: call1('expm1') },
  log: { float32: call1('log') },
  log1p: { float32: call1('log1p') },
  sin: { float32: call1('sin') },
  cos: { float32: call1('cos') },
  tanh: { float32: call1('tanh') },
  erf: { float32: call1('erf') },
  sigmoid: { float32: call1('sigmoid') },
  tan: { float32: call1('tan') },
  asin: { float32: call1('asin') },
  acos: { float32: call1('acos') },
  atan: { float32: call1('atan') },
  atan2: { float32: call2('atan2') },
  sinh: { float32: call1('sinh') },
  cosh: { float32: call1('cosh') },
  asinh: { float32: call1('asinh') },
  acosh: { float32: call1('acosh') },
  atanh: { float32: call1('atanh') },
  log2: { float32: call1('log2') },
  log10: { float32: call1('log10') },
  hypot: { float32: call2('hypot') },
} as const satisfies Partial<Record<ScalarOp, Column<'float32'>>>

/** Functions that JavaScript computes in float64 for WebAssembly code too: they have no shader code. */
const MISSING = [
  ...(['erfc', 'erfinv', 'lgamma', 'digamma', 'polygamma', 'i0', 'i0e', 'i1', 'i1e', 'besselJ0', 'besselJ1', 'besselY0', 'besselY1'] as const),
  ...(['besselK0', 'besselK1', 'scaledBesselK0', 'scaledBesselK1', 'airyAi', 'erfcx', 'ndtri', 'igamma', 'igammac', 'zeta'] as const),
  ...(['chebyshevT', 'chebyshevU', 'chebyshevV', 'chebyshevW', 'shiftedChebyshevT', 'shiftedChebyshevU', 'shiftedChebyshevV'] as const),
  ...(['shiftedChebyshevW', 'hermiteH', 'hermiteHe', 'laguerre', 'legendre'] as const),
] as const
type Missing = (typeof MISSING)[number]

/** The column: null where an operation has no shader code. */
export const wgslScalars: Readonly<Record<Exclude<ScalarOp, Missing>, Readonly<Partial<Record<ComputeDType, WgslScalar>>>>> = {
  ...ofAll,
  ...ofNumbers,
  ...ofBits,
  ...ofIntegers,
  ...ofInt32,
  ...ofConditions,
  ...ofFloats,
}

/** The operations that have no shader code. */
export const withoutShader: ReadonlySet<string> = new Set<Missing>(MISSING)

const isWritten = (op: ScalarOp): op is Exclude<ScalarOp, Missing> => !withoutShader.has(op)

/** Why a dtype or an operation cannot be computed on the GPU; null if it can. */
export function whyNotOnDevice(op: ScalarOp | null, dtype: DType): string | null {
  if (dtypeInfo[dtype].compute === 'float64') return 'shaders have no float64: convert it to float32'
  return op === null || isWritten(op) ? null : `the function ${op} has no shader code`
}

/** Refuses what cannot be computed on the GPU. Throws UnsupportedError. */
export function checkOnDevice(op: ScalarOp | null, dtype: DType): void {
  const why = whyNotOnDevice(op, dtype)
  if (why !== null) throw new UnsupportedError(`WebGPU: ${why}, or let WebAssembly compute it, init({ fallback: 'wasm' }).`)
}

/** An operation on values of a dtype. Throws UnsupportedError where there is no shader code. */
export function emitScalar(site: WgslSite, op: ScalarOp, dtype: DType, args: readonly string[]): string {
  checkOnDevice(op, dtype)
  const write = isWritten(op) ? wgslScalars[op][dtypeInfo[dtype].compute] : undefined
  const [a, b = a, c = b] = args
  if (write === undefined || a === undefined || b === undefined || c === undefined)
    throw new UnsupportedError(`WebGPU: the operation ${op} has no shader code for ${dtype}.`)
  const result = write(site, a, b, c)
  const { narrow, yieldsBool } = scalarOp(op)
  return yieldsBool || narrow === 'closed' ? result : roundToNarrow(site.code, dtype, result)
}

/** A conversion. From floats to integers it truncates and saturates, and NaN becomes 0; narrow integers keep the low bits. To bool, any value but 0 is true. */
export function emitConversion(code: WgslCode, value: string, from: DType, to: DType): string {
  checkOnDevice(null, from)
  checkOnDevice(null, to)
  const wide = converted(code, value, dtypeInfo[from].compute, dtypeInfo[to].compute)
  return from === to || from === 'bool' ? wide : roundToNarrow(code, to, wide)
}

function converted(code: WgslCode, value: string, from: ComputeDType, to: ComputeDType): string {
  if (from === to) return value
  if (from === 'bool')
    return to === 'int64' ? code.let(`vec2<u32>(${value} & 1u, 0u)`) : code.op2('v128.and', value, to === 'float32' ? code.f32(1) : code.i32(1))
  if (to === 'bool') {
    if (from === 'int64') return code.op2('i32x4.ne', code.let(`${value}.x | ${value}.y`), code.i32(0))
    return code.op2(from === 'float32' ? 'f32x4.ne' : 'i32x4.ne', value, code.i32(0))
  }
  if (from === 'int64') return to === 'int32' ? code.let(`${value}.x`) : code.call('l_toFloat', value)
  if (to === 'int64') return code.call(from === 'int32' ? 'l_fromInt' : 'l_fromFloat', value)
  return code.op1(to === 'int32' ? 'i32x4.trunc_sat_f32x4_s' : 'f32x4.convert_i32x4_s', value)
}
