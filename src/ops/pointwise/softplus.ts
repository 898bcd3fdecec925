// Functions of log(1 + e^x): softplus, logsigmoid.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { mul, neg } from './arithmetic.ts'
import { gt } from './comparison.ts'
import { where } from './select.ts'
import { sigmoid } from './unary.ts'

/** log(1 + e^-|x|), which does not overflow. */
const tail = (x: Expr): Expr => call('log1p', call('exp', call('neg', call('abs', x))))

/**
 * log(sigmoid(x)), elementwise, without overflow. PyTorch's `F.logsigmoid`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.logsigmoid(torch.tensor([0, -1000])).toArray() // [-0.693147, -1000]
 */
export const logsigmoid: Op['logsigmoid'] = defineOp({
  schema: 'logsigmoid(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  pointwise: { promotion: 'promote', dtypes: 'floating', compute: (x) => call('sub', call('min', x, constant(x.dtype, 0)), tail(x)) },
  derivative: ([g], { args: [x] }) => [mul(g, sigmoid(neg(x)))],
})

/**
 * log(1 + e^(beta x)) / beta, elementwise; x itself where beta x exceeds `threshold`. PyTorch's `F.softplus`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.softplus(torch.tensor([0, 100])).toArray() // [0.693147, 100]
 */
export const softplus: Op['softplus'] = defineOp({
  schema: 'softplus(Tensor self, float beta=1.0, float threshold=20.0) -> Tensor',
  namespace: 'torch.nn.functional',
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x, beta, threshold) => {
      const scaled = call('mul', x, beta)
      const soft = call('div', call('add', call('max', scaled, constant(x.dtype, 0)), tail(scaled)), beta)
      return call('where', call('gt', scaled, threshold), x, soft)
    },
  },
  derivative: ([g], { args: [x, beta, threshold] }) => {
    const scaled = mul(x, beta)
    return [where(gt(scaled, threshold), g, mul(g, sigmoid(scaled))), null, null]
  },
})
