// The loop IR: what a kernel computes, as loops over buffers, before any emitter turns it into code.
// It knows nothing of WebAssembly, tensors or operators. Eager operators and inductor both build it; `verify.ts` is its specification,
// `print.ts` its text form, `wasm/` its first emitter.
//
// A kernel is a list of parameters (pointers, sizes, scalars) and a list of statements. Expressions are immutable objects and may be
// shared: an emitter evaluates a shared expression once per loop iteration, at its first use, and again only after a local that it reads
// has changed. (So a shared load keeps the value it had, even when the element is overwritten later in that iteration.)
//
// Example: out[i] = relu(a[i] + b[i]) over n elements
//
//     const n = sizeParam('n'), i = loopVar('i', n)
//     const out = bufferParam('out', 'float32', 'write'), a = bufferParam('a', 'float32'), b = bufferParam('b', 'float32')
//     const k: Kernel = { name: 'add_relu', params: [out, a, b, n], body: [
//       forLoop(i, 'simd', [store(out, at([i, 1]), call('max', call('add', load(a, at([i, 1])), load(b, at([i, 1]))), constant('float32', 0)))]),
//     ] }
import type { DType } from './dtype.ts'

/** A pointer to the first element of a buffer. Passed as an i32 byte address. */
export interface BufferParam {
  readonly kind: 'buffer'
  readonly name: string
  readonly dtype: DType
  readonly access: 'read' | 'write' | 'readwrite'
}

/** An i32 run-time size or stride (in elements). */
export interface SizeParam {
  readonly kind: 'size'
  readonly name: string
}

/** A scalar operand, e.g. `alpha` or a learning rate. Passed as f32, f64 or i32 (`bool` as i32). */
export interface ScalarParam {
  readonly kind: 'scalar'
  readonly name: string
  readonly dtype: DType
}

export type Param = BufferParam | SizeParam | ScalarParam

/** A size or stride: known when the kernel is built, or a parameter of each call. */
export type Size = number | SizeParam

/** A loop variable: runs from 0 to extent - 1. */
export interface LoopVar {
  readonly kind: 'loop'
  readonly name: string
  readonly extent: Size
}

/** An element index: base + sum of loop * stride + sum of dynamic i32 values * stride. */
export interface Index {
  readonly base: Size
  readonly terms: readonly { readonly loop: LoopVar; readonly stride: Size }[]
  /** Indices computed at run time (gather, padding): i32 expressions. */
  readonly dynamic: readonly { readonly value: Expr; readonly stride: Size }[]
}

/** Operations on scalars. Comparison and logic yield bool; `where(cond, a, b)` needs a bool first. Integer `div` truncates; `floorDiv`/`remainder` round down as Python does. */
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

export type Expr =
  | { readonly kind: 'const'; readonly dtype: DType; readonly value: number }
  | { readonly kind: 'scalar'; readonly dtype: DType; readonly param: ScalarParam }
  /** The i32 value of a loop variable. */
  | { readonly kind: 'iota'; readonly dtype: 'int32'; readonly loop: LoopVar }
  /** The i32 value of a size parameter. */
  | { readonly kind: 'sizeOf'; readonly dtype: 'int32'; readonly size: SizeParam }
  /** An element; 0 where `mask` is given and false (the address is then not touched). */
  | { readonly kind: 'load'; readonly dtype: DType; readonly buffer: BufferParam; readonly index: Index; readonly mask: Expr | null }
  | { readonly kind: 'call'; readonly dtype: DType; readonly op: ScalarOp; readonly args: readonly Expr[] }
  | { readonly kind: 'cast'; readonly dtype: DType; readonly value: Expr }
  | { readonly kind: 'local'; readonly dtype: DType; readonly local: Local }

/** A mutable scalar variable, in scope from its declaration to the end of the enclosing body. Accumulators are locals. */
export interface Local {
  readonly name: string
  readonly dtype: DType
}

/** How an accumulation combines; each has an identity (0, 1, +inf, -inf). Float sums may be reassociated by a simd loop. */
export type Combine = 'add' | 'mul' | 'min' | 'max'

export type Stmt =
  /** `simd`: iterations are independent except for `accumulate` into locals declared outside, and may run in lanes. Loops inside a simd loop are serial and their locals are per lane. */
  | { readonly kind: 'for'; readonly loop: LoopVar; readonly mode: 'serial' | 'simd'; readonly body: readonly Stmt[] }
  | { readonly kind: 'declare'; readonly local: Local; readonly init: Expr }
  | { readonly kind: 'assign'; readonly local: Local; readonly value: Expr }
  | { readonly kind: 'accumulate'; readonly local: Local; readonly combine: Combine; readonly value: Expr }
  /** Writes an element; with `combine` reads, combines and writes it back (scatter-add; only in serial loops, or where lanes cannot collide). */
  | { readonly kind: 'store'; readonly buffer: BufferParam; readonly index: Index; readonly value: Expr; readonly combine: Combine | null }

