// The functions of complex numbers that are computed element by element: each with its gradients, in PyTorch's convention. The gradient of a differentiable function is that of its result times
// the conjugate of the derivative.
import { tensorAt } from '../../dispatch/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { add, mul, neg } from '../pointwise/arithmetic.ts'
import * as elementary from './elementary.ts'
import type { Parts } from './elementary.ts'
import { complexFunction } from './fused.ts'
import type { ComplexRule, ComplexRules } from './rule.ts'

const { times, quotient, scaled } = elementary

const conjugate = ([x, y]: Parts): Parts => [x, neg(y)]
const negative = ([x, y]: Parts): Parts => [neg(x), neg(y)]
const plusOne = ([x, y]: Parts): Parts => [add(x, 1), y]
const square = (z: Parts): Parts => times(z, z)
/** 1 + z², 1 - z² */
const onePlusSquare = (z: Parts): Parts => plusOne(square(z))
const oneMinusSquare = (z: Parts): Parts => plusOne(negative(square(z)))

type Gradient = (grad: Parts, z: Parts, result: Parts) => Parts

/** The gradient of a function with that derivative. */
const by =
  (derivative: (z: Parts, result: Parts) => Parts): Gradient =>
  (grad, z, result) =>
    times(grad, conjugate(derivative(z, result)))

/** The same where one divided by the derivative is known. */
const over =
  (inverse: (z: Parts, result: Parts) => Parts): Gradient =>
  (grad, z, result) =>
    quotient(grad, conjugate(inverse(z, result)))

const LOG2 = Math.log(2)
const LOG10 = Math.log(10)

/** The functions of one number, by the names of their operators in torch. */
const UNARY: Readonly<Record<string, readonly [formula: (z: Parts) => Parts, gradient: Gradient]>> = {
  square: [square, by((z) => scaled(z, 2))],
  reciprocal: [elementary.inverse, by((_, r) => negative(square(r)))],
  exp: [elementary.exp, by((_, r) => r)],
  exp2: [(z) => elementary.exp(scaled(z, LOG2)), by((_, r) => scaled(r, LOG2))],
  expm1: [elementary.expm1, by((_, r) => plusOne(r))],
  log: [elementary.log, over((z) => z)],
  log2: [(z) => scaled(elementary.log(z), 1 / LOG2), over((z) => scaled(z, LOG2))],
  log10: [(z) => scaled(elementary.log(z), 1 / LOG10), over((z) => scaled(z, LOG10))],
  log1p: [elementary.log1p, over(plusOne)],
  sqrt: [elementary.sqrt, over((_, r) => scaled(r, 2))],
  rsqrt: [(z) => elementary.inverse(elementary.sqrt(z)), by((_, r) => scaled(times(square(r), r), -0.5))],
  sin: [elementary.sin, by(elementary.cos)],
  cos: [elementary.cos, by((z) => negative(elementary.sin(z)))],
  tan: [elementary.tan, by((_, r) => onePlusSquare(r))],
  sinh: [elementary.sinh, by(elementary.cosh)],
  cosh: [elementary.cosh, by(elementary.sinh)],
  tanh: [elementary.tanh, by((_, r) => oneMinusSquare(r))],
  asin: [elementary.asin, over((z) => elementary.sqrt(oneMinusSquare(z)))],
  acos: [elementary.acos, over((z) => negative(elementary.sqrt(oneMinusSquare(z))))],
  atan: [elementary.atan, over(onePlusSquare)],
  asinh: [elementary.asinh, over((z) => elementary.sqrt(onePlusSquare(z)))],
  acosh: [elementary.acosh, over((z) => times(elementary.sqrt(plusOne(z)), elementary.sqrt([add(z[0], -1), z[1]])))],
  atanh: [elementary.atanh, over(oneMinusSquare)],
  sigmoid: [elementary.sigmoid, by((_, r) => times(r, plusOne(negative(r))))],
}

/** The rules of {@link UNARY}. */
export const functionRules: ComplexRules = Object.fromEntries(
  Object.entries(UNARY).map(([name, [formula, gradient]]): readonly [string, ComplexRule] => {
    const compute = complexFunction({ name, formula, gradients: [gradient] })
    return [`torch.${name}`, (args) => compute(tensorAt(args, 0))]
  }),
)

type Binary = (a: Tensor, b: Tensor) => Tensor

/** The product of complex numbers of one dtype. */
export const product: Binary = complexFunction({
  name: 'mul',
  formula: times,
  gradients: [(grad, _, b) => times(grad, conjugate(b)), (grad, a) => times(grad, conjugate(a))],
})

/** The quotient of complex numbers of one dtype. */
export const ratio: Binary = complexFunction({
  name: 'div',
  formula: quotient,
  gradients: [(grad, _, b) => quotient(grad, conjugate(b)), (grad, _, b, result) => negative(quotient(times(grad, conjugate(result)), conjugate(b)))],
})

/** Complex numbers times real ones. */
export const multiple: Binary = complexFunction({
  name: 'mul',
  formula: (z, [factor]) => scaled(z, factor),
  gradients: [(grad, _, [factor]) => scaled(grad, factor), ([x, y], [a, b]) => [add(mul(x, a), mul(y, b))]],
})

/** Absolute values, real numbers. At 0 the gradient is 0. */
export const magnitudes: (z: Tensor) => Tensor = complexFunction({
  name: 'abs',
  formula: (z) => [elementary.magnitude(z)],
  gradients: [([grad], z) => scaled(elementary.direction(z), grad)],
})
