// PyTorch's other names of operators: one table. Each is an operator of its own name, which traces record, and computes what the one that it stands for does.
import { dispatch } from '../dispatch/index.ts'
import { attributeName } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { OpFunction } from './declaration.ts'
import { makeOp } from './defineOp.ts'
import { abs_, acos_, acosh_, asin_, asinh_, atan2_, atan_, atanh_, div_, ge_, gt_, le_, lt_, mul_, ne_, neg_, sub_ } from './generated/inPlace.ts'
import { outer } from './linalg/matmul.ts'
import { abs, div, mul, neg, sub } from './pointwise/arithmetic.ts'
import { ge, gt, le, lt, ne } from './pointwise/comparison.ts'
import { acos, acosh, asin, asinh, atan, atan2, atanh } from './pointwise/trigonometry.ts'
import { trapezoid } from './reduction/scans.ts'
import { vstack } from './stacks.ts'

/** The operator `fn` under another name. */
function aliasOf<F extends OpFunction>(fn: F, name: string): F
function aliasOf(fn: OpFunction, name: string): OpFunction {
  const { op } = fn
  const other = attributeName(name)
  return makeOp({
    schema: op.schema.text.replace(/^\w+/, other),
    namespace: op.qualname.slice(0, -op.name.length - 1),
    method: op.method,
    tags: op.tags.has('mutates') ? ['mutates'] : [],
    aliasOf: fn,
    decompose: (...args) => dispatch(op, args),
  })
}

function made<T extends Readonly<Record<string, OpFunction>>>(table: T): T {
  const aliases = { ...table }
  for (const [name, fn] of Object.entries(table)) Reflect.set(aliases, name, aliasOf(fn, name))
  return aliases
}

/** By their names: functions of torch, most of them methods of tensors too. */
const OF_TORCH = {
  absolute: abs,
  arccos: acos,
  arccosh: acosh,
  arcsin: asin,
  arcsinh: asinh,
  arctan: atan,
  arctan2: atan2,
  arctanh: atanh,
  divide: div,
  ger: outer,
  greater: gt,
  greaterEqual: ge,
  less: lt,
  lessEqual: le,
  multiply: mul,
  negative: neg,
  notEqual: ne,
  rowStack: vstack,
  subtract: sub,
  trapz: trapezoid,
  absolute_: abs_,
  arccos_: acos_,
  arccosh_: acosh_,
  arcsin_: asin_,
  arcsinh_: asinh_,
  arctan_: atan_,
  arctanh_: atanh_,
  negative_: neg_,
}

/** Methods of tensors only. */
const OF_TENSORS = {
  arctan2_: atan2_,
  divide_: div_,
  greater_: gt_,
  greaterEqual_: ge_,
  less_: lt_,
  lessEqual_: le_,
  multiply_: mul_,
  notEqual_: ne_,
  subtract_: sub_,
}

/** The functions of torch that are other names of operators. */
export const torchAliases: typeof OF_TORCH = /* @__PURE__ */ made(OF_TORCH)

/** All operators that are other names of operators. */
export const allAliases: readonly OpFunction[] = /* @__PURE__ */ Object.values<OpFunction>({ ...torchAliases, ...made(OF_TENSORS) })

type OfOne = 'absolute' | 'arccos' | 'arccosh' | 'arcsin' | 'arcsinh' | 'arctan' | 'arctanh' | 'negative'
type OfTwo = 'greater' | 'greaterEqual' | 'less' | 'lessEqual' | 'multiply' | 'notEqual'
type UnaryMethods = Record<OfOne | `${OfOne}_`, () => Tensor>
type BinaryMethods = Record<OfTwo | `${OfTwo}_`, (other: Tensor | number) => Tensor>
type DivideMethods = Record<'divide' | 'divide_', (other: Tensor | number, options?: { readonly roundingMode?: 'trunc' | 'floor' | null }) => Tensor>
type SubtractMethods = Record<'subtract' | 'subtract_', (other: Tensor | number, options?: { readonly alpha?: number }) => Tensor>
type OtherMethods = Record<'arctan2' | 'arctan2_' | 'ger', (other: Tensor) => Tensor>

declare module '../tensor/tensor.ts' {
  /** PyTorch's other names of {@link Tensor.abs}, {@link Tensor.mul} and so on. */
  interface Tensor extends UnaryMethods, BinaryMethods, DivideMethods, SubtractMethods, OtherMethods {}
}
