// Which gradients travel together. Pure arithmetic.
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, checkArray, isPlainObject, valueText } from '../../protocol/index.ts'

/** What matters of a tensor for its bucket. */
export interface BucketItem {
  readonly bytes: number
  readonly dtype: string
}

/**
 * Puts tensors into buckets, in the given order: each dtype has a bucket of its own that is open, and a bucket is closed by the tensor with which its bytes reach
 * the limit. `limits` are the limits of the first, second, … bucket of a dtype; the last one is for all that follow. Returns the tensors' indices, and the buckets
 * by their smallest index. PyTorch's `_compute_bucket_assignment_by_size`. Throws ArgumentError if `limits` is empty or has something else than numbers of bytes.
 *
 * @example assignBuckets([{ bytes: 8, dtype: 'float32' }, { bytes: 8, dtype: 'float32' }], [8]) // [[0], [1]]
 */
export function assignBuckets(items: readonly BucketItem[], limits: readonly number[]): number[][] {
  checkArray('assignBuckets', 'items', items)
  for (const [i, item] of items.entries())
    checkArgument(
      isPlainObject(item) && typeof item['bytes'] === 'number' && item['bytes'] >= 0 && typeof item['dtype'] === 'string',
      'assignBuckets',
      `items[${i}]`,
      'an object { bytes, dtype }',
      item,
    )
  if (!Array.isArray(limits) || limits.length === 0 || !limits.every((limit) => typeof limit === 'number' && limit >= 0))
    throw new ArgumentError(`assignBuckets: limits must be one or more numbers of bytes, got ${valueText(limits)}.`)
  const open = new Map<string, { indices: number[]; bytes: number; closed: number }>()
  const done: number[][] = []
  items.forEach(({ bytes, dtype }, index) => {
    const bucket = open.get(dtype) ?? { indices: [], bytes: 0, closed: 0 }
    open.set(dtype, bucket)
    bucket.indices.push(index)
    bucket.bytes += bytes
    if (bucket.bytes < (limits[Math.min(bucket.closed, limits.length - 1)] ?? 0)) return
    done.push(bucket.indices)
    open.set(dtype, { indices: [], bytes: 0, closed: bucket.closed + 1 })
  })
  for (const { indices } of open.values()) if (indices.length > 0) done.push(indices)
  return done.toSorted(([a = 0], [b = 0]) => a - b)
}
