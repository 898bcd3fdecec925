// Comparisons and logic; they return bool tensors and have no derivative.
import { call } from '../../kernels/index.ts'
import type { Expr, ScalarOp } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'

type Compare = OpFunction<(self: Tensor, other: Tensor | number) => Tensor>

const comparison = (name: ScalarOp): Compare =>
  defineOp({
    schema: `${name}.Tensor(Tensor self, Tensor other) -> Tensor`,
    method: true,
    pointwise: { promotion: 'compare', compute: (a: Expr, b: Expr) => call(name, a, b) },
  })

/** self == other, elementwise. PyTorch's `torch.eq`. */
export const eq: Compare = comparison('eq')
/** self != other. PyTorch's `torch.ne`. */
export const ne: Compare = comparison('ne')
/** self < other. PyTorch's `torch.lt`. */
export const lt: Compare = comparison('lt')
/** self <= other. PyTorch's `torch.le`. */
export const le: Compare = comparison('le')
/** self > other. PyTorch's `torch.gt`. */
export const gt: Compare = comparison('gt')
/** self >= other. PyTorch's `torch.ge`. */
export const ge: Compare = comparison('ge')

const logic = (name: string, op: ScalarOp): Compare =>
  defineOp({
    schema: `${name}(Tensor self, Tensor other) -> Tensor`,
    method: true,
    pointwise: { promotion: 'logical', compute: (a: Expr, b: Expr) => call(op, a, b) },
  })

/** Both are not zero. PyTorch's `torch.logical_and`. */
export const logicalAnd: Compare = logic('logical_and', 'and')
/** One is not zero. PyTorch's `torch.logical_or`. */
export const logicalOr: Compare = logic('logical_or', 'or')

/** Is zero. PyTorch's `torch.logical_not`. */
export const logicalNot: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'logical_not(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'logical', compute: (a: Expr) => call('not', a) },
})

/** Is NaN. PyTorch's `torch.isnan`. */
export const isnan: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'isnan(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (a: Expr) => call('ne', a, a) },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    eq(other: Tensor | number): Tensor
    ne(other: Tensor | number): Tensor
    lt(other: Tensor | number): Tensor
    le(other: Tensor | number): Tensor
    gt(other: Tensor | number): Tensor
    ge(other: Tensor | number): Tensor
    logicalAnd(other: Tensor | number): Tensor
    logicalOr(other: Tensor | number): Tensor
    logicalNot(): Tensor
    isnan(): Tensor
  }
}
