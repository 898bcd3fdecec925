// Scaled dot-product attention: one operator where its kernels take the call, else composed of matrix products and a softmax.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { isStrict } from '../../../kernels/index.ts'
import { formatShape, sizeEq, sizeMod, sizeNumber } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { checkAdmits } from '../../eager/admittedTypes.ts'
import { matmul } from '../../linalg/matmul.ts'
import { to } from '../../pointwise/cast.ts'
import { where } from '../../pointwise/select.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { takesBlocks } from './attentionKernel.ts'
import { blockAttention, forHeads, weightsOf } from './blockAttention.ts'
import { dropout } from '../dropout.ts'
import { wideFor } from '../wide.ts'

const NAME = 'torch.nn.functional.scaled_dot_product_attention'

/** Options of scaledDotProductAttention. */
export interface AttentionOptions {
  /** bool (true = attend) or floating (added to the scores); broadcasts to [.., L, S]. */
  readonly attnMask?: Tensor | null
  readonly dropoutP?: number
  /** Position i attends to positions 0 to i only. */
  readonly isCausal?: boolean
  /** The factor of the scores; 1 / sqrt(E) by default. */
  readonly scale?: number | null
  /** Whether `query` may have several heads for each one of `key` and `value`: a multiple of their number, in dimension -3. */
  readonly enableGqa?: boolean
}

/** Each head of `key` as often as `query` has heads for it. */
function headsOf(query: Tensor, key: Tensor): Tensor {
  const [heads, own] = [query.symSizes.at(-3) ?? 0, key.symSizes.at(-3) ?? 0]
  if (query.ndim < 3 || key.ndim < 3 || sizeEq(own, 0) || !sizeEq(sizeMod(heads, own), 0))
    throw new ShapeError(
      `${NAME}: with enable_gqa the heads of query (dimension -3) must be a multiple of those of key and value, got shapes ${formatShape(query.symSizes)} and ${formatShape(key.symSizes)}.`,
    )
  return forHeads(query, key)
}

/**
 * softmax(query @ key^T * scale + mask) @ value. PyTorch's `F.scaled_dot_product_attention`.
 *
 * Shapes: query [.., L, E], key [.., S, E] and value [.., S, V] give [.., L, V]; leading dimensions broadcast.
 *
 * @throws ShapeError if the sizes do not fit, DTypeError unless the tensors are floating.
 * @throws ArgumentError if both `attnMask` and `isCausal` are given.
 * @example F.scaledDotProductAttention(torch.ones([1, 2]), torch.ones([2, 2]), torch.tensor([[1, 2], [3, 4]])).toArray() // [[2, 3]]
 */
export const scaledDotProductAttention: OpFunction<{
  (
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attnMask: Tensor | null,
    dropoutP?: number,
    isCausal?: boolean,
    options?: { readonly scale?: number | null; readonly enableGqa?: boolean },
  ): Tensor
  (query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions): Tensor
}> = defineOp({
  schema:
    'scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'half',
  meta: (query, _key, value) => ({ shape: [...query.symSizes.slice(0, -1), sizeAt(value.symSizes, -1)], dtype: query.dtype }),
  decompose: (given, givenKey, givenValue, givenMask, dropoutP, isCausal, scale, enableGqa) => {
    checkAdmits(NAME, 'floating', given.dtype)
    // Scores are large numbers, of which a softmax takes the exponentials: halves are computed in float32, and rounded once.
    const wide = wideFor(given)
    const query = wide(given)
    const attnMask = givenMask === null || givenMask.dtype === 'bool' ? givenMask : wide(givenMask)
    const [key, value] = enableGqa ? [headsOf(query, wide(givenKey)), headsOf(query, wide(givenValue))] : [wide(givenKey), wide(givenValue)]
    if (
      query.ndim < 2 ||
      key.ndim < 2 ||
      value.ndim < 2 ||
      !sizeEq(query.symSizes.at(-1), key.symSizes.at(-1)) ||
      !sizeEq(key.symSizes.at(-2), value.symSizes.at(-2))
    ) {
      throw new ShapeError(
        `${NAME}: expected query [.., L, E], key [.., S, E] and value [.., S, V], got shapes ${formatShape(query.symSizes)}, ${formatShape(key.symSizes)} and ${formatShape(value.symSizes)}.`,
      )
    }
    if (isCausal && attnMask !== null) throw new ArgumentError(`${NAME}: give attn_mask or is_causal, not both.`)
    const factor = scale ?? 1 / Math.sqrt(sizeNumber(sizeAt(query.symSizes, -1)))
    if (dropoutP === 0 && !isStrict()) {
      const mask = attnMask?.dtype === 'bool' ? where(attnMask, 0, -Infinity) : attnMask
      const [ownKey, ownValue] = enableGqa ? [wide(givenKey), wide(givenValue)] : [key, value]
      if (takesBlocks({ query, key: ownKey, value: ownValue, mask }))
        return to(blockAttention(query, ownKey, ownValue, mask, isCausal, factor)[0], given.dtype)
    }
    const weights = weightsOf({ query, key, mask: attnMask, isCausal, scale: factor })
    return to(matmul(dropout(weights, dropoutP, true), value), given.dtype)
  },
})
