// Ranks that call different collectives, with debug level 'detail': `tensorfx run -n 3 detail.mjs WAY`.
import { torch } from 'tensorfx'
import { allReduce, barrier, broadcast, getRank, initProcessGroup, newGroup } from 'tensorfx/distributed'

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const ways = {
  /** Many that are alike, then one that is not. */
  mismatch() {
    for (let i = 0; i < 150; i++) allReduce(torch.ones([2]))
    if (getRank() === 2) broadcast(torch.ones([4]), 0) // rank 2 here
    else allReduce(torch.ones([4])) // others here
  },
  hang() {
    const pair = newGroup([0, 1])
    allReduce(torch.ones([2]))
    if (getRank() === 0) {
      allReduce(torch.ones([3]), { group: pair }) // the last of rank 0
    } else if (getRank() === 1) {
      barrier() // rank 1 waits here
    } else sleep(30_000)
  },
}

await initProcessGroup({ timeout: 1500 })
ways[process.argv[2]]()
