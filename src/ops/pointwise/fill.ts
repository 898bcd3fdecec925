// Writing values into a tensor: copy_, fill_, zero_, and the functional operators that they are the in-place forms of.
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { mul } from './arithmetic.ts'

/**
 * The values of `src`, broadcast and cast to the shape and dtype of `self`. Internal; PyTorch's `aten.copy`.
 *
 * Shapes: `src` broadcasts to the shape of `self`.
 *
 * @throws ShapeError if `src` does not broadcast.
 * @example torch.ops.tensorfx.copy(torch.zeros([2]), torch.tensor(3)).toArray() // [3, 3]
 */
export const copy: OpFunction<(self: Tensor, src: Tensor) => Tensor> = defineOp({
  schema: 'copy(Tensor self, Tensor src) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'first', compute: (_, src) => src },
  // Autograd brings the gradient of a broadcast or cast src into its shape and dtype.
  derivative: ([g]) => [mul(g, 0), g],
})

/**
 * Copies the values of `src`, broadcast and cast, into `self`. PyTorch's `Tensor.copy_`.
 *
 * Shapes: `src` broadcasts to the shape of `self`. Returns `self`.
 *
 * @throws ShapeError if `src` does not broadcast to the shape of `self`.
 * @example torch.zeros([2]).copy_(torch.tensor([3, 4])).toArray() // [3, 4]
 */
export const copy_: OpFunction<(self: Tensor, src: Tensor) => Tensor> = defineOp({
  schema: 'copy_(Tensor(a!) self, Tensor src) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: copy,
})

/**
 * One value everywhere, in the shape and dtype of `self`. Internal; PyTorch's `aten.fill`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `value` is not a number.
 * @example torch.ops.tensorfx.fill(torch.zeros([2]), 3).toArray() // [3, 3]
 */
export const fill: Op['fill'] = defineOp({
  schema: 'fill(Tensor self, Scalar value) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'first', compute: (_, value) => value },
  derivative: ([g]) => [mul(g, 0), null],
})

/**
 * Sets all elements to `value`. PyTorch's `Tensor.fill_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `value` is not a number.
 * @example torch.zeros([2]).fill_(3).toArray() // [3, 3]
 */
export const fill_: Op['fill_'] = defineOp({
  schema: 'fill_(Tensor(a!) self, Scalar value) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: fill,
})

/**
 * Sets all elements to 0. PyTorch's `Tensor.zero_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `self` is an expanded view.
 * @example torch.ones([2]).zero_().toArray() // [0, 0]
 */
export const zero_: Op['zero_'] = defineOp({
  schema: 'zero_(Tensor(a!) self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => fill_(self, 0),
})
