// Dropout of whole channels, and dropout that keeps mean and variance.
import { describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)

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
