// Trains the digits CNN with DistributedDataParallel and a small GPT with FullyShardedDataParallel, and compares the losses with those of one process:
//   mpirun -n 2 --bind-to none node examples/distributed/train.mjs
//   node examples/distributed/train.mjs 2        # without MPI: 2 ranks as worker threads
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { nn, optim, torch } from 'tensorfx'
import { DistributedDataParallel, allReduce, destroyProcessGroup, getRank, getWorldSize, initProcessGroup, runRanks } from 'tensorfx/distributed'
import { FullyShardedDataParallel, ModuleWrapPolicy, fullParameterStats, getShardedModuleTreeWithModuleNameToFqns } from 'tensorfx/distributed/fsdp'
import { readDigits } from '../data/digits.mjs'

const { functional: F } = nn
const STEPS = 8

class Cnn extends nn.Module {
  conv1 = new nn.Conv2d(1, 8, 3, { padding: 1 })
  conv2 = new nn.Conv2d(8, 16, 3, { padding: 1 })
  fc = new nn.Linear(16 * 2 * 2, 10)
  forward(x) {
    x = F.maxPool2d(torch.relu(this.conv1(x)), 2)
    x = F.maxPool2d(torch.relu(this.conv2(x)), 2)
    return this.fc(x.flatten(1))
  }
}

const [WIDTH, LENGTH, LETTERS] = [32, 16, 27]

class Block extends nn.Module {
  norm1 = new nn.LayerNorm(WIDTH)
  qkv = new nn.Linear(WIDTH, 3 * WIDTH)
  out = new nn.Linear(WIDTH, WIDTH)
  norm2 = new nn.LayerNorm(WIDTH)
  up = new nn.Linear(WIDTH, 4 * WIDTH)
  down = new nn.Linear(4 * WIDTH, WIDTH)
  forward(x) {
    const [q, k, v] = this.qkv(this.norm1(x)).chunk(3, -1)
    x = x.add(this.out(F.scaledDotProductAttention(q, k, v, { isCausal: true })))
    return x.add(this.down(F.gelu(this.up(this.norm2(x)))))
  }
}

class Gpt extends nn.Module {
  letters = new nn.Embedding(LETTERS, WIDTH)
  positions = new nn.Embedding(LENGTH, WIDTH)
  blocks = new nn.ModuleList([new Block(), new Block()])
  head = new nn.Linear(WIDTH, LETTERS)
  forward(x) {
    x = this.letters(x).add(this.positions(torch.arange(LENGTH, { dtype: 'int64' })))
    for (const block of this.blocks) x = block(x)
    return this.head(x)
  }
}

const TEXT = 'the quick brown fox jumps over the lazy dog '.repeat(8)
const code = (letter) => (letter === ' ' ? 0 : letter.charCodeAt(0) - 96)

/** Step `step`'s batch for all ranks: 16 pieces of text, and the letters that follow. */
function textBatch(step) {
  const at = (shift) => Array.from({ length: 16 }, (_, i) => Array.from({ length: LENGTH }, (_, j) => code(TEXT[step * 3 + i * 7 + j + shift])))
  return [torch.tensor(at(0), { dtype: 'int64' }), torch.tensor(at(1), { dtype: 'int64' })]
}

/** This rank's rows. */
const share = (batch) => batch.map((t) => t.chunk(getWorldSize(), 0)[getRank()])

/** The losses of a few steps, averaged over the ranks that take part. */
function train(model, optimizer, batchOf, loss, isShared) {
  const losses = []
  for (let step = 0; step < STEPS; step++) {
    const [x, y] = isShared ? share(batchOf(step)) : batchOf(step)
    optimizer.zeroGrad()
    const value = loss(model(x), y)
    value.backward()
    optimizer.step()
    const mean = value.detach().clone()
    if (isShared) allReduce(mean, { op: 'avg' })
    losses.push(mean.item())
  }
  return losses
}

const line = (who, losses) => `  ${who.padEnd(11)}  ${losses.map((value) => value.toFixed(4)).join(' ')}`

function compare(title, alone, together) {
  const difference = Math.max(...alone.map((value, i) => Math.abs(value - together[i])))
  if (!(difference < 1e-4)) throw new Error(`${title}: the losses differ by ${difference}`)
  return [title, line('one process', alone), line(`${getWorldSize()} ranks`, together)]
}

/** The same weights on every call. */
function made(type) {
  torch.manualSeed(0)
  return new type()
}

/** Trains, and returns what rank 0 has to say. */
export default async function run() {
  await initProcessGroup()
  const { train: data } = await readDigits(await readFile(new URL('../data/digits.csv.gz', import.meta.url)))
  const [images, labels] = [torch.tensor(data.images).view([data.count, 1, 8, 8]), torch.tensor(data.labels).to('int64')]
  const digitBatch = (step) => [images.narrow(0, 64 * step, 64), labels.narrow(0, 64 * step, 64)]
  const cnn = (wrap, isShared) => {
    const model = wrap(made(Cnn))
    return train(model, new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 }), digitBatch, F.crossEntropy, isShared)
  }
  const report = compare(
    'digits CNN, DistributedDataParallel',
    cnn((m) => m, false),
    cnn((m) => new DistributedDataParallel(m), true),
  )

  const nextLetter = (output, target) => F.crossEntropy(output.reshape([-1, LETTERS]), target.reshape([-1]))
  let tree = ''
  const gpt = (wrap, isShared) => {
    const model = wrap(made(Gpt))
    if (isShared) ({ tree } = getShardedModuleTreeWithModuleNameToFqns(model, { wrappers: false, bytes: true }))
    return train(model, new optim.AdamW(model.parameters(), { lr: 3e-3 }), textBatch, nextLetter, isShared)
  }
  const sharded = (m) => new FullyShardedDataParallel(m, { autoWrapPolicy: new ModuleWrapPolicy([Block]) })
  report.push(
    ...compare(
      'GPT, FullyShardedDataParallel',
      gpt((m) => m, false),
      gpt(sharded, true),
    ),
  )
  report.push(`${tree}at most ${fullParameterStats().peakUnits} units were whole at a time`)
  const isFirst = getRank() === 0
  destroyProcessGroup()
  return isFirst ? report : []
}

const [, script, ranks] = process.argv
if (import.meta.url === pathToFileURL(script ?? '').href) {
  const reports = ranks === undefined ? [await run()] : await runRanks(Number(ranks), import.meta.url)
  for (const text of reports.flat()) console.log(text)
}
