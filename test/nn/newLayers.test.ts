// Layers whose promises are more than their values: channel dropout, sizes that the caller wants, bags, the adaptive softmax, random windows.
import { describe, expect, test } from 'vitest'
import { Tensor, compile, nn, noGrad, torch } from 'tensorfx'
import { detInput } from '../helpers/deterministic.ts'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)
const F = torch.nn.functional

describe('channel dropout', () => {
  test.each([
    ['Dropout1d', new nn.Dropout1d(0.5), [3, 40, 4]],
    ['Dropout2d', new nn.Dropout2d(0.5), [3, 40, 2, 3]],
    ['Dropout3d', new nn.Dropout3d(0.5), [3, 40, 2, 2, 2]],
  ] as const)('%s drops whole channels in training, doubles the others, and does nothing in evaluation', (_, layer, shape) => {
    torch.manualSeed(5)
    const x = torch.ones(shape)
    const channels = layer(x).reshape([120, -1])
    const sums = values(channels.sum(1).div(channels.shape[1] ?? 1))
    expect(new Set(sums)).toEqual(new Set([0, 2]))
    expect(sums.filter((v) => v === 0).length / 120).toBeCloseTo(0.5, 0)
    expect(layer.eval()(x)).toBe(x)
  })

  test.each([
    ['AlphaDropout', new nn.AlphaDropout(0.3), false],
    ['FeatureAlphaDropout', new nn.FeatureAlphaDropout(0.3), true],
  ] as const)('%s keeps mean 0 and variance 1', (_, layer, whole) => {
    torch.manualSeed(2)
    const out = layer(torch.randn([200, 100, 2]))
    expect(out.mean().item()).toBeCloseTo(0, 1)
    expect(out.var().item()).toBeCloseTo(1, 1)
    // Of ones, a dropped element is the lesser of two values; a channel of two is dropped whole or not at all.
    const ones = layer(torch.ones([200, 100, 2]))
    const dropped = ones.eq(ones.min()).sum(2)
    expect(new Set(values(dropped))).toEqual(new Set(whole ? [0, 2] : [0, 1, 2]))
    expect(layer.eval()(out)).toBe(out)
  })

  test('inplace writes into the input', () => {
    const x = torch.ones([1, 4, 2])
    new nn.Dropout1d({ p: 1, inplace: true })(x)
    expect(values(x)).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })
})

describe('sizes that the caller wants', () => {
  test.each([
    ['ConvTranspose1d', new nn.ConvTranspose1d(2, 3, 3, { stride: 2 }), [2, 2, 4], [10]],
    ['ConvTranspose2d', new nn.ConvTranspose2d(2, 3, 2, { stride: [3, 1], padding: 1, dilation: 2 }), [2, 2, 4, 5], [11, 5]],
    ['ConvTranspose3d', new nn.ConvTranspose3d(2, 4, 2, { stride: 2, groups: 2 }), [2, 2, 2, 3, 2], [5, 6, 5]],
  ] as const)('%s gives them, as an argument, with batch and channels, and as an option', (_, layer, shape, size) => {
    const x = detInput(shape, 1)
    const channels = layer.outChannels
    const out = layer(x, size)
    expect(out.shape).toEqual([2, channels, ...size])
    for (const given of [[2, channels, ...size], { outputSize: size }]) expect(values(layer(x, given))).toEqual(values(out))
    expect(layer(x.select(0, 0), size).shape).toEqual([channels, ...size])
    // The larger result begins with the smaller one.
    const least = layer(x)
    const common = least.shape.slice(2).reduce<Tensor>((t, n, d) => t.narrow(d + 2, 0, n), out)
    expect(values(common)).toEqual(values(least))
    values(compile(layer)(x, size)).forEach((v, i) => expect(v).toBeCloseTo(values(out)[i] ?? NaN, 5))
  })

  test('unpooling takes the size of what was pooled', () => {
    const x = detInput([1, 1, 5, 5], 3)
    const [best, at] = new nn.MaxPool2d(2, { stride: 2, returnIndices: true })(x)
    const back = new nn.MaxUnpool2d(2, 2)(best, at, { outputSize: [5, 5] })
    expect(back.shape).toEqual([1, 1, 5, 5])
    expect(back.sum().item()).toBeCloseTo(best.sum().item(), 5)
    expect(() => new nn.MaxUnpool2d(2)(best, at, { size: [5, 5] } as never)).toThrow("nn.MaxUnpool2d: unknown option 'size'")
  })
})

