// Emits the operations of the loop IR as vector code: constants, scalar operations (their code is in the table ../scalars/scalarOps.ts), conversions and
// accumulation.
import { InternalError } from '../../errors/index.ts'
import { forEachExpr, operandDType } from '../ir/analysis.ts'
import { constantIn } from '../numbers/constantCode.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { ComputeDType, DType } from '../numbers/dtype.ts'
import type { CallExpr, Combine, Stmt } from '../ir/loopIr.ts'
import { scalarOp } from '../scalars/scalarOps.ts'
import type { ScalarOp } from '../scalars/scalarOps.ts'
import type { ModuleBuilder, PlainOp } from '../wasm/assembler.ts'
import { ModuleFunctions } from '../wasm/moduleFunctions.ts'
import type { HostFunction } from '../wasm/moduleFunctions.ts'
import { roundToNarrow } from '../wasm/narrowTypes.ts'
import type { ScalarSite, WasmScalar } from '../wasm/scalarCode.ts'
import type { Val, VectorCode } from '../wasm/vectorCode.ts'

function codeOf(op: ScalarOp, dtype: DType): WasmScalar {
  const code = scalarOp(op).wasm[dtypeInfo[dtype].compute]
  if (code === undefined) throw new InternalError(`the operation ${op} is not defined for ${dtype}; verifyKernel should have refused the kernel`)
  return code
}

/** The functions of a module that will contain the statements. Imports the JavaScript functions that they call. */
export function functionsFor(module: ModuleBuilder, body: readonly Stmt[]): ModuleFunctions {
  const hosts = new Set<HostFunction>()
  forEachExpr(body, (expr) => {
    if (expr.kind !== 'call') return
    const code = codeOf(expr.op, operandDType(expr))
    if (typeof code !== 'string' && code.host !== null) hosts.add(code.host)
  })
  return new ModuleFunctions(module, hosts)
}

/** A scalar operation. `args` are the evaluated operands of `expr`. */
export function emitCall(code: VectorCode, functions: ModuleFunctions, expr: CallExpr, args: readonly Val[]): Val {
  const right = expr.args[1]
  return emitOperation(
    { code, functions, right: right?.kind === 'const' && typeof right.value === 'number' ? right.value : null },
    expr.op,
    operandDType(expr),
    args,
  )
}

function emitOperation(site: ScalarSite, op: ScalarOp, dtype: DType, args: readonly Val[]): Val {
  const operation = codeOf(op, dtype)
  const [a, b = a, c = b] = args
  if (a === undefined || b === undefined || c === undefined) throw new InternalError(`the operation ${op} has no operands`)
  const result =
    typeof operation !== 'string' ? operation.emit(site, a, b, c) : args.length === 1 ? site.code.op1(operation, a) : site.code.op2(operation, a, b)
  const { narrow, yieldsBool } = scalarOp(op)
  return yieldsBool || narrow === 'closed' ? result : roundToNarrow(site.code, dtype, result)
}

/** One step of an accumulation. */
export function emitCombine(code: VectorCode, functions: ModuleFunctions, combine: Combine, dtype: DType, a: Val, b: Val): Val {
  return emitOperation({ code, functions, right: null }, combine, dtype, [a, b])
}

/** The instruction that tells values from zero, by dtype. */
const NOT_EQUAL: Readonly<Record<ComputeDType, PlainOp>> = {
  float32: 'f32x4.ne',
  float64: 'f64x2.ne',
  int32: 'i32x4.ne',
  int64: 'i64x2.ne',
  bool: 'i32x4.ne',
}

/** A conversion. From floats to integers it truncates and saturates, and NaN becomes 0; narrow integers keep the low bits. To bool, any value but 0 is true. */
export function emitCast(code: VectorCode, value: Val, from: DType, to: DType): Val {
  const wide = convert(code, value, dtypeInfo[from].compute, dtypeInfo[to].compute)
  return from === to || from === 'bool' ? wide : roundToNarrow(code, to, wide)
}

/** A conversion between the dtypes of registers. */
function convert(code: VectorCode, value: Val, from: ComputeDType, to: ComputeDType): Val {
  if (from === to) return value
  if (from === 'bool') return code.op2('v128.and', value, constantIn(code, to, 1))
  if (to === 'bool') return code.op2(NOT_EQUAL[from], value, constantIn(code, from, 0))
  if (from === 'float32' && to === 'int32') return code.op1('i32x4.trunc_sat_f32x4_s', value)
  if (from === 'int32' && to === 'float32') return code.op1('f32x4.convert_i32x4_s', value)
  // Instructions that change the width take, or leave, 32-bit elements in the first two lanes; each belongs in both halves of its 64 bits.
  const joined = (a: Val): Val => code.shuffle32(a, a, [0, 2, 0, 2])
  const spread = (a: Val): Val => code.shuffle32(a, a, [0, 0, 1, 1])
  switch (from) {
    case 'float32':
      return convert(code, code.op1('f64x2.promote_low_f32x4', joined(value)), 'float64', to)
    case 'int32':
      return code.op1(to === 'float64' ? 'f64x2.convert_low_i32x4_s' : 'i64x2.extend_low_i32x4_s', joined(value))
    case 'int64':
      if (to === 'int32') return code.shuffle32(value, value, [0, 0, 2, 2])
      if (to === 'float64') return eachInt64(code, value, ['f64.convert_i64_s'])
      // By way of float64 it would be rounded twice.
      return spread(code.op1('f32x4.demote_f64x2_zero', eachInt64(code, value, ['f32.convert_i64_s', 'f64.promote_f32'])))
    default:
      if (to !== 'int64') return spread(code.op1(to === 'float32' ? 'f32x4.demote_f64x2_zero' : 'i32x4.trunc_sat_f64x2_s_zero', value))
      return code.eachLane64('i64x2', [value], (v, lane) => {
        code.f.get(code.at(value, v))
        code.f.lane('f64x2.extract_lane', lane)
        code.f.op('i64.trunc_sat_f64_s')
      })
  }
}

/** Converts each int64 to a float64 by scalar instructions. */
const eachInt64 = (code: VectorCode, value: Val, ops: readonly PlainOp[]): Val =>
  code.eachLane64('f64x2', [value], (v, lane) => {
    code.f.get(code.at(value, v))
    code.f.lane('i64x2.extract_lane', lane)
    code.f.ops(...ops)
  })
