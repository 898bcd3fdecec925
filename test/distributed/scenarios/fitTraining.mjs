// Trainings by fit: in one process with whole batches, and on several ranks, each of which reads its share of every batch, with DistributedDataParallel and FSDP.
import { nn, optim, torch } from 'tensorfx'
import { DataLoader, DistributedSampler, TensorDataset } from 'tensorfx/data'
import { DistributedDataParallel, getRank, getWorldSize } from 'tensorfx/distributed'
import { FullyShardedDataParallel, summonFullParams } from 'tensorfx/distributed/fsdp'
import { AUC, Accuracy, ConfusionMatrix, F1Score, MeanSquaredError, Perplexity, R2Score, fit } from 'tensorfx/train'
import { input, tokens } from './data.mjs'
import { flat } from './helpers.mjs'

const CLASSES = 3
/** Both divide by every number of ranks; one batch is left of an epoch after two steps of two. */
const [ROWS, BATCH] = [60, 12]

/** What differs from run to run. */
const TIMES = new Set(['seconds', 'samplesPerSecond', 'dataWait'])

/** Rows of the validation set that a rank has: the first one more than the others, in as many batches. */
const validationRows = (rank, size) => (rank === 0 ? [0, 13 - (size - 1) * 2] : [13 - (size - rank) * 2, 2])

const tasks = {
  classes: {
    target: (n, seed) => tokens([n], seed, CLASSES),
    out: CLASSES,
    loss: nn.functional.crossEntropy,
    metrics: () => ({ accuracy: new Accuracy(), f1: new F1Score(CLASSES), perplexity: new Perplexity(), confusion: new ConfusionMatrix(CLASSES) }),
  },
  numbers: {
    target: (n, seed) => input([n, 1], seed),
    out: 1,
    loss: nn.functional.mseLoss,
    metrics: () => ({ mse: new MeanSquaredError(), r2: new R2Score() }),
  },
  chance: {
    target: (n, seed) => tokens([n, 1], seed, 2).float(),
    out: 1,
    loss: nn.functional.binaryCrossEntropyWithLogits,
    metrics: () => ({ auc: new AUC() }),
  },
}

const wrappers = {
  alone: (net) => net,
  ddp: (net) => new DistributedDataParallel(net),
  fsdp: (net) => new FullyShardedDataParallel(net, { useOrigParams: true }),
}

/** What a training reports: losses and metrics of epochs, the loss of each of this rank's steps, and parameters at its end. */
async function train(way, { target, out, loss, metrics }) {
  const [rank, size] = way === 'alone' ? [0, 1] : [getRank(), getWorldSize()]
  torch.manualSeed(3)
  const net = new nn.Sequential(new nn.Linear(6, 16), new nn.LayerNorm(16), new nn.GELU(), new nn.Linear(16, out))
  const model = wrappers[way](net)
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.03 })
  const dataset = new TensorDataset(input([ROWS, 6], 1), target(ROWS, 2))
  const sampler = new DistributedSampler(dataset, { numReplicas: size, rank, shuffle: false })
  const [start, length] = validationRows(rank, size)
  const losses = []
  const { history, step } = await fit({
    model,
    optimizer,
    loss,
    data: new DataLoader(dataset, { batchSize: BATCH / size, sampler }),
    validation: [[input([13, 6], 3), target(13, 4)].map((t) => t.narrow(0, start, length))],
    metrics: metrics(),
    epochs: 3,
    accumulate: 2,
    clipGradNorm: 0.4,
    schedulers: [new optim.StepLR(optimizer, 1, { gamma: 0.7 })],
    onStep: (_, report) => losses.push(report.loss),
    log: false,
  })
  const read = () => [...net.parameters()].map(flat)
  const parameters = way === 'fsdp' ? summonFullParams(model, read, { writeback: false }) : read()
  const epochs = history.map(({ values }) => Object.fromEntries(Object.entries(values).filter(([name]) => !TIMES.has(name))))
  return { epochs, step, losses, parameters }
}

/** Trains for each task: alone, or as one of the ranks. */
export async function trainAll(way) {
  const results = {}
  for (const [name, task] of Object.entries(tasks)) results[name] = await train(way, task)
  return results
}

/** How many of nine steps in float16 the optimizer took. The gradients of the last output are infinite until the scale is smaller; under FSDP they lie on the last rank. */
export async function stepsTaken(way) {
  const weights = torch.tensor([1, 1, 1, 100])
  torch.manualSeed(3)
  const model = wrappers[way](new nn.Linear(6, 4))
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.03 })
  await fit({
    model,
    optimizer,
    loss: (prediction, target) => prediction.float().sub(target).square().mul(weights).mean(),
    data: Array.from({ length: 9 }, (_, i) => [input([6, 6], i), input([6, 4], 20 + i)]),
    epochs: 1,
    autocast: 'float16',
    log: false,
  })
  const taken = Object.values(optimizer.stateDict().state).map(({ step }) => Number(step.item?.() ?? step))
  return Math.max(...taken)
}
