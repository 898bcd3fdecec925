// Which gradients travel together, against PyTorch's. Pure arithmetic.
import { expect, test } from 'vitest'
import { assignBuckets } from 'tensorfx/distributed'
import { golden, unread } from './goldens.ts'

test("assignBuckets groups tensors as PyTorch's _compute_bucket_assignment_by_size does", () => {
  interface Case {
    readonly numels: readonly number[]
    readonly dtypes: readonly string[] | null
    readonly limits_bytes: readonly number[]
    readonly buckets: readonly (readonly number[])[]
  }
  const [cases] = golden<Readonly<Record<string, Case>>>('ddp_buckets_w2') ?? []
  expect(Object.keys(cases ?? {})).toHaveLength(6)
  for (const { numels, dtypes, limits_bytes, buckets } of Object.values(cases ?? {})) {
    const items = numels.map((numel, i) => {
      const dtype = dtypes?.[i] ?? 'torch.float32'
      return { bytes: numel * (dtype === 'torch.float64' ? 8 : 4), dtype }
    })
    expect(assignBuckets(items, limits_bytes)).toEqual(buckets)
  }
})

test('all recordings of buckets are compared', () => expect(unread(/^ddp_buckets/)).toEqual([]))
