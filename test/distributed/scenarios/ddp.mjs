// DistributedDataParallel: training steps as in the goldens, and what each function promises.
import { nn, optim, torch } from 'tensorfx'
import { DistributedDataParallel, allReduce, getRank, getWorldSize } from 'tensorfx/distributed'
import { Mlp, batch, init, input, lossOf } from './data.mjs'
import { loss as lossFor, models, part } from './fsdpModels.mjs'
import { flat, message } from './helpers.mjs'

const arrays = (entries) => Object.fromEntries([...entries].map(([name, t]) => [name, flat(t)]))
const grads = (model) => arrays([...model.namedParameters()].map(([name, p]) => [name, p.grad]))

function train(name, options, steps = 4) {
  const model = new DistributedDataParallel(init(new models[name]()), options)
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9, weightDecay: 0.01 })
  const result = { text: String(model), losses: [], buckets: [], keys: [...model.stateDict().keys()] }
  for (let step = 0; step < steps; step++) {
    const [x, y] = part(name, step, getRank(), getWorldSize())
    optimizer.zeroGrad()
    const loss = lossFor(name, model(x), y)
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
    ['Mlp', 'Odd', 'Tower', 'CompositeModel', 'Tied', 'ConvBn'].flatMap((name) =>
      [25, 0.001, 0.0002].map((bucketCapMb) => [`${name} ${bucketCapMb}`, train(name, { bucketCapMb })]),
    ),
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
  model.noSync(() => [0, 1].forEach(step))
  const inside = grads(model)
  step(2)
  return { inside, after: grads(model), alone: plainGrads([0, 1], [getRank()]), together: plainGrads([0, 1, 2], [...Array(getWorldSize()).keys()]) }
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

/** The case of the recordings: batch norm's averages are rank 0's before each forward, and its own afterwards. */
export function buffers() {
  const module = init(new models.ConvBn())
  torch.noGrad(() => module.bn.runningMean.fill_(getRank()))
  const model = new DistributedDataParallel(module)
  const atStart = module.bn.runningMean.toArray()
  module.bn.runningMean.fill_(10 + getRank())
  model(part('ConvBn', 0, getRank(), getWorldSize())[0])
  return { atStart, afterForward: module.bn.runningMean.toArray(), batches: module.bn.numBatchesTracked.item() }
}

/** Every rank starts with weights of its own. */
export function broadcastFromRank0() {
  const module = init(new Mlp())
  torch.noGrad(() => [...module.parameters()].forEach((p) => p.add_(getRank())))
  return arrays(new DistributedDataParallel(module).module.stateDict())
}

class Unused extends nn.Module {
  a = new nn.Linear(4, 4)
  u = new nn.Linear(4, 4)
  b = new nn.Linear(4, 2)
  forward(x) {
    return this.b(this.a(x))
  }
}

function unusedStep(options) {
  const model = new DistributedDataParallel(init(new Unused()), options)
  const rows = 3 * getWorldSize()
  const [x, y] = [input([rows, 4], 1000), input([rows, 2], 2000)].map((t) => t.narrow(0, 3 * getRank(), 3))
  lossOf(model(x), y).backward()
  return grads(model)
}

export const unusedParameter = () => ({ error: message(() => unusedStep({})), found: unusedStep({ findUnusedParameters: true }) })

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
  return message(() => {
    model(x)
    model.module.net[0](x).sum().backward()
  })
}

export function unusedIsFound() {
  const model = new DistributedDataParallel(init(new Branches()), { findUnusedParameters: true })
  model(input([2, 4], 7))
    .sum()
    .backward()
  return grads(model)
}

export function refuses() {
  const frozen = new nn.Linear(2, 2).requiresGrad_(false)
  return {
    noGrad: message(() => new DistributedDataParallel(frozen)),
    noModule: message(() => new DistributedDataParallel(() => 1)),
    option: message(() => new DistributedDataParallel(new nn.Linear(2, 2), { bucketCap: 1 })),
    count: message(() => new DistributedDataParallel(new nn.Linear(2, 2, { bias: getRank() === 0 }))),
    shape: message(() => new DistributedDataParallel(new nn.Linear(4, 4 + getRank()))),
  }
}
