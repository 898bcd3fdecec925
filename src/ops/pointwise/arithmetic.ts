// Arithmetic: add, sub, mul, div and their kin, and the fused update formulas of optimizers.
import { ArgumentError } from '../../errors/index.ts'
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { ge, gt, le, lt } from './comparison.ts'
import { where } from './select.ts'

type TensorOrNumber = Tensor | number

/** self + alpha * other. PyTorch's `torch.add`. */
export const add: OpFunction<(self: Tensor, other: TensorOrNumber, options?: { readonly alpha?: number }) => Tensor> = defineOp({
  schema: 'add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr, b: Expr, alpha: Expr) => call('add', a, call('mul', b, alpha)) },
  derivative: ([g], { args: [, , alpha] }) => [g as Tensor, scaled(g as Tensor, alpha as number), null],
})

/** self - alpha * other. PyTorch's `torch.sub`. */
export const sub: OpFunction<(self: Tensor, other: TensorOrNumber, options?: { readonly alpha?: number }) => Tensor> = defineOp({
  schema: 'sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr, b: Expr, alpha: Expr) => call('sub', a, call('mul', b, alpha)) },
  derivative: ([g], { args: [, , alpha] }) => [g as Tensor, mul(g as Tensor, -(alpha as number)), null],
})

const scaled = (g: Tensor, factor: number): Tensor => (factor === 1 ? g : mul(g, factor))

/** Elementwise product. PyTorch's `torch.mul`. */
export const mul: OpFunction<(self: Tensor, other: TensorOrNumber) => Tensor> = defineOp({
  schema: 'mul.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr, b: Expr) => call('mul', a, b) },
  derivative: ([g], { args: [a, b], needs }) => [
    needs[0] === true ? mul(g as Tensor, b as TensorOrNumber) : null,
    needs[1] === true ? mul(g as Tensor, a as Tensor) : null,
  ],
})

/** Elementwise quotient; integers are divided as floats unless `roundingMode` is 'trunc' or 'floor'. PyTorch's `torch.div`. */
export const div: OpFunction<(self: Tensor, other: TensorOrNumber, options?: { readonly roundingMode?: 'trunc' | 'floor' | null }) => Tensor> =
  defineOp({
    schema: 'div.Tensor(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor',
    method: true,
    pointwise: {
      promotion: 'float',
      compute: (a: Expr, b: Expr, mode: string | null) =>
        mode === null ? call('div', a, b) : call(mode === 'floor' ? 'floor' : 'trunc', call('div', a, b)),
    },
    derivative: ([g], { args: [a, b, mode], needs }) => {
      if (mode !== null) return [null, null, null]
      return [
        needs[0] === true ? div(g as Tensor, b as TensorOrNumber) : null,
        needs[1] === true ? neg(div(mul(g as Tensor, a as Tensor), mul(b as Tensor, b as Tensor))) : null,
        null,
      ]
    },
  })

/** Remainder with the sign of the divisor. PyTorch's `torch.remainder`. */
export const remainder: OpFunction<(self: Tensor, other: TensorOrNumber) => Tensor> = defineOp({
  schema: 'remainder.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr, b: Expr) => call('remainder', a, b) },
  derivative: ([g], { args: [a, b], needs }) => [
    g as Tensor,
    needs[1] === true ? neg(mul(g as Tensor, div(a as Tensor, b as Tensor, { roundingMode: 'floor' }))) : null,
  ],
})

/** Remainder with the sign of self, as JavaScript's `%`. PyTorch's `torch.fmod`. */
export const fmod: OpFunction<(self: Tensor, other: TensorOrNumber) => Tensor> = defineOp({
  schema: 'fmod.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'promote',
    compute: (a: Expr, b: Expr) => {
      const quotient = call('div', a, b)
      return call('sub', a, call('mul', b, a.dtype === 'int32' ? quotient : call('trunc', quotient)))
    },
  },
  derivative: ([g], { args: [a, b], needs }) => [
    g as Tensor,
    needs[1] === true ? neg(mul(g as Tensor, div(a as Tensor, b as Tensor, { roundingMode: 'trunc' }))) : null,
  ],
})

/** Quotient rounded down. PyTorch's `torch.floor_divide`. */
export const floorDivide: OpFunction<(self: Tensor, other: TensorOrNumber) => Tensor> = defineOp({
  schema: 'floor_divide(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'promote',
    compute: (a: Expr, b: Expr) => (a.dtype === 'int32' ? call('floorDiv', a, b) : call('floor', call('div', a, b))),
  },
})

/** Elementwise power. PyTorch's `torch.pow`. */
export const pow: OpFunction<(self: Tensor, exponent: TensorOrNumber) => Tensor> = defineOp({
  schema: 'pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'promote',
    baked: ['exponent'],
    compute: (a: Expr, b: Expr | number) => {
      if (typeof b !== 'number') return call('pow', a, b)
      if (b < 0 && a.dtype === 'int32')
        throw new ArgumentError('torch.pow: integers cannot be raised to negative powers; convert the tensor with float() first.')
      if (b === 0) return constant(a.dtype, 1)
      if (b === 1) return a
      if (b === 2) return call('mul', a, a)
      if (b === 3) return call('mul', call('mul', a, a), a)
      if (b === 0.5) return call('sqrt', a)
      if (b === -1) return call('reciprocal', a)
      return call('pow', a, constant(a.dtype, b))
    },
  },
  derivative: ([g], { args: [a, b], outputs: [out], needs }) => {
    const base = a as Tensor
    const exponent = b as TensorOrNumber
    const down = typeof exponent === 'number' ? mul(pow(base, exponent - 1), exponent) : mul(exponent, pow(base, sub(exponent, 1)))
    return [needs[0] === true ? mul(g as Tensor, down) : null, needs[1] === true ? mul(g as Tensor, mul(out as Tensor, logOf(base))) : null]
  },
})

