// Worker processes for mutants. A worker that does not answer in time (an endless loop, an exhausted memory) is ended with its children, and replaced.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endGroup, processorTimes } from './processes.mjs'

/**
 * What a mutant's tests may take, in milliseconds, if they take `ms` on the unchanged code: the start of the process that runs them, and the slower code. The
 * processor's time counts, since a test that waits on a busy machine has not run into an endless loop; by the clock they may take this many times as long.
 */
const allowance = (ms) => 20_000 + 3 * ms
const PATIENCE = 10

/** Runs the plans; results in their order: `{ status: 'killed' | 'survived' | 'timeout' | 'unreached', by }`. */
export async function runMutants(plans, { work, workers }) {
  const results = Array.from({ length: plans.length })
  let next = 0
  let done = 0
  const advance = () => {
    done++
    if (done % 25 === 0) console.log(`  ${done} of ${plans.length}`)
  }

  async function serve() {
    let worker = null
    while (next < plans.length) {
      const i = next++
      const plan = plans[i]
      if (Object.keys(plan.specs).length === 0) results[i] = { status: 'unreached', by: null }
      else {
        worker ??= await startWorker(work)
        results[i] = await worker.run(plan)
        if (results[i].status === 'timeout') {
          worker.end()
          worker = null
        }
      }
      advance()
    }
    worker?.end()
  }

  await Promise.all(Array.from({ length: workers }, serve))
  return results
}

async function startWorker(work) {
  // A group of its own, so that the processes that it starts end with it.
  const child = fork(fileURLToPath(new URL('worker.mjs', import.meta.url)), [work], { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const end = () => endGroup(child.pid)
  process.once('exit', end)
  await new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`A worker ended with code ${code} before it was ready.`)))
  })
  return {
    end,
    run: (plan) =>
      new Promise((resolve) => {
        const finish = (result) => {
          clearInterval(timer)
          child.removeAllListeners('message')
          child.removeAllListeners('exit')
          resolve(result)
        }
        const start = Date.now()
        const before = processorTimes(child.pid)
        const timer = setInterval(() => {
          const elapsed = Date.now() - start
          if (elapsed < allowance(plan.ms)) return
          let spent = before.size === 0 ? elapsed : 0
          for (const [pid, time] of processorTimes(child.pid)) spent += time - (before.get(pid) ?? 0)
          if (spent >= allowance(plan.ms) || elapsed >= PATIENCE * allowance(plan.ms)) finish({ status: 'timeout', by: null })
        }, 500)
        child.once('exit', () => finish({ status: 'timeout', by: null }))
        child.once('message', ({ killed, by }) => finish({ status: killed ? 'killed' : 'survived', by }))
        child.send(plan)
      }),
  }
}
