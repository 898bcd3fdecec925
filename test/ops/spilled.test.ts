// Tensors whose data left the heap (past the soft limit) compute as any other.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { heapStats, setSoftLimit, setSynchronousCollection } from '../../src/kernels/index.ts'

const { add, arange, cat, cumsum, gather, matmul, mul, ones, softmax, tensor, topk, where, zeros } = torch

const { softLimit } = heapStats()
const before = setSynchronousCollection(false)
beforeAll(() => setSoftLimit(0))
afterAll(() => {
  setSoftLimit(softLimit)
  setSynchronousCollection(before)
})

test('operators, views, in-place writes and gradients on spilled tensors', () => {
  const x = arange(6).view(2, 3)
  expect(x.realize().block.ptr).toBe(0)
  expect(add(x, x).toArray()).toEqual([
    [0, 2, 4],
    [6, 8, 10],
  ])
  expect(mul(x.t(), tensor([1, 2])).toArray()).toEqual([
    [0, 6],
    [1, 8],
    [2, 10],
  ])
  expect(x.sum(1).toArray()).toEqual([3, 12])
  expect(matmul(x, x.t()).toArray()).toEqual([
    [5, 14],
    [14, 50],
  ])
  expect(cat([x, x.narrow(0, 1, 1)]).toArray()).toEqual([
    [0, 1, 2],
    [3, 4, 5],
    [3, 4, 5],
  ])
  expect(cumsum(x, 1).toArray()).toEqual([
    [0, 1, 3],
    [3, 7, 12],
  ])
  expect(gather(x, 1, tensor([[2], [0]], { dtype: 'int32' })).toArray()).toEqual([[2], [3]])
  expect((topk(x, 1)[0] as Tensor).toArray()).toEqual([[2], [5]])
  expect(where(x.gt(2), x, 0).max().item()).toBe(5)
  expect(softmax(zeros([2]), 0).toArray()).toEqual([0.5, 0.5])
  const y = zeros([2, 2])
  y.select(1, 0).add_(tensor([1, 2]))
  y.mul_(3)
  expect(y.toArray()).toEqual([
    [3, 0],
    [6, 0],
  ])
  const w = ones([3], { requiresGrad: true })
  x.mul(w).sum().backward()
  expect(w.grad?.toArray()).toEqual([3, 5, 7])
  expect(w.toString()).toBe('tensor([1., 1., 1.], requires_grad=True)')
})
