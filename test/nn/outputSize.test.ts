// Layers whose result has the size that the caller wants: unpooling, fractional pools, Upsample.
import { describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detInput } from '../helpers/deterministic.ts'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)
const F = torch.nn.functional

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
