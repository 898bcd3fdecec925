// node examples/unet/train.mjs [steps]: a UNet learns to take noise from images of digits.
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import { draw, loadImages } from './data.mjs'
import { UNet } from './model.mjs'

const NOISE = 0.4
const steps = Number(process.argv[2] ?? 600)
const [train, test] = await loadImages()

torch.manualSeed(1)
const model = new UNet(16)
const optimizer = new optim.AdamW(model.parameters(), { lr: 4e-3 })
const schedule = new optim.CosineAnnealingLR(optimizer, steps)
const withNoise = (images) => images.add(torch.randn(images.shape).mul(NOISE))

// The noise is drawn inside: compiled code draws the same numbers as eager code.
const step = compile((images) => {
  optimizer.zeroGrad()
  const loss = nn.functional.mseLoss(model(withNoise(images)), images)
  loss.backward()
  optimizer.step()
  return loss.detach()
})

const start = performance.now()
for (let i = 1; i <= steps; i++) {
  const loss = step(train.indexSelect(0, torch.randint(0, train.size(0), [64])))
  schedule.step()
  if (i === 1 || i % Math.ceil(steps / 6) === 0) console.log(`step ${i}: loss ${loss.item().toFixed(4)}`)
}
console.log(`${((performance.now() - start) / steps).toFixed(1)} ms a step, ${step.graphs().length} graphs`)

model.eval()
const denoise = compile(model)
const noisy = withNoise(test)
const clean = noGrad(() => denoise(noisy))
const error = (images) => images.sub(test).square().mean().item().toFixed(4)
console.log(`mean squared error on ${test.size(0)} test images: ${error(noisy)} with noise, ${error(clean)} without`)
const few = (images) => draw(images.narrow(0, 0, 4))
console.log(`${few(noisy)}\n\n${few(clean)}`)
