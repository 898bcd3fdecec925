// Dropout: a random mask times the input. A composite, so that captures see the draw and the product.
import { ArgumentError } from '../../errors/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { ge } from '../pointwise/comparison.ts'
import { rand } from '../random.ts'

/** Options of dropout. */
export interface DropoutOptions {
  /** The probability that an element becomes 0. Default 0.5. */
  readonly p?: number
  /** Default true. */
  readonly training?: boolean
  readonly inplace?: boolean
}

/**
 * Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p) while `training`; otherwise returns the input. PyTorch's `F.dropout`.
 *
 * Shape: that of `input`.
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @example F.dropout(torch.tensor([1, 2]), { training: false }).toArray() // [1, 2]
 */
export const dropout: OpFunction<{
  (input: Tensor, p?: number, training?: boolean, inplace?: boolean): Tensor
  (input: Tensor, options?: DropoutOptions): Tensor
}> = defineOp({
  schema: 'dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  meta: (input) => ({ shape: input.shape, dtype: input.dtype }),
  decompose: (input, p, training, inplace) => {
    if (!(p >= 0 && p <= 1)) throw new ArgumentError(`torch.nn.functional.dropout: p must be between 0 and 1, got ${p}.`)
    if (!training || p === 0) return input
    const masked = p === 1 ? mul(input, 0) : mul(input, mul(to(ge(rand(input.shape), p), input.dtype), 1 / (1 - p)))
    return inplace ? input.copy_(masked) : masked
  },
})
