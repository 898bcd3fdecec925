// npm run fuzz:arguments -- [rounds] [seed] [part of a name]
import { fuzzArguments } from './arguments.mjs'
import { loadSurface } from './surface.mjs'

const [rounds = '20', seed = String(Date.now() % 1e9), part = ''] = process.argv.slice(2)
const dist = (entry) => import(new URL(`../../dist/${entry === 'tensorfx' ? 'index' : `entries/${entry}`}.js`, import.meta.url).href)
const { library, reset } = await loadSurface(dist)
const { log } = console
// What the calls print does not matter here.
for (const name of ['log', 'warn', 'error', 'info']) console[name] = () => {}
const { functions, calls, findings } = await fuzzArguments(library, {
  seed: Number(seed),
  rounds: Number(rounds),
  isChosen: (name) => name.includes(part),
  reset,
})
for (const { text, what } of findings) log(`${text}\n    ${what}`)
log(`fuzz:arguments: ${functions} functions, ${calls} calls, seed ${seed}: ${findings.length} findings`)
process.exit(findings.length === 0 ? 0 : 1)
