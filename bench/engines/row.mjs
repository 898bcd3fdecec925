// Measures one row of bench:engines, in a process of its own: what another row has left behind (feedback for the engine's compiler, memory) takes no part. The
// name of the row is the argument; the parent process gets the time of the best other library, as a multiple of ours.
import '../oneThread.mjs'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { jax, onnxruntime, tensorfx, tfjs } from '../ops/libraries.mjs'
import { startPyTorch } from './pytorch.mjs'
import { rows } from './rows.mjs'
import { inProcess, inTurns } from './turns.mjs'
import { inputsOf, text } from './values.mjs'

const PEERS = { 'jax-js': jax, 'tfjs-wasm': tfjs, 'onnxruntime-web': onnxruntime }

/** A build of tensorfx in a checkout: what rows need of it. */
async function buildIn(root) {
  const from = (file) => import(pathToFileURL(join(root, file)))
  const { compile, nn, noGrad, optim, torch } = await from('dist/index.js')
  return { compile, nn, noGrad, optim, torch, F: nn.functional, example: (file) => from(join('examples', file)) }
}

const present = fileURLToPath(new URL('../..', import.meta.url))
const base = process.env.TENSORFX_BENCH_BASE
const builds = { now: await buildIn(present), ...(base === undefined ? {} : { base: await buildIn(resolve(base)) }) }
const python = process.env.TENSORFX_BENCH_PYTHON
const pytorch = python === undefined ? null : await startPyTorch(python)
const peers = existsSync(new URL('../ops/others/node_modules', import.meta.url)) ? PEERS : {}

/** The largest difference, relative to the largest value. */
function difference(values, wanted) {
  if (values.length !== wanted.length) return Infinity
  let [most, largest] = [0, 1]
  for (let i = 0; i < wanted.length; i++) {
    most = Math.max(most, Math.abs(values[i] - wanted[i]))
    largest = Math.max(largest, Math.abs(wanted[i]))
  }
  return most / largest
}

/** What takes part in a row, by name, after its results were compared. */
async function candidatesOf(row) {
  const inputs = inputsOf(row)
  const found = new Map()
  let wanted = null
  const add = async (name, library) => {
    if (library === null) return
    const values = library.read(await library.run())
    wanted ??= values
    const off = difference(values, wanted)
    if (!(off < 1e-3)) throw new Error(`${row.name}: ${name} differs by ${off}`)
    found.set(name, inProcess(library.run))
  }
  for (const [buildName, build] of Object.entries(builds)) {
    for (const mode of row.modes ?? ['eager', 'compiled']) {
      const state = { F: build.F, ...(await row.prepare?.(build)) }
      const one = { inputs, trains: row.trains, ours: (values) => row.ours(values, state) }
      // The base build has no such options.
      const compile = row.options === undefined || buildName !== 'now' ? build.compile : (fn) => build.compile(fn, { options: row.options })
      await add(`${buildName} ${mode}`, tensorfx({ ...build, compile })[mode](one))
    }
  }
  if (row.prepare === undefined)
    for (const [name, peer] of Object.entries(peers)) {
      // One that lacks an operator does not take part.
      try {
        await add(name, await peer({ ...row, inputs, ours: (values) => row.ours(values, builds.now) }))
      } catch (error) {
        console.error(`${row.name}: without ${name}: ${error.message}`)
      }
    }
  const torchCandidate = await pytorch?.prepare({ ...row, inputs })
  if (torchCandidate) found.set('PyTorch', torchCandidate)
  return found
}

const row = rows.find(({ name }) => name === process.argv[2])
const candidates = await candidatesOf(row)
const results = await inTurns([...candidates.values()])
const times = new Map([...candidates.keys()].map((name, i) => [name, results[i]]))
console.log(`\n${row.name}`)
for (const [name, { best, quartile }] of times) console.log(`  ${name.padEnd(16)} ${text(best).padStart(9)}  (quartile ${text(quartile)})`)
const bestOf = (names) => Math.min(...names.map((name) => times.get(name)?.best ?? Infinity))
const ours = bestOf(['now eager', 'now compiled'])
const ratio = (what, value, aim) => {
  const verdict = aim === undefined ? '' : value >= aim ? `, meets ${aim}x` : `, MISSES ${aim}x`
  if (Number.isFinite(value)) console.log(`  ${what}: ${value.toFixed(2)}x${verdict}`)
}
for (const mode of ['eager', 'compiled']) ratio(`base / now, ${mode}`, bestOf([`base ${mode}`]) / bestOf([`now ${mode}`]), row.aim.base)
const peer = bestOf(Object.keys(peers)) / ours
ratio('best peer / now', peer, 1)
ratio('PyTorch / now', bestOf(['PyTorch']) / ours, row.aim.pytorch)
if (Number.isFinite(peer)) process.send?.(peer)
pytorch?.stop()
process.disconnect?.()
