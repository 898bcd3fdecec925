// Scaled dot-product attention, composed of products and a softmax.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { arange } from '../creation.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { matmul } from '../linalg/matmul.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { gt, logicalNot } from '../pointwise/comparison.ts'
import { maskedFill } from '../pointwise/select.ts'
import { softmax } from '../reduction/softmax.ts'
import { reshape, transpose } from '../view/index.ts'
import { dropout } from './dropout.ts'

const NAME = 'torch.nn.functional.scaled_dot_product_attention'

/** Options of scaledDotProductAttention. */
export interface AttentionOptions {
  /** bool (true = attend) or floating (added to the scores); broadcasts to [.., L, S]. */
  readonly attnMask?: Tensor | null
  readonly dropoutP?: number
  /** Position i attends to positions 0 to i. */
  readonly isCausal?: boolean
  /** Factor of the scores; 1 / sqrt(E) by default. */
  readonly scale?: number | null
}

/** softmax(query @ key^T * scale + mask) @ value; query [.., L, E], key [.., S, E], value [.., S, V]. PyTorch's `F.scaled_dot_product_attention`. */
export const scaledDotProductAttention: OpFunction<{
  (
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attnMask: Tensor | null,
    dropoutP?: number,
    isCausal?: boolean,
    options?: { readonly scale?: number | null },
  ): Tensor
  (query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions): Tensor
}> = defineOp({
  schema:
    'scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (query: Tensor, _key: Tensor, value: Tensor): TensorSpec => ({
    shape: [...query.shape.slice(0, -1), value.shape.at(-1) as number],
    dtype: query.dtype,
  }),
  decompose: (
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attnMask: Tensor | null,
    dropoutP: number,
    isCausal: boolean,
    scale: number | null,
  ): Tensor => {
    if (query.ndim < 2 || key.ndim < 2 || value.ndim < 2 || query.shape.at(-1) !== key.shape.at(-1) || key.shape.at(-2) !== value.shape.at(-2)) {
      throw new ShapeError(
        `${NAME}: expected query [.., L, E], key [.., S, E] and value [.., S, V], got shapes ${formatShape(query.shape)}, ${formatShape(key.shape)} and ${formatShape(value.shape)}.`,
      )
    }
    if (isCausal && attnMask !== null) throw new ArgumentError(`${NAME}: give attn_mask or is_causal, not both.`)
    const factor = scale ?? 1 / Math.sqrt(query.shape.at(-1) as number)
    let scores = mul(matmul(query, transpose(key, -2, -1)), factor)
    if (isCausal) {
      const [rows, cols] = [query.shape.at(-2) as number, key.shape.at(-2) as number]
      const hidden = gt(reshape(arange(cols, { dtype: 'int32' }), [1, cols]), reshape(arange(rows, { dtype: 'int32' }), [rows, 1]))
      scores = maskedFill(scores, hidden, -Infinity)
    } else if (attnMask !== null) {
      scores = attnMask.dtype === 'bool' ? maskedFill(scores, logicalNot(attnMask), -Infinity) : add(scores, attnMask)
    }
    const weights = dropout(softmax(scores, -1), dropoutP, true)
    return matmul(weights, value)
  },
})
