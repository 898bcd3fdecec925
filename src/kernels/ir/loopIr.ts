// The loop IR: what a kernel computes, as loops over buffers, before any emitter turns it into code.
// It is independent of WebAssembly, tensors and operators. Eager operators and inductor both build it; `verify.ts` is its specification,
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
//
// What runs in lanes, in registers or in parallel can also be written out, by a *schedule*: a function from a problem and a tile to a kernel, in schedules/, which
// imports no emitter. Its loops have a `step` and one of the modes of {@link LoopMode}; sums stay in a `LocalArray`, which becomes registers; packed operands lie in
// `Scratch`. Example: y[r] = sum over k of w[r, k] * x[k], four rows at a time (the schedule leaves rows and depths that fill no tile to further loops):
//
//     const r0 = loopVar('r0', roundedDown(rows, 4), 4), k0 = loopVar('k0', roundedDown(depth, 8), 8), r = loopVar('r', 4), k = loopVar('k', 8)
//     const sums = localArray('sums', 'float32', [4, 8])
//     forLoop(r0, 'parallel', [
//       declareArray(sums, constant('float32', 0)),
//       forLoop(k0, 'serial', [forLoop(r, 'unroll', [forLoop(k, 'lanes', [
//         setElement(sums, [r, k], call('mulAdd', load(w, at([r0, depth], [r, depth], [k0, 1], [k, 1])), load(x, at([k0, 1], [k, 1])), element(sums, r, k))),
//       ])])]),
//       forLoop(r, 'unroll', [store(y, at([r0, 1], [r, 1]), reduceLanes('add', sums, r))]),
//     ], 16)
//
//     const matrixVector: Schedule<MatrixVector, Tile> = { name: 'matrixVector', match, spec, tiles, build }
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo, isComplexDType, isNarrow } from '../numbers/dtype.ts'
import type { DType, ElementValue } from '../numbers/dtype.ts'
import { KernelError } from './errors.ts'
import { converted, rounded } from '../numbers/numbers.ts'
import { scalarOp } from '../scalars/scalarOps.ts'
import type { ScalarOp } from '../scalars/scalarOps.ts'
import type { DerivedSize, Size, SizeParam } from './sizes.ts'

export type { DerivedSize, Size, SizeParam } from './sizes.ts'

/** A pointer to the first element of a buffer. Passed as an i32 byte address. */
export interface BufferParam {
  readonly kind: 'buffer'
  readonly name: string
  readonly dtype: DType
  readonly access: 'read' | 'write' | 'readwrite'
}

/**
 * A scalar operand, e.g. `alpha` or a learning rate. Passed as an i32, f32 or f64, which the kernel rounds to the dtype. An int64 is passed as an f64, so that
 * arguments are numbers; integers beyond 2^53 are constants.
 */
export interface ScalarParam {
  readonly kind: 'scalar'
  readonly name: string
  readonly dtype: DType
}

/** What a kernel gets: the address of a tensor, a size, or a number. */
export type Param = BufferParam | SizeParam | ScalarParam

/**
 * Memory of a kernel's own, which the kernel is given at each call: `elements` elements that hold anything when it starts. With `per: 'thread'` each thread has its
 * own, which holds anything at the start of each iteration of a parallel loop.
 */
export interface Scratch {
  readonly kind: 'scratch'
  readonly name: string
  readonly dtype: DType
  readonly elements: Size
  readonly per: 'call' | 'thread'
}

/** What loads and stores access. */
export type Memory = BufferParam | Scratch

/** A loop variable: 0, step, 2 * step, … while that is less than the extent. */
export interface LoopVar {
  readonly kind: 'loop'
  readonly name: string
  readonly extent: Size
  readonly step: number
}

/** An element index: base + sum of loop * stride + sum of dynamic i32 values * stride. */
export interface Index {
  readonly base: Size
  readonly terms: readonly { readonly loop: LoopVar; readonly stride: Size }[]
  /** Indices computed at run time (gather, padding): i32 expressions. */
  readonly dynamic: readonly { readonly value: Expr; readonly stride: Size }[]
}

/** A number of a dtype; a bigint only for an int64 beyond 2^53. For bool, any number but 0 is true. */
export interface ConstExpr {
  readonly kind: 'const'
  readonly dtype: DType
  readonly value: ElementValue
}

/** The value of a scalar parameter. */
export interface ScalarExpr {
  readonly kind: 'scalar'
  readonly dtype: DType
  readonly param: ScalarParam
}

/** The i32 value of a loop variable. */
export interface IotaExpr {
  readonly kind: 'iota'
  readonly dtype: 'int32'
  readonly loop: LoopVar
}

