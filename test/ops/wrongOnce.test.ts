// What was wrong once about operators, line by line: each was found by programs and not by the tests of its operator.
import { expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const F = torch.nn.functional
const longs = (...values: number[]): Tensor => torch.tensor(values, { dtype: 'int64' })

it('quantile puts the quantiles first, and keeps the order of the other dimensions', () => {
  const x = torch.arange(24, { dtype: 'float32' }).view(2, 3, 4)
  const out = torch.quantile(x, torch.tensor([0, 1]), 1)
  expect(out.shape).toEqual([2, 2, 4])
  expect(out.toArray()).toEqual([x.amin(1).toArray(), x.amax(1).toArray()])
})

it('tril of a bool tensor is bool, so that a causal mask masks', () => {
  const mask = torch.tril(torch.ones([3, 3], { dtype: 'bool' }))
  expect(mask.dtype).toBe('bool')
  const x = torch.zeros([3, 3]).maskedFill(mask.logicalNot(), -Infinity)
  expect(torch.softmax(x, -1).select(0, 0).toArray()).toEqual([1, 0, 0])
})

it('cosineSimilarity broadcasts', () => {
  const [a, b] = [torch.randn([2, 1, 3]), torch.randn([4, 3])]
  const out = F.cosineSimilarity(a, b, 2)
  expect(out.shape).toEqual([2, 4])
  expect(torch.allclose(out, F.cosineSimilarity(a.expand(2, 4, 3), b.expand(2, 4, 3), 2))).toBe(true)
})

it('multinomial refuses what are no probabilities', () => {
  expect(() => torch.multinomial(torch.tensor([-1, 2]), 1)).toThrow('must be finite numbers that are not negative')
  expect(() => torch.multinomial(torch.tensor([NaN, 2]), 1)).toThrow('must be finite numbers')
  expect(() => torch.multinomial(torch.tensor([0, 0]), 1)).toThrow('must hold a positive probability')
})

it('gelu refuses an unknown approximation', () => {
  expect(() => Reflect.apply(F.gelu, null, [torch.ones([1]), { approximate: 'asdf' }])).toThrow("approximate must be 'none' or 'tanh', got 'asdf'")
})

it('softmax over an empty dimension is empty', () => {
  for (const fn of [torch.softmax, torch.logSoftmax, torch._safeSoftmax]) {
    expect(fn(torch.ones([2, 0]), 1).shape).toEqual([2, 0])
    expect(compile((x: Tensor) => fn(x, 1))(torch.ones([2, 0])).shape).toEqual([2, 0])
  }
})

it('pad refuses to cut off more than there is', () => {
  expect(() => F.pad(torch.ones([2, 2]), [-3, 0])).toThrow('-3 and 0 elements cannot be cut off dimension 1 of size 2')
  expect(F.pad(torch.ones([2, 2]), [-1, -1]).shape).toEqual([2, 0])
})

it('ctcLoss refuses lengths that are too great or negative', () => {
  const logits = torch.randn([5, 2, 3])
  const targets = longs(1, 2, 1, 2).view(2, 2)
  expect(() => F.ctcLoss(logits, targets, longs(5, 9), longs(2, 2))).toThrow('input_lengths must be between 0 and 5')
  expect(() => F.ctcLoss(logits, targets, longs(5, 5), longs(2, 7))).toThrow('target_lengths must be between 0 and 2')
  expect(() => F.ctcLoss(logits, targets, longs(5, -1), longs(2, 2))).toThrow('input_lengths must be between 0 and 5')
})

it('adaptiveAvgPool1d to 200,000 places does not overflow the stack', () => {
  expect(F.adaptiveAvgPool1d(torch.ones([1, 1, 10]), 200_000).shape).toEqual([1, 1, 200_000])
})

const scalar = torch.tensor(3)
const zero = torch.tensor(0, { dtype: 'int64' })
const onScalars: Readonly<Record<string, () => Tensor | readonly Tensor[]>> = {
  gather: () => torch.gather(scalar, 0, zero),
  indexSelect: () => torch.indexSelect(scalar, 0, longs(0)),
  indexFill: () => torch.indexFill(scalar, 0, longs(0), 3),
  indexAdd: () => torch.indexAdd(scalar, 0, longs(0), torch.tensor([0])),
  indexCopy: () => torch.indexCopy(scalar, 0, longs(0), scalar),
  indexReduce: () => torch.indexReduce(scalar, 0, longs(0), torch.tensor(1), 'prod'),
  scatter: () => torch.scatter(scalar, 0, zero, 3),
  scatterAdd: () => torch.scatterAdd(scalar, 0, zero, torch.tensor(0)),
  takeAlongDim: () => torch.takeAlongDim(scalar, zero, 0),
  take: () => torch.take(scalar, zero),
  sort: () => torch.sort(scalar)[0],
  topk: () => torch.topk(scalar, 1)[0],
  kthvalue: () => torch.kthvalue(scalar, 1)[0],
  cumsum: () => torch.cumsum(scalar, 0),
  roll: () => torch.roll(scalar, 1),
}

it.each(Object.entries(onScalars))('%s takes a tensor without dimensions, eager and compiled', (_, fn) => {
  for (const out of [fn(), compile(fn)()].flat()) expect([out.shape, out.item()]).toEqual([[], 3])
})

it('norms take a dtype', () => {
  const x = torch.ones([2, 2])
  const norms = [
    torch.norm(x, { dtype: 'float64' }),
    torch.linalg.vectorNorm(x, { dtype: 'float64' }),
    torch.linalg.matrixNorm(x, { dtype: 'float64' }),
  ]
  expect(norms.map(({ dtype }) => dtype)).toEqual(['float64', 'float64', 'float64'])
  expect(torch.linalg.norm(torch.tensor([3, 4], { dtype: 'int64' }), { dtype: 'float32' }).item()).toBe(5)
})
