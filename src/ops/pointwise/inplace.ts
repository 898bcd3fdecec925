// In-place forms: the result of the functional operator, written into self.
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { relu } from './activation.ts'
import { add, div, mul, neg, sub } from './arithmetic.ts'
import { addcdiv, addcmul, lerp } from './fused.ts'
import { clamp } from './select.ts'
import { exp, sqrt } from './unary.ts'

/**
 * `self += alpha * other`, in place. PyTorch's `Tensor.add_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([1, 2]).add_(3).toArray() // [4, 5]
 */
export const add_: OpFunction<(self: Tensor, other: Tensor | number, options?: { readonly alpha?: number }) => Tensor> = defineOp({
  schema: 'add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: add,
})

/**
 * `self -= alpha * other`, in place. PyTorch's `Tensor.sub_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([4, 5]).sub_(3).toArray() // [1, 2]
 */
export const sub_: OpFunction<(self: Tensor, other: Tensor | number, options?: { readonly alpha?: number }) => Tensor> = defineOp({
  schema: 'sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: sub,
})

/**
 * `self *= other`, in place. PyTorch's `Tensor.mul_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([1, 2]).mul_(3).toArray() // [3, 6]
 */
export const mul_: OpFunction<(self: Tensor, other: Tensor | number) => Tensor> = defineOp({
  schema: 'mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: mul,
})

/**
 * `self /= other`, in place. PyTorch's `Tensor.div_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([3, 5]).div_(2).toArray() // [1.5, 2.5]
 */
export const div_: OpFunction<(self: Tensor, other: Tensor | number, options?: { readonly roundingMode?: 'trunc' | 'floor' | null }) => Tensor> =
  defineOp({
    schema: 'div_.Tensor(Tensor(a!) self, Tensor other, *, str? rounding_mode=None) -> Tensor',
    namespace: 'torch.Tensor',
    method: true,
    functional: div,
  })

/**
 * `self = -self`, in place. PyTorch's `Tensor.neg_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `self` is an expanded view.
 * @example torch.tensor([1, -2]).neg_().toArray() // [-1, 2]
 */
export const neg_: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'neg_(Tensor(a!) self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: neg,
})

/**
 * `self = sqrt(self)`, in place. PyTorch's `Tensor.sqrt_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws DTypeError if `self` is not floating.
 * @example torch.tensor([4, 9]).sqrt_().toArray() // [2, 3]
 */
export const sqrt_: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'sqrt_(Tensor(a!) self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: sqrt,
})

/**
 * `self = exp(self)`, in place. PyTorch's `Tensor.exp_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws DTypeError if `self` is not floating.
 * @example torch.tensor([0, 1]).exp_().toArray() // [1, 2.71828]
 */
export const exp_: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'exp_(Tensor(a!) self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: exp,
})

/**
 * `self = max(self, 0)`, in place. PyTorch's `torch.relu_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `self` is an expanded view.
 * @example torch.relu_(torch.tensor([-1, 2])).toArray() // [0, 2]
 */
export const relu_: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'relu_(Tensor(a!) self) -> Tensor',
  method: true,
  functional: relu,
})

/**
 * `self = clamp(self, min, max)`, in place. PyTorch's `Tensor.clamp_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `self` is an expanded view.
 * @example torch.tensor([-1, 2, 5]).clamp_(0, 3).toArray() // [0, 2, 3]
 */
export const clamp_: OpFunction<(self: Tensor, min?: number | null, max?: number | null) => Tensor> = defineOp({
  schema: 'clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: clamp,
})

/**
 * `self += weight * (end - self)`, in place. PyTorch's `Tensor.lerp_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([0, 10]).lerp_(torch.tensor([4, 20]), 0.5).toArray() // [2, 15]
 */
export const lerp_: OpFunction<(self: Tensor, end: Tensor, weight: Tensor | number) => Tensor> = defineOp({
  schema: 'lerp_(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: lerp,
})

/**
 * `self += value * tensor1 * tensor2`, in place. PyTorch's `Tensor.addcmul_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([1, 2]).addcmul_(torch.tensor([3, 4]), torch.tensor([5, 6])).toArray() // [16, 26]
 */
export const addcmul_: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> = defineOp({
  schema: 'addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: addcmul,
})

/**
 * `self += value * tensor1 / tensor2`, in place. PyTorch's `Tensor.addcdiv_`.
 *
 * Shape: that of `self`, to which the other operands broadcast. Returns `self`.
 *
 * @throws ShapeError if the other operands do not broadcast to the shape of `self`.
 * @throws DTypeError if the result is floating and `self` is not.
 * @example torch.tensor([1, 2]).addcdiv_(torch.tensor([6, 8]), torch.tensor([3, 2])).toArray() // [3, 6]
 */
export const addcdiv_: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> = defineOp({
  schema: 'addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: addcdiv,
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link add_} */
    add_(other: Tensor | number, options?: { readonly alpha?: number }): Tensor
    /** {@link sub_} */
    sub_(other: Tensor | number, options?: { readonly alpha?: number }): Tensor
    /** {@link mul_} */
    mul_(other: Tensor | number): Tensor
    /** {@link div_} */
    div_(other: Tensor | number, options?: { readonly roundingMode?: 'trunc' | 'floor' | null }): Tensor
    /** {@link neg_} */
    neg_(): Tensor
    /** {@link sqrt_} */
    sqrt_(): Tensor
    /** {@link exp_} */
    exp_(): Tensor
    /** {@link relu_} */
    relu_(): Tensor
    /** {@link clamp_} */
    clamp_(min?: number | null, max?: number | null): Tensor
    /** {@link lerp_} */
    lerp_(end: Tensor, weight: Tensor | number): Tensor
    /** {@link addcmul_} */
    addcmul_(tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }): Tensor
    /** {@link addcdiv_} */
    addcdiv_(tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }): Tensor
  }
}
