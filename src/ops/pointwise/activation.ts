// Activations and the primitives of their gradients.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, mul, neg, sub } from './arithmetic.ts'
import { gt } from './comparison.ts'
import { where } from './select.ts'
import { exp, sigmoid, tanh } from './unary.ts'

const number = (like: Expr, value: number): Expr => constant(like.dtype, value)

/**
 * `grad` where `self > threshold`, else 0: the gradient of relu. Internal; PyTorch's `aten.threshold_backward`.
 *
 * Shapes: `grad` and `self` broadcast.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.ops.tensorfx.thresholdBackward(torch.tensor([5, 6]), torch.tensor([-1, 2]), 0).toArray() // [0, 6]
 */
export const thresholdBackward: Op['thresholdBackward'] = defineOp({
  schema: 'threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'promote', compute: (g, x, t) => call('where', call('gt', x, t), g, number(g, 0)) },
  derivative: ([g], { args: [, x, threshold] }) => [thresholdBackward(g, x, threshold), null, null],
})

/**
 * max(x, 0), elementwise. PyTorch's `torch.relu`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError for bools.
 * @example torch.relu(torch.tensor([-1, 2])).toArray() // [0, 2]
 */
export const relu: Op['relu'] = defineOp({
  schema: 'relu(Tensor self) -> Tensor',
  method: true,
  onnx: 'relu',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (x) => call('max', x, number(x, 0)) },
  derivative: ([g], { outputs: [out] }) => [thresholdBackward(g, out, 0)],
})

const SQRT_HALF = Math.SQRT1_2
const SQRT_2_PI = Math.sqrt(2 / Math.PI)

/**
 * x times the cumulative probability of the normal distribution at x, elementwise; `approximate: 'tanh'` uses the tanh formula. PyTorch's `F.gelu`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError unless `approximate` is 'none' or 'tanh'.
 * @example F.gelu(torch.tensor([-1, 0, 1])).toArray() // [-0.158655, 0, 0.841345]
 */
export const gelu: OpFunction<(self: Tensor, options?: { readonly approximate?: 'none' | 'tanh' }) => Tensor> = defineOp({
  schema: "gelu(Tensor self, *, str approximate='none') -> Tensor",
  onnx: 'gelu',
  prepare: (args) => {
    if (args[1] !== 'none' && args[1] !== 'tanh')
      throw new ArgumentError(`torch.nn.functional.gelu: approximate must be 'none' or 'tanh', got ${valueText(args[1])}.`)
    return args
  },
  namespace: 'torch.nn.functional',
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x, approximate) => {
      const half = call('mul', x, number(x, 0.5))
      if (approximate === 'tanh') return call('mul', half, call('add', call('tanh', tanhArgument(x)), number(x, 1)))
      return call('mul', half, call('add', call('erf', call('mul', x, number(x, SQRT_HALF))), number(x, 1)))
    },
  },
  derivative: ([g], { args: [x, approximate] }) => [geluBackward(g, x, { approximate: approximate === 'tanh' ? 'tanh' : 'none' }), null],
})

/** sqrt(2/pi) * (x + 0.044715 x^3) */
function tanhArgument(x: Expr): Expr {
  const cubic = call('mul', call('mul', call('mul', x, x), x), number(x, 0.044715))
  return call('mul', call('add', x, cubic), number(x, SQRT_2_PI))
}

/**
 * The gradient of gelu. Internal; PyTorch's `aten.gelu_backward`.
 *
 * Shapes: `grad` and `self` broadcast.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.ops.tensorfx.geluBackward(torch.ones([2]), torch.tensor([0, 1])).toArray() // [0.5, 1.08332]
 */
