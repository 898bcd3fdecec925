// Scalar operations as vector instructions. Operands are on the stack in order; the result is left there.
import type { DType } from '../dtype.ts'
import type { ScalarOp } from '../loopIr.ts'
import type { FunctionBuilder, PlainOp } from './assembler.ts'
import { erf, exp, expm1, log, log1p, sigmoid, sinCos, tanh } from './elementary.ts'

/** Function indices of the host's mathematics. */
export type MathImports = Readonly<Record<'exp' | 'expm1' | 'log' | 'log1p' | 'sin' | 'cos' | 'tanh' | 'pow' | 'erf', number>>

export interface OpContext {
  readonly f: FunctionBuilder
  readonly imports: MathImports
  v128(): number
}

/** Converts the vector on the stack. */
export function emitCast(c: OpContext, from: DType, to: DType): void {
  const { f } = c
  if (from === to) return
  if (to === 'bool') {
    if (from === 'int32') {
      f.i32x4Const(0)
      f.op('i32x4.ne')
    } else if (from === 'float32') {
      f.f32x4Const(0)
      f.op('f32x4.ne')
    } else {
      f.f64x2Const(0)
      f.op('f64x2.ne')
    }
    return
  }
  if (from === 'bool') {
    // Masks to 0 or 1.
    f.i32x4Const(1)
    f.op('v128.and')
    return emitCast(c, 'int32', to)
  }
  const table: Record<string, PlainOp> = {
    'int32>float32': 'f32x4.convert_i32x4_s',
    'int32>float64': 'f64x2.convert_low_i32x4_s',
    'float32>int32': 'i32x4.trunc_sat_f32x4_s',
    'float64>int32': 'i32x4.trunc_sat_f64x2_s_zero',
    'float32>float64': 'f64x2.promote_low_f32x4',
    'float64>float32': 'f32x4.demote_f64x2_zero',
  }
  const op = table[`${from}>${to}`]
  if (op !== undefined) f.op(op)
}

/** Applies `op` to operands of `dtype` on the stack. `lanes` says how many lanes count. */
export function emitCall(c: OpContext, op: ScalarOp, dtype: DType, lanes: 1 | 4): void {
  if (op === 'where') return where(c, dtype)
  if (dtype === 'bool') return onBool(c, op)
  if (dtype === 'int32') return onInt(c, op, lanes)
  if (dtype === 'float64') return onDouble(c, op)
  onFloat(c, op, lanes)
}

function where(c: OpContext, dtype: DType): void {
  const { f } = c
  const no = c.v128()
  const yes = c.v128()
  const condition = c.v128()
  f.set(no)
  f.set(yes)
  if (dtype === 'float64') f.op('i64x2.extend_low_i32x4_s')
  f.set(condition)
  f.get(yes)
  f.get(no)
  f.get(condition)
  f.op('v128.bitselect')
}

function onBool(c: OpContext, op: ScalarOp): void {
  const { f } = c
  const table: Partial<Record<ScalarOp, PlainOp>> = {
    and: 'v128.and',
    or: 'v128.or',
    bitAnd: 'v128.and',
    bitOr: 'v128.or',
    bitXor: 'v128.xor',
    ne: 'v128.xor',
    mul: 'v128.and',
    add: 'v128.or',
    min: 'v128.and',
    max: 'v128.or',
    not: 'v128.not',
  }
  const known = table[op]
  if (known !== undefined) return f.op(known)
  if (op === 'eq') {
    f.op('v128.xor')
    return f.op('v128.not')
  }
  throw new Error(`the operation ${op} is not defined on bool`)
}

