// Collectives write to the memory of tensors themselves: what keeps a weight in another form must hear of it.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { destroyProcessGroup, initProcessGroup } from 'tensorfx/distributed'
import { FullyShardedDataParallel } from 'tensorfx/distributed/fsdp'
import { FROM, TO } from '../helpers/changesOfWeights.ts'

const RANKS = 4
beforeEach(() => initProcessGroup({ backend: 'fake', worldSize: RANKS, rank: 0 }))
afterEach(() => destroyProcessGroup())

test.each(['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD'] as const)('products read the weights that FSDP has gathered: %s', (shardingStrategy) => {
  const model = new FullyShardedDataParallel(new nn.Linear(FROM, TO, { bias: false }), { shardingStrategy })
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
  const x = torch.randn([8, FROM])
  const y = torch.randn([32, FROM])
  // The other ranks of the fake world hold the same numbers.
  const whole = (): Tensor => {
    const parts = [...model.parameters()].map((shard) => shard.detach())
    return torch.cat(shardingStrategy === 'NO_SHARD' ? parts : Array.from({ length: RANKS }, () => parts).flat()).reshape(TO, FROM)
  }
  for (let step = 0; step < 4; step++) {
    noGrad(() => {
      for (let call = 0; call < 5; call++) {
        expect(torch.nn.functional.linear(y, whole()).sub(model.call(y)).abs().max().item()).toBeLessThan(1e-4)
      }
    })
    const loss = model.call(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zeroGrad()
  }
})
