// The WebAssembly code of scalar operations: the types of the `wasm` column of ../scalars/scalarOps.ts, and the operations that take more than one instruction.
//
// Registers: float32 and int32 are four lanes; bool is four lanes of 0 or -1; float64 and int64 are two lanes. (In kernels with these, every element takes 64
// bits, see Elements in vectorCode.ts, so that masks fit any lane width.)
import type { PlainOp } from './assembler.ts'
import type { HostFunction, ModuleFunctions, VectorFunction } from './moduleFunctions.ts'
import type { Val, VectorCode } from './vectorCode.ts'

/** The context in which the code of an operation is written. */
export interface ScalarSite {
  readonly code: VectorCode
  readonly functions: ModuleFunctions
  /** The value of the second operand if it is a constant, otherwise null. Powers, shifts and divisions by constants have shorter code. */
  readonly right: number | null
}

/** Code of more than one instruction. */
export interface ScalarCode {
  /** The JavaScript function that the code calls and the module must import, or null. */
  readonly host: HostFunction | null
  /** Writes the code. Operands beyond the operation's arity repeat the last one. */
  readonly emit: (site: ScalarSite, a: Val, b: Val, c: Val) => Val
}

/** An operation for one dtype: a single instruction that takes its operands, or code. */
export type WasmScalar = PlainOp | ScalarCode

/** Code that calls no JavaScript function. */
export const code = (emit: ScalarCode['emit']): ScalarCode => ({ host: null, emit })

/** The operand itself. */
export const same: ScalarCode = code((_, a) => a)

/** A function of one operand that is inlined at each use. */
export const inline = (write: (code: VectorCode, x: Val) => Val): ScalarCode => code((site, a) => site.code.scope(() => write(site.code, a)))

/** The same of two operands. */
export const inlinePair = (write: (code: VectorCode, x: Val, y: Val) => Val): ScalarCode =>
  code((site, a, b) => site.code.scope(() => write(site.code, a, b)))

/** A call of a JavaScript function of float64. */
export const callHost = (host: HostFunction): ScalarCode => ({
  host,
  emit: ({ code, functions }, a, b) => functions.callHost(code, host, host.arity === 1 ? [a] : [a, b]),
})

/** A call of a JavaScript function on float32 values, which it computes in float64. */
export const callHostFloat32 = (host: HostFunction): ScalarCode => ({
  host,
  emit: ({ code, functions }, a, b) => functions.callHostFloat32(code, host, host.arity === 1 ? [a] : [a, b]),
})

/** A call of a function that the module contains. */
export const callVector = (callee: VectorFunction): ScalarCode => ({
  host: callee.host,
  emit: ({ code, functions }, a, b) => functions.call(code, callee, callee.arity === 1 ? [a] : [a, b]),
})

/** Inline code, and a call of a function for the vectors that have lanes for which it is not right; the function gets its result too. */
export const inlineOr = (write: (code: VectorCode, x: Val) => Val, isRare: (code: VectorCode, x: Val) => Val, rare: VectorFunction): ScalarCode => ({
  host: rare.host,
  emit: ({ code, functions }, a) =>
    code.scope(() => {
      const result = code.copy(write(code, a), a.length)
      const mask = isRare(code, a)
      result.forEach((local, v) => {
        code.f.get(code.at(mask, v))
        code.f.op('v128.any_true')
        code.f.if(() => {
          code.f.get(functions.call(code, rare, [[code.at(a, v)], [local]])[0])
          code.f.set(local)
        })
      })
      return result
    }),
})

type FloatType = 'f32x4' | 'f64x2'

const float = (code: VectorCode, type: FloatType, value: number): Val => (type === 'f32x4' ? code.f32(value) : code.f64(value))

/** 1 / a, or 1 / sqrt(a). */
export const inverse = (type: FloatType, root: boolean): ScalarCode =>
  code(({ code }, a) => code.op2(`${type}.div`, float(code, type, 1), root ? code.op1(`${type}.sqrt`, a) : a))

/** -1, 0 or 1; 0 for NaN. */
export const floatSign = (type: FloatType): ScalarCode =>
  code(({ code }, a) => {
    const zero = float(code, type, 0)
    const positive = code.op2('v128.and', code.op2(`${type}.gt`, a, zero), float(code, type, 1))
    return code.op2('v128.or', positive, code.op2('v128.and', code.op2(`${type}.lt`, a, zero), float(code, type, -1)))
  })

