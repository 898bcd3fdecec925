// Functions of one value: exponentials, roots, trigonometry, rounding.
import { call } from '../../kernels/index.ts'
import type { Expr, ScalarOp } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { add, mul, neg, sub } from './arithmetic.ts'

type Unary = OpFunction<(self: Tensor) => Tensor>

/** `slope` is the derivative at x, from x and the result. */
const unary = (name: string, op: ScalarOp, slope: ((x: Tensor, out: Tensor) => Tensor | number) | null): Unary =>
  defineOp({
    schema: `${name}(Tensor self) -> Tensor`,
    method: true,
    pointwise: { promotion: 'float', compute: (a: Expr) => call(op, a) },
    derivative: ([g], { args: [x], outputs: [out] }) => [slope === null ? mul(g as Tensor, 0) : mul(g as Tensor, slope(x as Tensor, out as Tensor))],
  })

/** e^x. PyTorch's `torch.exp`. */
export const exp: Unary = unary('exp', 'exp', (_, out) => out)
/** e^x - 1, accurate near 0. PyTorch's `torch.expm1`. */
export const expm1: Unary = unary('expm1', 'expm1', (_, out) => add(out, 1))
/** Natural logarithm. PyTorch's `torch.log`. */
export const log: Unary = unary('log', 'log', (x) => reciprocal(x))
/** log(1 + x), accurate near 0. PyTorch's `torch.log1p`. */
export const log1p: Unary = unary('log1p', 'log1p', (x) => reciprocal(add(x, 1)))
/** Square root. PyTorch's `torch.sqrt`. */
export const sqrt: Unary = unary('sqrt', 'sqrt', (_, out) => reciprocal(mul(out, 2)))
/** 1 / sqrt(x). PyTorch's `torch.rsqrt`. */
export const rsqrt: Unary = unary('rsqrt', 'rsqrt', (_, out) => mul(mul(mul(out, out), out), -0.5))
/** 1 / x. PyTorch's `torch.reciprocal`. */
export const reciprocal: Unary = unary('reciprocal', 'reciprocal', (_, out) => neg(mul(out, out)))
/** Sine. PyTorch's `torch.sin`. */
export const sin: Unary = unary('sin', 'sin', (x) => cos(x))
/** Cosine. PyTorch's `torch.cos`. */
export const cos: Unary = unary('cos', 'cos', (x) => neg(sin(x)))
/** Hyperbolic tangent. PyTorch's `torch.tanh`. */
export const tanh: Unary = unary('tanh', 'tanh', (_, out) => sub(neg(mul(out, out)), -1))
/** 1 / (1 + e^-x). PyTorch's `torch.sigmoid`. */
export const sigmoid: Unary = unary('sigmoid', 'sigmoid', (_, out) => mul(out, add(neg(out), 1)))
/** Error function. PyTorch's `torch.erf`. */
export const erf: Unary = unary('erf', 'erf', (x) => mul(exp(neg(mul(x, x))), 2 / Math.sqrt(Math.PI)))
/** Rounds down. PyTorch's `torch.floor`. */
export const floor: Unary = unary('floor', 'floor', null)
/** Rounds up. PyTorch's `torch.ceil`. */
export const ceil: Unary = unary('ceil', 'ceil', null)
/** Rounds to the nearest integer, halves to even. PyTorch's `torch.round`. */
export const round: Unary = unary('round', 'round', null)
/** Rounds towards zero. PyTorch's `torch.trunc`. */
export const trunc: Unary = unary('trunc', 'trunc', null)

/** x * x. PyTorch's `torch.square`. */
export const square: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'square(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr) => call('mul', a, a) },
  derivative: ([g], { args: [x] }) => [mul(mul(g as Tensor, x as Tensor), 2)],
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    exp(): Tensor
    expm1(): Tensor
    log(): Tensor
    log1p(): Tensor
    sqrt(): Tensor
    rsqrt(): Tensor
    reciprocal(): Tensor
    sin(): Tensor
    cos(): Tensor
    tanh(): Tensor
    sigmoid(): Tensor
    erf(): Tensor
    floor(): Tensor
    ceil(): Tensor
    round(): Tensor
    trunc(): Tensor
    square(): Tensor
  }
}
