// In-place forms: the functional operator, written into self.
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { relu } from './activation.ts'
import { add, addcdiv, addcmul, div, lerp, mul, neg, sub } from './arithmetic.ts'
import { clamp } from './select.ts'
import { exp, sqrt } from './unary.ts'

type TensorOrNumber = Tensor | number

// eslint-disable-next-line typescript/no-explicit-any -- the functional operator's own type
function inPlace<F extends (...args: any[]) => Tensor>(functional: OpFunction<F>): OpFunction<F> {
  const { schema } = functional.op
  const text = schema.text.replace(/^(\w+)/, '$1_').replace('Tensor self', 'Tensor(a!) self')
  // relu_ is the one that PyTorch also has as a function.
  return defineOp<F>({ schema: text, namespace: schema.name === 'relu' ? 'torch' : 'torch.Tensor', method: true, functional })
}

/** self += alpha * other. PyTorch's `Tensor.add_`. */
export const add_: OpFunction<(self: Tensor, other: TensorOrNumber, options?: { readonly alpha?: number }) => Tensor> = inPlace(add)
/** self -= alpha * other. PyTorch's `Tensor.sub_`. */
export const sub_: OpFunction<(self: Tensor, other: TensorOrNumber, options?: { readonly alpha?: number }) => Tensor> = inPlace(sub)
/** self *= other. PyTorch's `Tensor.mul_`. */
export const mul_: OpFunction<(self: Tensor, other: TensorOrNumber) => Tensor> = inPlace(mul)
/** self /= other. PyTorch's `Tensor.div_`. */
export const div_: OpFunction<(self: Tensor, other: TensorOrNumber) => Tensor> = inPlace(div)
/** PyTorch's `Tensor.neg_`. */
export const neg_: OpFunction<(self: Tensor) => Tensor> = inPlace(neg)
/** PyTorch's `Tensor.sqrt_`. */
export const sqrt_: OpFunction<(self: Tensor) => Tensor> = inPlace(sqrt)
/** PyTorch's `Tensor.exp_`. */
export const exp_: OpFunction<(self: Tensor) => Tensor> = inPlace(exp)
/** PyTorch's `torch.relu_`. */
export const relu_: OpFunction<(self: Tensor) => Tensor> = inPlace(relu)
/** PyTorch's `Tensor.clamp_`. */
export const clamp_: OpFunction<(self: Tensor, min?: number | null, max?: number | null) => Tensor> = inPlace(clamp)
/** PyTorch's `Tensor.lerp_`. */
export const lerp_: OpFunction<(self: Tensor, end: Tensor, weight: TensorOrNumber) => Tensor> = inPlace(lerp)
/** PyTorch's `Tensor.addcmul_`. */
export const addcmul_: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> =
  inPlace(addcmul)
/** PyTorch's `Tensor.addcdiv_`. */
export const addcdiv_: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> =
  inPlace(addcdiv)

/** What copy_ stores: src in self's shape and dtype. PyTorch's aten.copy. */
export const copy: OpFunction<(self: Tensor, src: Tensor) => Tensor> = defineOp({
  schema: 'copy(Tensor self, Tensor src) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'first', compute: (_: Expr, src: Expr) => src },
  // Autograd brings the gradient of a broadcast or cast src into its shape and dtype.
  derivative: ([g]) => [mul(g as Tensor, 0), g as Tensor],
})

/** Copies values (broadcast, cast) into self. PyTorch's `Tensor.copy_`. */
export const copy_: OpFunction<(self: Tensor, src: Tensor) => Tensor> = defineOp({
  schema: 'copy_(Tensor(a!) self, Tensor src) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: copy,
})

/** A tensor like self, filled. PyTorch's aten.fill. */
export const fill: OpFunction<(self: Tensor, value: number) => Tensor> = defineOp({
  schema: 'fill(Tensor self, Scalar value) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'first', compute: (_: Expr, value: Expr) => value },
  derivative: ([g]) => [mul(g as Tensor, 0), null],
})

/** Sets all elements. PyTorch's `Tensor.fill_`. */
export const fill_: OpFunction<(self: Tensor, value: number) => Tensor> = defineOp({
  schema: 'fill_(Tensor(a!) self, Scalar value) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  functional: fill,
})

/** Sets all elements to 0. PyTorch's `Tensor.zero_`. */
export const zero_: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'zero_(Tensor(a!) self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self: Tensor): Tensor => fill_(self, 0),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    add_(other: Tensor | number, options?: { readonly alpha?: number }): Tensor
    sub_(other: Tensor | number, options?: { readonly alpha?: number }): Tensor
    mul_(other: Tensor | number): Tensor
    div_(other: Tensor | number): Tensor
    neg_(): Tensor
    sqrt_(): Tensor
    exp_(): Tensor
    relu_(): Tensor
    clamp_(min?: number | null, max?: number | null): Tensor
    lerp_(end: Tensor, weight: Tensor | number): Tensor
    addcmul_(tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }): Tensor
    addcdiv_(tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }): Tensor
    copy_(src: Tensor): Tensor
    fill_(value: number): Tensor
    zero_(): Tensor
  }
}
