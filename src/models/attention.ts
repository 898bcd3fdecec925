// What the attention of several families has in common.
import { scaledDotProductAttention } from '../nn/functional.ts'
import { ones } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { DecodingCache } from './cache.ts'

/** [batch, time, heads * size] to [batch, heads, time, size]. */
export const splitHeads = (x: Tensor, heads: number): Tensor => x.view(x.size(0), x.size(1), heads, -1).transpose(1, 2)

/** [batch, heads, time, size] to [batch, time, heads * size]. */
export const joinHeads = (x: Tensor): Tensor => x.transpose(1, 2).reshape(x.size(0), x.size(2), -1)

/** Attention of each position to those before it and itself. With a cache, `key` and `value` also have the tokens before the queries. Queries may share heads of keys and values. */
export function causalAttention(query: Tensor, key: Tensor, value: Tensor, enableGqa = false): Tensor {
  const [time, all] = [query.size(2), key.size(2)]
  if (time === all) return scaledDotProductAttention(query, key, value, { isCausal: true, enableGqa })
  if (time === 1) return scaledDotProductAttention(query, key, value, { enableGqa })
  const attnMask = ones([time, all], { dtype: 'bool' }).tril(all - time)
  return scaledDotProductAttention(query, key, value, { attnMask, enableGqa })
}

/** The first positions that a cache has not seen, and how many there are before them. */
export const placesBefore = (cache: DecodingCache | null): number => cache?.length ?? 0
