// node examples/resnet18/train.mjs [epochs [width]]: a ResNet-18 learns to read digits. Two worker threads make the images, and the program says for how long it waited for them.
import { nn, optim, torch } from 'tensorfx'
import { DataLoader, importDataset } from 'tensorfx/data'
import { Accuracy, fit } from 'tensorfx/train'
import { ResNet18 } from './model.mjs'

const [epochs = 2, width = 64] = process.argv.slice(2).map(Number)
torch.manualSeed(1)
const [train, test] = await Promise.all(['train', 'test'].map((part) => importDataset(new URL('./digits.mjs', import.meta.url), { args: [part] })))
const data = new DataLoader(train, { batchSize: 32, shuffle: true, numWorkers: 2, persistentWorkers: true, readFirstHere: true })

const model = new ResNet18({ width, classes: 10 })
const optimizer = new optim.AdamW(model.parameters(), { lr: 3e-3 })
const schedule = new optim.OneCycleLR(optimizer, 3e-3, { totalSteps: epochs * data.length })

await fit({
  model,
  optimizer,
  data,
  epochs,
  loss: nn.functional.crossEntropy,
  stepSchedulers: [schedule],
  validation: new DataLoader(test, { batchSize: 60 }),
  metrics: { accuracy: new Accuracy() },
  log: (line) => console.log(line),
})
await data.close()
