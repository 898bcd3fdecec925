// nn.Embedding beyond looking up rows: rows that are scaled down in place, other gradients, pretrained rows.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Embedding } from 'tensorfx/nn'

const F = torch.nn.functional
const rows = (): Tensor =>
  torch.tensor([
    [3, 4],
    [0.3, 0.4],
    [6, 8],
  ])
const indices = torch.tensor([0, 1, 0]).long()
const rounded = (t: Tensor): unknown => t.mul(1000).round().div(1000).toArray()

describe.each([
  ['eager', false],
  ['compiled', true],
])('%s', (_, compiled) => {
  const run = <R>(fn: (x: Tensor) => R): ((x: Tensor) => R) => (compiled ? compile(fn) : fn)

  test('maxNorm scales the rows that are looked up, in the weight, and no other row', () => {
    const weight = new torch.nn.Parameter(rows())
    const out = run((w: Tensor) => F.embedding(indices, w, { maxNorm: 1 }))(weight)
    expect(rounded(out)).toEqual(
      rounded(
        torch.tensor([
          [0.6, 0.8],
          [0.3, 0.4],
          [0.6, 0.8],
        ]),
      ),
    )
    expect(rounded(weight)).toEqual(
      rounded(
        torch.tensor([
          [0.6, 0.8],
          [0.3, 0.4],
          [6, 8],
        ]),
      ),
    )
    // The scaling has no gradient of its own.
    out.sum().backward()
    expect(weight.grad?.toArray()).toEqual([
      [2, 2],
      [1, 1],
      [0, 0],
    ])
  })

  test('normType is the p of the norm', () => {
    const weight = rows()
    run((w: Tensor) => F.embedding(indices.int(), w, null, 3.5, 1))(weight)
    expect(rounded(weight)).toEqual(
      rounded(
        torch.tensor([
          [1.5, 2],
          [0.3, 0.4],
          [6, 8],
        ]),
      ),
    )
  })

  test('bags scale their rows too', () => {
    const weight = rows()
    const out = run((w: Tensor) => F.embeddingBag(indices.view(1, 3), w, { maxNorm: 1, mode: 'sum' }))(weight)
    expect(rounded(out)).toEqual([[1.5, 2]])
    expect(rounded(weight)).toEqual(
      rounded(
        torch.tensor([
          [0.6, 0.8],
          [0.3, 0.4],
          [6, 8],
        ]),
      ),
    )
  })

  test('the layer has these options', () => {
    const layer = new Embedding(3, 2, { maxNorm: 1, scaleGradByFreq: true })
    layer.loadStateDict({ weight: rows() })
    const out = run((x: Tensor) => layer.call(x))(indices)
    expect(rounded(layer.weight)).toEqual(
      rounded(
        torch.tensor([
          [0.6, 0.8],
          [0.3, 0.4],
          [6, 8],
        ]),
      ),
    )
    out.sum().backward()
    expect(layer.weight.grad?.toArray()).toEqual([
      [1, 1],
      [1, 1],
      [0, 0],
    ])
  })
})

test('the layer prints its options as PyTorch does, and takes them by position', () => {
  expect(String(new Embedding(3, 2, 0, 1.5, 1, true))).toBe('Embedding(3, 2, padding_idx=0, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True)')
  expect(() => new Embedding(3, 2, { maxNorm: 0 })).toThrow('nn.Embedding: maxNorm must be a positive number or null, got 0.')
})

test('fromPretrained shares the rows, and does not train them unless it is told to', () => {
  const weight = rows()
  const layer = Embedding.fromPretrained(weight, { paddingIdx: -1 })
  expect([layer.weight.requiresGrad, layer.paddingIdx, layer.numEmbeddings]).toEqual([false, 2, 3])
  expect(layer.call(torch.tensor([2]).long()).toArray()).toEqual([[6, 8]])
  weight.zero_()
  expect(layer.call(torch.tensor([2]).long()).toArray()).toEqual([[0, 0]])
  expect(Embedding.fromPretrained(weight, false).weight.requiresGrad).toBe(true)
  expect(() => Embedding.fromPretrained(torch.zeros([3]))).toThrow('embeddings must have 2 dimensions [numEmbeddings, embeddingDim], got shape [3].')
})
