// Choosing between values: where, maskedFill, clamp.
import { call, cast, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { ge, le, logicalAnd } from './comparison.ts'

/** self where condition holds, else other. PyTorch's `torch.where`. */
export const where: OpFunction<(condition: Tensor, self: Tensor | number, other: Tensor | number) => Tensor> = defineOp({
  schema: 'where(Tensor condition, Tensor input, Tensor other) -> Tensor',
  pointwise: { promotion: 'promote', compute: (c: Expr, a: Expr, b: Expr) => call('where', cast(c, 'bool'), a, b) },
  derivative: ([g], { args: [c], needs }) => [
    null,
    needs[1] === true ? where(c as Tensor, g as Tensor, 0) : null,
    needs[2] === true ? where(c as Tensor, 0, g as Tensor) : null,
  ],
})

/** value where mask holds, else self. PyTorch's `Tensor.masked_fill`. */
export const maskedFill: OpFunction<(self: Tensor, mask: Tensor, value: number) => Tensor> = defineOp({
  schema: 'masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor',
  method: true,
  decompose: (self: Tensor, mask: Tensor, value: number): Tensor => where(mask, value, self),
})

/** The limits of {@link clamp}, by name. */
export interface ClampOptions {
  readonly min?: number | null
  readonly max?: number | null
}

/** Limits values to min..max; either may be left out. PyTorch's `torch.clamp`. */
export const clamp: OpFunction<(self: Tensor, min?: number | null | ClampOptions, max?: number | null) => Tensor> = defineOp({
  schema: 'clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'promote',
    baked: ['min', 'max'],
    compute: (a: Expr, min: number | null, max: number | null) => {
      const low = min === null ? a : call('max', a, constant(a.dtype, min))
      return max === null ? low : call('min', low, constant(a.dtype, max))
    },
  },
  derivative: ([g], { args: [a, min, max] }) => {
    const self = a as Tensor
    const above = min === null ? null : ge(self, min as number)
    const below = max === null ? null : le(self, max as number)
    const inside = above !== null && below !== null ? logicalAnd(above, below) : (above ?? below)
    return [inside === null ? (g as Tensor) : where(inside, g as Tensor, 0), null, null]
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    maskedFill(mask: Tensor, value: number): Tensor
    clamp(min?: number | null | ClampOptions, max?: number | null): Tensor
  }
}