test('every maximum pool returns positions on request', () => {
  const x = detInput([1, 2, 6], 4)
  const [best, at] = new nn.AdaptiveMaxPool1d(2, { returnIndices: true })(x)
  expect(values(x.gather(2, at))).toEqual(values(best))
  expect(values(new nn.AdaptiveMaxPool1d(2)(x))).toEqual(values(best))
  const [line, place] = new nn.MaxPool1d(3, { returnIndices: true })(x)
  expect(values(x.gather(2, place))).toEqual(values(line))
})

test('fractional pools have windows at random places, or at given ones', () => {
  const x = detInput([1, 2, 7, 7], 5)
  const samples = detInput([1, 2, 2], 6, 0.5, 0.5)
  const layer = new nn.FractionalMaxPool2d(2, { outputSize: [3, 4], _randomSamples: samples })
  expect(values(layer(x))).toEqual(values(F.fractionalMaxPool2d(x, 2, { outputSize: [3, 4], _randomSamples: samples })))
  const [best, at] = new nn.FractionalMaxPool2d(2, { outputRatio: 0.5, returnIndices: true })(x)
  expect(best.shape).toEqual([1, 2, 3, 3])
  expect(values(x.flatten(2).gather(2, at.flatten(2)))).toEqual(values(best))
  expect(new nn.FractionalMaxPool3d(2, { outputSize: 2 })(detInput([1, 4, 4, 4], 7)).shape).toEqual([1, 2, 2, 2])
})

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

describe('AdaptiveLogSoftmaxWithLoss', () => {
  torch.manualSeed(1)
  const softmax = new nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 6], { divValue: 2, headBias: true })
  const input = detInput([5, 8], 8, 2)
  const target = torch.tensor([0, 9, 3, 1, 6]).long()

  test('logProb gives a distribution over all classes, of which the call picks the targets', () => {
    const all = softmax.logProb(input)
    values(all.exp().sum(1)).forEach((v) => expect(v).toBeCloseTo(1, 5))
    const [output, loss] = softmax(input, target)
    const expected = values(all.gather(1, target.unsqueeze(1)))
    values(output).forEach((v, i) => expect(v).toBeCloseTo(expected[i] ?? NaN, 5))
    expect(loss.item()).toBeCloseTo(-output.mean().item(), 6)
    const [single] = softmax(input.select(0, 1), target.select(0, 1))
    expect(single.shape).toEqual([])
    expect(single.item()).toBeCloseTo(expected[1] ?? NaN, 5)
  })

  test('predict finds the most likely class', () => {
    // So large that clusters win for some rows.
    noGrad(() => softmax.head.bias?.copy_(torch.tensor([0, 0, 0.5, 1])))
    const many = detInput([40, 8], 9, 3)
    expect(values(softmax.predict(many))).toEqual(values(softmax.logProb(many).argmax(1)))
    expect(new Set(values(softmax.predict(many))).size).toBeGreaterThan(4)
  })

  test('gives gradients to the clusters of the targets only, and starts anew when it is reset', () => {
    softmax(input.narrow(0, 2, 1), target.narrow(0, 2, 1))[1].backward()
    const used = [...softmax.namedParameters()].filter(([, { grad }]) => grad instanceof Tensor && values(grad).some(Boolean)).map(([name]) => name)
    expect(used).toEqual(['head.weight', 'head.bias', 'tail.0.0.weight', 'tail.0.1.weight'])
    const before = values(softmax.head.weight)
    softmax.resetParameters()
    expect(values(softmax.head.weight)).not.toEqual(before)
  })
})

