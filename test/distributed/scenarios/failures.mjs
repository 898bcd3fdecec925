// One way to fail, as one rank: `node failures.mjs WORLD SIZE WAY`.
import { torch } from 'tensorfx'
import { allReduce, barrier, destroyProcessGroup, getRank, initProcessGroup, monitoredBarrier, runRanks } from 'tensorfx/distributed'
import { pathToFileURL } from 'node:url'

const ways = {
  swapped: () => {
    const [x, y] = [torch.ones([4]), torch.ones([8])]
    for (const tensor of getRank() === 0 ? [x, y] : [y, x]) allReduce(tensor)
  },
  size: () => allReduce(torch.ones([getRank() === 0 ? 4 : 5])),
  neverComes: () => {
    if (getRank() !== 0) barrier()
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 8000)
  },
  late: () => {
    if (getRank() !== 1) monitoredBarrier({ timeout: 1000 })
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6000)
  },
  throws: () => {
    if (getRank() === 1) throw new Error('the data of rank 1 is broken')
    barrier()
  },
  exits: () => {
    if (getRank() === 1) process.exit(0)
    barrier()
  },
  killed: () => {
    if (getRank() === 1) process.kill(process.pid, 'SIGKILL')
    barrier()
  },
  destroyed: () => {
    const work = getRank() === 0 ? allReduce(torch.ones([4]), { asyncOp: true }) : null
    destroyProcessGroup()
    try {
      work?.wait()
    } catch (error) {
      console.log(`${error.name}: ${error.message}`)
    }
  },
  ends: () => {
    allReduce(torch.ones([4]))
    console.log('all is well')
  },
}

export default async function run(way) {
  await initProcessGroup({ timeout: 2000 })
  try {
    ways[way]()
  } catch (error) {
    console.error(`rank ${getRank()}: ${error.name}: ${error.message}`)
    throw error
  }
}

const [, script, world, size, way] = process.argv
if (import.meta.url === pathToFileURL(script).href) {
  if (world === 'threads') await runRanks(Number(size), import.meta.url, { args: [way] })
  else await run(way)
}
