// EmbeddingBag, and what it shares with Embedding.
import { describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)

describe('EmbeddingBag', () => {
  const bags = new nn.EmbeddingBag(6, 2, { mode: 'sum', paddingIdx: -6 })
  const indices = torch.tensor([3, 0, 5, 3]).long()
  const offsets = torch.tensor([0, 3]).long()

  test('has a padding row of zeros, which does not count and gets no gradient', () => {
    expect(values(bags.weight.select(0, 0))).toEqual([0, 0])
    bags(indices, offsets).sum().backward()
    expect(bags.weight.grad?.select(1, 0).toArray()).toEqual([0, 0, 0, 2, 0, 1])
    bags.weight.grad = null
  })

  test('takes offsets and weights of rows by position or by name', () => {
    const factors = torch.tensor([2, 1, 1, 3])
    const expected = values(torch.stack([bags.weight.select(0, 3).mul(2).add(bags.weight.select(0, 5)), bags.weight.select(0, 3).mul(3)]))
    const results = [bags(indices, offsets, factors), bags(indices, { offsets, perSampleWeights: factors }), compile(bags)(indices, offsets, factors)]
    for (const out of results) values(out).forEach((v, i) => expect(v).toBeCloseTo(expected[i] ?? NaN, 6))
  })
})

describe('EmbeddingBag, like Embedding,', () => {
  const rows = torch.tensor([
    [3, 4],
    [6, 8],
    [0, 1],
  ])
  const indices = torch.tensor([[0, 2]]).long()

  test('takes the rows of a matrix, frozen or not', () => {
    const bags = nn.EmbeddingBag.fromPretrained(rows, { mode: 'sum' })
    expect([values(bags(indices)), bags.weight.requiresGrad]).toEqual([[3, 5], false])
    expect(nn.EmbeddingBag.fromPretrained(rows, false).weight.requiresGrad).toBe(true)
    expect(() => nn.EmbeddingBag.fromPretrained(torch.ones([3]))).toThrow(
      'embeddings must have 2 dimensions [numEmbeddings, embeddingDim], got shape [3].',
    )
  })

  test('scales the rows that it looks up down to maxNorm', () => {
    const bags = nn.EmbeddingBag.fromPretrained(rows.clone(), { mode: 'max', maxNorm: 2.5 })
    values(bags(indices)).forEach((v, i) => expect(v).toBeCloseTo([1.5, 2][i] ?? NaN, 5))
    values(bags.weight).forEach((v, i) => expect(v).toBeCloseTo([1.5, 2, 6, 8, 0, 1][i] ?? NaN, 5))
  })

  test('takes PyTorch’s positional arguments', () => {
    const bags = new nn.EmbeddingBag(6, 3, 1.5, 1, true, 'sum')
    expect(String(bags)).toBe("EmbeddingBag(6, 3, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True, mode='sum')")
  })
})
