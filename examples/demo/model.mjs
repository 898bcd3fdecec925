// The small CNN of the demo, its data, and the two ways of running a training step.
import { readFile } from 'node:fs/promises'
import { nn, optim, torch } from 'tensorfx'
import { readDigits } from '../data/digits.mjs'

/** 8x8 images -> 10 classes. */
export class DigitNet extends nn.Module {
  constructor() {
    super()
    this.conv1 = new nn.Conv2d(1, 8, 3, { padding: 1 })
    this.bn1 = new nn.BatchNorm2d(8)
    this.conv2 = new nn.Conv2d(8, 16, 3, { padding: 1 })
    this.bn2 = new nn.BatchNorm2d(16)
    this.relu = new nn.ReLU()
    this.pool = new nn.MaxPool2d(2)
    this.fc = new nn.Linear(64, 10)
  }

  forward(x) {
    x = this.pool(this.relu(this.bn1(this.conv1(x))))
    x = this.pool(this.relu(this.bn2(this.conv2(x))))
    return this.fc(torch.flatten(x, 1))
  }
}

export const BATCH = 32

/** The digits as tensors: training batches on demand, the test set as one batch. */
export async function loadDigits() {
  const { train, test } = await readDigits(await readFile(new URL('../data/digits.csv.gz', import.meta.url)))
  const image = (split, indices) => {
    const pixels = new Float32Array(indices.length * 64)
    indices.forEach((index, i) => pixels.set(split.images.subarray(index * 64, index * 64 + 64), i * 64))
    return torch.tensor(pixels).reshape([indices.length, 1, 8, 8])
  }
  const label = (split, indices) => torch.tensor(Int32Array.from(indices, (index) => split.labels[index]))
  const all = (split) => Array.from({ length: split.count }, (_, i) => i)
  return {
    trainCount: train.count,
    batchesPerEpoch: Math.floor(train.count / BATCH),
    batch: (indices) => [image(train, indices), label(train, indices)],
    test: [image(test, all(test)), label(test, all(test))],
  }
}

/** A shuffled order of the training set, the same for a seed. */
export function shuffled(count, seed) {
  const order = Array.from({ length: count }, (_, i) => i)
  let state = seed * 2654435761 + 1
  for (let i = count - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const j = state % (i + 1)
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}

/** One training step as a plain function: forward, loss, backward, update. `compile` takes it as it is. */
export function makeStep(model, optimizer) {
  return function trainStep(images, labels) {
    optimizer.zeroGrad()
    const loss = torch.nn.functional.crossEntropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()
  }
}

export function makeTraining(seed) {
  torch.manualSeed(seed)
  const model = new DigitNet()
  const optimizer = new optim.AdamW(model.parameters(), { lr: 4e-3 })
  return { model, optimizer, step: makeStep(model, optimizer) }
}

/** Share of right answers. */
export function accuracy(model, [images, labels]) {
  return torch.noGrad(() => model(images).argmax(1).eq(labels).to('float32').mean().item())
}