const INT: Partial<Record<ScalarOp, PlainOp>> = {
  add: 'i32x4.add',
  sub: 'i32x4.sub',
  mul: 'i32x4.mul',
  min: 'i32x4.min_s',
  max: 'i32x4.max_s',
  neg: 'i32x4.neg',
  abs: 'i32x4.abs',
  eq: 'i32x4.eq',
  ne: 'i32x4.ne',
  lt: 'i32x4.lt_s',
  le: 'i32x4.le_s',
  gt: 'i32x4.gt_s',
  ge: 'i32x4.ge_s',
  bitAnd: 'v128.and',
  bitOr: 'v128.or',
  bitXor: 'v128.xor',
  and: 'v128.and',
  or: 'v128.or',
}

function onInt(c: OpContext, op: ScalarOp, lanes: 1 | 4): void {
  const { f } = c
  const known = INT[op]
  if (known !== undefined) return f.op(known)
  switch (op) {
    case 'floor':
    case 'ceil':
    case 'round':
    case 'trunc':
      return
    case 'isnan':
      f.op('drop')
      return f.i32x4Const(0)
    case 'sign': {
      const x = c.v128()
      f.set(x)
      f.get(x)
      f.i32x4Const(0)
      f.op('i32x4.lt_s')
      f.get(x)
      f.i32x4Const(0)
      f.op('i32x4.gt_s')
      return f.op('i32x4.sub')
    }
    case 'not':
      f.i32x4Const(0)
      return f.op('i32x4.eq')
    case 'shl':
    case 'shrU':
    case 'div':
    case 'floorDiv':
    case 'remainder':
    case 'mulHiU':
    case 'pow':
      return perLane(c, op, lanes)
    default:
      throw new Error(`the operation ${op} is not defined on int32`)
  }
}

/** Integer operations without a vector instruction. */
function perLane(c: OpContext, op: ScalarOp, lanes: 1 | 4): void {
  const { f } = c
  const [a, b, out] = [c.v128(), c.v128(), c.v128()]
  const [x, y, q] = [f.local('i32'), f.local('i32'), f.local('i32')]
  f.set(b)
  f.set(a)
  f.get(a)
  f.set(out)
  for (let lane = 0; lane < lanes; lane++) {
    f.get(a)
    f.lane('i32x4.extract_lane', lane)
    f.set(x)
    f.get(b)
    f.lane('i32x4.extract_lane', lane)
    f.set(y)
    f.get(out)
    scalarInt(c, op, x, y, q)
    f.lane('i32x4.replace_lane', lane)
    f.set(out)
  }
  f.get(out)
}

function scalarInt(c: OpContext, op: ScalarOp, x: number, y: number, q: number): void {
  const { f } = c
  const get = (...locals: readonly number[]): void => locals.forEach((l) => f.get(l))
  if (op === 'shl' || op === 'shrU') {
    get(x, y)
    return f.op(op === 'shl' ? 'i32.shl' : 'i32.shr_u')
  }
  if (op === 'mulHiU') {
    f.get(x)
    f.op('i64.extend_i32_u')
    f.get(y)
    f.op('i64.extend_i32_u')
    f.op('i64.mul')
    f.i64Const(32n)
    f.op('i64.shr_u')
    return f.op('i32.wrap_i64')
  }
  if (op === 'pow') {
    f.get(x)
    f.op('f64.convert_i32_s')
    f.get(y)
    f.op('f64.convert_i32_s')
    f.call(c.imports.pow)
    return f.op('i32.trunc_sat_f64_s')
  }
  // Division by zero gives 0 instead of a trap; so does the one quotient that overflows.
  const safe = (): void => {
    f.get(y)
    f.i32Const(1)
    f.get(y)
    f.op('select')
  }
  f.get(x)
  f.op('f64.convert_i32_s')
  safe()
  f.op('f64.convert_i32_s')
  f.op('f64.div')
  if (op === 'floorDiv' || op === 'remainder') f.op('f64.floor')
  f.op('i32.trunc_sat_f64_s')
  f.set(q)
  if (op === 'remainder') {
    f.get(x)
    get(q)
    safe()
    f.op('i32.mul')
    f.op('i32.sub')
    f.set(q)
  }
  f.get(q)
  f.i32Const(0)
  f.get(y)
  f.op('select')
}

