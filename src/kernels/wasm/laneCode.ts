// The operations on 32-bit lanes that functions of scalars are written with, once for all emitters: a lane is a float32, an int32, or a mask of 0 or -1, and instructions
// have WebAssembly's names and meaning. VectorCode writes them as vectors of WebAssembly, the code of ../wgsl/ as shader text.

/** Instructions of one operand. */
export type LaneUnary =
  | 'f32x4.abs'
  | 'f32x4.neg'
  | 'f32x4.sqrt'
  | 'f32x4.floor'
  | 'f32x4.ceil'
  | 'f32x4.trunc'
  | 'f32x4.nearest'
  | 'f32x4.convert_i32x4_s'
  | 'i32x4.trunc_sat_f32x4_s'
  | 'i32x4.abs'
  | 'i32x4.neg'
  | 'v128.not'

/** Instructions of two operands. */
export type LaneBinary =
  | `f32x4.${'add' | 'sub' | 'mul' | 'div' | 'min' | 'max' | 'pmin' | 'pmax' | 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge'}`
  | `i32x4.${'add' | 'sub' | 'mul' | 'min_s' | 'max_s' | 'eq' | 'ne' | 'lt_s' | 'le_s' | 'gt_s' | 'ge_s'}`
  | `v128.${'and' | 'or' | 'xor' | 'andnot'}`

/** Shifts of every lane by a constant. */
export type LaneShift = 'i32x4.shl' | 'i32x4.shr_s' | 'i32x4.shr_u'

/** Writes operations on values of the type `V`. */
export interface LaneCode<V> {
  f32: (value: number) => V
  i32: (value: number) => V
  op1: (name: LaneUnary, a: V) => V
  op2: (name: LaneBinary, a: V, b: V) => V
  /** a * b + c of float32, rounded once or twice. */
  mulAdd: (a: V, b: V, c: V) => V
  /** c - a * b of float32, rounded once or twice. */
  subMul: (a: V, b: V, c: V) => V
  /** `a` where the mask is set, otherwise `b`. */
  select: (mask: V, a: V, b: V) => V
  shift: (name: LaneShift, a: V, count: number) => V
  /** Runs `body`; what it needs beside its result is free afterwards. */
  scope: <T extends V>(body: () => T) => T
}

/** c[0] * x^n + … + c[n] of float32, by Horner's rule; coefficients of the highest power first. */
export function polynomial<V>(code: LaneCode<V>, x: V, [first, ...rest]: readonly [number, ...number[]]): V {
  return rest.reduce((sum, c) => code.mulAdd(sum, x, code.f32(c)), code.f32(first))
}
