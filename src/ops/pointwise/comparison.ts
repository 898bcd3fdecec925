// Comparisons and logic. They return bool tensors and have no derivative.
import { call } from '../../kernels/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'

/**
 * `self == other`, elementwise. PyTorch's `torch.eq`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.eq(torch.tensor([1, 2, 3]), 2).toArray() // [false, true, false]
 */
export const eq: Op['eq'] = defineOp({
  schema: 'eq.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'compare', compute: (a, b) => call('eq', a, b) },
})

/**
 * `self != other`, elementwise. PyTorch's `torch.ne`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.ne(torch.tensor([1, 2, 3]), 2).toArray() // [true, false, true]
 */
export const ne: Op['ne'] = defineOp({
  schema: 'ne.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'compare', compute: (a, b) => call('ne', a, b) },
})

/**
 * `self < other`, elementwise. PyTorch's `torch.lt`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.lt(torch.tensor([1, 2, 3]), 2).toArray() // [true, false, false]
 */
export const lt: Op['lt'] = defineOp({
  schema: 'lt.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'compare', compute: (a, b) => call('lt', a, b) },
})

/**
 * `self <= other`, elementwise. PyTorch's `torch.le`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.le(torch.tensor([1, 2, 3]), 2).toArray() // [true, true, false]
 */
export const le: Op['le'] = defineOp({
  schema: 'le.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'compare', compute: (a, b) => call('le', a, b) },
})

/**
 * `self > other`, elementwise. PyTorch's `torch.gt`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.gt(torch.tensor([1, 2, 3]), 2).toArray() // [false, false, true]
 */
export const gt: Op['gt'] = defineOp({
  schema: 'gt.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'compare', compute: (a, b) => call('gt', a, b) },
})

/**
 * `self >= other`, elementwise. PyTorch's `torch.ge`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.ge(torch.tensor([1, 2, 3]), 2).toArray() // [false, true, true]
 */
export const ge: Op['ge'] = defineOp({
  schema: 'ge.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'compare', compute: (a, b) => call('ge', a, b) },
})

/**
 * Whether both values are non-zero, elementwise. PyTorch's `torch.logical_and`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.logicalAnd(torch.tensor([1, 2, 0]), torch.tensor([3, 0, 0])).toArray() // [true, false, false]
 */
export const logicalAnd: Op['logicalAnd'] = defineOp({
  schema: 'logical_and(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'logical', compute: (a, b) => call('and', a, b) },
})

/**
 * Whether either value is non-zero, elementwise. PyTorch's `torch.logical_or`.
 *
 * Shapes: `self` and `other` broadcast; the result is bool and has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.logicalOr(torch.tensor([1, 2, 0]), torch.tensor([3, 0, 0])).toArray() // [true, true, false]
 */
export const logicalOr: Op['logicalOr'] = defineOp({
  schema: 'logical_or(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'logical', compute: (a, b) => call('or', a, b) },
})

/**
 * Whether a value is zero, elementwise. PyTorch's `torch.logical_not`.
 *
 * Shape: that of `self`; the result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.logicalNot(torch.tensor([0, 3])).toArray() // [true, false]
 */
export const logicalNot: Op['logicalNot'] = defineOp({
  schema: 'logical_not(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'logical', compute: (a) => call('not', a) },
})

/**
 * Whether a value is NaN, elementwise. PyTorch's `torch.isnan`.
 *
 * Shape: that of `self`; the result is bool.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.isnan(torch.tensor([0, NaN])).toArray() // [false, true]
 */
export const isnan: Op['isnan'] = defineOp({
  schema: 'isnan(Tensor self) -> Tensor',
  method: true,
  pointwise: { promotion: 'compare', compute: (a) => call('ne', a, a) },
})
