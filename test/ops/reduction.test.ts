// Reductions: values over any dimensions of any layout, PyTorch's numbers, errors.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as ops from '../../src/ops/index.ts'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const {
  amax,
  arange,
  argmax,
  argmin,
  cumsum,
  logSoftmax,
  logsumexp,
  max,
  mean,
  min,
  prod,
  softmax,
  sort,
  sum,
  tensor,
  topk,
  var: variance,
  zeros,
} = torch

const flat = (t: Tensor): number[] => Array.from(t.toTypedArray(), Number)

describe('sum, mean and their kin', () => {
  const x = tensor([
    [1, 2, 3],
    [4, 5, 6],
  ])
  test('over everything, one dimension, several, with keepdim', () => {
    expect(x.sum().item()).toBe(21)
    expect(x.sum(0).toArray()).toEqual([5, 7, 9])
    expect(x.sum(-1).toArray()).toEqual([6, 15])
    expect(x.sum([0, 1]).toArray()).toBe(21)
    expect(x.sum(1, true).toArray()).toEqual([[6], [15]])
    expect(x.sum({ dim: 1, keepdim: true }).shape).toEqual([2, 1])
    expect(sum(x, { keepdim: true }).shape).toEqual([1, 1])
    expect(mean(x, 0).toArray()).toEqual([2.5, 3.5, 4.5])
    expect(prod(x, 1).toArray()).toEqual([6, 120])
    expect(amax(x, 0).toArray()).toEqual([4, 5, 6])
    expect(ops.amin(x).item()).toBe(1)
  })
  test('a middle dimension, and the outer two', () => {
    const y = arange(24).view(2, 3, 4)
    expect(y.sum(1).toArray()).toEqual([
      [12, 15, 18, 21],
      [48, 51, 54, 57],
    ])
    expect(y.sum([0, 1]).toArray()).toEqual([60, 66, 72, 78])
    expect(y.sum([0, 2]).toArray()).toEqual([60, 92, 124])
  })
  test('dtypes: bools are counted, means are floating', () => {
    expect([x.gt(2).sum().dtype, x.gt(2).sum().item()]).toEqual(['int64', 4])
    expect(tensor([1, 2], { dtype: 'int32' }).sum().dtype).toBe('int64')
    expect(() => tensor([1, 2], { dtype: 'int32' }).mean()).toThrow(/torch\.mean: not implemented for int32; it takes floating-point numbers/)
    expect(tensor([1, 2], { dtype: 'float64' }).mean().dtype).toBe('float64')
  })
  test('any and all', () => {
    const b = tensor([
      [true, false],
      [true, true],
    ])
    expect([b.any().item(), b.all().item()]).toEqual([true, false])
    expect([b.any(0).toArray(), b.all(1).toArray()]).toEqual([
      [true, true],
      [false, true],
    ])
  })
  test('no elements: sums are 0, products 1', () => {
    expect([zeros([0]).sum().item(), prod(zeros([0])).item()]).toEqual([0, 1])
    expect(zeros([0, 3]).sum(0).toArray()).toEqual([0, 0, 0])
    expect(zeros([2, 0]).sum(0).shape).toEqual([0])
    expect(mean(zeros([0])).item()).toBeNaN()
  })
  test('a scalar', () => {
    expect(tensor(3).sum().item()).toBe(3)
    expect(tensor(3).sum(0).item()).toBe(3)
  })
  test('random shapes, permutations and dimensions agree with a plain loop', () => {
    const shape = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(shape, fc.nat(), fc.nat(), fc.boolean(), (s, which, seed, keepdim) => {
        const order = s.map((_, i) => i).sort((a, b) => ((a * 7 + seed) % 5) - ((b * 7 + seed) % 5))
        const x = arange(s.reduce((a, b) => a * b, 1))
          .view(s)
          .permute(order)
        const dims = x.shape.flatMap((_, i) => ((which >> i) & 1 ? [i] : []))
        const expected = new Map<string, number>()
        const visit = (index: number[], value: unknown): void => {
          if (Array.isArray(value)) value.forEach((v, i) => visit([...index, i], v))
          else {
            const key = index.filter((_, i) => dims.length > 0 && !dims.includes(i)).join()
            expected.set(key, (expected.get(key) ?? 0) + (value as number))
          }
        }
        visit([], x.toArray())
        const y = sum(x, dims, keepdim)
        expect(flat(y)).toEqual([...expected.values()])
        expect(y.shape).toEqual(x.shape.flatMap((n, i) => (dims.length === 0 || dims.includes(i) ? (keepdim ? [1] : []) : [n])))
      }),
      { numRuns: 100 },
    )
  })
  test('bad dimensions', () => {
    expect(() => x.sum(2)).toThrow(/torch\.sum: dim 2 is out of range/)
    expect(() => x.sum([0, -2])).toThrow(/torch\.sum: dim -2 appears twice/)
  })
})