export const geluBackward: OpFunction<(grad: Tensor, self: Tensor, options?: { readonly approximate?: 'none' | 'tanh' }) => Tensor> = defineOp({
  schema: "gelu_backward(Tensor grad, Tensor self, *, str approximate='none') -> Tensor",
  namespace: 'torch.ops.tensorfx',
  pointwise: {
    promotion: 'float',
    compute: (g, x, approximate) => {
      if (approximate === 'tanh') {
        const t = call('tanh', tanhArgument(x))
        const inner = call('mul', call('add', call('mul', call('mul', x, x), number(x, 3 * 0.044715)), number(x, 1)), number(x, SQRT_2_PI))
        const left = call('mul', call('add', t, number(x, 1)), number(x, 0.5))
        const right = call('mul', call('mul', call('mul', x, number(x, 0.5)), call('sub', number(x, 1), call('mul', t, t))), inner)
        return call('mul', g, call('add', left, right))
      }
      const cdf = call('mul', call('add', call('erf', call('mul', x, number(x, SQRT_HALF))), number(x, 1)), number(x, 0.5))
      const pdf = call('mul', call('exp', call('mul', call('mul', x, x), number(x, -0.5))), number(x, 1 / Math.sqrt(2 * Math.PI)))
      return call('mul', g, call('add', cdf, call('mul', x, pdf)))
    },
  },
  derivative: ([g], { args: [grad, x, approximate] }) => [
    geluBackward(g, x, { approximate: approximate === 'tanh' ? 'tanh' : 'none' }),
    mul(mul(g, grad), approximate === 'tanh' ? tanhGeluCurvature(x) : geluCurvature(x)),
    null,
  ],
})

/** The second derivative of gelu: (2 - x^2) times the normal density. */
const geluCurvature = (x: Tensor): Tensor => mul(add(neg(mul(x, x)), 2), mul(exp(mul(mul(x, x), -0.5)), 1 / Math.sqrt(2 * Math.PI)))

/** The second derivative of gelu by the tanh formula: (1 - t^2) (u' + x u'' / 2 - x t u'^2), where t = tanh(u). */
function tanhGeluCurvature(x: Tensor): Tensor {
  const square = mul(x, x)
  const t = tanh(mul(mul(x, add(mul(square, 0.044715), 1)), SQRT_2_PI))
  const slope = mul(add(mul(square, 3 * 0.044715), 1), SQRT_2_PI)
  const rest = sub(mul(square, 3 * 0.044715 * SQRT_2_PI), mul(mul(x, t), mul(slope, slope)))
  return mul(add(neg(mul(t, t)), 1), add(slope, rest))
}

/**
 * x * sigmoid(x), elementwise. PyTorch's `F.silu`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError if `self` is not a Tensor.
 * @example F.silu(torch.tensor([0, 1])).toArray() // [0, 0.731059]
 */
export const silu: Op['silu'] = defineOp({
  schema: 'silu(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  pointwise: { promotion: 'promote', dtypes: 'floating', compute: (x) => call('mul', x, call('sigmoid', x)) },
  derivative: ([g], { args: [x] }) => {
    const s = sigmoid(x)
    return [mul(g, mul(s, add(mul(x, add(neg(s), 1)), 1)))]
  },
})

/**
 * x where it is positive, else `negativeSlope * x`, elementwise. PyTorch's `F.leaky_relu`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError if `negativeSlope` is not a number.
 * @example F.leakyRelu(torch.tensor([-1, 2]), 0.1).toArray() // [-0.1, 2]
 */
export const leakyRelu: Op['leakyRelu'] = defineOp({
  schema: 'leaky_relu(Tensor self, float negative_slope=0.01) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  recordAs: 'keywords',
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x, slope) => call('where', call('gt', x, number(x, 0)), x, call('mul', x, slope)),
  },
  derivative: ([g], { args: [x, slope] }) => [where(gt(x, 0), g, mul(g, slope)), null],
})

/**
 * x where it is positive, else `alpha * (e^x - 1)`, elementwise. PyTorch's `F.elu`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError if `alpha` is not a number.
 * @example F.elu(torch.tensor([-1, 2])).toArray() // [-0.632121, 2]
 */
export const elu: Op['elu'] = defineOp({
  schema: 'elu(Tensor self, float alpha=1.0) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  recordAs: 'keywords',
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x, alpha) => call('where', call('gt', x, number(x, 0)), x, call('mul', alpha, call('expm1', x))),
  },
  derivative: ([g], { args: [x, alpha] }) => [where(gt(x, 0), g, mul(mul(g, alpha), exp(x))), null],
})
