// Choosing between values: where, maskedFill, clamp.
import { call, cast } from '../../kernels/index.ts'
import { ArgumentError, DTypeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { ComplexNumber } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { opByName } from '../define/table.ts'
import { to } from './cast.ts'
import { ge, gt, le, logicalAnd, logicalNot, logicalOr, lt } from './comparison.ts'

/**
 * `self` where `condition` holds, else `other`, elementwise. With the condition alone, the positions where it holds, a tensor for each dimension:
 * `torch.nonzero(condition, { asTuple: true })`. PyTorch's `torch.where`.
 *
 * Shapes: all tensors broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example
 * torch.where(torch.tensor([true, false]), torch.tensor([1, 2]), 0).toArray() // [1, 0]
 * torch.where(torch.tensor([true, false])).map((t) => t.toArray()) // [[0]]
 */
export const where: OpFunction<{
  (condition: Tensor): readonly Tensor[]
  (condition: Tensor, self: Tensor | number | ComplexNumber, other: Tensor | number | ComplexNumber): Tensor
}> = defineOp({
  schema: 'where(Tensor condition, Tensor input, Tensor other) -> Tensor',
  // By its name, since nonzero is computed with where.
  alone: (condition) => opByName('torch.nonzero')?.fn(condition, { asTuple: true }),
  pointwise: { promotion: 'promote', compute: (c, a, b) => call('where', cast(c, 'bool'), a, b) },
  derivative: ([g], { args: [condition], needs }) => [null, needs[1] ? where(condition, g, 0) : null, needs[2] ? where(condition, 0, g) : null],
})

/** Throws DTypeError unless the mask of an operator holds booleans. */
export function checkMask(op: string, mask: Tensor): void {
  if (mask.dtype !== 'bool')
    throw new DTypeError(`${op}: argument 'mask' must hold booleans, got ${mask.dtype}. Compare, e.g. mask.ne(0), or convert it: mask.bool().`)
}

/**
 * `value` where `mask` holds, else `self`, elementwise. PyTorch's `Tensor.masked_fill`.
 *
 * Shapes: `self` and `mask` broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError if `value` is neither a number nor a Tensor without dimensions.
 * @throws DTypeError unless `mask` holds booleans.
 * @example torch.maskedFill(torch.tensor([1, 2]), torch.tensor([true, false]), -1).toArray() // [-1, 2]
 */
export const maskedFill: OpFunction<(self: Tensor, mask: Tensor, value: number | ComplexNumber | Tensor) => Tensor> = defineOp({
  schema: 'masked_fill(Tensor self, Tensor mask, any value) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, mask, value) => {
    checkMask('torch.masked_fill', mask)
    if (value instanceof Tensor && value.ndim === 0) return where(mask, to(value, self.dtype), self)
    if (typeof value !== 'number' && typeof value !== 'boolean')
      throw new ArgumentError(`torch.masked_fill: argument 'value' must be a number or a Tensor without dimensions, got ${valueText(value)}.`)
    // The result keeps the dtype of `self`.
    if (self.dtype === 'bool') return Number(value) === 0 ? logicalAnd(self, logicalNot(mask)) : logicalOr(self, mask)
    return where(mask, self.isFloatingPoint() ? Number(value) : Math.trunc(Number(value)), self)
  },
})

/** The limits of {@link clamp}, by name. */
export interface ClampOptions {
  readonly min?: Tensor | number | null
  readonly max?: Tensor | number | null
}

/**
 * Limits values to `min` and `max`, numbers or tensors, elementwise; null means no limit. PyTorch's `torch.clamp`.
 *
 * Shapes: `self` and the limits broadcast; the result has the broadcast shape.
 *
 * @throws ArgumentError if a limit is neither a number, nor a Tensor, nor null.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.clamp(torch.tensor([-1, 2, 5]), { min: 0, max: 3 }).toArray() // [0, 2, 3]
 */
export const clamp: OpFunction<(self: Tensor, min?: Tensor | number | null | ClampOptions, max?: Tensor | number | null) => Tensor> = defineOp({
  schema: 'clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: {
    promotion: 'promote',
    compute: (a, min, max) => {
      const low = min === null ? a : call('max', a, min)
      return max === null ? low : call('min', low, max)
    },
  },
  derivative: ([g], { args: [self, min, max], needs }) => {
    const above = min === null ? null : ge(self, min)
    const below = max === null ? null : le(self, max)
    const inside = above !== null && below !== null ? logicalAnd(above, below) : (above ?? below)
    // Where the limits are in the wrong order the upper one counts.
    const isLower = !needs[1] || !(min instanceof Tensor) ? null : max === null ? lt(self, min) : logicalAnd(lt(self, min), lt(min, max))
    const isUpper = !needs[2] || !(max instanceof Tensor) ? null : min === null ? gt(self, max) : logicalOr(gt(self, max), lt(max, min))
    return [
      needs[0] ? (inside === null ? g : where(inside, g, 0)) : null,
      isLower === null ? null : where(isLower, g, 0),
      isUpper === null ? null : where(isUpper, g, 0),
    ]
  },
})
