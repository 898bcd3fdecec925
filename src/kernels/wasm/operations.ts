// What each scalar operation is in WebAssembly, for each dtype.
//
// Registers: float32 and int32 are four lanes; bool is four lanes of 0 or -1; float64 is two equal lanes (kernels with float64 run one element
// at a time, and then all lanes of every value are equal, so that masks and splats fit any lane width).
import { InternalError } from '../../errors/index.ts'
import type { DType } from '../dtype.ts'
import type { Combine, Expr, ScalarOp } from '../loopIr.ts'
import type { PlainOp } from './assembler.ts'
import * as math from './float32Math.ts'
import type { MathLibrary } from './mathLibrary.ts'
import type { Val, VectorCode } from './vectorCode.ts'

type Type = 'f32x4' | 'f64x2' | 'i32x4'

const typeOf = (dtype: DType): Type => (dtype === 'float32' ? 'f32x4' : dtype === 'float64' ? 'f64x2' : 'i32x4')

const COMPARE: Readonly<Partial<Record<ScalarOp, string>>> = { eq: 'eq', ne: 'ne', lt: 'lt', le: 'le', gt: 'gt', ge: 'ge' }
const FLOAT_BINARY: ReadonlySet<ScalarOp> = new Set<ScalarOp>(['add', 'sub', 'mul', 'div', 'min', 'max'])
const FLOAT_UNARY: Readonly<Partial<Record<ScalarOp, string>>> = {
  neg: 'neg',
  abs: 'abs',
  floor: 'floor',
  ceil: 'ceil',
  trunc: 'trunc',
  round: 'nearest',
  sqrt: 'sqrt',
}
const INLINE: Readonly<Partial<Record<ScalarOp, (code: VectorCode, x: Val) => Val>>> = {
  exp: math.exp,
  expm1: math.expm1,
  log: math.log,
  log1p: math.log1p,
  tanh: math.tanh,
  erf: math.erf,
  sigmoid: math.sigmoid,
}
const FLOAT64_LIBRARY: ReadonlySet<ScalarOp> = new Set<ScalarOp>([
  'exp',
  'expm1',
  'log',
  'log1p',
  'sin',
  'cos',
  'tanh',
  'erf',
  'sigmoid',
  'pow',
  'remainder',
  'floorDiv',
])

/** A constant of a dtype. */
export function constantVal(code: VectorCode, dtype: DType, value: number): Val {
  if (dtype === 'float32') return code.f32(value)
  if (dtype === 'float64') return code.f64(value)
  return code.i32(dtype === 'bool' ? (value !== 0 ? -1 : 0) : value)
}

/** A call: `args` are the evaluated operands of `expr`. */
export function emitCall(code: VectorCode, library: MathLibrary, expr: Extract<Expr, { kind: 'call' }>, args: readonly Val[]): Val {
  const { op } = expr
  const [a, b, c] = args as [Val, Val, Val]
  if (op === 'where') return code.select(a, b, c)
  const dtype = (expr.args[0] as Expr).dtype
  if (op === 'and' || op === 'bitAnd') return code.op2('v128.and', a, b)
  if (op === 'or' || op === 'bitOr') return code.op2('v128.or', a, b)
  if (op === 'bitXor') return code.op2('v128.xor', a, b)
  if (op === 'not') return code.op1('v128.not', a)
  if (op in COMPARE) return compare(code, op, dtype, a, b)
  if (op === 'isnan') return dtype === 'float32' || dtype === 'float64' ? code.op2(`${typeOf(dtype) as 'f32x4' | 'f64x2'}.ne`, a, a) : code.i32(0)
  if (dtype === 'bool') return boolean(code, op, a, b)
  if (dtype === 'int32') return integer(code, library, expr, args)
  return floating(code, library, expr, dtype, args)
}

function compare(code: VectorCode, op: ScalarOp, dtype: DType, a: Val, b: Val): Val {
  // True is -1 in registers, so that bools order the other way round.
  if (dtype === 'bool') return compare(code, op, 'int32', b, a)
  const signed = dtype === 'int32' && op !== 'eq' && op !== 'ne' ? '_s' : ''
  return code.op2(`${typeOf(dtype)}.${op}${signed}` as PlainOp, a, b)
}

