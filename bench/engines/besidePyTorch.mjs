// Measures one row of bench:engines next to PyTorch, in a process of its own: `node besidePyTorch.mjs ROW THREADS`. Eager and compiled code take turns with PyTorch on as many threads, compiled
// code as WebAssembly and as machine code. The parent process gets PyTorch's time as a multiple of that of the compiled code: above 1, we are faster.
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import { init, ready } from 'tensorfx/native'
import { tensorfx } from '../ops/libraries.mjs'
import { startPyTorch } from './pytorch.mjs'
import { rows } from './rows.mjs'
import { inProcess, inTurns } from './turns.mjs'
import { inputsOf, text } from './values.mjs'

/** Runs before the measurement: the first ones compile, then libraries are compared with WebAssembly, and threads learn what kernels cost. */
const WARM_UP = 30

const [, , name, count] = process.argv
const row = rows.find((one) => one.name === name)
const threads = Number(count)
torch.setNumThreads(threads)
await init()
const pytorch = await startPyTorch(process.env.TENSORFX_BENCH_PYTHON ?? 'python3', threads)
const build = { compile, nn, noGrad, optim, torch, F: nn.functional, example: (file) => import(new URL(`../../examples/${file}`, import.meta.url)) }
const inputs = inputsOf(row)

async function ours(mode, emitter) {
  const state = { F: nn.functional, ...(await row.prepare?.(build)) }
  const options = { ...row.options, ...(mode === 'compiled' && { emitter }) }
  const library = tensorfx({ ...build, compile: (fn) => compile(fn, { options }) })[mode]({
    inputs,
    trains: row.trains,
    ours: (values) => row.ours(values, state),
  })
  const run = () => {
    torch.backends.native.enabled = emitter === 'c'
    return library.run()
  }
  for (let i = 0; i < WARM_UP; i++) await (run(), ready())
  return inProcess(run)
}

const candidates = new Map()
if (row.modes === undefined) candidates.set('eager', await ours('eager', 'wasm'))
for (const emitter of ['wasm', 'c']) candidates.set(`compiled ${emitter}`, await ours('compiled', emitter))
candidates.set('PyTorch', await pytorch.prepare({ ...row, inputs }))
const results = await inTurns([...candidates.values()])
const times = Object.fromEntries([...candidates.keys()].map((key, i) => [key, results[i].best]))
const ratios = Object.fromEntries(Object.entries(times).map(([key, time]) => [key, times.PyTorch / time]))
const said = Object.entries(times).map(([key, time]) => `${key} ${text(time)}${key === 'PyTorch' ? '' : ` (${ratios[key].toFixed(2)}x)`}`)
console.log(`${row.name.padEnd(34)} ${said.join(', ')}`)
process.send?.(ratios)
pytorch.stop()
process.disconnect?.()
