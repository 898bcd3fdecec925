// Arithmetic: sums, products, quotients, powers and signs.
import { ArgumentError } from '../../errors/index.ts'
import { call, constant, dtypeInfo } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { ComplexNumber, Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { eq, gt, lt } from './comparison.ts'
import { where } from './select.ts'

/**
 * `self + alpha * other`, elementwise. PyTorch's `torch.add`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError for a fractional `alpha` with integer tensors.
 * @example torch.add(torch.tensor([1, 2]), torch.tensor([3, 4]), { alpha: 10 }).toArray() // [31, 42]
 */
export const add: Op['add'] = defineOp({
  schema: 'add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', compute: (a, b, alpha) => call('add', a, call('mul', b, alpha)) },
  derivative: ([g], { args: [, , alpha] }) => [g, scaled(g, alpha), null],
})

/**
 * `self - alpha * other`, elementwise. PyTorch's `torch.sub`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError for bools, and for a fractional `alpha` with integer tensors.
 * @example torch.sub(torch.tensor([5, 7]), 2).toArray() // [3, 5]
 */
export const sub: Op['sub'] = defineOp({
  schema: 'sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (a, b, alpha) => call('sub', a, call('mul', b, alpha)) },
  derivative: ([g], { args: [, , alpha] }) => [g, mul(g, -alpha), null],
})

const scaled = (g: Tensor, factor: number): Tensor => (factor === 1 ? g : mul(g, factor))

/**
 * The elementwise product. PyTorch's `torch.mul`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.mul(torch.tensor([[1], [2]]), torch.tensor([3, 4])).toArray() // [[3, 4], [6, 8]]
 */
export const mul: Op['mul'] = defineOp({
  schema: 'mul.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', compute: (a, b) => call('mul', a, b) },
  derivative: ([g], { args: [a, b], needs }) => [needs[0] ? mul(g, b) : null, needs[1] ? mul(g, a) : null],
})

/**
 * The elementwise quotient. Integers are divided as floats of the default dtype, unless `roundingMode` is 'trunc' or 'floor'. PyTorch's `torch.div`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example
 * torch.div(torch.tensor([7, -7]), 2).toArray() // [3.5, -3.5]
 * torch.div(torch.tensor([7, -7]), 2, { roundingMode: 'floor' }).toArray() // [3, -4]
 */
export const div: OpFunction<
  (self: Tensor, other: Tensor | number | ComplexNumber, options?: { readonly roundingMode?: 'trunc' | 'floor' | null }) => Tensor
> = defineOp({
  schema: 'div.Tensor(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor',
  tags: ['quotient'],
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'quotient',
    compute: (a, b, mode) => {
      if (mode === 'floor') return call('floorDiv', a, b)
      return mode === null ? call('div', a, b) : call('trunc', call('div', a, b))
    },
  },
  derivative: ([g], { args: [a, b, mode], needs }) => {
    if (mode !== null) return [null, null, null]
    return [needs[0] ? div(g, b) : null, needs[1] && typeof b !== 'number' ? neg(div(mul(g, a), mul(b, b))) : null, null]
  },
})

/**
 * The remainder of a division, with the sign of the divisor. PyTorch's `torch.remainder`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError for bools.
 * @example torch.remainder(torch.tensor([7, -7]), 3).toArray() // [1, 2]
 */
export const remainder: Op['remainder'] = defineOp({
  schema: 'remainder.Tensor(Tensor self, Tensor other) -> Tensor',
  tags: ['quotient'],
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (a, b) => call('remainder', a, b) },
  derivative: ([g], { args: [a, b], needs }) => [g, needs[1] ? neg(mul(g, div(a, b, { roundingMode: 'floor' }))) : null],
})

/** C's fmod: the remainder of the absolute values, which is exact, with the sign of the dividend. */
function truncatedRemainder(a: Expr, b: Expr): Expr {
  const zero = constant(a.dtype, 0)
  const negative = call('lt', a, zero)
  if (dtypeInfo[a.dtype].floating) {
    const rest = call('remainder', call('abs', a), call('abs', b))
    return call('where', negative, call('neg', rest), rest)
  }
  // Integers have no absolute value of the least one, but the remainder that rounds down differs by at most one divisor.
  const rest = call('remainder', a, b)
  const otherSign = call('and', call('ne', rest, zero), call('ne', negative, call('lt', b, zero)))
  return call('where', otherSign, call('sub', rest, b), rest)
}

/**
 * The remainder of a division, with the sign of `self`, as JavaScript's `%`. PyTorch's `torch.fmod`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError for bools.
 * @example torch.fmod(torch.tensor([7, -7]), 3).toArray() // [1, -1]
 */