export interface Kernel {
  readonly name: string
  /** In call order. */
  readonly params: readonly Param[]
  readonly body: readonly Stmt[]
}

// ---- builders: they infer dtypes and fold trivial constants, so that callers read like the formula ----

export const bufferParam = (name: string, dtype: DType, access: BufferParam['access'] = 'read'): BufferParam => ({
  kind: 'buffer',
  name,
  dtype,
  access,
})
export const sizeParam = (name: string): SizeParam => ({ kind: 'size', name })
export const scalarParam = (name: string, dtype: DType): ScalarParam => ({ kind: 'scalar', name, dtype })
export const loopVar = (name: string, extent: Size): LoopVar => ({ kind: 'loop', name, extent })
export const local = (name: string, dtype: DType): Local => ({ name, dtype })

/** An index from pairs [loop, stride]; a stride of 0 is dropped. */
export function at(...terms: readonly (readonly [LoopVar, Size])[]): Index {
  return { base: 0, terms: terms.filter(([, stride]) => stride !== 0).map(([loop, stride]) => ({ loop, stride })), dynamic: [] }
}

export const constant = (dtype: DType, value: number): Expr => ({ kind: 'const', dtype, value })
export const scalar = (param: ScalarParam): Expr => ({ kind: 'scalar', dtype: param.dtype, param })
export const iota = (loop: LoopVar): Expr => ({ kind: 'iota', dtype: 'int32', loop })
export const sizeOf = (size: Size): Expr => (typeof size === 'number' ? constant('int32', size) : { kind: 'sizeOf', dtype: 'int32', size })
export const load = (buffer: BufferParam, index: Index, mask: Expr | null = null): Expr => ({
  kind: 'load',
  dtype: buffer.dtype,
  buffer,
  index,
  mask,
})
export const read = (variable: Local): Expr => ({ kind: 'local', dtype: variable.dtype, local: variable })
export const cast = (value: Expr, dtype: DType): Expr =>
  value.dtype === dtype ? value : value.kind === 'const' ? castConst(value.value, dtype) : { kind: 'cast', dtype, value }

function castConst(value: number, dtype: DType): Expr {
  if (dtype === 'bool') return constant('bool', value !== 0 ? 1 : 0)
  if (dtype === 'int32') return constant('int32', saturate(value))
  return constant(dtype, dtype === 'float32' ? Math.fround(value) : value)
}

/** A number as int32: rounded toward zero, NaN as 0, what does not fit as the nearest that does. */
const saturate = (value: number): number => (Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), -2147483648), 2147483647)) | 0

const BOOLEAN: ReadonlySet<ScalarOp> = new Set<ScalarOp>(['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'and', 'or', 'not', 'isnan'])

/** An operation; operands of one call must agree in dtype (the condition of `where` apart). */
export function call(op: ScalarOp, ...args: readonly Expr[]): Expr {
  const [a, b] = args
  if (b !== undefined && b.kind === 'const') {
    if ((op === 'mul' || op === 'div') && b.value === 1) return a as Expr
    if (op === 'sub' && Object.is(b.value, 0)) return a as Expr
  }
  const value = op === 'where' ? (args[1] as Expr) : (a as Expr)
  return { kind: 'call', dtype: BOOLEAN.has(op) ? 'bool' : value.dtype, op, args }
}

export const forLoop = (loop: LoopVar, mode: 'serial' | 'simd', body: readonly Stmt[]): Stmt => ({ kind: 'for', loop, mode, body })
export const declare = (variable: Local, init: Expr): Stmt => ({ kind: 'declare', local: variable, init })
export const assign = (variable: Local, value: Expr): Stmt => ({ kind: 'assign', local: variable, value })
export const accumulate = (variable: Local, combine: Combine, value: Expr): Stmt => ({ kind: 'accumulate', local: variable, combine, value })
export const store = (buffer: BufferParam, index: Index, value: Expr, combine: Combine | null = null): Stmt => ({
  kind: 'store',
  buffer,
  index,
  value,
  combine,
})

/** The value from which an accumulation starts. */
export function identityOf(combine: Combine, dtype: DType): Expr {
  if (combine === 'add') return constant(dtype, 0)
  if (combine === 'mul') return constant(dtype, 1)
  const top = dtype === 'int32' ? 2147483647 : dtype === 'bool' ? 1 : Infinity
  const bottom = dtype === 'int32' ? -2147483648 : dtype === 'bool' ? 0 : -Infinity
  return constant(dtype, combine === 'min' ? top : bottom)
}
