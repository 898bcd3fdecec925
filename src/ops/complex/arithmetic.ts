// Rules of arithmetic and of the elementary functions on complex numbers.
import { dispatch, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { DTypeError } from '../../errors/index.ts'
import { realDType } from '../../kernels/index.ts'
import type { ComplexDType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { dot } from '../linalg/matmul.ts'
import { scalarTensor } from '../create/creation.ts'
import { abs, add, div, mul, neg, pow, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { isfinite, isinf } from '../pointwise/classify.ts'
import { eq, isnan, logicalAnd, logicalOr, le, ne } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { reciprocal, rsqrt, sqrt, square } from '../pointwise/unary.ts'
import { clone, unsqueeze } from '../view/reshape.ts'
import { conj } from './construct.ts'
import * as elementary from './elementary.ts'
import type { Parts } from './elementary.ts'
import { functionRules, magnitudes, multiple, product, ratio } from './functions.ts'
import { fromParts, im, isComplex, onPairs, re, toComplex } from './parts.ts'
import { argument, commonDType, forAll } from './rule.ts'
import type { ComplexRule, ComplexRules } from './rule.ts'
import { viewAsReal } from './views.ts'

const partsOf = (z: Tensor): Parts => [re(z), im(z)]
const joined = ([x, y]: Parts): Tensor => fromParts(x, y)

/** A rule of one operand. */
const unary =
  (formula: (z: Parts) => Parts): ComplexRule =>
  (args) =>
    joined(formula(partsOf(tensorAt(args, 0))))

/** An operand as a complex tensor: a number is one without dimensions. */
const operand = (arg: Arg | undefined, dtype: ComplexDType): Tensor =>
  arg instanceof Tensor ? toComplex(arg, dtype) : toComplex(scalarTensor(Number(arg), { dtype: realDType(dtype) }), dtype)

/** The two first operands as parts of one dtype. */
function both(args: readonly Arg[]): readonly [Parts, Parts] {
  const dtype = commonDType(args.slice(0, 2))
  return [partsOf(operand(args[0], dtype)), partsOf(operand(args[1], dtype))]
}

/** `first + factor * second`, all numbers alike. */
function sum(first: Arg | undefined, second: Arg | undefined, factor: number): Tensor {
  const dtype = commonDType([first ?? null, second ?? null])
  return onPairs(operand(first, dtype), (pairs) => add(pairs, viewAsReal(operand(second, dtype)), { alpha: factor }))
}

/** The operand that is not complex, if only one is: a number, or a real tensor. */
const realOperand = (arg: Arg | undefined): Tensor | number | null =>
  typeof arg === 'number' ? arg : arg instanceof Tensor && !isComplex(arg) ? arg : null

/** The complex operand, and the real factor for its numbers, if only one is complex. */
function withFactor(a: Arg | undefined, b: Arg | undefined, dtype: ComplexDType): readonly [Tensor, Tensor | number] | null {
  const factor = realOperand(b)
  if (factor === null || !isComplex(a)) return null
  return [toComplex(a, dtype), typeof factor === 'number' ? factor : to(factor, realDType(dtype))]
}

const times: ComplexRule = (args) => {
  const [a, b] = args
  const dtype = commonDType([a ?? null, b ?? null])
  const scaled = withFactor(a, b, dtype) ?? withFactor(b, a, dtype)
  if (scaled === null) return product(operand(a, dtype), operand(b, dtype))
  const [z, factor] = scaled
  return typeof factor === 'number' ? onPairs(z, (pairs) => mul(pairs, factor)) : multiple(z, factor)
}

const divided: ComplexRule = (args, op) => {
  if (argument(op, args, 'rounding_mode') !== null)
    throw new DTypeError(`${op.qualname}: complex numbers cannot be rounded: leave out 'rounding_mode'.`)
  const [a, b] = args
  const dtype = commonDType([a ?? null, b ?? null])
  const scaled = withFactor(a, b, dtype)
  if (scaled === null) return ratio(operand(a, dtype), operand(b, dtype))
  const [z, divisor] = scaled
  return onPairs(z, (pairs) => div(pairs, typeof divisor === 'number' ? divisor : unsqueeze(divisor, -1)))
}

/** Powers with an exponent that is a number have shorter formulas, as in PyTorch. */
const POWERS: ReadonlyMap<number, (z: Tensor) => Tensor> = new Map([
  [1, (z) => clone(z)],
  [2, (z) => square(z)],
  [3, (z) => mul(square(z), z)],
  [0.5, (z) => sqrt(z)],
  [-0.5, (z) => rsqrt(z)],
  [-1, (z) => reciprocal(z)],
  [-2, (z) => reciprocal(square(z))],
])

const power: ComplexRule = (args) => {
  const [base, exponent] = args
  const short = typeof exponent === 'number' && isComplex(base) ? POWERS.get(exponent) : undefined
  return short !== undefined && isComplex(base) ? short(base) : joined(elementary.power(...both(args)))
}

/** Whether the numbers of a pair have a property: both of them, or one. */
const ofParts =
  (test: (x: Tensor) => Tensor, combine: (a: Tensor, b: Tensor) => Tensor): ComplexRule =>
  (args) => {
    const [x, y] = partsOf(tensorAt(args, 0))
    return combine(test(x), test(y))
  }

const comparison =
  (compare: (a: Tensor, b: Tensor) => Tensor, combine: (a: Tensor, b: Tensor) => Tensor): ComplexRule =>
  (args) => {
    const [[a, b], [c, d]] = both(args)
    return combine(compare(a, c), compare(b, d))
  }

const isNonzero = (x: Tensor): Tensor => (isComplex(x) ? logicalOr(ne(re(x), 0), ne(im(x), 0)) : ne(x, 0))

/** Operators on truth values take a number for false if both parts are 0. */
const ofTruth: ComplexRule = (args, op) =>
  dispatch(
    op,
    args.map((arg) => (isComplex(arg) ? isNonzero(arg) : arg)),
  )

/** The absolute values of real or complex numbers. */
export const magnitude = (x: Tensor): Tensor => (isComplex(x) ? magnitudes(x) : abs(x))

const isClose: ComplexRule = (args, op) => {
  const [a, b] = [tensorAt(args, 0), tensorAt(args, 1)]
  const tolerance = add(mul(magnitude(b), Number(argument(op, args, 'rtol'))), Number(argument(op, args, 'atol')))
  const distance = magnitude(sub(a, b))
  const close = logicalOr(eq(a, b), logicalAnd(isfinite(distance), le(distance, tolerance)))
  return argument(op, args, 'equal_nan') === true ? logicalOr(close, logicalAnd(isnan(a), isnan(b))) : close
}

const selected: ComplexRule = (args) => {
  const condition = tensorAt(args, 0)
  const dtype = commonDType(args.slice(1))
  return fromPairsWhere(condition, operand(args[1], dtype), operand(args[2], dtype))
}

const fromPairsWhere = (condition: Tensor, a: Tensor, b: Tensor): Tensor =>
  onPairs(a, (pairs) => where(unsqueeze(condition, -1), pairs, viewAsReal(b)))

const refusedInPlace: ComplexRule = (args, op): Result => {
  throw new DTypeError(`${op.qualname}: the result is real, and self is ${tensorAt(args, 0).dtype}; use the operator without underscore.`)
}

/** `self + value * tensor1 * tensor2`, or by their quotient. */
const addCombined =
  (combine: (a: Tensor, b: Tensor) => Tensor): ComplexRule =>
  (args, op) =>
    add(tensorAt(args, 0), mul(combine(tensorAt(args, 1), tensorAt(args, 2)), Number(argument(op, args, 'value'))))

const alpha = (args: readonly Arg[], op: OpDef): number => Number(argument(op, args, 'alpha') ?? 1)

export const arithmeticRules: ComplexRules = {
  ...functionRules,
  'torch.add': (args, op) => sum(args[0], args[1], alpha(args, op)),
  'torch.sub': (args, op) => sum(args[0], args[1], -alpha(args, op)),
  'torch.rsub': (args, op) => sum(args[1], args[0], -alpha(args, op)),
  'torch.mul': times,
  'torch.div': divided,
  'torch.true_divide': divided,
  'torch.pow': power,
  'torch.float_power': ([base, exponent]) => {
    const wide = (arg: Arg | undefined): Tensor => operand(arg, 'complex128')
    return pow(wide(base), typeof exponent === 'number' ? exponent : wide(exponent))
  },
  'torch.neg': ([z]) => onPairs(tensorAt([z ?? null], 0), (pairs) => neg(pairs)),
  'torch.abs': (args) => magnitude(tensorAt(args, 0)),
  'torch.abs_': refusedInPlace,
  'torch.sgn': unary(elementary.direction),
  'torch.eq': comparison(eq, logicalAnd),
  'torch.ne': comparison(ne, logicalOr),
  'torch.isnan': ofParts(isnan, logicalOr),
  'torch.isinf': ofParts(isinf, logicalOr),
  'torch.isfinite': ofParts(isfinite, logicalAnd),
  'torch.isreal': (args) => eq(im(tensorAt(args, 0)), 0),
  'torch.isclose': isClose,
  'torch.where': selected,
  'torch.masked_fill': (args) => {
    const self = tensorAt(args, 0)
    const dtype = commonDType([self])
    return fromPairsWhere(tensorAt(args, 1), operand(args[2], dtype), toComplex(self, dtype))
  },
  'torch.lerp': (args) => {
    const [self, end, weight] = args
    const start = tensorAt([self ?? null], 0)
    const by = typeof weight === 'number' ? weight : tensorAt([weight ?? null], 0)
    return add(start, mul(sub(tensorAt([end ?? null], 0), start), by))
  },
  'torch.addcmul': addCombined((a, b) => mul(a, b)),
  'torch.addcdiv': addCombined((a, b) => div(a, b)),
  ...forAll('logical_and logical_or logical_xor logical_not any all count_nonzero nonzero argwhere', ofTruth),
  'torch.vdot': (args) => dot(conj(tensorAt(args, 0)), tensorAt(args, 1)),
}
