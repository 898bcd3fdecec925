// Operations on the bits of integers; on booleans, the logical ones. They have no derivative. ('promote' computes booleans as integers, where and, or
// and xor give the same results; 'first' keeps them booleans.)
import { call, cast, constant, dtypeInfo } from '../../kernels/index.ts'
import type { Expr, ScalarOp } from '../../kernels/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'

/** Whether a count is from 0 to the number of bits - 1: others shift all bits out. */
const inRange = (count: Expr): Expr =>
  call('and', call('ge', count, constant(count.dtype, 0)), call('lt', count, constant(count.dtype, dtypeInfo[count.dtype].size * 8)))

const bitwise = (op: ScalarOp): { readonly promotion: 'promote'; readonly dtypes: 'integral'; readonly compute: (a: Expr, b: Expr) => Expr } => ({
  promotion: 'promote',
  dtypes: 'integral',
  compute: (a, b) => call(op, a, b),
})

/**
 * The bits that both values have, elementwise. PyTorch's `torch.bitwise_and`.
 *
 * Shapes: `self` and `other` broadcast; both are integers or bools.
 *
 * @throws DTypeError for floating tensors.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseAnd(torch.tensor([6, 3]).int(), 5).toArray() // [4, 1]
 */
export const bitwiseAnd: Op['bitwiseAnd'] = defineOp({
  schema: 'bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: bitwise('bitAnd'),
})

/**
 * The bits that either value has, elementwise. PyTorch's `torch.bitwise_or`.
 *
 * Shapes: `self` and `other` broadcast; both are integers or bools.
 *
 * @throws DTypeError for floating tensors.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseOr(torch.tensor([6, 3]).int(), 5).toArray() // [7, 7]
 */
export const bitwiseOr: Op['bitwiseOr'] = defineOp({
  schema: 'bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: bitwise('bitOr'),
})

/**
 * The bits that exactly one of the values has, elementwise. PyTorch's `torch.bitwise_xor`.
 *
 * Shapes: `self` and `other` broadcast; both are integers or bools.
 *
 * @throws DTypeError for floating tensors.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseXor(torch.tensor([6, 3]).int(), 5).toArray() // [3, 6]
 */
export const bitwiseXor: Op['bitwiseXor'] = defineOp({
  schema: 'bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: bitwise('bitXor'),
})

/**
 * All bits flipped, elementwise; for booleans, `not`. PyTorch's `torch.bitwise_not`.
 *
 * Shape: that of `self`, which holds integers or bools.
 *
 * @throws DTypeError for a floating tensor.
 * @example torch.bitwiseNot(torch.tensor([0, 5]).int()).toArray() // [-1, -6]
 */
export const bitwiseNot: Op['bitwiseNot'] = defineOp({
  schema: 'bitwise_not(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'first',
    dtypes: 'integral',
    compute: (a) => (a.dtype === 'bool' ? call('not', a) : call('sub', constant(a.dtype, -1), a)),
  },
})

/**
 * `self * 2^other`, elementwise; 0 for counts below 0 or beyond the bits of the dtype. PyTorch's `torch.bitwise_left_shift`.
 *
 * Shapes: `self` and `other` broadcast; both are integers.
 *
 * @throws DTypeError unless both are integers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseLeftShift(torch.tensor([1, 3]).int(), 2).toArray() // [4, 12]
 */
export const bitwiseLeftShift: Op['bitwiseLeftShift'] = defineOp({
  schema: 'bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'promote',
    dtypes: 'integer',
    compute: (a, b) => call('where', inRange(b), call('shl', a, b), constant(a.dtype, 0)),
  },
})

/**
 * `self / 2^other`, rounded down, elementwise; 0 or -1 for counts below 0 or beyond the bits of the dtype. PyTorch's `torch.bitwise_right_shift`.
 *
 * Shapes: `self` and `other` broadcast; both are integers.
 *
 * @throws DTypeError unless both are integers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.bitwiseRightShift(torch.tensor([12, -5]).int(), 1).toArray() // [6, -3]
 */
export const bitwiseRightShift: Op['bitwiseRightShift'] = defineOp({
  schema: 'bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: {
    promotion: 'promote',
    dtypes: 'integer',
    compute: (a, b) => {
      // The kernels' only right shift brings in zeros, so a negative number has its bits flipped before and after.
      const { compute } = dtypeInfo[a.dtype]
      const [x, zero] = [cast(a, compute), constant(compute, 0)]
      const sign = call('where', call('lt', x, zero), constant(compute, -1), zero)
      const shifted = call('bitXor', call('shrU', call('bitXor', x, sign), cast(b, compute)), sign)
      return cast(call('where', inRange(b), shifted, sign), a.dtype)
    },
  },
})
