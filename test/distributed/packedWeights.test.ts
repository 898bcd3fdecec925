// Collectives write to the memory of tensors themselves: what keeps a weight in another form must hear of it.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { destroyProcessGroup, initProcessGroup } from 'tensorfx/distributed'
import { FullyShardedDataParallel } from 'tensorfx/distributed/fsdp'
import { FROM, TO } from '../helpers/changesOfWeights.ts'

const RANKS = 4
const CHANNELS = 64
beforeEach(() => initProcessGroup({ backend: 'fake', worldSize: RANKS, rank: 0 }))
afterEach(() => destroyProcessGroup())

/** Layers whose weight calls of eager kernels keep in another form: the layer, the shape of its weight, what it computes, inputs that pay, and inputs to learn from. */
const layers = {
  product: {
    layer: () => new nn.Linear(FROM, TO, { bias: false }),
    weight: [TO, FROM],
    compute: torch.nn.functional.linear,
    input: [32, FROM],
    batch: [8, FROM],
  },
  'convolution by Winograd': {
    layer: () => new nn.Conv2d(CHANNELS, CHANNELS, 3, { padding: 1, bias: false }),
    weight: [CHANNELS, CHANNELS, 3, 3],
    compute: (x: Tensor, weight: Tensor) => torch.nn.functional.conv2d(x, weight, null, 1, 1),
    input: [1, CHANNELS, 16, 16],
    batch: [1, CHANNELS, 16, 16],
  },
} as const
const strategies = ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD'] as const

test.each(Object.keys(layers).flatMap((name) => strategies.map((strategy) => [name, strategy] as const)))(
  'a %s reads the weights that FSDP has gathered: %s',
  (name, shardingStrategy) => {
    const { layer, weight, compute, input, batch } = layers[name as keyof typeof layers]
    const model = new FullyShardedDataParallel(layer(), { shardingStrategy })
    const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
    const x = torch.randn(batch)
    const y = torch.randn(input)
    // The other ranks of the fake world hold the same numbers.
    const whole = (): Tensor => {
      const parts = [...model.parameters()].map((shard) => shard.detach())
      return torch.cat(shardingStrategy === 'NO_SHARD' ? parts : Array.from({ length: RANKS }, () => parts).flat()).reshape(weight)
    }
    for (let step = 0; step < 4; step++) {
      noGrad(() => {
        for (let call = 0; call < 5; call++) {
          expect(compute(y, whole()).sub(model.call(y)).abs().max().item()).toBeLessThan(1e-4)
        }
      })
      const loss = model.call(x).square().mean()
      loss.backward()
      optimizer.step()
      optimizer.zeroGrad()
    }
  },
)
