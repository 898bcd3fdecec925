// Measures one row of bench:engines in two ways, in turns, in a process of its own: `node contender.mjs ROW THREADS [native] [hog]`. On several threads next to one, as WebAssembly or, with
// `native`, as machine code; on one thread, as machine code next to WebAssembly. With `hog`, another process takes a core. The parent process gets the ratios of the first to the second: above 1,
// that is a gain.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import { tensorfx } from '../ops/libraries.mjs'
import { rows } from './rows.mjs'
import { inputsOf, text } from './values.mjs'

const ROUNDS = 24
/** Milliseconds of a turn, and of a batch that is timed as one. */
const [TURN, BATCH] = [25, 0.5]
/** Milliseconds before the rounds: the engine optimises code, workers start, and the cost of the kernels is learnt. */
const WARM_UP = 700

const [, , name, count, ...more] = process.argv
if (name === '--hog') for (;;);
const row = rows.find((one) => one.name === name)
const native = more.includes('native') ? await import('tensorfx/native') : null
const threads = Number(count)
torch.setNumThreads(threads)
await native?.init()
/** Lets the usual way compute, or what is measured beside it. */
const use = (other) => (threads === 1 ? (torch.backends.native.enabled = other) : torch.setNumThreads(other ? threads : 1))

const example = (file) => import(new URL(`../../examples/${file}`, import.meta.url))
const build = { compile, nn, noGrad, optim, torch, F: nn.functional, example }
const inputs = inputsOf(row)

function timed(run, times) {
  const start = performance.now()
  for (let i = 0; i < times; i++) run()
  return (performance.now() - start) / times
}

/** Batches of a turn, in milliseconds for a run. Between batches the event loop turns, as it does in programs. */
async function turn(run, milliseconds, times) {
  const samples = []
  const until = performance.now() + milliseconds
  do {
    samples.push(timed(run, times))
    await new Promise((resolve) => setImmediate(resolve))
  } while (performance.now() < until)
  return samples
}

const at = (samples, part) => samples.toSorted((a, b) => a - b)[Math.min(samples.length - 1, Math.floor(part * samples.length))]

for (const mode of row.modes ?? ['eager', 'compiled']) {
  const state = { F: nn.functional, ...(await row.prepare?.(build)) }
  // Threads are compared on the same engine: machine code from the first call on.
  const options = { ...row.options, ...(native !== null && threads > 1 ? { emitter: 'c' } : {}) }
  const { run } = tensorfx({ ...build, compile: (fn) => compile(fn, { options }) })[mode]({
    inputs,
    trains: row.trains,
    ours: (values) => row.ours(values, state),
  })
  const other = !more.includes('hog') ? null : fork(fileURLToPath(import.meta.url), ['--hog'])
  const samples = { one: [], several: [] }
  // The first runs compile; once that has ended, libraries are compared with WebAssembly in a few runs.
  if (native !== null) for (let i = 0; i < 20; i++) await (run(), native.ready())
  for (const who of ['one', 'several']) {
    use(who === 'several')
    samples[who] = await turn(run, WARM_UP, 1)
  }
  const times = Math.max(1, Math.ceil(BATCH / at(samples.one, 0)))
  for (const who of ['one', 'several']) samples[who] = []
  for (let round = 0; round < 2 * ROUNDS; round++) {
    const who = round % 2 === 0 ? 'one' : 'several'
    use(who === 'several')
    run()
    samples[who].push(...(await turn(run, TURN, times)))
  }
  other?.kill()
  const { one, several } = samples
  const ratios = Object.fromEntries(
    [
      ['best', 0],
      ['median', 0.5],
      ['tail', 0.95],
    ].map(([key, part]) => [key, at(one, part) / at(several, part)]),
  )
  console.log(
    `${row.name.padEnd(34)} ${mode.padEnd(9)} ${text(at(one, 0)).padStart(9)} ${text(at(several, 0)).padStart(9)}   best ${ratios.best.toFixed(2)}x, median ${ratios.median.toFixed(2)}x, 95th percentile ${ratios.tail.toFixed(2)}x`,
  )
  process.send?.({ name: row.name, mode, milliseconds: at(one, 0), ...ratios })
}
process.disconnect?.()
