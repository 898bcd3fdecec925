// Elementwise operators and reductions: their rules in the operator table are scalar expressions, which become ONNX nodes. So every operator with such a rule
// exports whose scalar operations ONNX has.
import type { PointwiseArg } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import { bufferParam, cast, constant, dtypeInfo, load } from '../../kernels/index.ts'
import type { DType, Expr, Memory, ScalarOp } from '../../kernels/index.ts'
import { pointwiseDTypes } from '../../ops/eager/pointwiseTypes.ts'
import { isValue } from './call.ts'
import type { Call } from './call.ts'
import type { Value } from './model.ts'

/** How an operation is written: the type of a node with the same operands; a function; or null if ONNX cannot compute it exactly enough. */
type ScalarRule = string | ((call: Call, ...operands: Value[]) => Value) | null

const binary = (call: Call, type: string, a: Value, b: Value): Value => call.elementwise(type, [a, b], a.dtype)
const unary = (call: Call, type: string, a: Value): Value => call.elementwise(type, [a], a.dtype)
const times = (call: Call, a: Value, factor: number): Value => binary(call, 'Mul', a, call.scalar(a.dtype, factor))
const plus = (call: Call, a: Value, term: number): Value => binary(call, 'Add', a, call.scalar(a.dtype, term))
const select = (call: Call, condition: Value, a: Value, b: Value): Value => call.elementwise('Where', [condition, a, b], a.dtype)
const less = (call: Call, a: Value, bound: number): Value => call.elementwise('Less', [a, call.scalar(a.dtype, bound)], 'bool')
/** ONNX orders no bools. */
const comparison =
  (type: string): ScalarRule =>
  (call, a, b) =>
    call.elementwise(type, a?.dtype === 'bool' ? [a, b].map((v) => call.cast(v, 'int32')) : [a, b], 'bool')

/** The remainder with the sign of the divisor, as in Python. */
function remainder(call: Call, a: Value, b: Value): Value {
  if (!dtypeInfo[a.dtype].floating) return binary(call, 'Mod', a, b)
  const shape = call.elementwise('Add', [a, b], a.dtype).shape
  const rest = call.node('Mod', [a, b], a.dtype, shape, { fmod: 1 })
  const differ = call.elementwise('Less', [binary(call, 'Mul', unary(call, 'Sign', rest), unary(call, 'Sign', b)), call.scalar(a.dtype, 0)], 'bool')
  return select(call, differ, binary(call, 'Add', rest, b), rest)
}

