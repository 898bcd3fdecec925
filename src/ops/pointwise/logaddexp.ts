// log(e^x + e^y), elementwise.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { mul, neg, sub } from './arithmetic.ts'
import { sigmoid } from './unary.ts'

/** max(a, b) + log(1 + e^-|a - b|), which does not overflow; where a is b and infinite, the difference would be NaN, and the result is that value. */
function stable(a: Expr, b: Expr): Expr {
  const gap = call('abs', call('sub', a, b))
  const finite = call('add', call('max', a, b), call('log1p', call('exp', call('neg', gap))))
  const sameInfinity = call('and', call('eq', a, b), call('eq', call('abs', a), constant(a.dtype, Infinity)))
  return call('where', sameInfinity, a, finite)
}

/**
 * log(e^self + e^other), elementwise, without overflow. PyTorch's `torch.logaddexp`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.logaddexp(torch.tensor([0, 1000]), torch.tensor([0, 1000])).toArray() // [0.693147, 1000.69]
 */
export const logaddexp: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'logaddexp(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'float', compute: stable },
  derivative: ([g], { args: [x, y] }) => [mul(g, sigmoid(sub(x, y))), mul(g, sigmoid(neg(sub(x, y))))],
})
