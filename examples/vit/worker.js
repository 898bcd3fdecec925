// The model and its training, in a worker, so that the page answers while it runs.
import { noGrad, nn, optim, torch } from 'tensorfx'
import { DataLoader } from 'tensorfx/data'
import { ViT, loadPretrained, pretrainedBlob } from 'tensorfx/models'
import { Accuracy, fit } from 'tensorfx/train'
import { ColorJitter, Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize, ToDtype, decodeImage } from 'tensorfx/vision'
import { divided } from './images.js'

/** A ViT that learns within a minute on one core: 16 patches of 8x8 pixels. */
const SMALL = { imageSize: 32, patchSize: 8, hiddenSize: 64, intermediateSize: 128, numHiddenLayers: 3, numAttentionHeads: 4 }

let model = null

const labelsOf = ({ config }) => Object.values(config.id2label ?? {})

/** The model that learns these classes: the one that is there, with a new head if its classes are others; or a new one. */
function modelFor(labels) {
  if (model !== null && labelsOf(model).join() === labels.join()) return model
  const made = new ViT({ ...(model?.config ?? SMALL), numLabels: labels.length, id2label: Object.fromEntries(labels.entries()) })
  if (model !== null) made.loadStateDict(new Map([...model.stateDict()].filter(([name]) => !name.startsWith('heads.'))), { strict: false })
  return made
}

const scaled = [new ToDtype('float32', { scale: true }), new Normalize([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])]

/** How images are changed while the model learns, and how they are read otherwise. */
const transformsFor = ({ config: { imageSize } }) => ({
  training: new Compose([
    new RandomResizedCrop(imageSize, { scale: [0.6, 1] }),
    new RandomHorizontalFlip(),
    new ColorJitter({ brightness: 0.2, contrast: 0.2, saturation: 0.2 }),
    ...scaled,
  ]),
  reading: new Compose([new Resize([imageSize, imageSize]), ...scaled]),
})

const decoded = (samples) => Promise.all(samples.map(async ({ file, label }) => ({ image: await decodeImage(file), label })))

/** Samples as a dataset: each time that one is read, it is transformed anew. */
const dataset = (samples, transform) => ({ length: samples.length, get: (i) => [transform(samples[i].image), samples[i].label] })

/** Sends what fit reports to the page. */
const toPage = { write: (step, report) => postMessage({ kind: 'report', step, report }), close() {} }

async function train({ samples, labels, epochs, seed }) {
  torch.manualSeed(seed)
  model = modelFor(labels)
  const transforms = transformsFor(model)
  const { training, validation } = divided(samples)
  const [learned, kept] = [await decoded(training), await decoded(validation)]
  const batches = (part, transform, options) => new DataLoader(dataset(part, transform), { batchSize: 16, ...options })
  await fit({
    model,
    optimizer: new optim.AdamW(model.parameters(), { lr: 2e-3, weightDecay: 0.01 }),
    data: batches(learned, transforms.training, { shuffle: true }),
    ...(kept.length === 0 ? {} : { validation: batches(kept, transforms.reading) }),
    loss: nn.functional.crossEntropy,
    metrics: { accuracy: new Accuracy() },
    clipGradNorm: 1,
    epochs,
    writers: [toPage],
    log: false,
  })
  model.eval()
  return describe()
}

/** The most probable class of each image. */
async function predict({ files }) {
  const { reading } = transformsFor(model)
  const results = []
  for (const file of files) {
    const image = reading(await decodeImage(file)).unsqueeze(0)
    const probabilities = noGrad(() => model(image))
      .softmax(1)
      .select(0, 0)
    const label = Number(probabilities.argmax().item())
    results.push({ label: labelsOf(model)[label], probability: Number(probabilities.select(0, label).item()) })
  }
  return results
}

async function load({ source }) {
  model = await loadPretrained(source, { model: ViT })
  return describe()
}

const describe = () => ({
  labels: labelsOf(model),
  parameters: [...model.parameters()].reduce((sum, { numel }) => sum + numel, 0),
  imageSize: model.config.imageSize,
})

const commands = { train, predict, load, save: () => pretrainedBlob(model) }

addEventListener('message', async ({ data: { id, command, ...values } }) => {
  try {
    postMessage({ kind: 'answer', id, value: await commands[command](values) })
  } catch (error) {
    postMessage({ kind: 'answer', id, error: error instanceof Error ? error.message : String(error) })
  }
})
