// DistributedDataParallel: training steps as in the goldens, and what each function promises.
import { nn, optim, torch } from 'tensorfx'
import { DistributedDataParallel, allReduce, getRank, getWorldSize } from 'tensorfx/distributed'
import { Mlp, batch, init, input, lossOf, models } from './data.mjs'

const arrays = (entries) => Object.fromEntries([...entries].map(([name, tensor]) => [name, tensor === null ? null : tensor.toArray().flat(Infinity)]))
const grads = (model) => arrays([...model.namedParameters()].map(([name, p]) => [name, p.grad]))

function train(name, options, steps = 4) {
  const model = new DistributedDataParallel(init(new models[name]()), options)
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9, weightDecay: 0.01 })
  const result = { text: String(model), losses: [], buckets: [], keys: [...model.stateDict().keys()] }
  for (let step = 0; step < steps; step++) {
    const [x, y] = batch(name, step, getRank(), getWorldSize())
    optimizer.zeroGrad()
    const loss = lossOf(model(x), y)
    result.buckets.push(model.buckets)
    loss.backward()
    result.grads ??= grads(model)
    optimizer.step()
    result.losses.push(loss.item())
  }
  result.final = arrays(model.module.stateDict())
  return result
}

export const trained = () =>
  Object.fromEntries(
    Object.keys(models).flatMap((name) => [25, 0.001, 0.0002].map((bucketCapMb) => [`${name} ${bucketCapMb}`, train(name, { bucketCapMb })])),
  )

export const asBucketView = () => train('Tower', { bucketCapMb: 0.0002, gradientAsBucketView: true })

/** A communication hook that sends what the library would: the mean. */
export function commHook() {
  const seen = []
  const model = new DistributedDataParallel(init(new Mlp()))
  model.registerCommHook({ world: getWorldSize() }, ({ world }, bucket) => {
    seen.push([bucket.index, bucket.isLast, bucket.buffer.numel, bucket.parameters.map(({ name }) => name), bucket.gradients.map((g) => g.shape)])
    bucket.buffer.div_(world)
    allReduce(bucket.buffer)
    return bucket.buffer
  })
  const [x, y] = batch('Mlp', 0, getRank(), getWorldSize())
  lossOf(model(x), y).backward()
  return { seen, grads: grads(model) }
}

/** Gradients of this rank alone inside noSync, and the mean of the sums afterwards. */
export function noSync() {
  const model = new DistributedDataParallel(init(new Mlp()))
  const step = (i) => {
    const [x, y] = batch('Mlp', i, getRank(), getWorldSize())
    lossOf(model(x), y).backward()
  }
  model.noSync(() => step(0))
  const inside = grads(model)
  step(1)
  return { inside, after: grads(model), alone: plainGrads([0], [getRank()]), together: plainGrads([0, 1], [...Array(getWorldSize()).keys()]) }
}

/** Gradients of some steps of some ranks, added up without any process group. */
function plainGrads(steps, ranks) {
  const model = init(new Mlp())
  for (const step of steps)
    for (const rank of ranks) {
      const [x, y] = batch('Mlp', step, rank, getWorldSize())
      lossOf(model(x), y).div(ranks.length).backward()
    }
  return grads(model)
}

/** Different weights on each rank become rank 0's; so do buffers at each forward. */
export function startsEqual() {
  class WithBuffer extends nn.Module {
    fc = new nn.Linear(2, 1)
    constructor() {
      super()
      this.registerBuffer('seen', torch.tensor([getRank()]))
    }
    forward(x) {
      return this.fc(x).add(this.seen)
    }
  }
  const module = new WithBuffer()
  torch.noGrad(() => module.fc.weight.fill_(getRank() + 1))
  const model = new DistributedDataParallel(module)
  const atStart = [module.fc.weight.toArray(), module.seen.toArray()]
  module.seen.fill_(10 + getRank())
  model(torch.ones([1, 2]))
  return { atStart, seen: module.seen.toArray() }
}

class Branches extends nn.Module {
  a = new nn.Linear(4, 4)
  u = new nn.Linear(4, 4)
  onlyRank1 = new nn.Linear(4, 4)
  forward(x) {
    const h = this.a(x)
    return getRank() === 1 ? this.onlyRank1(h) : h
  }
}

export function unusedIsAnError() {
  const model = new DistributedDataParallel(init(new Mlp()))
  const [x] = batch('Mlp', 0, getRank(), getWorldSize())
  model.noSync(() => model.module.net[2].bias.requiresGrad_(true))
  try {
    model(x)
    model.module.net[0](x).sum().backward()
  } catch (error) {
    return error.message
  }
  return 'no error'
}

export function unusedIsFound() {
  const model = new DistributedDataParallel(init(new Branches()), { findUnusedParameters: true })
  model(input([2, 4], 7))
    .sum()
    .backward()
  return grads(model)
}

export function refuses() {
  const message = (fn) => {
    try {
      fn()
    } catch (error) {
      return error.message
    }
    return 'no error'
  }
  const frozen = new nn.Linear(2, 2).requiresGrad_(false)
  return {
    noGrad: message(() => new DistributedDataParallel(frozen)),
    noModule: message(() => new DistributedDataParallel(() => 1)),
    option: message(() => new DistributedDataParallel(new nn.Linear(2, 2), { bucketCap: 1 })),
    count: message(() => new DistributedDataParallel(new nn.Linear(2, 2, { bias: getRank() === 0 }))),
    shape: message(() => new DistributedDataParallel(new nn.Linear(4, getRank() === 0 ? 3 : 5))),
  }
}
