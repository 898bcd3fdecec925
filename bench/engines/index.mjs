// npm run bench:engines -- --threads 1 [--only text]: kernels next to an older build, other libraries and PyTorch, on one thread, all of them in turns. Each number is the fastest
// of seven rounds, with the first quartile of the rounds behind it. TENSORFX_BENCH_BASE is a checkout with an older build in dist/, TENSORFX_BENCH_PYTHON a Python that has PyTorch;
// the libraries of bench:ops take part once they are installed (`npm run bench:ops` installs them).
import { fork } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { torch } from 'tensorfx'
import { rows } from './rows.mjs'

const { values: options } = parseArgs({ options: { threads: { type: 'string', default: '1' }, only: { type: 'string', default: '' } } })
if (options.threads !== '1') throw new Error(`--threads must be 1, got ${options.threads}: kernels run on one thread.`)
const chosen = rows.filter(({ name }) => name.includes(options.only))
if (chosen.length === 0) throw new Error(`--only: no row's name contains '${options.only}'. Rows: ${rows.map(({ name }) => name).join('; ')}`)

console.log(
  `${cpus()[0].model}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}; Node ${process.version}, engine ${torch.backends.wasm.engine}`,
)
const ratios = []
for (const { name } of chosen) {
  const child = fork(fileURLToPath(new URL('row.mjs', import.meta.url)), [name], { execArgv: ['--expose-gc'] })
  child.on('message', (ratio) => ratios.push(ratio))
  const code = await new Promise((resolve) => child.on('exit', resolve))
  if (code !== 0) process.exitCode = 1
}
if (ratios.length > 1) {
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length)
  console.log(`\nbest peer / now, geometric mean of ${ratios.length} rows: ${mean.toFixed(2)}x`)
}