/** The i32 value of a size. */
export interface SizeExpr {
  readonly kind: 'sizeOf'
  readonly dtype: 'int32'
  readonly size: SizeParam | DerivedSize
}

/** A number of a table, not negative, which is known when code is written. In an index it says which elements lanes load, or take from a local array. */
export interface LookupExpr {
  readonly kind: 'lookup'
  readonly dtype: 'int32'
  readonly values: readonly number[]
  /** The place in the table: of `unroll` and `lanes` loops, with known strides. */
  readonly place: Index
}

/** An element; 0 where `mask` is given and false (the memory is then not accessed). */
export interface LoadExpr {
  readonly kind: 'load'
  readonly dtype: DType
  readonly buffer: Memory
  readonly index: Index
  readonly mask: Expr | null
}

/** A scalar operation. */
export interface CallExpr {
  readonly kind: 'call'
  readonly dtype: DType
  readonly op: ScalarOp
  readonly args: readonly Expr[]
}

/** A conversion to another dtype. */
export interface CastExpr {
  readonly kind: 'cast'
  readonly dtype: DType
  readonly value: Expr
}

/** The current value of a local. */
export interface LocalExpr {
  readonly kind: 'local'
  readonly dtype: DType
  readonly local: Local
}

/** The current value of an element of a local array. */
export interface ElementExpr {
  readonly kind: 'element'
  readonly dtype: DType
  readonly array: LocalArray
  readonly place: ArrayPlace
}

/** The elements along the last dimension of a local array, combined. Float sums may be reassociated. */
export interface ReduceLanesExpr {
  readonly kind: 'reduceLanes'
  readonly dtype: DType
  readonly combine: Combine
  readonly array: LocalArray
  /** The indices of all dimensions but the last. */
  readonly place: ArrayPlace
}

/** What a kernel computes. */
export type Expr =
  | ConstExpr
  | ScalarExpr
  | IotaExpr
  | SizeExpr
  | LookupExpr
  | LoadExpr
  | CallExpr
  | CastExpr
  | LocalExpr
  | ElementExpr
  | ReduceLanesExpr

/** A mutable scalar variable, in scope from its declaration to the end of the enclosing body. Accumulators are locals. */
export interface Local {
  readonly name: string
  readonly dtype: DType
}

/**
 * A small array in registers, in scope from its declaration to the end of the enclosing body. Its elements are chosen when code is written: constants and the
 * variables of `unroll` and `lanes` loops index it. In vectors, neighbours of the last dimension are neighbours; a `lanes` variable that indexes another
 * dimension transposes. Only the last index of an element that is read may be a number that is computed, in rows of at most 16 elements.
 */
export interface LocalArray {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
}

/** One index for each dimension, of known strides and lookups. A `lanes` variable is the whole index of its dimension, or is in lookups. */
export type ArrayPlace = readonly Index[]

/** What a kernel may change while it runs, beside memory. */
export type Variable = Local | LocalArray

/** How an accumulation combines values. Float sums may be reassociated by a simd loop. */
export type Combine = 'add' | 'mul' | 'min' | 'max'

/**
 * How the iterations of a loop run.
 * - `serial`: one after the other.
 * - `simd`: independent, except for `accumulate` into locals declared outside, and may run in lanes. Loops inside are serial or unrolled, and locals declared
 *   inside are per lane. The step is 1.
 * - `parallel`: independent, in any order, on any thread. It is not inside another loop than serial ones.
 * - `unroll`: one after the other, written out; the extent is known and small.
 * - `lanes`: independent, written out in vectors of the width that the emitter has, and the rest one by one; the extent is known and small, the step is 1. Neither
 *   `lanes` nor `simd` loops are inside it.
 */
export type LoopMode = 'serial' | 'simd' | 'parallel' | 'unroll' | 'lanes'

/** A loop. */
export interface ForStmt {
  readonly kind: 'for'
  readonly loop: LoopVar
  readonly mode: LoopMode
  readonly body: readonly Stmt[]
  /** For a parallel loop, the number of iterations that are worth another thread. */
  readonly grain: number
}

/** Puts a new local array into scope, each of whose elements is `init`. */
export interface DeclareArrayStmt {
  readonly kind: 'declareArray'
  readonly array: LocalArray
  readonly init: Expr
}

/** Sets an element of a local array. In a `lanes` loop, the loop's variable is the last index, also where the loop reads the array. */
export interface SetElementStmt {
  readonly kind: 'setElement'
  readonly array: LocalArray
  readonly place: ArrayPlace
  readonly value: Expr
}

