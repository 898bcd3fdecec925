// The gradients of convolutions through the templates: the direct weight gradient, the gathered matrix product where it does not fit, epilogues.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'

interface Case {
  readonly batch: number
  readonly channels: number
  readonly features: number
  readonly size: readonly [number, number]
  readonly window: readonly [number, number]
  readonly padding: number
  readonly stride?: number
  readonly why: string
}

const cases: readonly Case[] = [
  { batch: 3, channels: 2, features: 4, size: [4, 4], window: [3, 3], padding: 1, why: 'whole tiles' },
  { batch: 2, channels: 1, features: 5, size: [6, 8], window: [3, 3], padding: 1, why: 'features and window elements past the last tile' },
  { batch: 1, channels: 3, features: 2, size: [5, 9], window: [2, 2], padding: 0, why: 'no padding, an even window' },
  { batch: 2, channels: 2, features: 3, size: [4, 8], window: [1, 1], padding: 0, why: 'a window of one' },
  { batch: 6, channels: 4, features: 8, size: [40, 40], window: [3, 3], padding: 1, why: 'images in several groups' },
  { batch: 3, channels: 70, features: 4, size: [24, 24], window: [3, 3], padding: 1, why: 'one image alone is larger than a group' },
  { batch: 2, channels: 2, features: 4, size: [7, 7], window: [3, 3], padding: 1, why: 'rows that are no whole vectors (gathered product)' },
  { batch: 2, channels: 3, features: 4, size: [8, 8], window: [3, 3], padding: 1, stride: 2, why: 'a stride (gathered product)' },
]

function filled(shape: readonly number[], seed: number): Tensor {
  torch.manualSeed(seed)
  return torch.randn(shape)
}

describe('gradients of a convolution inside a compiled function', () => {
  for (const c of cases) {
    it(`equal eager's: ${c.why}`, () => {
      const x = filled([c.batch, c.channels, ...c.size], 1)
      const w = filled([c.features, c.channels, ...c.window], 2)
      const f = (input: Tensor, weight: Tensor): Tensor[] => {
        const [a, b] = [input.detach().requiresGrad_(), weight.detach().requiresGrad_()]
        const out = torch.nn.functional.conv2d(a, b, null, { stride: c.stride ?? 1, padding: c.padding })
        out.mul(out).sum().backward()
        const updated = b.detach().sub((b.grad as Tensor).mul(0.01))
        return [a.grad as Tensor, b.grad as Tensor, updated]
      }
      const expected = f(x, w)
      const actual = compile(f)(x, w)
      actual.forEach((value, i) => {
        const want = expected[i] as Tensor
        const scale = want.abs().max().item() as number
        expect(value.shape).toEqual(want.shape)
        expect(value.sub(want).abs().max().item() as number).toBeLessThan(2e-6 * Math.max(1, scale))
      })
    })
  }
})
