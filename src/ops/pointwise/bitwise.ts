// Operations on the bits of integers; on booleans, the logical ones. They have no derivative. ('promote' computes booleans as integers, where and, or
// and xor give the same results; 'first' keeps them booleans.)
import { DTypeError } from '../../errors/index.ts'
import { call, constant } from '../../kernels/index.ts'
import type { Expr, ScalarOp } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'

function checkBits(name: string, x: Expr, booleans: boolean): void {
  if (x.dtype === 'int32' || (booleans && x.dtype === 'bool')) return
  throw new DTypeError(
    `torch.${name}: expected integers${booleans ? ' or booleans' : ''}, got ${x.dtype}; convert with x.int()${booleans ? ' or compare' : ''} first.`,
  )
}

const bitwise = (name: string, op: ScalarOp): { readonly promotion: 'promote'; readonly compute: (a: Expr, b: Expr) => Expr } => ({
  promotion: 'promote',
  compute: (a, b) => {
    checkBits(name, a, true)
    return call(op, a, b)
  },
})

/**
 * The bits that both values have, elementwise. PyTorch's `torch.bitwise_and`.
 *
 * Shapes: `self` and `other` broadcast; both are int32 or bool.
 *
 * @throws DTypeError for floating tensors.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseAnd(torch.tensor([6, 3]).int(), 5).toArray() // [4, 1]
 */
export const bitwiseAnd: OpFunction<(self: Tensor, other: Tensor | number) => Tensor> = defineOp({
  schema: 'bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: bitwise('bitwise_and', 'bitAnd'),
})

/**
 * The bits that either value has, elementwise. PyTorch's `torch.bitwise_or`.
 *
 * Shapes: `self` and `other` broadcast; both are int32 or bool.
 *
 * @throws DTypeError for floating tensors.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseOr(torch.tensor([6, 3]).int(), 5).toArray() // [7, 7]
 */
export const bitwiseOr: OpFunction<(self: Tensor, other: Tensor | number) => Tensor> = defineOp({
  schema: 'bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: bitwise('bitwise_or', 'bitOr'),
})

/**
 * The bits that exactly one of the values has, elementwise. PyTorch's `torch.bitwise_xor`.
 *
 * Shapes: `self` and `other` broadcast; both are int32 or bool.
 *
 * @throws DTypeError for floating tensors.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseXor(torch.tensor([6, 3]).int(), 5).toArray() // [3, 6]
 */
export const bitwiseXor: OpFunction<(self: Tensor, other: Tensor | number) => Tensor> = defineOp({
  schema: 'bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: bitwise('bitwise_xor', 'bitXor'),
})

/**
 * All bits flipped, elementwise; for booleans, `not`. PyTorch's `torch.bitwise_not`.
 *
 * Shape: that of `self`, which is int32 or bool.
 *
 * @throws DTypeError for a floating tensor.
 * @example torch.bitwiseNot(torch.tensor([0, 5]).int()).toArray() // [-1, -6]
 */
export const bitwiseNot: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'bitwise_not(Tensor self) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'first',
    compute: (a) => {
      checkBits('bitwise_not', a, true)
      return a.dtype === 'bool' ? call('not', a) : call('bitXor', a, constant('int32', -1))
    },
  },
})

/**
 * `self * 2^other` for counts from 0 to 31, elementwise. PyTorch's `torch.bitwise_left_shift`.
 *
 * Shapes: `self` and `other` broadcast; `self` is int32.
 *
 * @throws DTypeError if `self` is not int32.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseLeftShift(torch.tensor([1, 3]).int(), 2).toArray() // [4, 12]
 */
export const bitwiseLeftShift: OpFunction<(self: Tensor, other: Tensor | number) => Tensor> = defineOp({
  schema: 'bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'first',
    compute: (a, b) => {
      checkBits('bitwise_left_shift', a, false)
      return call('shl', a, b)
    },
  },
})

/**
 * `self / 2^other`, rounded down, for counts from 0 to 31, elementwise. PyTorch's `torch.bitwise_right_shift`.
 *
 * Shapes: `self` and `other` broadcast; `self` is int32.
 *
 * @throws DTypeError if `self` is not int32.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseRightShift(torch.tensor([12, -5]).int(), 1).toArray() // [6, -3]
 */
export const bitwiseRightShift: OpFunction<(self: Tensor, other: Tensor | number) => Tensor> = defineOp({
  schema: 'bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'first',
    compute: (a, b) => {
      checkBits('bitwise_right_shift', a, false)
      // The kernels' only right shift brings in zeros, so a negative number has its bits flipped before and after.
      const sign = call('where', call('lt', a, constant('int32', 0)), constant('int32', -1), constant('int32', 0))
      return call('bitXor', call('shrU', call('bitXor', a, sign), b), sign)
    },
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link bitwiseAnd} */
    bitwiseAnd(other: Tensor | number): Tensor
    /** {@link bitwiseOr} */
    bitwiseOr(other: Tensor | number): Tensor
    /** {@link bitwiseXor} */
    bitwiseXor(other: Tensor | number): Tensor
    /** {@link bitwiseNot} */
    bitwiseNot(): Tensor
    /** {@link bitwiseLeftShift} */
    bitwiseLeftShift(other: Tensor | number): Tensor
    /** {@link bitwiseRightShift} */
    bitwiseRightShift(other: Tensor | number): Tensor
  }
}
