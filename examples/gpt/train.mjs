// node examples/gpt/train.mjs [steps]: a small GPT learns ten sonnets by their characters, and writes a few lines.
import { readFile } from 'node:fs/promises'
import { compile, nn, optim, torch } from 'tensorfx'
import { GPT } from './model.mjs'
import { Characters, batch } from './text.mjs'
import { generate } from './generate.mjs'

const steps = Number(process.argv[2] ?? 600)
const text = await readFile(new URL('../data/sonnets.txt', import.meta.url), 'utf8')
const characters = new Characters(text)
const data = characters.encode(text)

torch.manualSeed(1)
const model = new GPT({ vocabulary: characters.alphabet.length, context: 64, width: 64, heads: 4, layers: 3 })
const optimizer = new optim.AdamW(model.parameters(), { lr: 3e-3 })
const schedule = new optim.OneCycleLR(optimizer, 3e-3, { totalSteps: steps })
console.log(
  `${data.numel} characters, ${characters.alphabet.length} different ones; ${[...model.parameters()].reduce((n, p) => n + p.numel, 0)} parameters`,
)

// Forward, loss, backward and the update of the parameters are one compiled function.
const step = compile((inputs, targets) => {
  optimizer.zeroGrad()
  const loss = torch.nn.functional.crossEntropy(model(inputs).flatten(0, 1), targets.flatten())
  loss.backward()
  nn.utils.clipGradNorm_(model.parameters(), 1)
  optimizer.step()
  return loss.detach()
})

const start = performance.now()
for (let i = 1; i <= steps; i++) {
  const loss = step(...batch(data, 16, 64))
  schedule.step()
  if (i === 1 || i % Math.ceil(steps / 6) === 0) console.log(`step ${i}: loss ${loss.item().toFixed(3)}`)
}
console.log(`${((performance.now() - start) / steps).toFixed(1)} ms a step, ${step.graphs().length} graphs`)

model.eval()
const next = compile((token, position) => model.next(token, position))
const began = performance.now()
console.log(generate(next, characters, 'Shall I ', 64))
console.log(`${((performance.now() - began) / 63).toFixed(1)} ms a character, ${next.graphs().length} graphs`)
