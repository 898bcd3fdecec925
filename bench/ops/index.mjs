// npm run bench:ops: operators next to @jax-js/jax, tfjs-wasm and onnxruntime-web, on one thread. The table of docs/performance.md. Times are medians of one run in which
// the libraries take turns; results are compared with ours before anything is measured.
import '../oneThread.mjs'
import { cases } from './cases.mjs'
import { compiled, eager, jax, onnxruntime, tfjs } from './libraries.mjs'

const OTHERS = { '@jax-js/jax': jax, 'tfjs-wasm': tfjs, 'onnxruntime-web': onnxruntime }
const LIBRARIES = { eager, compiled, ...OTHERS }
/** At least so many rounds, and more of short ones: as many as fit into so many milliseconds. */
const ROUNDS = 9
const MOST_ROUNDS = 60
const ENOUGH = 1000
const PER_TURN = 3
/** Milliseconds for each library first: engines optimise code that has run for a while. */
const WARM_UP = 500

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

async function timesOf(runs) {
  const times = runs.map(() => [])
  for (const run of runs) {
    const until = performance.now() + WARM_UP
    while (performance.now() < until) {
      await run()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const until = performance.now() + ENOUGH
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && performance.now() < until); round++)
    for (const [i, run] of runs.entries()) {
      // The caches still hold what another library used.
      await run()
      for (let again = 0; again < PER_TURN; again++) {
        const start = performance.now()
        await run()
        times[i].push(performance.now() - start)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  return times.map(median)
}

/** What another library computes; null where it fails, which is said. */
async function attempt(name, compute) {
  try {
    return await compute()
  } catch (error) {
    if (!Object.hasOwn(OTHERS, name)) throw error
    console.error(`${name} fails: ${error.message}`)
    return null
  }
}

console.log(`| operator | ${Object.keys(LIBRARIES).join(' | ')} | against the best |\n| ${'--- | '.repeat(Object.keys(LIBRARIES).length + 2)}`)
for (const one of cases.filter(({ name, what }) => `${name} ${what}`.includes(process.argv[2] ?? ''))) {
  const ready = {}
  let wanted = null
  for (const [name, make] of Object.entries(LIBRARIES)) {
    const library = await make(one)
    const values = library && (await attempt(name, async () => library.read(await library.run())))
    if (values === null) continue
    wanted ??= values
    const off = values.length === wanted.length ? values.reduce((most, v, i) => Math.max(most, Math.abs(v - wanted[i])), 0) : Infinity
    if (!(off < 1e-3)) throw new Error(`${one.name}, ${one.what}: ${name} differs by ${off}`)
    ready[name] = library.run
  }
  const names = Object.keys(ready)
  const times = await timesOf(Object.values(ready))
  const timeOf = (name) => times[names.indexOf(name)] ?? null
  const best = Math.min(...Object.keys(OTHERS).map((name) => timeOf(name) ?? Infinity))
  const ours = Math.min(timeOf('eager'), timeOf('compiled'))
  const cells = Object.keys(LIBRARIES).map((name) => (timeOf(name) === null ? '–' : `${timeOf(name).toPrecision(3)} ms`))
  console.log(`| ${one.name}: ${one.what} | ${cells.join(' | ')} | ${(best / ours).toFixed(2)}x |`)
}
