// Worker processes for mutants. A worker that does not answer in time (an endless loop, an exhausted memory) is ended with its children, and replaced.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What a mutant's tests may take beyond their time on the unchanged code, in milliseconds: the start of the process that runs them, and the slower code. */
const allowance = (ms) => 20_000 + 3 * ms

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
  const end = () => {
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
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
          clearTimeout(timer)
          child.removeAllListeners('message')
          child.removeAllListeners('exit')
          resolve(result)
        }
        const timer = setTimeout(() => finish({ status: 'timeout', by: null }), allowance(plan.ms))
        child.once('exit', () => finish({ status: 'timeout', by: null }))
        child.once('message', ({ killed, by }) => finish({ status: killed ? 'killed' : 'survived', by }))
        child.send(plan)
      }),
  }
}