/** Puts a new local variable into scope. */
export interface DeclareStmt {
  readonly kind: 'declare'
  readonly local: Local
  readonly init: Expr
}

/** Sets a local variable. */
export interface AssignStmt {
  readonly kind: 'assign'
  readonly local: Local
  readonly value: Expr
}

/** Combines a value with a local variable, and stores the result in it. */
export interface AccumulateStmt {
  readonly kind: 'accumulate'
  readonly local: Local
  readonly combine: Combine
  readonly value: Expr
}

/** Writes an element. With `combine` it reads the element, combines and writes it back (scatter-add): only in serial loops, or where lanes cannot collide. */
export interface StoreStmt {
  readonly kind: 'store'
  readonly buffer: Memory
  readonly index: Index
  readonly value: Expr
  readonly combine: Combine | null
}

/** An emitter has a case for each of them, and for each {@link LoopMode}: it ends with `unknownStatement`, which does not compile where one is missing. */
export type Stmt = ForStmt | DeclareStmt | AssignStmt | AccumulateStmt | DeclareArrayStmt | SetElementStmt | StoreStmt

/** A kernel: what it gets, and what it does. */
export interface Kernel {
  readonly name: string
  /** In call order. */
  readonly params: readonly Param[]
  /** Its memory, see {@link Scratch}. A kernel that has some takes one more argument: the address of `scratchBytes` bytes. */
  readonly scratch?: readonly Scratch[]
  readonly body: readonly Stmt[]
  /** Whether its calls are small parts of something, many one after the other: dividing each among threads takes longer than it saves. */
  readonly isPart?: boolean
}

// ---- Builders. They infer dtypes and fold trivial constants, so that calls read like formulas. ----

/** A tensor that a kernel reads or writes. Throws InternalError for a dtype of complex numbers. */
export function bufferParam(name: string, dtype: DType, access: BufferParam['access'] = 'read'): BufferParam {
  if (isComplexDType(dtype)) throw new InternalError(`kernels compute on real numbers: parameter ${name} has the dtype ${dtype}`)
  return { kind: 'buffer', name, dtype, access }
}
/** A size that is known when the kernel is called. */
export const sizeParam = (name: string): SizeParam => ({ kind: 'size', name })
/** The dtype in which a kernel takes a number to compute with in `dtype`. As a bool, 0.5 would arrive cut down to 0, though it is true. */
export const numberType = (dtype: DType): DType => (dtype === 'bool' ? 'float64' : dtype)
/** A number that a kernel gets. */
export const scalarParam = (name: string, dtype: DType): ScalarParam => ({ kind: 'scalar', name, dtype })
/** The variable of a loop: from 0 up to `extent`, in steps. */
export const loopVar = (name: string, extent: Size, step: number = 1): LoopVar => ({ kind: 'loop', name, extent, step })
/** Memory of a kernel: for each call, or for each thread. */
export const scratch = (name: string, dtype: DType, elements: Size, per: Scratch['per'] = 'call'): Scratch => ({
  kind: 'scratch',
  name,
  dtype,
  elements,
  per,
})
/** A local variable. */
export const local = (name: string, dtype: DType): Local => ({ name, dtype })
/** A local array of a known shape. */
export const localArray = (name: string, dtype: DType, shape: readonly number[]): LocalArray => ({ name, dtype, shape })

/** An index from pairs [loop, stride]; a stride of 0 is dropped. */
export function at(...terms: readonly (readonly [LoopVar, Size])[]): Index {
  return { base: 0, terms: terms.filter(([, stride]) => stride !== 0).map(([loop, stride]) => ({ loop, stride })), dynamic: [] }
}

/** An index of a local array: a number, a loop variable, or an index of known strides. */
export type ArrayIndex = number | LoopVar | Index

const placeOf = (indices: readonly ArrayIndex[]): ArrayPlace =>
  indices.map((index) => (typeof index === 'number' ? { base: index, terms: [], dynamic: [] } : 'kind' in index ? at([index, 1]) : index))

/** A constant. One of a narrow dtype is rounded to it, and an int64 is a number where that is exact. */
export function constant(dtype: DType, value: ElementValue): ConstExpr {
  if (typeof value === 'number' && dtype !== 'int64' && !isNarrow(dtype)) return { kind: 'const', dtype, value }
  const exact = rounded(dtype, value)
  const number = Number(exact)
  return { kind: 'const', dtype, value: dtype === 'int64' && !Number.isSafeInteger(number) ? exact : number }
}
/** The value of a number that the kernel gets. */
export const scalar = (param: ScalarParam): ScalarExpr => ({ kind: 'scalar', dtype: param.dtype, param })
/** The variable of a loop as a number. */
export const iota = (loop: LoopVar): IotaExpr => ({ kind: 'iota', dtype: 'int32', loop })
/** A size as a value. */
export const sizeOf = (size: Size): ConstExpr | SizeExpr =>
  typeof size === 'number' ? constant('int32', size) : { kind: 'sizeOf', dtype: 'int32', size }
