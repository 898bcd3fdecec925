// Choosing between values: where, maskedFill, clamp.
import { call, cast, constant } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { ge, le, logicalAnd } from './comparison.ts'

/**
 * `self` where `condition` holds, else `other`, elementwise. PyTorch's `torch.where`.
 *
 * Shapes: all tensors broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.where(torch.tensor([true, false]), torch.tensor([1, 2]), 0).toArray() // [1, 0]
 */
export const where: OpFunction<(condition: Tensor, self: Tensor | number, other: Tensor | number) => Tensor> = defineOp({
  schema: 'where(Tensor condition, Tensor input, Tensor other) -> Tensor',
  pointwise: { promotion: 'promote', compute: (c, a, b) => call('where', cast(c, 'bool'), a, b) },
  derivative: ([g], { args: [condition], needs }) => [null, needs[1] ? where(condition, g, 0) : null, needs[2] ? where(condition, 0, g) : null],
})

/**
 * `value` where `mask` holds, else `self`, elementwise. PyTorch's `Tensor.masked_fill`.
 *
 * Shapes: `self` and `mask` broadcast; the result has the broadcast shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.maskedFill(torch.tensor([1, 2]), torch.tensor([true, false]), -1).toArray() // [-1, 2]
 */
export const maskedFill: OpFunction<(self: Tensor, mask: Tensor, value: number) => Tensor> = defineOp({
  schema: 'masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, mask, value) => where(mask, value, self),
})

/** The limits of {@link clamp}, by name. */
export interface ClampOptions {
  readonly min?: number | null
  readonly max?: number | null
}

/**
 * Limits values to `min` and `max`, elementwise; null means no limit. PyTorch's `torch.clamp`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if a limit is neither a number nor null.
 * @example torch.clamp(torch.tensor([-1, 2, 5]), { min: 0, max: 3 }).toArray() // [0, 2, 3]
 */
export const clamp: OpFunction<(self: Tensor, min?: number | null | ClampOptions, max?: number | null) => Tensor> = defineOp({
  schema: 'clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor',
  method: true,
  inPlace: 'function',
  pointwise: {
    promotion: 'promote',
    baked: ['min', 'max'],
    compute: (a, min, max) => {
      const low = min === null ? a : call('max', a, constant(a.dtype, Number(min)))
      return max === null ? low : call('min', low, constant(a.dtype, Number(max)))
    },
  },
  derivative: ([g], { args: [self, min, max] }) => {
    const above = min === null ? null : ge(self, min)
    const below = max === null ? null : le(self, max)
    const inside = above !== null && below !== null ? logicalAnd(above, below) : (above ?? below)
    return [inside === null ? g : where(inside, g, 0), null, null]
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link maskedFill} */
    maskedFill(mask: Tensor, value: number): Tensor
    /** {@link clamp} */
    clamp(min?: number | null | ClampOptions, max?: number | null): Tensor
  }
}
