// Collectives against the same calls from C, the bytes that each strategy sends against theory, and the full parameters that a rank holds.
//
//   npm run bench:distributed                    two ranks on MPI; without MPI, only what needs no ranks
import { nn, optim, torch } from 'tensorfx'
import * as dist from 'tensorfx/distributed'
import { FullyShardedDataParallel, describeUnits, fullParameterStats, resetFullParameterStats } from 'tensorfx/distributed/fsdp'
import { compareCollectives } from './collectives.mjs'

class Block extends nn.Module {
  up = new nn.Linear(64, 256)
  down = new nn.Linear(256, 64)
  forward(x) {
    return x.add(this.down(torch.relu(this.up(x))))
  }
}
const net = () => new nn.Sequential(new nn.Linear(64, 64), ...Array.from({ length: 6 }, () => new Block()), new nn.Linear(64, 8))

/** What the third training step sent: before the second, DistributedDataParallel once broadcasts the order of its buckets. P are the bytes of all units, with what fills them up, r the outermost's. */
function step(wrap) {
  const model = wrap(net())
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
  resetFullParameterStats()
  for (let i = 0; i < 3; i++) {
    dist.resetCollectiveStats()
    optimizer.zeroGrad()
    model(torch.ones([4, 64]))
      .sum()
      .backward()
    optimizer.step()
  }
  const sent = Object.values(dist.collectiveStats()).reduce((sum, { bytes }) => sum + bytes, 0)
  return { model, sent, peak: fullParameterStats() }
}

async function strategies() {
  for (const worldSize of [2, 4, 8]) {
    await dist.initProcessGroup({ backend: 'fake', worldSize })
    const share = (size) => (size - 1) / size
    const groups = [[...Array(worldSize / 2).keys()], [0, worldSize / 2]].map((ranks) => dist.newGroup(ranks))
    const half = worldSize / 2
    const theories = {
      FULL_SHARD: (P, r) => share(worldSize) * (3 * P - r),
      SHARD_GRAD_OP: (P) => 2 * share(worldSize) * P,
      NO_SHARD: (P) => 2 * share(worldSize) * P,
      HYBRID_SHARD: (P, r) => share(half) * (3 * P - r) + (2 * share(2) * P) / half,
      _HYBRID_SHARD_ZERO2: (P) => 2 * share(half) * P + (2 * share(2) * P) / half,
    }
    const rows = Object.entries(theories).flatMap(([shardingStrategy, theory]) => {
      if (shardingStrategy.includes('HYBRID') && worldSize === 2) return []
      const options = { shardingStrategy, ...(shardingStrategy.includes('HYBRID') ? { processGroup: groups } : {}) }
      const wrap = (more) => (module) =>
        new FullyShardedDataParallel(module, { autoWrapPolicy: (part, recurse) => recurse || part instanceof Block, ...options, ...more })
      const { model, sent, peak } = step(wrap({}))
      const calm = step(wrap({ backwardPrefetch: null })).peak
      const bytes = describeUnits(model).map(({ layout }) => 4 * layout.paddedNumel)
      const expected = theory(
        bytes.reduce((a, b) => a + b, 0),
        bytes[0],
      )
      return [
        {
          strategy: shardingStrategy,
          sent,
          theory: expected,
          agree: sent === expected,
          'peak units': peak.peakUnits,
          'without prefetch': calm.peakUnits,
          units: bytes.length,
        },
      ]
    })
    const ddp = step((module) => new dist.DistributedDataParallel(module))
    const P = 4 * [...ddp.model.parameters()].reduce((sum, { numel }) => sum + numel, 0)
    rows.push({ strategy: 'DistributedDataParallel', sent: ddp.sent, theory: 2 * share(worldSize) * P, agree: ddp.sent === 2 * share(worldSize) * P })
    console.log(`\nbytes per step that a rank sends, ${worldSize} ranks`)
    console.table(rows)
    dist.destroyProcessGroup()
  }
}

await compareCollectives()
await strategies()