export const fmod: Op['fmod'] = defineOp({
  schema: 'fmod.Tensor(Tensor self, Tensor other) -> Tensor',
  tags: ['quotient'],
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'promote',
    dtypes: 'numeric',
    compute: truncatedRemainder,
  },
  derivative: ([g], { args: [a, b], needs }) => [g, needs[1] ? neg(mul(g, div(a, b, { roundingMode: 'trunc' }))) : null],
})

/**
 * The quotient, rounded down. PyTorch's `torch.floor_divide`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError for bools.
 * @example torch.floorDivide(torch.tensor([7, -7]), 2).toArray() // [3, -4]
 */
export const floorDivide: Op['floorDivide'] = defineOp({
  schema: 'floor_divide(Tensor self, Tensor other) -> Tensor',
  tags: ['quotient'],
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'promote',
    dtypes: 'numeric',
    compute: (a, b) => call('floorDiv', a, b),
  },
})

/**
 * `self` raised to the power `exponent`, elementwise. PyTorch's `torch.pow`.
 *
 * Shapes: `self` and `exponent` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError for an integer tensor with a negative number as exponent.
 * @throws DTypeError for bools.
 * @example
 * torch.pow(torch.tensor([1, 2, 3]), 2).toArray() // [1, 4, 9]
 * torch.pow(2, torch.tensor([1, 2, 3])).toArray() // [2, 4, 8]
 */
export const pow: Op['pow'] = defineOp({
  schema: 'pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor',
  method: true,
  inPlace: 'method',
  tags: ['numberFirst'],
  pointwise: {
    promotion: 'promote',
    dtypes: 'numeric',
    baked: ['exponent'],
    compute: (a, b) => {
      if (typeof b !== 'number') return call('pow', a, b)
      if (b < 0 && !dtypeInfo[a.dtype].floating)
        throw new ArgumentError('torch.pow: integers cannot be raised to negative powers; convert the tensor with float() first.')
      if (b === 0) return constant(a.dtype, 1)
      if (b === 1) return a
      if (b === 2) return call('mul', a, a)
      if (b === 3) return call('mul', call('mul', a, a), a)
      if (b === 0.5) return call('sqrt', a)
      if (b === -1) return call('reciprocal', a)
      return call('pow', a, constant(a.dtype, b))
    },
  },
  derivative: ([g], { args: [a, b], outputs: [out], needs }) => {
    const slope = typeof b === 'number' ? mul(pow(a, b - 1), b) : mul(b, pow(a, sub(b, 1)))
    return [needs[0] ? mul(g, slope) : null, needs[1] ? mul(g, mul(out, logOf(a))) : null]
  },
})

/** The logarithm, but 0 for 0, as the derivative of 0^x needs it. */
const logOf = (base: Tensor | number): Tensor | number =>
  typeof base === 'number' ? (base > 0 ? Math.log(base) : 0) : where(gt(base, 0), base.log(), 0)

/**
 * `-self`, elementwise. PyTorch's `torch.neg`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError for bools.
 * @example torch.neg(torch.tensor([1, -2])).toArray() // [-1, 2]
 */
export const neg: Op['neg'] = defineOp({
  schema: 'neg(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (a) => call('neg', a) },
  derivative: ([g]) => [neg(g)],
})

/**
 * The absolute value, elementwise. PyTorch's `torch.abs`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError for bools.
 * @example torch.abs(torch.tensor([1, -2])).toArray() // [1, 2]
 */
export const abs: Op['abs'] = defineOp({
  schema: 'abs(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (a) => call('abs', a) },
  derivative: ([g], { args: [a] }) => [mul(g, sign(a))],
})

/**
 * The sign, elementwise: -1, 0 or 1. PyTorch's `torch.sign`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sign(torch.tensor([3, 0, -0.5])).toArray() // [1, 0, -1]
 */
export const sign: Op['sign'] = defineOp({
  schema: 'sign(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', compute: (a) => call('sign', a) },
  derivative: ([g]) => [mul(g, 0)],
})

/** The gradients of an extreme: nothing for the operand that loses, half for each of two equal ones. */
function shares(g: Tensor, selfLoses: Tensor, otherLoses: Tensor, tie: Tensor): [Tensor, Tensor] {
  const share = where(tie, mul(g, 0.5), g)
  return [where(selfLoses, 0, share), where(otherLoses, 0, share)]
}

/**
 * The greater of two values, elementwise; NaN if either is NaN. PyTorch's `torch.maximum`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2])).toArray() // [3, 5]
 */
export const maximum: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'maximum(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a, b) => call('max', a, b) },
  derivative: ([g], { args: [a, b] }) => shares(g, lt(a, b), gt(a, b), eq(a, b)),
})

/**
 * The lesser of two values, elementwise; NaN if either is NaN. PyTorch's `torch.minimum`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 2])).toArray() // [1, 2]
 */
export const minimum: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'minimum(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a, b) => call('min', a, b) },
  derivative: ([g], { args: [a, b] }) => shares(g, gt(a, b), lt(a, b), eq(a, b)),
})
