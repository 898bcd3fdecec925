// Emits the operations of the loop IR as vector code: constants, scalar operations (their code is in the table ../scalarOps.ts), conversions and
// accumulation.
import { InternalError } from '../../errors/index.ts'
import { forEachExpr, operandDType } from '../analysis.ts'
import type { DType } from '../dtype.ts'
import type { CallExpr, Combine, Stmt } from '../loopIr.ts'
import { scalarOps } from '../scalarOps.ts'
import type { ScalarOp } from '../scalarOps.ts'
import type { ModuleBuilder, PlainOp } from './assembler.ts'
import { ModuleFunctions } from './moduleFunctions.ts'
import type { HostFunction } from './moduleFunctions.ts'
import type { ScalarSite, WasmScalar } from './scalarCode.ts'
import type { Val, VectorCode } from './vectorCode.ts'

function codeOf(op: ScalarOp, dtype: DType): WasmScalar {
  const code = scalarOps[op].wasm[dtype]
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

/** The JavaScript functions that modules may import as `math.*`, by name. */
export const hostFunctions: Readonly<Record<string, HostFunction['run']>> = Object.fromEntries(
  Object.values(scalarOps)
    .flatMap(({ wasm }) => Object.values(wasm))
    .flatMap((code) => (typeof code === 'string' || code.host === null ? [] : [[code.host.name, code.host.run]])),
)

/** A constant of a dtype. */
export function constantVal(code: VectorCode, dtype: DType, value: number): Val {
  if (dtype === 'float32') return code.f32(value)
  if (dtype === 'float64') return code.f64(value)
  return code.i32(dtype === 'bool' ? (value !== 0 ? -1 : 0) : value)
}

/** A scalar operation. `args` are the evaluated operands of `expr`. */
export function emitCall(code: VectorCode, functions: ModuleFunctions, expr: CallExpr, args: readonly Val[]): Val {
  const right = expr.args[1]
  return emitOperation({ code, functions, right: right?.kind === 'const' ? right.value : null }, expr.op, operandDType(expr), args)
}

function emitOperation(site: ScalarSite, op: ScalarOp, dtype: DType, args: readonly Val[]): Val {
  const operation = codeOf(op, dtype)
  const [a, b = a, c = b] = args
  if (a === undefined || b === undefined || c === undefined) throw new InternalError(`the operation ${op} has no operands`)
  if (typeof operation !== 'string') return operation.emit(site, a, b, c)
  return args.length === 1 ? site.code.op1(operation, a) : site.code.op2(operation, a, b)
}

/** One step of an accumulation. */
export function emitCombine(code: VectorCode, functions: ModuleFunctions, combine: Combine, dtype: DType, a: Val, b: Val): Val {
  return emitOperation({ code, functions, right: null }, combine, dtype, [a, b])
}

/** The instruction that tells values from zero, by dtype. */
const NOT_EQUAL: Readonly<Record<DType, PlainOp>> = { float32: 'f32x4.ne', float64: 'f64x2.ne', int32: 'i32x4.ne', bool: 'i32x4.ne' }

/** A conversion. From floats to int32 it truncates and saturates, and NaN becomes 0. To bool, any value but 0 is true. */
export function emitCast(code: VectorCode, value: Val, from: DType, to: DType): Val {
  const splat = (a: Val): Val => code.shuffle32(a, a, [0, 0, 0, 0])
  if (from === to) return value
  if (from === 'bool') return code.op2('v128.and', value, constantVal(code, to, 1))
  if (to === 'bool') return code.op2(NOT_EQUAL[from], value, constantVal(code, from, 0))
  if (from === 'float32') return to === 'int32' ? code.op1('i32x4.trunc_sat_f32x4_s', value) : code.op1('f64x2.promote_low_f32x4', value)
  if (from === 'int32') return to === 'float32' ? code.op1('f32x4.convert_i32x4_s', value) : code.op1('f64x2.convert_low_i32x4_s', value)
  return splat(code.op1(to === 'float32' ? 'f32x4.demote_f64x2_zero' : 'i32x4.trunc_sat_f64x2_s_zero', value))
}
