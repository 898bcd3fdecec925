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
  readonly dilation?: number
  readonly groups?: number
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
  { batch: 2, channels: 3, features: 4, size: [9, 7], window: [3, 3], padding: 1, stride: 3, why: 'a stride that no schedule takes for the input' },
  { batch: 2, channels: 3, features: 5, size: [11, 10], window: [7, 7], padding: 3, stride: 2, why: 'a wide window with a stride' },
  { batch: 2, channels: 8, features: 6, size: [8, 8], window: [1, 1], padding: 0, stride: 2, why: 'a window of one with a stride' },
  { batch: 2, channels: 3, features: 4, size: [9, 8], window: [3, 3], padding: 2, dilation: 2, why: 'a dilation' },
  { batch: 2, channels: 6, features: 4, size: [8, 8], window: [3, 3], padding: 1, groups: 2, why: 'groups' },
  {
    batch: 2,
    channels: 6,
    features: 12,
    size: [7, 6],
    window: [3, 3],
    padding: 1,
    stride: 2,
    groups: 6,
    why: 'each channel on its own, with a stride',
  },
  { batch: 1, channels: 3, features: 4, size: [6, 6], window: [3, 3], padding: 3, why: 'padding as wide as the window' },
  { batch: 2, channels: 20, features: 18, size: [9, 10], window: [3, 3], padding: 1, why: 'Winograd, with the weight rotated' },
]

const optionsOf = ({ stride = 1, dilation = 1, groups = 1 }: Case): { stride: number; dilation: number; groups: number } => ({
  stride,
  dilation,
  groups,
})

function filled(shape: readonly number[], seed: number): Tensor {
  torch.manualSeed(seed)
  return torch.randn(shape)
}

describe('gradients of a convolution inside a compiled function', () => {
  for (const c of cases) {
    it(`equal eager's: ${c.why}`, () => {
      const x = filled([c.batch, c.channels, ...c.size], 1)
      const w = filled([c.features, c.channels / (c.groups ?? 1), ...c.window], 2)
      const f = (input: Tensor, weight: Tensor): Tensor[] => {
        const [a, b] = [input.detach().requiresGrad_(), weight.detach().requiresGrad_()]
        const out = torch.nn.functional.conv2d(a, b, null, { padding: c.padding, ...optionsOf(c) })
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

describe('a convolution inside a compiled function, and the gradient of its images', () => {
  const layouts: Readonly<Record<string, (w: Tensor) => Tensor>> = {
    'channels last': (w) => w.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    'features last': (w) => w.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
    'windows turned': (w) => w.transpose(2, 3).contiguous().transpose(2, 3),
    'every other element': (w) => w.repeatInterleave(2, 3).slice(3, 0, 2 * w.size(3), 2),
  }
  const sizes = { 'by Winograd': [20, 18, 3], directly: [5, 6, 3], 'with windows of one': [7, 9, 1] } as const
  const both = Object.keys(layouts).flatMap((layout) => Object.keys(sizes).map((size) => [layout, size] as const))

  it.each(both)('take a weight as it lies: %s, %s', (layout, size) => {
    const [channels, features, window] = Object.entries(sizes).find(([name]) => name === size)?.[1] ?? [1, 1, 1]
    const [x, w] = [filled([2, channels, 9, 8], 1), filled([features, channels, window, window], 2)]
    const f = (input: Tensor, weight: Tensor): Tensor[] => {
      const a = input.detach().requiresGrad_()
      const out = torch.nn.functional.conv2d(a, weight, null, { padding: (window - 1) / 2 })
      out.mul(out).sum().backward()
      return [out.detach(), a.grad as Tensor]
    }
    const lying = layouts[layout]?.(w) ?? w
    expect(window === 1 || !lying.isContiguous()).toBe(true)
    const expected = compile(f)(x, w)
    compile(f)(x, lying).forEach((value, i) => expect(value.equal(expected[i] as Tensor), `result ${i}`).toBe(true))
  })
})
