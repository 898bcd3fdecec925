// npm run bench:engines -- --threads 2 [--only text] [--hog]: kernels on several threads next to one, in turns. Ratios are times on one thread by times on several, of the fastest batches, of
// medians and of 95th percentiles; with --hog, another process takes a core.
//
// npm run bench:engines -- --native [--only text]: the same of kernels as machine code (tensorfx/native) next to WebAssembly; with --threads 2 too, of machine code on two threads next to one
// (compiled programs alone).
//
// npm run bench:engines -- --pytorch [--threads N] [--only text]: eager code, and compiled code as WebAssembly and as machine code, next to PyTorch on as many threads. Ratios are PyTorch's time
// by ours. TENSORFX_BENCH_PYTHON is a Python that has PyTorch (python3).
//
// npm run bench:engines -- --threads 1 [--only text]: kernels next to an older build, other libraries and PyTorch, on one thread, all of them in turns. Each number is the fastest
// of seven rounds, with the first quartile of the rounds behind it. TENSORFX_BENCH_BASE is a checkout with an older build in dist/, TENSORFX_BENCH_PYTHON a Python that has PyTorch;
// the libraries of bench:ops take part once they are installed (`npm run bench:ops` installs them).
import { fork } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { torch } from 'tensorfx'
import { rows } from './rows.mjs'

const { values: options } = parseArgs({
  options: {
    threads: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    hog: { type: 'boolean', default: false },
    native: { type: 'boolean', default: false },
    pytorch: { type: 'boolean', default: false },
  },
})
const threads = Number(options.threads)
if (!Number.isInteger(threads) || threads < 1) throw new Error(`--threads must be a number of threads, got ${options.threads}.`)
if (options.hog && threads === 1 && !options.native) throw new Error('--hog is for several threads: write --threads 2 too.')
const chosen = rows.filter(({ name, pytorch }) => name.includes(options.only) && (!options.pytorch || pytorch !== undefined))
if (chosen.length === 0) throw new Error(`--only: no row's name contains '${options.only}'. Rows: ${rows.map(({ name }) => name).join('; ')}`)

console.log(
  `${cpus()[0].model}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}; Node ${process.version}, engine ${torch.backends.wasm.engine}`,
)
const ratios = []
const inTurns = !options.pytorch && (threads > 1 || options.native)
const [program, more] = options.pytorch
  ? ['besidePyTorch.mjs', [options.threads]]
  : inTurns
    ? ['contender.mjs', [options.threads, ...(options.native ? ['native'] : []), ...(options.hog ? ['hog'] : [])]]
    : ['row.mjs', []]
for (const { name } of chosen) {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), [name, ...more], { execArgv: ['--expose-gc'] })
  child.on('message', (ratio) => ratios.push(ratio))
  const code = await new Promise((resolve) => child.on('exit', resolve))
  if (code !== 0) process.exitCode = 1
}
const meanOf = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)
if (options.pytorch)
  for (const key of Object.keys(Object.assign({}, ...ratios)).filter((key) => key !== 'PyTorch')) {
    const values = ratios.map((row) => row[key]).filter((value) => value !== undefined)
    console.log(
      `PyTorch / ${key}, geometric mean of ${values.length} rows: ${meanOf(values).toFixed(2)}x (${Math.min(...values).toFixed(2)}x to ${Math.max(...values).toFixed(2)}x)`,
    )
  }
else if (!inTurns && ratios.length > 1) console.log(`\nbest peer / now, geometric mean of ${ratios.length} rows: ${meanOf(ratios).toFixed(2)}x`)
else if (inTurns)
  for (const [what, from, below] of [
    ['below 0.2 ms', 0, 0.2],
    ['from 0.2 to 1 ms', 0.2, 1],
    ['over 1 ms', 1, Infinity],
  ]) {
    const group = ratios.filter(({ milliseconds }) => milliseconds >= from && milliseconds < below)
    if (group.length === 0) continue
    const said = ['best', 'median', 'tail'].map((key) => {
      const values = group.map((row) => row[key])
      return `${key} ${meanOf(values).toFixed(2)}x (${Math.min(...values).toFixed(2)}x to ${Math.max(...values).toFixed(2)}x)`
    })
    console.log(`${group.length} rows ${what}: ${said.join(', ')}`)
  }
