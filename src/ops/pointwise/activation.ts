// Activations.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { add, mul, neg } from './arithmetic.ts'
import { gt } from './comparison.ts'
import { where } from './select.ts'
import { exp, sigmoid } from './unary.ts'

const number = (like: Expr, value: number): Expr => constant(like.dtype, value)

/** grad where self > threshold, else 0. PyTorch's aten.threshold_backward. */
export const thresholdBackward: OpFunction<(grad: Tensor, self: Tensor, threshold: number) => Tensor> = defineOp({
  schema: 'threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'promote', compute: (g: Expr, x: Expr, t: Expr) => call('where', call('gt', x, t), g, number(g, 0)) },
  derivative: ([g], { args: [, x, t] }) => [thresholdBackward(g as Tensor, x as Tensor, t as number), null, null],
})

/** max(x, 0). PyTorch's `torch.relu`. */
export const relu: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'relu(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (x: Expr) => call('max', x, number(x, 0)) },
  derivative: ([g], { outputs: [out] }) => [thresholdBackward(g as Tensor, out as Tensor, 0)],
})

const SQRT_HALF = Math.SQRT1_2
const SQRT_2_PI = Math.sqrt(2 / Math.PI)

/** x times the normal distribution's cumulative probability; `approximate` 'tanh' uses the tanh formula. PyTorch's `F.gelu`. */
export const gelu: OpFunction<(self: Tensor, options?: { readonly approximate?: 'none' | 'tanh' }) => Tensor> = defineOp({
  schema: "gelu(Tensor self, *, str approximate='none') -> Tensor",
  namespace: 'torch.nn.functional',
  pointwise: {
    promotion: 'float',
    compute: (x: Expr, approximate: string) => {
      const half = call('mul', x, number(x, 0.5))
      if (approximate === 'tanh') return call('mul', half, call('add', call('tanh', tanhArgument(x)), number(x, 1)))
      return call('mul', half, call('add', call('erf', call('mul', x, number(x, SQRT_HALF))), number(x, 1)))
    },
  },
  derivative: ([g], { args: [x, approximate] }) => [geluBackward(g as Tensor, x as Tensor, { approximate: approximate as 'none' | 'tanh' }), null],
})

/** sqrt(2/pi) * (x + 0.044715 x^3) */
function tanhArgument(x: Expr): Expr {
  const cubic = call('mul', call('mul', call('mul', x, x), x), number(x, 0.044715))
  return call('mul', call('add', x, cubic), number(x, SQRT_2_PI))
}

/** Gradient of gelu. PyTorch's aten.gelu_backward. */
export const geluBackward: OpFunction<(grad: Tensor, self: Tensor, options?: { readonly approximate?: 'none' | 'tanh' }) => Tensor> = defineOp({
  schema: "gelu_backward(Tensor grad, Tensor self, *, str approximate='none') -> Tensor",
  namespace: 'torch.ops.tensorfx',
  pointwise: {
    promotion: 'float',
    compute: (g: Expr, x: Expr, approximate: string) => {
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
})

/** x * sigmoid(x). PyTorch's `F.silu`. */
export const silu: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'silu(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  pointwise: { promotion: 'float', compute: (x: Expr) => call('mul', x, call('sigmoid', x)) },
  derivative: ([g], { args: [x] }) => {
    const s = sigmoid(x as Tensor)
    return [mul(g as Tensor, mul(s, add(mul(x as Tensor, add(neg(s), 1)), 1)))]
  },
})

/** x where positive, else negativeSlope * x. PyTorch's `F.leaky_relu`. */
export const leakyRelu: OpFunction<(self: Tensor, negativeSlope?: number) => Tensor> = defineOp({
  schema: 'leaky_relu(Tensor self, float negative_slope=0.01) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  pointwise: { promotion: 'float', compute: (x: Expr, slope: Expr) => call('where', call('gt', x, number(x, 0)), x, call('mul', x, slope)) },
  derivative: ([g], { args: [x, slope] }) => [where(gt(x as Tensor, 0), g as Tensor, mul(g as Tensor, slope as number)), null],
})

/** x where positive, else alpha * (e^x - 1). PyTorch's `F.elu`. */
export const elu: OpFunction<(self: Tensor, alpha?: number) => Tensor> = defineOp({
  schema: 'elu(Tensor self, float alpha=1.0) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  pointwise: {
    promotion: 'float',
    compute: (x: Expr, alpha: Expr) => call('where', call('gt', x, number(x, 0)), x, call('mul', alpha, call('expm1', x))),
  },
  derivative: ([g], { args: [x, alpha] }) => [where(gt(x as Tensor, 0), g as Tensor, mul(mul(g as Tensor, alpha as number), exp(x as Tensor))), null],
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    relu(): Tensor
  }
}