export const integerSign: ScalarCode = code(({ code }, a) =>
  code.op2('v128.or', code.shift('i32x4.shr_s', a, 31), code.op2('v128.and', code.op2('i32x4.gt_s', a, code.i32(0)), code.i32(1))),
)

/** Powers: those with a constant exponent that PyTorch computes by multiplication; `general` computes the others. */
export const powers = (type: FloatType, general: ScalarCode): ScalarCode => ({
  host: general.host,
  emit: (site, a, b, c) => (site.right === null ? null : simplePower(powerSteps(site.code, type), site.right, a)) ?? general.emit(site, a, b, c),
})

const powerSteps = (code: VectorCode, type: FloatType): PowerSteps<Val> => ({
  one: () => float(code, type, 1),
  mul: (a, b) => code.op2(`${type}.mul`, a, b),
  div: (a, b) => code.op2(`${type}.div`, a, b),
  sqrt: (a) => code.op1(`${type}.sqrt`, a),
})

/** What {@link simplePower} is computed with. */
export interface PowerSteps<V> {
  readonly one: () => V
  readonly mul: (a: V, b: V) => V
  readonly div: (a: V, b: V) => V
  readonly sqrt: (a: V) => V
}

/** A power with an exponent that needs no logarithm; null for the others. */
export function simplePower<V>({ one, mul, div, sqrt }: PowerSteps<V>, exponent: number, a: V): V | null {
  if (exponent === 0) return one()
  if (exponent === 1) return a
  if (exponent === 2) return mul(a, a)
  if (exponent === 3) return mul(mul(a, a), a)
  if (exponent === 0.5) return sqrt(a)
  if (exponent === -0.5) return div(one(), sqrt(a))
  if (exponent === -1) return div(one(), a)
  if (exponent === -2) return div(one(), mul(a, a))
  return null
}

/** int32 division that truncates. */
export const integerDivision: ScalarCode = code(({ code }, a, b) => divide(code, a, b, 'f64x2.trunc'))

/** Python's `//` of int32. */
export const integerFloorDivision: ScalarCode = code(({ code, right }, a, b) => {
  const shift = powerOfTwo(right)
  return shift === null ? divide(code, a, b, 'f64x2.floor') : shift === 0 ? a : code.shift('i32x4.shr_s', a, shift)
})

/** Python's `%` of int32. */
export const integerRemainder: ScalarCode = code(({ code, right }, a, b) => {
  const shift = powerOfTwo(right)
  if (shift !== null) return code.op2('v128.and', a, code.i32(2 ** shift - 1))
  const rest = code.op2('i32x4.sub', a, code.op2('i32x4.mul', divide(code, a, b, 'f64x2.floor'), b))
  // The quotient -2^31 / -1 saturates.
  return code.op2('v128.and', rest, code.op2('i32x4.ne', b, code.i32(-1)))
})

/** log2 of a constant power of two, or null. */
function powerOfTwo(value: number | null): number | null {
  if (value === null || value < 1 || (value & (value - 1)) !== 0) return null
  return 31 - Math.clz32(value)
}

/** Integer division through float64, which rounds every quotient of int32 values correctly. It never traps: x / 0 saturates, and 0 / 0 is 0. */
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

/** The upper 32 bits of the product of two unsigned numbers. */
export const upperProduct: ScalarCode = code(({ code }, a, b) => {
  const low = code.op2('i64x2.extmul_low_i32x4_u', a, b)
  return code.shuffle32(low, code.op2('i64x2.extmul_high_i32x4_u', a, b), [1, 3, 5, 7])
})

/** A shift. By a constant it is one instruction; otherwise each lane is shifted separately. Counts are taken modulo 32. */
export const shift = (direction: 'shl' | 'shr_s' | 'shr_u'): ScalarCode =>
  code(({ code, right }, a, count) => {
    if (right !== null) return code.shift(`i32x4.${direction}`, a, right & 31)
    return code.each([a, count], (v) => {
      code.f.get(code.at(a, v))
      for (let lane = 0; lane < 4; lane++) {
        code.f.get(code.at(a, v))
        code.f.lane('i32x4.extract_lane', lane)
        code.f.get(code.at(count, v))
        code.f.lane('i32x4.extract_lane', lane)
        code.f.op(`i32.${direction}`)
        code.f.lane('i32x4.replace_lane', lane)
      }
    })
  })
