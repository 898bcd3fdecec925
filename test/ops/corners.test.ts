// Corners in which operators were wrong: empty dimensions, tensors without dimensions, bools, sizes that broadcast, arguments out of range.
import { describe, expect, it } from 'vitest'
import { ArgumentError, DTypeError, ShapeError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const F = torch.nn.functional
const index = (...values: number[]): Tensor => torch.tensor(values).long()

describe('shapes and dtypes', () => {
  it('quantile keeps the order of the other dimensions', () => {
    const x = torch.arange(24).view([3, 2, 4])
    expect(torch.quantile(x, 0.5, 0).toArray()).toEqual([
      [8, 9, 10, 11],
      [12, 13, 14, 15],
    ])
  })

  it('triangles of bools are bools, so that they mask', () => {
    const mask = torch.ones([2, 2]).bool().tril()
    expect([mask.dtype, mask.toArray(), mask.triu().toArray()]).toEqual([
      'bool',
      [
        [true, false],
        [true, true],
      ],
      [
        [true, false],
        [false, true],
      ],
    ])
  })

  it('cosine similarity measures vectors that broadcasting makes longer', () => {
    const cosine = F.cosineSimilarity(torch.ones([1, 2]), torch.ones([3, 1]), 1)
    expect(cosine.toArray()).toEqual([1, 1, 1].map(() => expect.closeTo(1, 5)))
    expect(F.cosineSimilarity(torch.ones([1, 3]), torch.ones([2, 3]), 0).toArray()).toEqual([1, 1, 1].map(() => expect.closeTo(1, 5)))
  })

  it('softmax of an empty dimension is empty', () => {
    for (const fn of [torch.softmax, torch.logSoftmax]) expect(fn(torch.zeros([3, 0]), 1).shape).toEqual([3, 0])
    expect(torch.logsumexp(torch.zeros([2, 0]), 1).toArray()).toEqual([-Infinity, -Infinity])
  })

  it('index operators take tensors without dimensions', () => {
    const x = torch.tensor(2)
    expect(torch.indexSelect(x, 0, index(0)).toArray()).toBe(2)
    expect(torch.indexAdd(x, 0, index(0, 0), torch.tensor([3, 4])).toArray()).toBe(9)
    expect(torch.indexCopy(x, 0, index(0), torch.tensor(7)).toArray()).toBe(7)
    expect(torch.indexFill(x, 0, index(0), 5).toArray()).toBe(5)
    expect(torch.indexReduce(x, 0, index(0), torch.tensor(7), 'prod').toArray()).toBe(14)
    expect(torch.gather(x, 0, index(0)).toArray()).toEqual([2])
    expect(torch.scatter(x, 0, index(0), torch.tensor([4])).toArray()).toBe(4)
    expect(() => torch.indexSelect(x, 0, index(0, 0))).toThrow(ShapeError)
    expect(() => torch.indexAdd(torch.zeros([3]), 0, index(0, 1), torch.ones([3]))).toThrow(ShapeError)
  })

  it('pooling gives as many means as are asked for', () => {
    expect(F.adaptiveAvgPool1d(torch.ones([1, 4]), 200_000).shape).toEqual([1, 200_000])
  })
})

describe('arguments out of range', () => {
  it.each<[string, () => unknown, new (...args: never[]) => Error]>([
    ['probabilities that are negative', () => torch.multinomial(torch.tensor([1, -1]), 1), ArgumentError],
    ['probabilities that are all 0', () => torch.multinomial(torch.zeros([2]), 1), ArgumentError],
    ['an unknown approximation', () => F.gelu(torch.ones([1]), { approximate: 'asdf' as 'tanh' }), ArgumentError],
    ['cutting off more than there is', () => F.pad(torch.ones([3]), [-2, -2]), ShapeError],
    ['cutting off everything of a mirrored line', () => F.pad(torch.ones([1, 3]), [-2, -1], { mode: 'reflect' }), ShapeError],
    ['masks that are no bools', () => torch.ones([2]).maskedFill(torch.ones([2]), 0), DTypeError],
    ['more steps than there are', () => F.ctcLoss(torch.zeros([2, 1, 2]), torch.tensor([[1]]).long(), [3], [1]), ArgumentError],
    ['more labels than there are', () => F.ctcLoss(torch.zeros([2, 1, 2]), torch.tensor([[1]]).long(), [2], [2]), ArgumentError],
    ['bounds in the wrong order', () => F.rrelu(torch.ones([1]), 0.5, 0.1), ArgumentError],
    ['a margin of 0', () => F.tripletMarginLoss(torch.ones([1, 2]), torch.ones([1, 2]), torch.ones([1, 2]), { margin: 0 }), ArgumentError],
    ['a negative threshold', () => F.softshrink(torch.ones([1]), -1), ArgumentError],
    ['no shifts', () => torch.roll(torch.ones([2]), []), ArgumentError],
  ])('%s', (_, call, kind) => {
    expect(call).toThrow(kind)
  })
})

it('gradients of the CTC loss add up to 0 in each step, as those of logarithms of probabilities do', () => {
  const x = torch.randn([4, 2, 3])
  const labels = torch
    .tensor([
      [1, 2],
      [2, 0],
    ])
    .long()
  const logProbs = x.logSoftmax(2).detach().requiresGrad_()
  F.ctcLoss(logProbs, labels, [4, 3], [2, 1]).backward()
  const sums = (logProbs.grad as Tensor).sum(2)
  expect(sums.abs().amax().item()).toBeLessThan(1e-5)
  // Behind a log-softmax they are those of the formula: it takes away what the convention adds.
  const logits = x.clone().requiresGrad_()
  F.ctcLoss(logits.logSoftmax(2), labels, [4, 3], [2, 1]).backward()
  expect(
    (logits.grad as Tensor)
      .sub(logProbs.grad as Tensor)
      .abs()
      .amax()
      .item(),
  ).toBeLessThan(1e-5)
})