test('CrossMapLRN2d counts the first channel in every later window, as PyTorch does', () => {
  const x = detInput([1, 5, 1, 2], 10)
  const layer = new nn.CrossMapLRN2d(3, { alpha: 0.6, beta: 1, k: 2 })
  const squares = values(x).map((v) => v * v)
  const expected = values(x).map((v, i) => {
    const [channel, at] = [i >> 1, i & 1]
    const window = [channel - 1, channel, channel + 1, ...(channel >= 2 ? [0] : [])].filter((c) => c >= 0 && c < 5)
    return v / (2 + (0.6 / 3) * window.reduce((sum, c) => sum + (squares[2 * c + at] ?? 0), 0))
  })
  values(layer(x)).forEach((v, i) => expect(v).toBeCloseTo(expected[i] ?? NaN, 6))
})

describe('activations in place', () => {
  test.each([
    [new nn.ReLU(true), new nn.ReLU(), 'ReLU(inplace=True)'],
    [new nn.SiLU({ inplace: true }), new nn.SiLU(), 'SiLU(inplace=True)'],
    [new nn.Mish(true), new nn.Mish(), 'Mish(inplace=True)'],
    [new nn.SELU(true), new nn.SELU(), 'SELU(inplace=True)'],
    [new nn.Hardswish(true), new nn.Hardswish(), 'Hardswish()'],
    [new nn.Hardsigmoid(true), new nn.Hardsigmoid(), 'Hardsigmoid()'],
    [new nn.LeakyReLU(0.2, true), new nn.LeakyReLU(0.2), 'LeakyReLU(negative_slope=0.2, inplace=True)'],
    [new nn.ELU(0.5, { inplace: true }), new nn.ELU(0.5), 'ELU(alpha=0.5, inplace=True)'],
    [new nn.CELU({ inplace: true }), new nn.CELU(), 'CELU(alpha=1.0, inplace=True)'],
    [new nn.Hardtanh(-0.5, 1, true), new nn.Hardtanh(-0.5, 1), 'Hardtanh(min_val=-0.5, max_val=1.0, inplace=True)'],
    [new nn.ReLU6({ inplace: true }), new nn.ReLU6(), 'ReLU6(inplace=True)'],
    [new nn.Threshold(0.1, 3, true), new nn.Threshold(0.1, 3), 'Threshold(threshold=0.1, value=3, inplace=True)'],
    [new nn.RReLU({ inplace: true }).eval(), new nn.RReLU().eval(), 'RReLU(lower=0.125, upper=0.3333333333333333, inplace=True)'],
  ])('%s', (layer, plain, text) => {
    expect(String(layer)).toBe(text)
    const given = detInput([12], 11, 8)
    const run = (fn: (x: Tensor) => Tensor): readonly [number[], number[], number[]] => {
      const leaf = given.clone().requiresGrad_()
      const input = leaf.mul(1)
      const out = fn(input)
      out.square().sum().backward()
      return [values(out), values(leaf.grad ?? given), values(input)]
    }
    const [out, grad] = run(plain)
    const [ownOut, ownGrad, written] = run(layer)
    expect([ownOut, ownGrad, written]).toEqual([out, grad, out])
    const [compiledOut, compiledGrad, compiledWritten] = run(compile(layer))
    for (const [got, wanted] of [
      [compiledOut, out],
      [compiledGrad, grad],
      [compiledWritten, out],
    ] as const)
      got.forEach((v, i) => expect(v).toBeCloseTo(wanted[i] ?? NaN, 5))
  })
})

test('Upsample can take its scale from the sizes of the result', () => {
  const x = detInput([1, 1, 5], 12)
  const options = { scaleFactor: 1.5, mode: 'linear', alignCorners: false } as const
  const exact = new nn.Upsample(options)(x)
  const recomputed = new nn.Upsample({ ...options, recomputeScaleFactor: true })(x)
  expect(values(recomputed)).toEqual(values(F.interpolate(x, { size: 7, mode: 'linear', alignCorners: false })))
  expect(values(recomputed)).not.toEqual(values(exact))
  const image = detInput([1, 1, 2, 2], 13)
  expect(values(new nn.UpsamplingNearest2d([3, 4])(image))).toEqual(values(F.interpolate(image, { size: [3, 4] })))
  expect(new nn.UpsamplingBilinear2d(null, 2)(image).shape).toEqual([1, 1, 4, 4])
})