/** Operations on scalars in ONNX. Where a formula would lose digits near zero, another one takes over there. */
const SCALARS: Readonly<Record<ScalarOp, ScalarRule>> = {
  add: 'Add',
  sub: 'Sub',
  mul: 'Mul',
  mulAdd: (call, a, b, c) => binary(call, 'Add', binary(call, 'Mul', a, b), c),
  div: 'Div',
  floorDiv: (call, a, b) =>
    dtypeInfo[a.dtype].floating
      ? unary(call, 'Floor', binary(call, 'Div', a, b))
      : binary(call, 'Div', binary(call, 'Sub', a, remainder(call, a, b)), b),
  remainder,
  min: 'Min',
  max: 'Max',
  pow: 'Pow',
  neg: 'Neg',
  abs: 'Abs',
  sign: 'Sign',
  floor: 'Floor',
  ceil: 'Ceil',
  round: 'Round',
  trunc: (call, a) => select(call, less(call, a, 0), unary(call, 'Ceil', a), unary(call, 'Floor', a)),
  sqrt: 'Sqrt',
  rsqrt: (call, a) => unary(call, 'Reciprocal', unary(call, 'Sqrt', a)),
  reciprocal: 'Reciprocal',
  exp: 'Exp',
  // 2 t / (1 - t) with t = tanh(x / 2) near zero.
  expm1: (call, a) => {
    const t = unary(call, 'Tanh', times(call, a, 0.5))
    const near = binary(call, 'Div', times(call, t, 2), binary(call, 'Sub', call.scalar(a.dtype, 1), t))
    return select(call, less(call, unary(call, 'Abs', a), 0.5), near, plus(call, unary(call, 'Exp', a), -1))
  },
  log: 'Log',
  // 2 atanh(x / (2 + x)) near zero.
  log1p: (call, a) => {
    const near = times(call, unary(call, 'Atanh', binary(call, 'Div', a, plus(call, a, 2))), 2)
    return select(call, less(call, unary(call, 'Abs', a), 0.5), near, unary(call, 'Log', plus(call, a, 1)))
  },
  sin: 'Sin',
  cos: 'Cos',
  tanh: 'Tanh',
  erf: 'Erf',
  sigmoid: 'Sigmoid',
  eq: comparison('Equal'),
  ne: (call, a, b) => unary(call, 'Not', call.elementwise('Equal', [a, b], 'bool')),
  lt: comparison('Less'),
  le: comparison('LessOrEqual'),
  gt: comparison('Greater'),
  ge: comparison('GreaterOrEqual'),
  and: 'And',
  or: 'Or',
  not: 'Not',
  isnan: (call, a) => call.elementwise('IsNaN', [dtypeInfo[a.dtype].floating ? a : call.cast(a, 'float32')], 'bool'),
  where: (call, condition, a, b) => select(call, condition, a, b),
  bitAnd: 'BitwiseAnd',
  bitOr: 'BitwiseOr',
  bitXor: 'BitwiseXor',
  shl: null,
  shrS: null,
  shrU: null,
  mulHiU: null,
  tan: 'Tan',
  asin: 'Asin',
  acos: 'Acos',
  atan: 'Atan',
  atan2: null,
  sinh: 'Sinh',
  cosh: 'Cosh',
  asinh: 'Asinh',
  acosh: 'Acosh',
  atanh: 'Atanh',
  log2: (call, a) => times(call, unary(call, 'Log', a), 1 / Math.LN2),
  log10: (call, a) => times(call, unary(call, 'Log', a), 1 / Math.LN10),
  hypot: (call, a, b) => unary(call, 'Sqrt', binary(call, 'Add', binary(call, 'Mul', a, a), binary(call, 'Mul', b, b))),
  erfc: null,
  erfinv: null,
  lgamma: null,
  digamma: null,
  polygamma: null,
  i0: null,
  i0e: null,
  i1: null,
  i1e: null,
  besselJ0: null,
  besselJ1: null,
  besselY0: null,
  besselY1: null,
  besselK0: null,
  besselK1: null,
  scaledBesselK0: null,
  scaledBesselK1: null,
  airyAi: null,
  erfcx: null,
  ndtri: null,
  igamma: null,
  igammac: null,
  zeta: null,
  chebyshevT: null,
  chebyshevU: null,
  chebyshevV: null,
  chebyshevW: null,
  shiftedChebyshevT: null,
  shiftedChebyshevU: null,
  shiftedChebyshevV: null,
  shiftedChebyshevW: null,
  hermiteH: null,
  hermiteHe: null,
  laguerre: null,
  legendre: null,
}

/** Writes scalar expressions as nodes; a shared expression once. */
class Expressions {
  readonly #call: Call
  readonly #operands: ReadonlyMap<Memory, Value>
  readonly #done = new Map<Expr, Value>()

  constructor(call: Call, operands: ReadonlyMap<Memory, Value>) {
    this.#call = call
    this.#operands = operands
  }

  value(expr: Expr): Value {
    const known = this.#done.get(expr)
    if (known !== undefined) return known
    const value = this.#write(expr)
    this.#done.set(expr, value)
    return value
  }

