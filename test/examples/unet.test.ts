// The denoiser of examples/unet: it learns to take noise away.
import { expect, test } from 'vitest'
import { compile, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { example, losses, runExample } from './run.ts'

interface UNet extends nn.Module {
  forward(images: Tensor): Tensor
}
const { UNet } = (await import(example('unet/model.mjs'))) as { readonly UNet: new (width: number) => UNet }

test('after a few steps less than half of the error of the noise is left', async () => {
  const text = await runExample('unet/train.mjs', '24')
  const seen = losses(text)
  expect(seen).toHaveLength(7)
  expect(seen.at(-1)).toBeLessThan((seen[0] ?? 0) / 2)
  const [, before, after] = (/360 test images: ([\d.]+) with noise, ([\d.]+) without/.exec(text) ?? []).map(Number)
  expect(before).toBeCloseTo(0.16, 2)
  expect(after).toBeLessThan((before ?? 0) / 2)
  // Two rows of four pictures: 8 lines, an empty one, 8 lines.
  const lines = text.split('\n').slice(-18, -1)
  expect(lines[8]).toBe('')
  expect(lines.filter((line) => /^[ .:=+*#%@-]{16}( {2}\| {2}[ .:=+*#%@-]{16}){3}$/.test(line))).toHaveLength(16)
}, 120_000)

test.each([
  [1, 8, 8],
  [3, 12, 4],
])('a batch of %i images of %i by %i keeps its shape, eager and compiled alike', (batch, height, width) => {
  torch.manualSeed(2)
  const model = new UNet(4).eval()
  const x = torch.randn([batch, 1, height, width])
  const compiled = compile(model)
  const [y, z] = noGrad(() => [model(x), compiled(x)])
  expect(y.shape).toEqual(x.shape)
  expect(z.sub(y).abs().max().item()).toBeLessThan(1e-5)
})
