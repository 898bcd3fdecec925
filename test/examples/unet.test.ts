// The denoiser of examples/unet: it learns to take noise away.
import { expect, test } from 'vitest'
import { compile, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { example } from './run.ts'

interface UNet extends nn.Module {
  forward(images: Tensor): Tensor
}
const { UNet } = (await import(example('unet/model.mjs'))) as { readonly UNet: new (width: number) => UNet }

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