test('the gradient of prod with zeros in it', () => {
  const x = tensor(
    [
      [1, 0, 3],
      [0, 0, 2],
      [2, 3, 4],
    ],
    { requiresGrad: true },
  )
  prod(x, 1).sum().backward()
  expect(x.grad?.toArray()).toEqual([
    [0, 3, 0],
    [0, 0, 0],
    [12, 8, 6],
  ])
})

describe('extremes and order', () => {
  const x = tensor([
    [3, 1, 2],
    [5, 9, 4],
  ])
  test('max and min with a dimension give values and indices', () => {
    const [values, indices] = max(x, 1)
    expect([(values as Tensor).toArray(), (indices as Tensor).toArray()]).toEqual([
      [3, 9],
      [0, 1],
    ])
    const [low, at] = x.min(0, true)
    expect([(low as Tensor).toArray(), (at as Tensor).toArray()]).toEqual([[[3, 1, 2]], [[0, 0, 0]]])
    expect([max(x).item(), min(x).item()]).toEqual([9, 1])
    expect(x.max(tensor([4, 4, 4])).toArray()).toEqual([
      [4, 4, 4],
      [5, 9, 4],
    ])
    expect(x.max({ dim: 0, keepdim: true })[0]?.shape).toEqual([1, 3])
    expect(() => max(x, 'a' as never)).toThrow(/argument 'dim' must be an integer/)
    expect(() => amax(zeros([0, 2]), 0)).toThrow(/no extreme value/)
  })
  test('argmax and argmin: the first of equals, NaN before all', () => {
    expect(argmax(x).item()).toBe(4)
    expect(argmin(x, 1).toArray()).toEqual([1, 2])
    expect(argmax(x, 0, true).toArray()).toEqual([[1, 1, 1]])
    expect(argmax(tensor([1, 2, 2])).item()).toBe(1)
    expect([argmax(tensor([1, NaN, 3])).item(), argmin(tensor([1, NaN, 3])).item()]).toEqual([1, 1])
    expect(argmax(x.t(), 0).toArray()).toEqual([0, 1])
    expect(() => argmax(zeros([0]))).toThrow(/no elements/)
  })
  test('topk, sort and argsort', () => {
    const [values, indices] = topk(x, 2)
    expect([(values as Tensor).toArray(), (indices as Tensor).toArray()]).toEqual([
      [
        [3, 2],
        [9, 5],
      ],
      [
        [0, 2],
        [1, 0],
      ],
    ])
    expect((topk(x, 1, { dim: 0, largest: false })[0] as Tensor).toArray()).toEqual([[3, 1, 2]])
    const [sorted, order] = sort(tensor([2, NaN, -1, 2]))
    expect([(sorted as Tensor).toArray(), (order as Tensor).toArray()]).toEqual([
      [-1, 2, 2, NaN],
      [2, 0, 3, 1],
    ])
    expect(x.argsort({ dim: 1, descending: true }).toArray()).toEqual([
      [0, 2, 1],
      [1, 0, 2],
    ])
    expect(() => topk(x, 4)).toThrow(/torch\.topk: k=4/)
  })
  test('cumsum', () => {
    expect(cumsum(x, 1).toArray()).toEqual([
      [3, 4, 6],
      [5, 14, 18],
    ])
    expect(cumsum(x, 0).toArray()).toEqual([
      [3, 1, 2],
      [8, 10, 6],
    ])
    expect(x.gt(2).cumsum(1).toArray()).toEqual([
      [1, 1, 1],
      [1, 2, 3],
    ])
  })
})

test('softmax and logsumexp do not overflow', () => {
  const x = tensor([1000, 1001])
  expect(softmax(x, 0).sum().item()).toBeCloseTo(1, 6)
  expect((logSoftmax(x, 0).toArray() as number[])[1]).toBeCloseTo(-0.31326, 4)
  expect(logsumexp(x, 0).item()).toBeCloseTo(1001.3133, 3)
  expect(logsumexp(tensor([-Infinity, -Infinity]), 0).item()).toBe(-Infinity)
})

test('variance needs more elements than the correction', () => {
  expect(variance(tensor([1, 2, 3, 4])).item()).toBeCloseTo(5 / 3, 6)
  expect(tensor([1, 2, 3, 4]).var({ correction: 0 }).item()).toBe(1.25)
  expect(variance(tensor([1])).item()).toBeNaN()
})