function boolean(code: VectorCode, op: ScalarOp, a: Val, b: Val): Val {
  if (op === 'add' || op === 'max') return code.op2('v128.or', a, b)
  if (op === 'mul' || op === 'min') return code.op2('v128.and', a, b)
  throw new InternalError(`the operation ${op} has no meaning for bool; verifyKernel should have refused it`)
}

function floating(
  code: VectorCode,
  library: MathLibrary,
  expr: Extract<Expr, { kind: 'call' }>,
  dtype: 'float32' | 'float64',
  args: readonly Val[],
): Val {
  const { op } = expr
  const [a, b] = args as [Val, Val]
  const type = dtype === 'float32' ? 'f32x4' : 'f64x2'
  const number = (value: number): Val => constantVal(code, dtype, value)
  if (FLOAT_BINARY.has(op)) return code.op2(`${type}.${op as 'add'}`, a, b)
  const unary = FLOAT_UNARY[op]
  if (unary !== undefined) return code.op1(`${type}.${unary as 'neg'}`, a)
  if (op === 'reciprocal') return code.op2(`${type}.div`, number(1), a)
  if (op === 'rsqrt') return code.op2(`${type}.div`, number(1), code.op1(`${type}.sqrt`, a))
  if (op === 'sign') {
    const positive = code.op2('v128.and', code.op2(`${type}.gt`, a, number(0)), number(1))
    return code.op2('v128.or', positive, code.op2('v128.and', code.op2(`${type}.lt`, a, number(0)), number(-1)))
  }
  if (op === 'pow') {
    const exponent = expr.args[1] as Expr
    const simple = exponent.kind === 'const' ? simplePower(code, type, exponent.value, a, number) : null
    if (simple !== null) return simple
  }
  if (dtype === 'float64' && FLOAT64_LIBRARY.has(op)) return library.float64(code, op, args)
  const inline = INLINE[op]
  if (inline !== undefined) return code.scope(() => inline(code, a))
  if (op === 'sin' || op === 'cos' || op === 'pow' || op === 'remainder' || op === 'floorDiv') return library.vector(code, op, args)
  throw new InternalError(`the operation ${op} has no meaning for ${dtype}; verifyKernel should have refused it`)
}

/** Powers that PyTorch computes by multiplication, or null. */
function simplePower(code: VectorCode, type: 'f32x4' | 'f64x2', exponent: number, a: Val, number: (value: number) => Val): Val | null {
  const square = (): Val => code.op2(`${type}.mul`, a, a)
  if (exponent === 0) return number(1)
  if (exponent === 1) return a
  if (exponent === 2) return square()
  if (exponent === 3) return code.op2(`${type}.mul`, square(), a)
  if (exponent === 0.5) return code.op1(`${type}.sqrt`, a)
  if (exponent === -0.5) return code.op2(`${type}.div`, number(1), code.op1(`${type}.sqrt`, a))
  if (exponent === -1) return code.op2(`${type}.div`, number(1), a)
  if (exponent === -2) return code.op2(`${type}.div`, number(1), square())
  return null
}

function integer(code: VectorCode, library: MathLibrary, expr: Extract<Expr, { kind: 'call' }>, args: readonly Val[]): Val {
  const { op } = expr
  const [a, b] = args as [Val, Val]
  const right = expr.args[1]
  switch (op) {
    case 'add':
    case 'sub':
    case 'mul':
      return code.op2(`i32x4.${op}`, a, b)
    case 'min':
    case 'max':
      return code.op2(`i32x4.${op}_s`, a, b)
    case 'neg':
    case 'abs':
      return code.op1(`i32x4.${op}`, a)
    case 'floor':
    case 'ceil':
    case 'round':
    case 'trunc':
      return a
    case 'sign':
      return code.op2('v128.or', code.shift('i32x4.shr_s', a, 31), code.op2('v128.and', code.op2('i32x4.gt_s', a, code.i32(0)), code.i32(1)))
    case 'div':
      return divide(code, a, b, 'f64x2.trunc')
    case 'floorDiv': {
      const shift = powerOfTwo(right)
      return shift === null ? divide(code, a, b, 'f64x2.floor') : shift === 0 ? a : code.shift('i32x4.shr_s', a, shift)
    }
    case 'remainder': {
      const shift = powerOfTwo(right)
      if (shift !== null) return code.op2('v128.and', a, code.i32(2 ** shift - 1))
      return code.op2('i32x4.sub', a, code.op2('i32x4.mul', divide(code, a, b, 'f64x2.floor'), b))
    }
    case 'pow':
      return library.vector(code, 'powInt', args)
    case 'shl':
    case 'shrU':
      return shiftBy(code, op === 'shl' ? 'i32x4.shl' : 'i32x4.shr_u', a, b, right)
    case 'mulHiU': {
      const low = code.op2('i64x2.extmul_low_i32x4_u', a, b)
      return code.shuffle32(low, code.op2('i64x2.extmul_high_i32x4_u', a, b), [1, 3, 5, 7])
    }
    default:
      throw new InternalError(`the operation ${op} has no meaning for int32; verifyKernel should have refused it`)
  }
}

