// A training program that is killed and started again: `node trainer.mjs TRAINING FOLDER STEPS`, with `tensorfx run -n 2` before it for ranks. It saves a checkpoint after each step and goes on from
// the newest. FOLDER/log.jsonl has a line for each step, FOLDER/final.json the parameters at the end, and FOLDER/process-N says that process N trains there. TENSORFX_TEST_KILL says at which call of
// the file system, while the checkpoint of a step is written, the process dies.
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { torch } from 'tensorfx'
import { loadCheckpoint, saveCheckpoint } from 'tensorfx/checkpoint'
import { destroyProcessGroup, getRank, initProcessGroup } from 'tensorfx/distributed'
import { trainings } from './trainings.mjs'

const [, , name, folder, steps] = process.argv
const isDivided = name === 'fsdp'
writeFileSync(join(folder, `process-${process.pid}`), '')
if (isDivided) await initProcessGroup({ timeout: 20_000 })
const rank = isDivided ? getRank() : 0
const write = (line) => rank === 0 && appendFileSync(join(folder, 'log.jsonl'), `${JSON.stringify(line)}\n`)

torch.manualSeed(5)
const { parts, batches = parts.data, step: train } = await trainings[name]()
const checkpoints = join(folder, 'checkpoints')
const loaded = await loadCheckpoint(checkpoints, parts)
let step = loaded?.extra.step ?? 0
write({ resumes: step })

const plan = JSON.parse(process.env.TENSORFX_TEST_KILL ?? '{}')
const fs = process.getBuiltinModule('node:fs')
let calls = 0
let isSaving = false
for (const call of ['mkdirSync', 'openSync', 'writeSync', 'writeFileSync', 'fsyncSync', 'closeSync', 'renameSync', 'rmSync']) {
  const usual = fs[call]
  fs[call] = (...args) => {
    if (!isSaving || ++calls !== plan.call) return usual.apply(fs, args)
    // Half of a part is on the disk.
    if (call === 'writeSync') usual.call(fs, args[0], args[1].subarray(0, args[1].length / 2))
    if (call === 'writeFileSync') usual.call(fs, args[0], args[1].slice(0, args[1].length / 2))
    process.kill(process.pid, 'SIGKILL')
  }
}

while (step < Number(steps)) {
  for await (const batch of batches) {
    const loss = train(batch)
    step++
    write({ step, loss })
    isSaving = step === plan.step && rank === (plan.rank ?? 0)
    await saveCheckpoint(checkpoints, { ...parts, extra: { step } }, { number: step, keep: 2, score: loss })
    isSaving = false
    if (step === Number(steps)) break
  }
}
const state = parts.model.stateDict()
if (rank === 0) writeFileSync(join(folder, 'final.json'), JSON.stringify([...state.values()].map((tensor) => tensor.toArray())))
if (isDivided) destroyProcessGroup()
