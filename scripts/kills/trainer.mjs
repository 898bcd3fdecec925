// A training program that is killed and started again: `node trainer.mjs FOLDER STEPS`. It saves a checkpoint after each step and goes on from the newest: in the middle of a pass over the data,
// with dropout, a schedule and worker threads. FOLDER/log.jsonl has a line for each step, FOLDER/final.json the parameters at the end. TENSORFX_TEST_KILL says at which call of the file
// system, while the checkpoint of a step is written, the process dies.
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nn, optim, torch } from 'tensorfx'
import { loadCheckpoint, saveCheckpoint } from 'tensorfx/checkpoint'
import { DataLoader, TensorDataset } from 'tensorfx/data'

const [, , folder, steps] = process.argv
const write = (line) => appendFileSync(join(folder, 'log.jsonl'), `${JSON.stringify(line)}\n`)

torch.manualSeed(5)
const x = torch.randn([40, 6])
const dataset = new TensorDataset(x, x.sum({ dim: 1, keepdim: true }).sin())
const model = new nn.Sequential(new nn.Linear(6, 32), new nn.BatchNorm1d(32), new nn.Dropout(0.2), new nn.Tanh(), new nn.Linear(32, 1))
const optimizer = new optim.AdamW(model.parameters(), { lr: 0.02 })
const schedulers = new optim.OneCycleLR(optimizer, 0.05, { totalSteps: 1000 })
const data = new DataLoader(dataset, { batchSize: 8, shuffle: true, dropLast: true })

const loaded = await loadCheckpoint(join(folder, 'checkpoints'), { model, optimizer, schedulers, data })
let step = loaded?.extra.step ?? 0
write({ resumes: step })

const plan = JSON.parse(process.env.TENSORFX_TEST_KILL ?? '{}')
const fs = process.getBuiltinModule('node:fs')
let calls = 0
let isSaving = false
for (const name of ['mkdirSync', 'openSync', 'writeSync', 'fsyncSync', 'closeSync', 'renameSync', 'rmSync']) {
  const usual = fs[name]
  fs[name] = (...args) => {
    if (!isSaving || ++calls !== plan.call) return usual.apply(fs, args)
    // Half of a part is on the disk.
    if (name === 'writeSync') usual.call(fs, args[0], args[1].subarray(0, args[1].length / 2))
    process.kill(process.pid, 'SIGKILL')
  }
}

while (step < Number(steps)) {
  for await (const [batch, target] of data) {
    optimizer.zeroGrad()
    const loss = nn.functional.mseLoss(model(batch), target)
    loss.backward()
    optimizer.step()
    schedulers.step()
    step++
    write({ step, loss: loss.item() })
    isSaving = step === plan.step
    await saveCheckpoint(
      join(folder, 'checkpoints'),
      { model, optimizer, schedulers, data, extra: { step } },
      { number: step, keep: 2, score: loss.item() },
    )
    isSaving = false
    if (step === Number(steps)) break
  }
}
writeFileSync(join(folder, 'final.json'), JSON.stringify([...model.stateDict().values()].map((tensor) => tensor.toArray())))