/** Logarithm with 0 for 0, as the derivative of 0^x needs it. */
const logOf = (base: Tensor): Tensor => where(gt(base, 0), base.log(), 0)

/** -self. PyTorch's `torch.neg`. */
export const neg: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'neg(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr) => call('neg', a) },
  derivative: ([g]) => [neg(g as Tensor)],
})

/** Absolute value. PyTorch's `torch.abs`. */
export const abs: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'abs(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr) => call('abs', a) },
  derivative: ([g], { args: [a] }) => [mul(g as Tensor, sign(a as Tensor))],
})

/** -1, 0 or 1. PyTorch's `torch.sign`. */
export const sign: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'sign(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr) => call('sign', a) },
  derivative: ([g]) => [mul(g as Tensor, 0)],
})

/** The greater of two values; NaN wins. PyTorch's `torch.maximum`. */
export const maximum: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'maximum(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr, b: Expr) => call('max', a, b) },
  derivative: ([g], { args: [a, b] }) => [where(ge(a as Tensor, b as Tensor), g as Tensor, 0), where(gt(b as Tensor, a as Tensor), g as Tensor, 0)],
})

/** The lesser of two values; NaN wins. PyTorch's `torch.minimum`. */
export const minimum: OpFunction<(self: Tensor, other: Tensor) => Tensor> = defineOp({
  schema: 'minimum(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (a: Expr, b: Expr) => call('min', a, b) },
  derivative: ([g], { args: [a, b] }) => [where(le(a as Tensor, b as Tensor), g as Tensor, 0), where(lt(b as Tensor, a as Tensor), g as Tensor, 0)],
})

/** self + weight * (end - self). PyTorch's `torch.lerp`. */
export const lerp: OpFunction<(self: Tensor, end: Tensor, weight: TensorOrNumber) => Tensor> = defineOp({
  schema: 'lerp(Tensor self, Tensor end, Tensor weight) -> Tensor',
  method: true,
  pointwise: { promotion: 'float', compute: (a: Expr, b: Expr, w: Expr) => call('add', a, call('mul', w, call('sub', b, a))) },
  derivative: ([g], { args: [a, b, w], needs }) => {
    const grad = g as Tensor
    const weight = w as TensorOrNumber
    return [sub(grad, mul(grad, weight)), mul(grad, weight), needs[2] === true ? mul(grad, sub(b as Tensor, a as Tensor)) : null]
  },
})

/** self + value * tensor1 * tensor2. PyTorch's `torch.addcmul`. */
export const addcmul: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> = defineOp({
  schema: 'addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (s: Expr, a: Expr, b: Expr, v: Expr) => call('add', s, call('mul', v, call('mul', a, b))) },
  derivative: ([g], { args: [, a, b, v], needs }) => {
    const grad = mul(g as Tensor, v as number)
    return [g as Tensor, needs[1] === true ? mul(grad, b as Tensor) : null, needs[2] === true ? mul(grad, a as Tensor) : null, null]
  },
})

/** self + value * tensor1 / tensor2. PyTorch's `torch.addcdiv`. */
export const addcdiv: OpFunction<(self: Tensor, tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }) => Tensor> = defineOp({
  schema: 'addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor',
  method: true,
  pointwise: { promotion: 'promote', compute: (s: Expr, a: Expr, b: Expr, v: Expr) => call('add', s, call('mul', v, call('div', a, b))) },
  derivative: ([g], { args: [, a, b, v], needs }) => {
    const grad = mul(g as Tensor, v as number)
    const [n, d] = [a as Tensor, b as Tensor]
    return [g as Tensor, needs[1] === true ? div(grad, d) : null, needs[2] === true ? neg(div(mul(grad, n), mul(d, d))) : null, null]
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    add(other: Tensor | number, options?: { readonly alpha?: number }): Tensor
    sub(other: Tensor | number, options?: { readonly alpha?: number }): Tensor
    mul(other: Tensor | number): Tensor
    div(other: Tensor | number, options?: { readonly roundingMode?: 'trunc' | 'floor' | null }): Tensor
    remainder(other: Tensor | number): Tensor
    fmod(other: Tensor | number): Tensor
    floorDivide(other: Tensor | number): Tensor
    pow(exponent: Tensor | number): Tensor
    neg(): Tensor
    abs(): Tensor
    sign(): Tensor
    maximum(other: Tensor): Tensor
    minimum(other: Tensor): Tensor
    lerp(end: Tensor, weight: Tensor | number): Tensor
    addcmul(tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }): Tensor
    addcdiv(tensor1: Tensor, tensor2: Tensor, options?: { readonly value?: number }): Tensor
  }
}
