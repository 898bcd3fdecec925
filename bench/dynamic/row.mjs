// Measures one row of bench:dynamic, in a process of its own. Arguments: the name of the row, the name of a candidate, or 'all'. One candidate does its first round, with all that it compiles, and its second; of all, the later rounds
// are timed in turns, so that a busy machine slows all of them. The parent process gets milliseconds, graphs and outcomes.
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import { median } from '../../examples/demo/terminal.mjs'
import { rows } from './rows.mjs'

const ROUNDS = 7

const library = { nn, noGrad, optim, torch }
const options = {
  eager: null,
  static: { dynamic: false },
  dynamic: { dynamic: true },
  'dynamic, skipReplay': { dynamic: true, skipReplay: true },
}

/** Milliseconds: of the process with TENSORFX_BENCH_CPU=1, for a busy machine; otherwise by the clock. */
const now = () => {
  if (process.env.TENSORFX_BENCH_CPU !== '1') return performance.now()
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const [name, only] = process.argv.slice(2)
const row = rows.find((one) => one.name === name)
const candidates = []
for (const [candidate, chosen] of Object.entries(options)) {
  if (only !== 'all' && candidate !== only) continue
  let compiled = null
  const wrap = (fn) => (chosen === null ? fn : (compiled = compile(fn, chosen)))
  const round = await row.make(library, wrap)
  candidates.push({ candidate, round, times: [], graphs: () => compiled?.graphs().length ?? 0 })
}

/** Times one round; what a synchronous round leaves behind is collected before the next. */
async function timed({ round, times }) {
  globalThis.gc?.()
  await new Promise((resolve) => setImmediate(resolve))
  const start = now()
  const outcome = round()
  times.push(now() - start)
  return outcome
}

const first = []
for (const one of candidates) first.push(await timed(one))
for (let i = 0; i <= (only === 'all' ? ROUNDS : 0); i++) for (const one of candidates) await timed(one)
process.send(
  candidates.map(({ candidate, times, graphs }, i) => ({
    candidate,
    outcome: first[i],
    first: times[0],
    second: times[1],
    later: only === 'all' ? median(times.slice(2)) : null,
    graphs: graphs(),
  })),
)
process.disconnect()
