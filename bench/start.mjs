// npm run bench:start: how long the first steps of a program take, eager and compiled: as WebAssembly, with machine code, and in a process that finds what an earlier one has left
// (docs/guide/native.md, "What was made is kept"). Each step list is a process of its own; they take turns, and the fastest of the rounds counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, threads: { type: 'string', default: '1' } } })
const root = fileURLToPath(new URL('..', import.meta.url))

/** A program that prints milliseconds and milliseconds of the processor for the first step and the second. */
const program = (what, isCompiled, folder) => `
  import { torch, compile } from 'tensorfx'
  import { resnet18 } from 'tensorfx/models'
  ${folder === null ? '' : `const native = await import('tensorfx/native'); await native.init({ cache: ${JSON.stringify(folder)} })`}
  torch.manualSeed(0)
  const model = resnet18()
  const x = torch.randn([2, 3, 64, 64])
  ${what === 'inference' ? 'model.eval()' : ''}
  const step = ${what === 'inference' ? '(x) => model(x)' : '(x) => { const loss = model(x).square().mean(); model.zeroGrad(); loss.backward(); return loss }'}
  const run = ${isCompiled ? 'compile(step)' : 'step'}
  const times = []
  for (let i = 0; i < 2; i++) {
    const [start, cpu] = [performance.now(), process.cpuUsage()]
    run(x).toTypedArray()
    const { user, system } = process.cpuUsage(cpu)
    times.push([performance.now() - start, (user + system) / 1000])
  }
  console.log(JSON.stringify(times))`

function timesOf(code) {
  const env = { ...process.env, TENSORFX_NUM_THREADS: values.threads }
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { cwd: root, encoding: 'utf8', env })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout.trim().split('\n').at(-1))
}

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-start-'))
try {
  for (const what of ['inference', 'training']) {
    console.log(`\nResNet-18, ${what}, 2 images of 64x64: the first step and the second, in ms (of the processor)`)
    const rows = []
    for (const isCompiled of [false, true]) {
      const name = isCompiled ? 'compiled' : 'eager'
      rows.push({ name: `${name}, WebAssembly`, code: program(what, isCompiled, null), prepare: false, best: null })
      rows.push({ name: `${name}, native.init, an empty folder`, code: program(what, isCompiled, folder), prepare: true, best: null })
      rows.push({ name: `${name}, native.init, a process before it`, code: program(what, isCompiled, folder), prepare: false, best: null })
    }
    for (let round = 0; round < Number(values.rounds); round++)
      for (const row of rows) {
        if (row.prepare) rmSync(folder, { recursive: true, force: true })
        const times = timesOf(row.code)
        row.best = row.best === null ? times : times.map((time, i) => time.map((value, k) => Math.min(value, row.best[i][k])))
      }
    for (const { name, best } of rows)
      console.log(`  ${name.padEnd(44)} ${best.map(([ms, cpu]) => `${ms.toFixed(0).padStart(5)} (${cpu.toFixed(0)})`).join('  ')}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
