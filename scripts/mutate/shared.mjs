// The first pass: many mutants in one process. It finds most of those that the tests kill; the others get a process of their own (pool.mjs).
import { fork } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HIT_FACTOR } from './plan.mjs'
import { endGroup, processorTimes } from './processes.mjs'

/** Processor time after which a test with a mutant counts as an endless loop, in milliseconds. */
const HANG = 30_000

/** The mutants, by id, that a test kills: `{ status: 'killed' | 'timeout', by }`. */
export async function runShared(plans, coverage, { work, workers }) {
  const byId = new Map(coverage.tests.map((test) => [test.id, test]))
  const shares = Array.from({ length: workers }, (_, w) => plans.filter((_, i) => i % workers === w))
  const found = await Promise.all(shares.map((share, w) => runShare(share, byId, work, join(work, `shared-${w}`))))
  return new Map(found.flatMap((results) => [...results]))
}

async function runShare(plans, byId, work, path) {
  const results = new Map()
  const passed = new Set()
  const unfit = new Map()
  const dirty = new Set()
  for (;;) {
    const tests = {}
    const files = new Map()
    for (const { id, specs } of plans) {
      if (results.has(id) || dirty.has(id)) continue
      for (const [file, ids] of Object.entries(specs)) {
        for (const testId of ids) {
          const test = byId.get(testId)
          const hits = test.hits[id]
          if (hits === undefined || passed.has(`${id} ${testId}`) || (unfit.get(testId) ?? 0) > 1) continue
          ;(tests[testId] ??= []).push({ id, hitLimit: HIT_FACTOR * (hits + 1) })
          files.set(file, (files.get(file) ?? 0) + test.ms)
        }
      }
    }
    if (files.size === 0) return results
    writeFileSync(`${path}.json`, JSON.stringify({ tests, log: `${path}.log` }))
    writeFileSync(`${path}.log`, '')
    const order = [...files].sort(([, a], [, b]) => a - b).map(([file]) => file)
    const ended = await runOnce(work, path, order)
    let running = null
    let events = 0
    for (const line of readFileSync(`${path}.log`, 'utf8').split('\n')) {
      const [what, id, testId] = line.split(' ')
      if (what === '') continue
      events++
      if (what === 'start') running = id
      else running = null
      if (what === 'killed') results.set(id, { status: 'killed', by: byId.get(testId).name })
      else if (what === 'passed') passed.add(`${id} ${testId}`)
      else if (what === 'dirty') dirty.add(id)
      else if (what === 'unfit') unfit.set(id, (unfit.get(id) ?? 0) + 1)
    }
    if (ended === 'hung' && running !== null) results.set(running, { status: 'timeout', by: null })
    else if (running !== null) dirty.add(running)
    if (ended === 'done' || events === 0) return results
  }
}

/** Runs the tests in a new process: 'done' if it came to the end, 'hung' if it had to be ended, 'ended' if it ended before. */
function runOnce(work, path, files) {
  const worker = fileURLToPath(new URL('sharedWorker.mjs', import.meta.url))
  const child = fork(worker, [work, ...files], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, TENSORFX_MUTATE_PLAN: `${path}.json` },
  })
  const end = () => endGroup(child.pid)
  process.once('exit', end)
  const sizeOfLog = () => (existsSync(`${path}.log`) ? readFileSync(`${path}.log`, 'utf8').length : 0)
  return new Promise((resolve) => {
    let size = 0
    let times = processorTimes(child.pid)
    let since = Date.now()
    const finish = (how) => {
      clearInterval(timer)
      process.off('exit', end)
      end()
      resolve(how)
    }
    const timer = setInterval(() => {
      if (sizeOfLog() !== size) {
        size = sizeOfLog()
        times = processorTimes(child.pid)
        since = Date.now()
        return
      }
      let spent = times.size === 0 ? Date.now() - since : 0
      for (const [pid, time] of processorTimes(child.pid)) spent += time - (times.get(pid) ?? 0)
      if (spent > 2 * HANG || (size > 0 && spent > HANG)) finish('hung')
    }, 1000)
    child.once('exit', (code) => finish(code === 0 ? 'done' : 'ended'))
  })
}