/** A number of a table, at a place that loops which are written out choose. */
export const lookup = (values: readonly number[], place: Index): LookupExpr => ({ kind: 'lookup', dtype: 'int32', values, place })
/** An element of memory; where `mask` is false, 0. */
export const load = (buffer: Memory, index: Index, mask: Expr | null = null): LoadExpr => ({
  kind: 'load',
  dtype: buffer.dtype,
  buffer,
  index,
  mask,
})
/** The value of a local variable. */
export const read = (variable: Local): LocalExpr => ({ kind: 'local', dtype: variable.dtype, local: variable })

/** An element of a local array. */
export const element = (array: LocalArray, ...indices: readonly ArrayIndex[]): ElementExpr => ({
  kind: 'element',
  dtype: array.dtype,
  array,
  place: placeOf(indices),
})
/** `indices` are those of all dimensions but the last. */
export const reduceLanes = (combine: Combine, array: LocalArray, ...indices: readonly ArrayIndex[]): ReduceLanesExpr => ({
  kind: 'reduceLanes',
  dtype: array.dtype,
  combine,
  array,
  place: placeOf(indices),
})

/** The value converted to `dtype`; constants are folded. */
export function cast(value: Expr, dtype: DType): Expr {
  if (value.dtype === dtype) return value
  return value.kind === 'const' ? constant(dtype, converted(dtype, rounded(value.dtype, value.value))) : { kind: 'cast', dtype, value }
}

/** A scalar operation. Its operands must have the same dtype, except for the condition of `where`. Throws KernelError when an operand is missing. */
export function call(op: ScalarOp, ...args: readonly Expr[]): Expr {
  const { arity, conditions, yieldsBool } = scalarOp(op)
  const first = args[conditions]
  if (first === undefined || args.length < arity) throw new KernelError(`${op} takes ${arity} operands, not ${args.length}`)
  const last = args[1]
  if (last?.kind === 'const') {
    if ((op === 'mul' || op === 'div') && last.value === 1) return first
    if (op === 'sub' && Object.is(last.value, 0)) return first
  }
  return { kind: 'call', dtype: yieldsBool ? 'bool' : first.dtype, op, args }
}

/** A loop. `grain`: how many iterations of a parallel loop are worth another thread. */
export const forLoop = (loop: LoopVar, mode: LoopMode, body: readonly Stmt[], grain: number = 1): ForStmt => ({
  kind: 'for',
  loop,
  mode,
  body,
  grain,
})
/** Loops inside each other, the outermost first. */
export const serialLoops = (loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] =>
  loops.reduceRight((inner: readonly Stmt[], loop) => [forLoop(loop, 'serial', inner)], body)
/** Puts a local variable into scope. */
export const declare = (variable: Local, init: Expr): DeclareStmt => ({ kind: 'declare', local: variable, init })
/** Sets a local variable. */
export const assign = (variable: Local, value: Expr): AssignStmt => ({ kind: 'assign', local: variable, value })
/** Combines a value with a local variable. */
export const accumulate = (variable: Local, combine: Combine, value: Expr): AccumulateStmt => ({
  kind: 'accumulate',
  local: variable,
  combine,
  value,
})
/** Puts a local array into scope, each of whose elements is `init`. */
export const declareArray = (array: LocalArray, init: Expr): DeclareArrayStmt => ({ kind: 'declareArray', array, init })
/** Sets an element of a local array. */
export const setElement = (array: LocalArray, indices: readonly ArrayIndex[], value: Expr): SetElementStmt => ({
  kind: 'setElement',
  array,
  place: placeOf(indices),
  value,
})
/** Writes an element of memory; with `combine`, what it holds is combined with the value. */
export const store = (buffer: Memory, index: Index, value: Expr, combine: Combine | null = null): StoreStmt => ({
  kind: 'store',
  buffer,
  index,
  value,
  combine,
})

/** The identity of a combination, which an accumulation starts from. */
export function identityOf(combine: Combine, dtype: DType): ConstExpr {
  if (combine === 'add') return constant(dtype, 0)
  if (combine === 'mul') return constant(dtype, 1)
  return constant(dtype, combine === 'min' ? dtypeInfo[dtype].highest : dtypeInfo[dtype].lowest)
}
