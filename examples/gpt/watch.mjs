// node examples/gpt/watch.mjs [file.txt] [epochs] [steps of an epoch]: a GPT-2 learns a text file by its characters, with a live page in the browser; at the end it is saved, and writes.
import { readFile } from 'node:fs/promises'
import { nn, optim, torch } from 'tensorfx'
import { GPT2, generate, savePretrained } from 'tensorfx/models'
import { Perplexity, fit } from 'tensorfx/train'
import { Characters, batch } from './text.mjs'

const [file = new URL('../data/sonnets.txt', import.meta.url), epochs = '10', steps = '50'] = process.argv.slice(2)
const text = await readFile(file, 'utf8')
const characters = new Characters(text)
const data = characters.encode(text)
const share = Math.floor(data.numel * 0.9)
const [training, validation] = [data.narrow(0, 0, share), data.narrow(0, share, data.numel - share)]
const context = 64

torch.manualSeed(1)
const model = new GPT2({ vocabSize: characters.alphabet.length, nPositions: context, nEmbd: 64, nLayer: 3, nHead: 4, dropout: 0.1 })
/** So many batches, drawn anew each time that they are read. */
const drawn = (part, length) => ({
  length,
  *[Symbol.iterator]() {
    for (let i = 0; i < length; i++) yield batch(part, 16, context)
  },
})

await fit({
  model,
  optimizer: new optim.AdamW(model.parameters(), { lr: 2e-3 }),
  data: drawn(training, Number(steps)),
  validation: drawn(validation, 5),
  step: (gpt, [inputs, targets]) => {
    const scores = gpt(inputs).flatten(0, 1)
    return { loss: nn.functional.crossEntropy(scores, targets.flatten()), prediction: scores, target: targets.flatten() }
  },
  metrics: { perplexity: new Perplexity() },
  clipGradNorm: 1,
  epochs: Number(epochs),
  page: true,
})

await savePretrained(model, 'tiny-gpt')
const start = characters.encode(text.slice(0, 8)).unsqueeze(0)
console.log(characters.decode(generate(model, start, { maxNewTokens: 48, temperature: 0.8, topK: 10 }).flatten().toArray().map(Number)))
