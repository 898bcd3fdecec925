// npm run bench:dynamic [-- --only text]: programs whose sizes change, eager, compiled for each shape, and compiled with `dynamic: true`. Ratios are eager's time as a multiple of the candidate's: of the first round, in a
// fresh process, with all that is compiled in it; of the second in that process, in which every list of sizes comes once more; and of later rounds of all candidates in one process, the median of seven, in turns. TENSORFX_BENCH_CPU=1 takes the time of the process instead of the clock's, for a busy machine.
import '../oneThread.mjs'
import { fork } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { rows } from './rows.mjs'

const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const REPLAY = 'replay of 300 operators'
const chosen = rows.filter(({ name }) => name.includes(options.only))
const withReplay = REPLAY.includes(options.only)
if (chosen.length === 0 && !withReplay)
  throw new Error(`--only: no row's name contains '${options.only}'. Rows: ${[...rows.map(({ name }) => name), REPLAY].join('; ')}`)

/** What a process of a file of this folder sends. */
function measured(file, args) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: ['--expose-gc'] })
  return new Promise((resolve, reject) => {
    let message = null
    child.on('message', (sent) => (message = sent))
    child.on('exit', (code) => (message === null ? reject(new Error(`${args.join(', ')}: exit code ${code}`)) : resolve(message)))
  })
}

const verdict = (ok, aim) => (aim === undefined ? '' : ok ? ` (meets ${aim})` : ` (MISSES ${aim})`)
const ratio = (value, aim) => `${value.toFixed(2)}x${verdict(value >= aim, aim)}`

async function measureRow({ name, graphs: most, aims }) {
  console.log(`\n${name}`)
  const later = await measured('row.mjs', [name, 'all'])
  const [eager] = later
  for (const one of later)
    if (!agree(one.outcome, eager.outcome)) throw new Error(`${name}: ${one.candidate} gives ${one.outcome}, eager ${eager.outcome}`)
  const [first] = await measured('row.mjs', [name, 'eager'])
  console.log(
    `  ${'eager'.padEnd(20)} first ${first.first.toFixed(0)} ms   second ${first.second.toFixed(0)} ms   later ${eager.later.toFixed(1)} ms`,
  )
  for (const { candidate, later: ms, graphs } of later.slice(1)) {
    const [own] = await measured('row.mjs', [name, candidate])
    const isAimed = candidate === 'dynamic'
    const times = [
      `first ${ratio(first.first / own.first, isAimed ? aims.first : undefined)}`,
      `second ${ratio(first.second / own.second, isAimed ? aims.second : undefined)}`,
      `later ${ratio(eager.later / ms, isAimed ? aims.later : undefined)}`,
    ]
    console.log(`  ${candidate.padEnd(20)} ${times.join('   ')}   graphs ${graphs}${isAimed ? verdict(graphs <= most, most) : ''}`)
  }
}

/** Whether outcomes are the same, up to rounding. */
const agree = (a, b) =>
  Array.isArray(a) ? a.length === b.length && a.every((value, i) => agree(value, b[i])) : Math.abs(a - b) <= 1e-3 * Math.max(1, Math.abs(b))

console.log(`${cpus()[0].model}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}; Node ${process.version}`)
for (const row of chosen) await measureRow(row)
if (withReplay) {
  const { static: fixed, seen, fresh } = await measured('replay.mjs', [REPLAY])
  console.log(`\n${REPLAY}\n  static ${fixed.toFixed(0)} us`)
  for (const [what, us, aim] of [
    ['lengths seen', seen, 1.25],
    ['new lengths', fresh, 2],
  ])
    console.log(`  ${what.padEnd(14)} ${us.toFixed(0)} us, ${(us / fixed).toFixed(2)} of static${verdict(us / fixed <= aim, aim)}`)
}
