// The trainings that are killed: what the examples train, in small, and one of worker threads and of ranks. Each has the parts of a checkpoint, and `step`, which takes a batch.
import { readFile } from 'node:fs/promises'
import { compile, nn, optim, torch } from 'tensorfx'
import { DataLoader, TensorDataset } from 'tensorfx/data'
import { DistributedSampler, getRank } from 'tensorfx/distributed'
import { FullyShardedDataParallel, ModuleWrapPolicy } from 'tensorfx/distributed/fsdp'
import { GPT2, ViT } from 'tensorfx/models'
import { GPT } from '../../examples/gpt/model.mjs'
import { Characters, batch } from '../../examples/gpt/text.mjs'
import { sums } from '../../examples/lstm/data.mjs'
import { Adder } from '../../examples/lstm/model.mjs'
import { ResNet18 } from '../../examples/resnet18/model.mjs'
import { loadImages } from '../../examples/unet/data.mjs'
import { UNet } from '../../examples/unet/model.mjs'

const { functional: F } = nn

/** Batches without an end, drawn anew: where they are, the default generator says. */
function* drawn(draw) {
  for (;;) yield draw()
}

/** A step as the examples take it: compiled, with a schedule after it. */
function stepOf({ model, optimizer, schedulers }, lossOf, clips) {
  const step = compile((batch) => {
    optimizer.zeroGrad()
    const loss = lossOf(batch)
    loss.backward()
    if (clips) nn.utils.clipGradNorm_(model.parameters(), 1)
    optimizer.step()
    return loss.detach()
  })
  return (batch) => {
    const loss = step(batch)
    schedulers.step()
    return loss.item()
  }
}

const textOf = async () => {
  const text = (await readFile(new URL('../../examples/data/sonnets.txt', import.meta.url), 'utf8')).slice(0, 2000)
  const characters = new Characters(text)
  return { count: characters.alphabet.length, data: characters.encode(text) }
}

const oneCycle = (model, lr) => {
  const optimizer = new optim.AdamW(model.parameters(), { lr })
  return { model, optimizer, schedulers: new optim.OneCycleLR(optimizer, lr, { totalSteps: 1000 }) }
}
const cosine = (model, lr) => {
  const optimizer = new optim.AdamW(model.parameters(), { lr })
  return { model, optimizer, schedulers: new optim.CosineAnnealingLR(optimizer, 1000) }
}

const nextCharacter = (scores, targets) => F.crossEntropy(scores.flatten(0, 1), targets.flatten())

export const trainings = {
  /** In the middle of a pass over the data, with dropout, a schedule and worker threads. */
  async workers() {
    const x = torch.randn([40, 6])
    const model = new nn.Sequential(new nn.Linear(6, 32), new nn.BatchNorm1d(32), new nn.Dropout(0.2), new nn.Tanh(), new nn.Linear(32, 1))
    const parts = oneCycle(model, 0.02)
    const data = new DataLoader(new TensorDataset(x, x.sum({ dim: 1, keepdim: true }).sin()), {
      batchSize: 8,
      shuffle: true,
      dropLast: true,
      numWorkers: 2,
    })
    const step = ([input, target]) => {
      parts.optimizer.zeroGrad()
      const loss = F.mseLoss(model(input), target)
      loss.backward()
      parts.optimizer.step()
      parts.schedulers.step()
      return loss.item()
    }
    return { parts: { ...parts, data }, step }
  },

  /** examples/gpt/train.mjs */
  async gpt() {
    const { count, data } = await textOf()
    const model = new GPT({ vocabulary: count, context: 16, width: 16, heads: 2, layers: 1 })
    const parts = oneCycle(model, 3e-3)
    return {
      parts,
      batches: drawn(() => batch(data, 4, 16)),
      step: stepOf(parts, ([inputs, targets]) => nextCharacter(model(inputs), targets), true),
    }
  },

  /** examples/gpt/watch.mjs */
  async gpt2() {
    const { count, data } = await textOf()
    const model = new GPT2({ vocabSize: count, nPositions: 16, nEmbd: 16, nLayer: 1, nHead: 2, dropout: 0.1 })
    const parts = oneCycle(model, 2e-3)
    return {
      parts,
      batches: drawn(() => batch(data, 4, 16)),
      step: stepOf(parts, ([inputs, targets]) => nextCharacter(model(inputs), targets), true),
    }
  },

  /** examples/lstm */
  async lstm() {
    const model = new Adder(16)
    const parts = cosine(model, 1e-2)
    return {
      parts,
      batches: drawn(() => sums(8, 2)),
      step: stepOf(parts, ([inputs, targets]) => nextCharacter(model(inputs)[0], targets), true),
    }
  },

  /** examples/unet: noise is drawn inside the compiled step. */
  async unet() {
    const [images] = await loadImages()
    const model = new UNet(4)
    const parts = cosine(model, 4e-3)
    const lossOf = (clean) => F.mseLoss(model(clean.add(torch.randn(clean.shape).mul(0.4))), clean)
    return {
      parts,
      batches: drawn(() => images.indexSelect(0, torch.randint(0, images.size(0), [8]))),
      step: stepOf(parts, lossOf, false),
    }
  },

  /** examples/resnet18 */
  async resnet() {
    const model = new ResNet18({ width: 8, classes: 4 })
    const parts = cosine(model, 1e-2)
    return {
      parts,
      batches: drawn(() => [torch.randn([2, 3, 32, 32]), torch.randint(0, 4, [2])]),
      step: stepOf(parts, ([images, classes]) => F.crossEntropy(model(images), classes), false),
    }
  },

  /** examples/vit */
  async vit() {
    const small = { imageSize: 16, patchSize: 8, hiddenSize: 16, intermediateSize: 32, numHiddenLayers: 1, numAttentionHeads: 2, numLabels: 3 }
    const model = new ViT(small)
    const parts = cosine(model, 2e-3)
    return {
      parts,
      batches: drawn(() => [torch.randn([4, 3, 16, 16]), torch.randint(0, 3, [4])]),
      step: stepOf(parts, ([images, classes]) => F.crossEntropy(model(images), classes), true),
    }
  },

  /** Ranks that divide the model: each has its share of the data and random numbers of its own. */
  async fsdp() {
    const x = torch.randn([48, 6])
    const inner = () => new nn.Sequential(new nn.Linear(32, 32), new nn.Dropout(0.2), new nn.Tanh())
    const model = new FullyShardedDataParallel(new nn.Sequential(new nn.Linear(6, 32), new nn.BatchNorm1d(32), inner(), new nn.Linear(32, 1)), {
      autoWrapPolicy: new ModuleWrapPolicy([nn.Linear]),
    })
    torch.manualSeed(100 + getRank())
    const parts = oneCycle(model, 0.02)
    const dataset = new TensorDataset(x, x.sum({ dim: 1, keepdim: true }).sin())
    const data = new DataLoader(dataset, { batchSize: 4, sampler: new DistributedSampler(dataset) })
    const step = ([input, target]) => {
      parts.optimizer.zeroGrad()
      const loss = F.mseLoss(model(input), target)
      loss.backward()
      model.clipGradNorm_(1)
      parts.optimizer.step()
      parts.schedulers.step()
      return loss.item()
    }
    return { parts: { ...parts, data }, step }
  },
}
