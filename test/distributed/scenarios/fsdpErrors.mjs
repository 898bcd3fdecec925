// What FullyShardedDataParallel refuses, and cases at the edges, as the goldens have them.
import { Tensor, nn, torch } from 'tensorfx'
import { getRank, getWorldSize } from 'tensorfx/distributed'
import { FullyShardedDataParallel, describeUnits } from 'tensorfx/distributed/fsdp'
import { init, input, loss, models, part } from './fsdpModels.mjs'
import { flat, grads, message, sgd, tensor, whole, wrapped } from './helpers.mjs'

const { Mlp } = models
const batch = (step) => part('Mlp', step, getRank(), getWorldSize())

class WithParameter extends nn.Module {
  constructor(w) {
    super()
    this.w = w
  }
  forward(x) {
    return x.mul(this.w)
  }
}

export function refuses() {
  const mixedDtypes = init(new Mlp())
  mixedDtypes.net[0].weight = new nn.Parameter(mixedDtypes.net[0].weight.detach().double())
  const integers = new WithParameter(new nn.Parameter(torch.tensor([1, 2, 3], { dtype: 'int64' }), { requiresGrad: false }))
  const tower = wrapped('Tower', 'FULL_SHARD')
  ;[...tower.module.blocks][0](input([1, 8], 1))
  return {
    hybrid_no_mesh: message(() => new FullyShardedDataParallel(init(new Mlp()), { shardingStrategy: 'HYBRID_SHARD' })),
    bad_policy: message(() => new FullyShardedDataParallel(init(new Mlp()), { autoWrapPolicy: 3 })),
    mixed_dtypes: message(() => new FullyShardedDataParallel(mixedDtypes)),
    int_param: message(() => new FullyShardedDataParallel(integers)),
    child_first_then_root: message(() => tower(input([1, 8], 1))),
    scalar_param: message(() => new FullyShardedDataParallel(new WithParameter(new nn.Parameter(torch.tensor(1))))),
    no_sync_child: message(() => [...wrapped('Tower', 'FULL_SHARD').module.blocks][0].noSync(() => 0)),
  }
}

/** Parameters that are fake until the unit that owns them is made. */
export function fakeParameters() {
  const model = new FullyShardedDataParallel(
    withFakeParameters(() => new Mlp()),
    {
      paramInitFn: (module) => {
        for (const [name, p] of [...module.ownParameters()]) module[name] = new nn.Parameter(torch.full(p.shape, 0.5))
      },
    },
  )
  return describeUnits(model).map(({ path, layout, shard, localShard }) => ({ path, names: layout.names, shard, local: tensor(localShard) }))
}

const withFakeParameters = (make) => {
  const module = make()
  for (const inner of module.modules())
    for (const [name, p] of [...inner.ownParameters()]) inner[name] = new nn.Parameter(Tensor.fake({ shape: p.shape, dtype: p.dtype }))
  return module
}

export function edges() {
  const withoutParameters = new FullyShardedDataParallel(new nn.ReLU())
  const result = { no_params: [[...withoutParameters.parameters()].length, flat(withoutParameters(torch.tensor([-1, 1])))] }
  const model = wrapped('Mlp', 'FULL_SHARD')
  for (let again = 0; again < 2; again++) {
    const [x, y] = batch(0)
    loss('Mlp', model(x), y).backward()
  }
  result.two_backwards_accumulate = grads(model)
  const [one, two] = [0, 1].map(() => wrapped('Mlp', 'FULL_SHARD'))
  one.eval()
  torch.noGrad(() => one(batch(0)[0]))
  for (const m of [one, two]) {
    m.train()
    const optimizer = sgd(m)
    const [x, y] = batch(0)
    loss('Mlp', m(x), y).backward()
    optimizer.step()
  }
  result.eval_no_grad = JSON.stringify(whole(one)) === JSON.stringify(whole(two))
  result.apply = (() => {
    const m = wrapped('Mlp', 'FULL_SHARD')
    m.apply((module) => {
      if (module instanceof nn.Linear) torch.noGrad(() => module.weight.fill_(0.25))
    })
    return whole(m)
  })()
  const synced = init(new Mlp())
  torch.noGrad(() => [...synced.parameters()].forEach((p) => p.add_(getRank())))
  result.synced = whole(new FullyShardedDataParallel(synced, { syncModuleStates: true }))
  const written = wrapped('Mlp', 'FULL_SHARD', { useOrigParams: true })
  torch.noGrad(() => written.module.net[0].weight.fill_(1))
  result.orig_data_write = tensor(written(batch(0)[0]))
  return result
}
