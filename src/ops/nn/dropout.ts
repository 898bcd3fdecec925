// Dropout: a random mask times the input. A composite, so that captures see the draw and the product.
import { ArgumentError } from '../../errors/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { ge } from '../pointwise/comparison.ts'
import { zerosLike } from '../creation.ts'
import { rand } from '../random.ts'

/** Options of dropout. */
export interface DropoutOptions {
  readonly p?: number
  readonly training?: boolean
  readonly inplace?: boolean
}

/** Zeroes elements with probability `p` and scales the others by 1 / (1 - p) while `training`; else returns the input. PyTorch's `F.dropout`. */
export const dropout: OpFunction<{
  (input: Tensor, p?: number, training?: boolean, inplace?: boolean): Tensor
  (input: Tensor, options?: DropoutOptions): Tensor
}> = defineOp({
  schema: 'dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  meta: (input: Tensor): TensorSpec => ({ shape: input.shape, dtype: input.dtype }),
  decompose: (input: Tensor, p: number, training: boolean, inplace: boolean): Tensor => {
    if (!(p >= 0 && p <= 1)) throw new ArgumentError(`torch.nn.functional.dropout: p must be between 0 and 1, got ${p}.`)
    if (!training || p === 0) return input
    const masked = p === 1 ? zerosLike(input) : mul(input, mul(to(ge(rand(input.shape), p), input.dtype), 1 / (1 - p)))
    return inplace ? input.copy_(masked) : masked
  },
})