const FLOAT: Partial<Record<ScalarOp, PlainOp>> = {
  add: 'f32x4.add',
  sub: 'f32x4.sub',
  mul: 'f32x4.mul',
  div: 'f32x4.div',
  min: 'f32x4.min',
  max: 'f32x4.max',
  neg: 'f32x4.neg',
  abs: 'f32x4.abs',
  floor: 'f32x4.floor',
  ceil: 'f32x4.ceil',
  round: 'f32x4.nearest',
  trunc: 'f32x4.trunc',
  sqrt: 'f32x4.sqrt',
  eq: 'f32x4.eq',
  ne: 'f32x4.ne',
  lt: 'f32x4.lt',
  le: 'f32x4.le',
  gt: 'f32x4.gt',
  ge: 'f32x4.ge',
}

function onFloat(c: OpContext, op: ScalarOp, lanes: 1 | 4): void {
  const { f } = c
  const known = FLOAT[op]
  if (known !== undefined) return f.op(known)
  const s = c
  const x = c.v128()
  const inline = { exp, expm1, log, log1p, tanh, erf, sigmoid }[op as 'exp'] as ((s: OpContext, x: number) => void) | undefined
  if (inline !== undefined) {
    f.set(x)
    return inline(s, x)
  }
  switch (op) {
    case 'rsqrt':
    case 'reciprocal':
      if (op === 'rsqrt') f.op('f32x4.sqrt')
      f.set(x)
      f.f32x4Const(1)
      f.get(x)
      return f.op('f32x4.div')
    case 'isnan':
      f.tee(x)
      f.get(x)
      return f.op('f32x4.ne')
    case 'sign':
      f.set(x)
      f.f32x4Const(1)
      f.get(x)
      f.f32x4Const(0)
      f.op('f32x4.gt')
      f.op('v128.and')
      f.f32x4Const(1)
      f.get(x)
      f.f32x4Const(0)
      f.op('f32x4.lt')
      f.op('v128.and')
      return f.op('f32x4.sub')
    case 'not':
      f.f32x4Const(0)
      return f.op('f32x4.eq')
    case 'floorDiv':
      f.op('f32x4.div')
      return f.op('f32x4.floor')
    case 'remainder': {
      const b = c.v128()
      f.set(b)
      f.set(x)
      f.get(x)
      f.get(x)
      f.get(b)
      f.op('f32x4.div')
      f.op('f32x4.floor')
      f.get(b)
      f.op('f32x4.mul')
      return f.op('f32x4.sub')
    }
    case 'sin':
    case 'cos':
      f.set(x)
      return trigonometric(c, x, op, lanes)
    case 'pow':
      return floatPow(c, lanes)
    default:
      throw new Error(`the operation ${op} is not defined on float32`)
  }
}

/** The polynomial where it is accurate; the host's function when some |x| is beyond its range reduction. */
function trigonometric(c: OpContext, x: number, op: 'sin' | 'cos', lanes: 1 | 4): void {
  const { f } = c
  const out = c.v128()
  f.get(x)
  f.op('f32x4.abs')
  f.f32x4Const(8192)
  f.op('f32x4.gt')
  if (lanes === 1) {
    f.i32x4Lanes(-1, 0, 0, 0)
    f.op('v128.and')
  }
  f.op('v128.any_true')
  f.if(
    () => {
      f.get(x)
      f.set(out)
      for (let lane = 0; lane < lanes; lane++) {
        f.get(out)
        f.get(x)
        f.lane('f32x4.extract_lane', lane)
        f.op('f64.promote_f32')
        f.call(c.imports[op])
        f.op('f32.demote_f64')
        f.lane('f32x4.replace_lane', lane)
        f.set(out)
      }
    },
    () => {
      sinCos(c, x, op === 'cos')
      f.set(out)
    },
  )
  f.get(out)
}

