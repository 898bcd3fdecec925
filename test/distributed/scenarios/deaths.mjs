// One way for rank 1 to die, or to hang, while the other rank waits for it in a collective. `tensorfx run -n 2 deaths.mjs WAY` calls the default export; `node deaths.mjs WAY
// threads` starts two threads, and `mpirun -n 2 node deaths.mjs WAY mpi` two processes.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker, workerData } from 'node:worker_threads'
import { nn, torch } from 'tensorfx'
import {
  DistributedDataParallel,
  allReduce,
  barrier,
  destroyProcessGroup,
  getRank,
  initProcessGroup,
  newGroup,
  recv,
  runRanks,
} from 'tensorfx/distributed'

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** What rank 1 does. */
export const ways = {
  throws: () => {
    throw new TypeError('the data of rank 1 is broken')
  },
  throwsLater: async () => {
    setTimeout(() => {
      throw new Error('the timer of rank 1 threw')
    }, 10)
    await later(60_000)
  },
  rejects: async () => {
    void Promise.reject(new RangeError('rank 1 rejected a promise'))
    await later(60_000)
  },
  throwsText: () => {
    // eslint-disable-next-line no-throw-literal -- programs do that
    throw 'just a text'
  },
  throwsInFinally: () => {
    try {
      throw new Error('the step of rank 1 threw')
    } finally {
      destroyProcessGroup()
    }
  },
  throwsObject: () => {
    // eslint-disable-next-line no-throw-literal -- programs do that
    throw { code: 7, why: 'an object' }
  },
  throwsUnreadable: () => {
    const error = new Error('broken')
    Object.defineProperty(error, 'message', {
      get() {
        throw new Error('a message that throws')
      },
    })
    throw error
  },
  exits: () => process.exit(7),
  exitsQuietly: () => process.exit(0),
  isKilled: () => process.kill(process.pid, 'SIGKILL'),
  isTerminated: async () => {
    process.kill(process.pid, 'SIGTERM')
    await later(60_000)
  },
  takesAllMemory: () => {
    const kept = []
    for (;;) kept.push(Array.from({ length: 100_000 }, () => ({})))
  },
  throwsInBackward: () => {
    const model = new nn.Linear(2, 2)
    model.weight.registerHook(() => {
      throw new Error('the hook of rank 1 threw')
    })
    model(torch.ones([1, 2]))
      .sum()
      .backward()
  },
  hangsOutside: () => sleep(60_000),
  hangsBeforeSending: () => sleep(60_000),
  hangsInCollective: () => allReduce(torch.ones([3])),
  neverSettles: () => new Promise(() => {}),
}

/** What rank 1 does before it joins the world. */
const EARLY = {
  leavesBeforeJoining: () => process.exit(0),
  hangsBeforeJoining: () => sleep(60_000),
  /** A process and a thread that load the library, as this file does, and end. */
  helpersEndBeforeJoining: async () => {
    spawnSync(process.execPath, [fileURLToPath(import.meta.url)])
    await once(new Worker(new URL(import.meta.url)), 'exit')
    // The other rank, which waits, would say so by now.
    sleep(500)
  },
}

export default async function run(way) {
  const launched = Number(process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK ?? workerData?.world.rank)
  if (launched === 1) await EARLY[way]?.()
  await initProcessGroup({ timeout: way.startsWith('hangs') ? 2000 : 60_000 })
  // The other must have started, so that it can say where it was.
  if (way === 'throws') barrier({ group: newGroup() })
  if (way === 'ddpHook') return ddpHook()
  if (getRank() === 1) await ways[way]?.()
  if (way === 'hangsInCollective') sleep(60_000)
  if (way === 'hangsBeforeSending') recv(torch.ones([2]), 1)
  barrier()
}

/** An error in a gradient's hook of rank 1, while the other waits for its bucket. */
function ddpHook() {
  const model = new DistributedDataParallel(new nn.Linear(2, 2))
  if (getRank() === 1)
    model.module.weight.registerHook(() => {
      throw new Error('the hook of rank 1 threw')
    })
  model(torch.ones([1, 2]))
    .sum()
    .backward()
}

const [, script, way, world] = process.argv
if (script !== undefined && import.meta.url === pathToFileURL(script).href && world !== undefined) {
  if (world === 'threads') await runRanks(2, import.meta.url, { args: [way] })
  else await run(way)
}
