// Formulas of three or four operands in one kernel, as optimizers update with them: lerp, addcmul, addcdiv.
import { call } from '../../kernels/index.ts'
import type { ComplexNumber, Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { div, mul, neg, sub } from './arithmetic.ts'

/**
 * `self + weight * (end - self)`, elementwise. PyTorch's `torch.lerp`.
 *
 * Shapes: all tensors broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError unless the common dtype is floating.
 * @example torch.lerp(torch.tensor([0, 10]), torch.tensor([4, 20]), 0.5).toArray() // [2, 15]
 */
export const lerp: OpFunction<(self: Tensor, end: Tensor, weight: Tensor | number | ComplexNumber) => Tensor> = defineOp({
  schema: 'lerp(Tensor self, Tensor end, Tensor weight) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', dtypes: 'floating', compute: (a, b, w) => call('add', a, call('mul', w, call('sub', b, a))) },
  derivative: ([g], { args: [a, b, weight], needs }) => [
    sub(g, mul(g, weight)),
    mul(g, weight),
    needs[2] ? mul(g, typeof b === 'number' ? neg(sub(a, b)) : sub(b, a)) : null,
  ],
})

/**
 * `self + value * tensor1 * tensor2`, elementwise. PyTorch's `torch.addcmul`.
 *
 * Shapes: all tensors broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError for bools, and for a fractional `value` with integer tensors.
 * @example torch.addcmul(torch.tensor([1, 2]), torch.tensor([3, 4]), torch.tensor([5, 6]), { value: 2 }).toArray() // [31, 50]
 */
export const addcmul: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> = defineOp({
  schema: 'addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (s, a, b, v) => call('add', s, call('mul', v, call('mul', a, b))) },
  derivative: ([g], { args: [, a, b, value], needs }) => {
    const grad = mul(g, value)
    return [g, needs[1] ? mul(grad, b) : null, needs[2] ? mul(grad, a) : null, null]
  },
})

/**
 * `self + value * tensor1 / tensor2`, elementwise. PyTorch's `torch.addcdiv`.
 *
 * Shapes: all tensors broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws DTypeError unless the common dtype is floating.
 * @example torch.addcdiv(torch.tensor([1, 2]), torch.tensor([6, 8]), torch.tensor([3, 2]), { value: 0.5 }).toArray() // [2, 4]
 */
export const addcdiv: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> = defineOp({
  schema: 'addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'promote', dtypes: 'floating', compute: (s, a, b, v) => call('add', s, call('mul', v, call('div', a, b))) },
  derivative: ([g], { args: [, a, b, value], needs }) => {
    const grad = mul(g, value)
    return [g, needs[1] ? div(grad, b) : null, needs[2] && typeof b !== 'number' ? neg(div(mul(grad, a), mul(b, b))) : null, null]
  },
})
