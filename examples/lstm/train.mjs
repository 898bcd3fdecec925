// node examples/lstm/train.mjs [steps]: an LSTM learns to add numbers of two digits.
import { compile, noGrad, nn, optim, torch } from 'tensorfx'
import { sums } from './data.mjs'
import { Adder, answer } from './model.mjs'

const DIGITS = 2
const steps = Number(process.argv[2] ?? 1500)

torch.manualSeed(1)
const model = new Adder(128)
const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-2 })
const schedule = new optim.CosineAnnealingLR(optimizer, steps)

const step = compile((inputs, targets) => {
  optimizer.zeroGrad()
  const [scores] = model(inputs)
  const loss = nn.functional.crossEntropy(scores.flatten(0, 1), targets.flatten())
  loss.backward()
  nn.utils.clipGradNorm_(model.parameters(), 1)
  optimizer.step()
  return loss.detach()
})

/** The share of sums of which every digit is right. */
function accuracy([inputs, targets]) {
  return noGrad(() => {
    const [scores] = model(inputs)
    const right = scores.argmax(2).eq(targets).logicalOr(targets.lt(0))
    return right.all(1).to('float32').mean().item()
  })
}

const test = sums(1000, DIGITS)
const start = performance.now()
for (let i = 1; i <= steps; i++) {
  const loss = step(...sums(64, DIGITS))
  schedule.step()
  if (i === 1 || i % Math.ceil(steps / 6) === 0)
    console.log(`step ${i}: loss ${loss.item().toFixed(3)}, ${(100 * accuracy(test)).toFixed(1)}% of the sums right`)
}
console.log(`${((performance.now() - start) / steps).toFixed(1)} ms a step, ${step.graphs().length} graphs`)
for (const question of ['7+5=', '27+35=', '99+1=']) console.log(`${question}${answer(model, question)}`)