function floatPow(c: OpContext, lanes: 1 | 4): void {
  const { f } = c
  const [a, b, out] = [c.v128(), c.v128(), c.v128()]
  f.set(b)
  f.set(a)
  f.get(a)
  f.set(out)
  for (let lane = 0; lane < lanes; lane++) {
    f.get(out)
    for (const v of [a, b]) {
      f.get(v)
      f.lane('f32x4.extract_lane', lane)
      f.op('f64.promote_f32')
    }
    f.call(c.imports.pow)
    f.op('f32.demote_f64')
    f.lane('f32x4.replace_lane', lane)
    f.set(out)
  }
  f.get(out)
}

const DOUBLE: Partial<Record<ScalarOp, PlainOp>> = {
  add: 'f64x2.add',
  sub: 'f64x2.sub',
  mul: 'f64x2.mul',
  div: 'f64x2.div',
  min: 'f64x2.min',
  max: 'f64x2.max',
  neg: 'f64x2.neg',
  abs: 'f64x2.abs',
  floor: 'f64x2.floor',
  ceil: 'f64x2.ceil',
  round: 'f64x2.nearest',
  trunc: 'f64x2.trunc',
  sqrt: 'f64x2.sqrt',
  eq: 'f64x2.eq',
  ne: 'f64x2.ne',
  lt: 'f64x2.lt',
  le: 'f64x2.le',
  gt: 'f64x2.gt',
  ge: 'f64x2.ge',
}

function onDouble(c: OpContext, op: ScalarOp): void {
  const { f } = c
  const known = DOUBLE[op]
  if (known !== undefined) return f.op(known)
  const x = c.v128()
  const host = (name: keyof MathImports): void => {
    f.lane('f64x2.extract_lane', 0)
    f.call(c.imports[name])
    f.op('f64x2.splat')
  }
  switch (op) {
    case 'exp':
    case 'expm1':
    case 'log':
    case 'log1p':
    case 'sin':
    case 'cos':
    case 'tanh':
    case 'erf':
      return host(op)
    case 'sigmoid':
      f.op('f64x2.neg')
      host('exp')
      f.f64x2Const(1)
      f.op('f64x2.add')
      f.set(x)
      f.f64x2Const(1)
      f.get(x)
      return f.op('f64x2.div')
    case 'rsqrt':
    case 'reciprocal':
      if (op === 'rsqrt') f.op('f64x2.sqrt')
      f.set(x)
      f.f64x2Const(1)
      f.get(x)
      return f.op('f64x2.div')
    case 'isnan':
      f.tee(x)
      f.get(x)
      return f.op('f64x2.ne')
    case 'not':
      f.f64x2Const(0)
      return f.op('f64x2.eq')
    case 'sign':
      f.set(x)
      f.f64x2Const(1)
      f.get(x)
      f.f64x2Const(0)
      f.op('f64x2.gt')
      f.op('v128.and')
      f.f64x2Const(1)
      f.get(x)
      f.f64x2Const(0)
      f.op('f64x2.lt')
      f.op('v128.and')
      return f.op('f64x2.sub')
    case 'floorDiv':
      f.op('f64x2.div')
      return f.op('f64x2.floor')
    case 'remainder': {
      const b = c.v128()
      f.set(b)
      f.set(x)
      f.get(x)
      f.get(x)
      f.get(b)
      f.op('f64x2.div')
      f.op('f64x2.floor')
      f.get(b)
      f.op('f64x2.mul')
      return f.op('f64x2.sub')
    }
    case 'pow': {
      const b = c.v128()
      f.set(b)
      f.lane('f64x2.extract_lane', 0)
      f.get(b)
      f.lane('f64x2.extract_lane', 0)
      f.call(c.imports.pow)
      return f.op('f64x2.splat')
    }
    default:
      throw new Error(`the operation ${op} is not defined on float64`)
  }
}