  #write(expr: Expr): Value {
    const call = this.#call
    switch (expr.kind) {
      case 'const':
        return call.scalar(expr.dtype, expr.value)
      case 'cast':
        return call.cast(this.value(expr.value), expr.dtype)
      case 'load': {
        const operand = this.#operands.get(expr.buffer)
        if (operand !== undefined) return operand
        break
      }
      case 'call': {
        const rule = SCALARS[expr.op]
        if (rule === null) return call.unsupported(`ONNX has no '${expr.op}'`)
        const operands = expr.args.map((arg) => this.value(arg))
        return typeof rule === 'string' ? call.elementwise(rule, operands, expr.dtype) : rule(call, ...operands)
      }
    }
    throw new InternalError(`${call.op.qualname}: an expression of kind '${expr.kind}' in a pointwise rule`)
  }
}

/** Writes an operator that computes elementwise, by its rule. */
export function writePointwise(call: Call): Value {
  const rule = call.op.pointwise
  if (rule === null) throw new InternalError(`operator ${call.op.qualname} has no pointwise rule`)
  const { compute, result } = pointwiseDTypes(call.op, call.fakes())
  const operands = new Map<Memory, Value>()
  const args = call.args.map((arg, i): PointwiseArg => {
    const declared = call.op.schema.args[i]
    if (isValue(arg)) {
      const buffer = bufferParam(`a${i}`, arg.dtype)
      operands.set(buffer, arg)
      return cast(load(buffer, { base: 0, terms: [], dynamic: [] }), compute)
    }
    const baked = declared !== undefined && rule.baked?.includes(declared.name) === true
    if (typeof arg === 'number' && !baked) return constant(compute, roundedTo(compute, arg))
    if (typeof arg === 'boolean' && declared?.type.base === 'Scalar' && !baked) return constant(compute, Number(arg))
    if (typeof arg === 'number' || typeof arg === 'string' || typeof arg === 'boolean' || arg === null) return arg
    return call.unsupported('it takes a list')
  })
  const value = new Expressions(call, operands).value(cast(rule.compute(...args), result))
  return spread(call, value)
}

const roundedTo = (dtype: DType, value: number): number => (dtype === 'float32' ? Math.fround(value) : value)

/** The value in the shape of the result: a rule need not look at every operand (`copy`), and may yield a number. */
function spread(call: Call, value: Value): Value {
  const { shape } = call.result()
  if (value.shape.length === shape.length && value.shape.every((size, i) => size === shape[i])) return value
  return call.node('Expand', [value, call.ints(shape)], value.dtype, shape)
}

const REDUCTIONS = { add: 'ReduceSum', mul: 'ReduceProd', min: 'ReduceMin', max: 'ReduceMax' } as const

/** Writes a reduction by its rule. */
export function writeReduction(call: Call): Value {
  const rule = call.op.reduction
  if (rule === null) throw new InternalError(`operator ${call.op.qualname} has no reduction rule`)
  const self = call.tensor('self')
  const { dtype, shape } = call.result()
  const compute = dtypeInfo[dtype].floating ? dtypeInfo[dtype].compute : dtype
  const operand = bufferParam('a', compute)
  const operands = new Map([[operand, call.cast(self, compute)]])
  const element = cast(load(operand, { base: 0, terms: [], dynamic: [] }), compute)
  const mapped = new Expressions(call, operands).value(rule.map === undefined ? element : rule.map(element))
  const dims = call.numbers('dim')
  const axes = self.shape.length === 0 ? [] : (dims ?? self.shape.map((_, i) => i)).map((d) => (d < 0 ? d + self.shape.length : d))
  // ONNX orders no bools.
  const combined = mapped.dtype === 'bool' ? call.cast(mapped, 'int32') : mapped
  const reduced =
    axes.length === 0
      ? combined
      : call.node(REDUCTIONS[rule.combine], [combined, call.ints(axes)], combined.dtype, shape, { keepdims: call.flag('keepdim') ? 1 : 0 })
  const count = axes.reduce((n, axis) => n * (self.shape[axis] ?? 1), 1)
  const total = bufferParam('total', reduced.dtype)
  const sum = load(total, { base: 0, terms: [], dynamic: [] })
  const finished = rule.finish === undefined ? sum : rule.finish(sum, constant(reduced.dtype, count))
  return call.cast(new Expressions(call, new Map([[total, reduced]])).value(finished), dtype)
}
