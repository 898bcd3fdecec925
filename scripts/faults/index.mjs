// npm run test:faults -- [N] [seed]: judges the debugger. N planted faults (default 60), drawn from the seed (default 1), must be found; 200 right backends must not be
// blamed; the debugger must keep its verdicts on a busy machine. Fault i has the seed `seed + i` or a later one, so `-- 1 SEED` runs one alone.
//
//   --only faults,compare,right,fuzzed,load   some of the parts
//   --each          each fault at every place and level where it can be seen (default: one of them, drawn)
//   --at dynamo4    only where this place and level can see it
//   --kinds a,b     only faults of these kinds
//   --show          what the processes print; their folders are left
//   --list          only lists the faults
//   --jobs N        processes at a time (default 2)
import { parseArgs } from 'node:util'
import { loadApi as loadFuzzApi } from '../fuzz/api.mjs'
import { randomFrom } from '../fuzz/random.mjs'
import { alarmOf, drawRight, fuzzedAlarm } from './alarms.mjs'
import { loadApi } from './api.mjs'
import { blamedWrongly, comparedWrongly } from './compare.mjs'
import { judgeFault, processRunner } from './judge.mjs'
import { LOADED, underLoad } from './load.mjs'
import { DEATHS, drawFault } from './plan.mjs'
import { distUrl } from './processes.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: 'faults,compare,right,fuzzed,load' },
    each: { type: 'boolean', default: false },
    at: { type: 'string' },
    kinds: { type: 'string' },
    show: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '2' },
  },
})
const load = (name) => import(distUrl(`${name}.js`))
const api = await loadApi(load)
const count = Number(positionals[0] ?? 60)
const first = Number(positionals[1] ?? 1)
const kinds = values.kinds?.split(',')
const parts = values.only.split(',')
let wrong = 0

/** `count` faults from the seed on. */
function* faults() {
  let drawn = 0
  for (let seed = first; drawn < count; seed++) {
    const fault = drawFault(api, seed)
    if (fault === null || (kinds !== undefined && !kinds.includes(fault.fault.kind))) continue
    drawn++
    yield fault
  }
}

const told = ({ seed, program, fault }) => `${seed} ${JSON.stringify(fault)} in ${program.model} ${program.mode} ${program.dtype}`

/** Prints what a check found, and counts it. */
function report(what, problem, seconds) {
  if (problem !== null) wrong++
  console.log(
    `${problem === null ? 'ok  ' : 'FAIL'} ${what}${seconds === undefined ? '' : ` (${seconds.toFixed(1)} s)`}${problem === null ? '' : `\n     ${problem}`}`,
  )
}

const secondsSince = (began) => (performance.now() - began) / 1000

async function runFaults() {
  const tasks = []
  for (const drawn of faults()) {
    const seen = drawn.seen.filter(([place, level]) => values.at === undefined || `${place}${level}` === values.at)
    const some = values.each || seen.length === 0 ? seen : [randomFrom(drawn.seed).pick(seen)]
    for (const [place, level] of some) tasks.push({ drawn, place, level })
  }
  if (values.list) return tasks.forEach(({ drawn, place, level }) => console.log(`${place} ${level} ${told(drawn)}`))
  const table = new Map()
  const work = async () => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
      const { drawn, place, level } = task
      const began = performance.now()
      const runner = processRunner(drawn, place, level, values.show ? console.log : undefined)
      // oxlint-disable-next-line no-await-in-loop -- as many at a time as there are workers
      const problem = await judgeFault(drawn, level, runner)
      if (values.show) console.log(runner.folders.join(' '))
      else runner.close()
      report(`${place} ${level} ${told(drawn)}`, problem, secondsSince(began))
      const key = `${drawn.fault.kind.padEnd(10)} ${place.padEnd(6)} ${level}`
      const [right, all] = table.get(key) ?? [0, 0]
      table.set(key, [right + (problem === null ? 1 : 0), all + 1])
    }
  }
  await Promise.all(Array.from({ length: Number(values.jobs) }, work))
  for (const [key, [right, all]] of [...table].sort()) console.log(`${key}: ${right} of ${all}`)
}

async function runCompare() {
  let judged = 0
  for (const drawn of faults()) {
    if (DEATHS.includes(drawn.fault.kind)) continue
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const problem = await comparedWrongly(api, drawn)
    if (problem === undefined) continue
    judged++
    if (problem !== null) report(`compareBackends ${told(drawn)}`, problem)
  }
  console.log(`compareBackends: ${judged} faults`)
  for (let seed = first; seed < first + 3 * count; seed++) {
    const drawn = drawRight(seed)
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const problem = await blamedWrongly(api, drawn)
    if (problem !== null) report(`compareBackends ${JSON.stringify(drawn)}`, problem)
  }
  console.log(`compareBackends: ${3 * count} right backends`)
}

function runRight() {
  for (let seed = first; seed < first + 200; seed++) {
    const drawn = drawRight(seed)
    const problem = alarmOf(api, drawn)
    if (problem !== null) report(`right ${JSON.stringify(drawn)}`, problem)
  }
  console.log('200 right backends on models')
}

async function runFuzzed() {
  const fuzz = await loadFuzzApi(load)
  for (let seed = first; seed < first + 500; seed++) {
    const problem = fuzzedAlarm(api, fuzz, seed)
    if (problem !== null) report(`right, on a random program`, problem)
    // What a weak reference was asked for stays alive until the program yields.
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    if (seed % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  console.log('500 random programs on right backends')
}

async function runLoad() {
  await underLoad(4, async () => {
    for (const [name, judge] of Object.entries(LOADED)) {
      const began = performance.now()
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      report(`under load: ${name}`, await judge(), secondsSince(began))
    }
  })
}

const runs = { faults: runFaults, compare: runCompare, right: runRight, fuzzed: runFuzzed, load: runLoad }
// oxlint-disable-next-line no-await-in-loop -- one after the other
for (const part of parts) await runs[part]()
console.log(wrong === 0 ? 'all as it should be' : `${wrong} not as they should be`)
process.exitCode = wrong === 0 ? 0 : 1
