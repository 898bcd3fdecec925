// A training program that is killed and started again: `tensorfx run -n N program.mjs FOLDER STEPS`. It saves a checkpoint after each step, goes on from the last whole one, and writes down what it
// sees: FOLDER/log.jsonl has a line for each step, FOLDER/final.json the parameters at the end. TENSORFX_TEST_KILL says when a rank dies.
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nn, optim, torch } from 'tensorfx'
import { allReduce, destroyProcessGroup, getRank, getWorldSize, initProcessGroup } from 'tensorfx/distributed'
import { loadCheckpoint, saveCheckpoint } from 'tensorfx/checkpoint'
import { DistributedDataParallel } from 'tensorfx/distributed'
import { FullyShardedDataParallel, ModuleWrapPolicy, fullyShard, summonFullParams } from 'tensorfx/distributed/fsdp'

const [, , folder, steps, way = 'flat'] = process.argv
/** Divides by every number of ranks from 1 to 4. */
const ROWS = 12

class Block extends nn.Module {
  up = new nn.Linear(6, 10)
  down = new nn.Linear(10, 6)
  forward(x) {
    return x.add(this.down(torch.tanh(this.up(x))))
  }
}

function makeNet() {
  const net = new nn.Sequential(new nn.Linear(5, 6), new Block(), new Block(), new nn.Linear(6, 3))
  for (const parameter of net.parameters()) parameter.requiresGrad_(false)
  let seed = 0
  for (const parameter of net.parameters()) parameter.copy_(numbers(parameter.shape, seed++).mul(0.3))
  for (const parameter of net.parameters()) parameter.requiresGrad_(true)
  return net.to('float64')
}

/** The same numbers on every rank. */
function numbers(shape, seed) {
  const count = shape.reduce((a, b) => a * b, 1)
  return torch
    .tensor(
      Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * (seed + 1))),
      { dtype: 'float64' },
    )
    .view(shape)
}

const wrappers = {
  flat: (net) => new FullyShardedDataParallel(net, { autoWrapPolicy: new ModuleWrapPolicy([Block]) }),
  orig: (net) => new FullyShardedDataParallel(net, { autoWrapPolicy: new ModuleWrapPolicy([Block]), useOrigParams: true }),
  rows: (net) => {
    for (const module of [...net.modules()]) if (module instanceof Block) fullyShard(module)
    fullyShard(net)
    return net
  },
  ddp: (net) => new DistributedDataParallel(net),
}

/** When this rank dies: at a step, in the middle of its backward, or at a call of the file system while its checkpoint is written. */
const plan = JSON.parse(process.env.TENSORFX_TEST_KILL ?? '{}')
const die = () => process.kill(process.pid, 'SIGKILL')
let calls = 0
let isSaving = false

function killAtFiles(step) {
  if (plan.kind !== 'file' || plan.rank !== getRank() || plan.step !== step) return
  const fs = process.getBuiltinModule('node:fs')
  for (const name of ['mkdirSync', 'openSync', 'writeSync', 'writeFileSync', 'fsyncSync', 'renameSync', 'rmSync']) {
    const usual = fs[name]
    fs[name] = (...args) => {
      if (!isSaving || ++calls !== plan.call) return usual.apply(fs, args)
      // Half of the file is on the disk.
      if (name === 'writeSync') usual.call(fs, args[0], args[1].subarray(0, args[1].length / 2))
      if (name === 'writeFileSync') usual.call(fs, args[0], args[1].slice(0, args[1].length / 2))
      die()
    }
  }
}

await initProcessGroup({ timeout: 20_000 })
const net = makeNet()
const model = wrappers[way](net)
const optimizer = new optim.AdamW(model.parameters(), { lr: 0.05 })
const write = (line) => getRank() === 0 && appendFileSync(join(folder, 'log.jsonl'), `${JSON.stringify(line)}\n`)

const loaded = await loadCheckpoint(join(folder, 'checkpoints'), { model, optimizer })
const first = loaded?.extra.step ?? 0
write({ resumes: first, ranks: getWorldSize() })
if (plan.kind === 'backward' && plan.rank === getRank()) {
  let passes = 0
  const target = [...net.modules()].find((module) => module instanceof Block)
  target.registerForwardHook((_module, _inputs, output) => {
    output.registerHook(() => {
      if (first + passes++ === plan.step) die()
    })
  })
}
for (let step = first; step < Number(steps); step++) {
  const count = ROWS / getWorldSize()
  const [x, y] = [numbers([ROWS, 5], 100 + step), numbers([ROWS, 3], 200 + step)].map((t) => t.narrow(0, count * getRank(), count))
  optimizer.zeroGrad()
  const loss = model(x).sub(y).pow(2).mean()
  loss.backward()
  optimizer.step()
  const mean = loss.detach().clone()
  allReduce(mean, { op: 'avg' })
  write({ step, loss: mean.item() })
  killAtFiles(step)
  isSaving = true
  await saveCheckpoint(join(folder, 'checkpoints'), { model, optimizer, extra: { step: step + 1 } }, { keep: 2 })
  isSaving = false
  write({ saved: step + 1 })
}
const parameters = way === 'ddp' ? [...net.parameters()] : null
const flat = (list) => list.map((p) => p.detach().reshape([p.numel]).toArray())
const final = parameters === null ? summonFullParams(model, () => flat([...model.parameters()]), { writeback: false }) : flat(parameters)
if (getRank() === 0) writeFileSync(join(folder, 'final.json'), JSON.stringify(final))
destroyProcessGroup()