/** log2 of a constant power of two, or null. */
function powerOfTwo(expr: Expr | undefined): number | null {
  if (expr?.kind !== 'const' || expr.value < 1 || (expr.value & (expr.value - 1)) !== 0) return null
  return 31 - Math.clz32(expr.value)
}

/** Integer division through float64, where every quotient of int32 rounds right. It never traps: division by zero saturates, 0 / 0 is 0. */
function divide(code: VectorCode, a: Val, b: Val, rounding: 'f64x2.trunc' | 'f64x2.floor'): Val {
  return code.scope(() => {
    const half = (x: Val, y: Val): Val => {
      const quotient = code.op2('f64x2.div', code.op1('f64x2.convert_low_i32x4_s', x), code.op1('f64x2.convert_low_i32x4_s', y))
      return code.op1('i32x4.trunc_sat_f64x2_s_zero', code.op1(rounding, quotient))
    }
    const upper = (x: Val): Val => code.shuffle32(x, x, [2, 3, 2, 3])
    return code.shuffle32(half(a, b), half(upper(a), upper(b)), [0, 1, 4, 5])
  })
}

/** A shift by the same count in all lanes is one instruction; else lane by lane. Counts are modulo 32. */
function shiftBy(code: VectorCode, name: 'i32x4.shl' | 'i32x4.shr_u', a: Val, count: Val, expr: Expr | undefined): Val {
  if (expr?.kind === 'const') return code.shift(name, a, expr.value & 31)
  const scalar = name === 'i32x4.shl' ? 'i32.shl' : 'i32.shr_u'
  return code.each([a, count], (v) => {
    code.f.get(code.at(a, v))
    for (let lane = 0; lane < 4; lane++) {
      code.f.get(code.at(a, v))
      code.f.lane('i32x4.extract_lane', lane)
      code.f.get(code.at(count, v))
      code.f.lane('i32x4.extract_lane', lane)
      code.f.op(scalar)
      code.f.lane('i32x4.replace_lane', lane)
    }
  })
}

/** A conversion. Floats to int32 truncate and saturate, NaN is 0; anything but 0 is true. */
export function emitCast(code: VectorCode, value: Val, from: DType, to: DType): Val {
  const splat = (a: Val): Val => code.shuffle32(a, a, [0, 0, 0, 0])
  if (from === to) return value
  if (from === 'bool') return code.op2('v128.and', value, constantVal(code, to, 1))
  if (to === 'bool') return code.op2(`${typeOf(from)}.ne`, value, constantVal(code, from, 0))
  if (from === 'float32') return to === 'int32' ? code.op1('i32x4.trunc_sat_f32x4_s', value) : code.op1('f64x2.promote_low_f32x4', value)
  if (from === 'int32') return to === 'float32' ? code.op1('f32x4.convert_i32x4_s', value) : code.op1('f64x2.convert_low_i32x4_s', value)
  return splat(code.op1(to === 'float32' ? 'f32x4.demote_f64x2_zero' : 'i32x4.trunc_sat_f64x2_s_zero', value))
}

/** One step of an accumulation. */
export function emitCombine(code: VectorCode, combine: Combine, dtype: DType, a: Val, b: Val): Val {
  if (dtype === 'bool') return boolean(code, combine, a, b)
  const suffix = dtype === 'int32' && (combine === 'min' || combine === 'max') ? '_s' : ''
  return code.op2(`${typeOf(dtype)}.${combine}${suffix}` as PlainOp, a, b)
}
