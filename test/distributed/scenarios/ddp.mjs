// DistributedDataParallel: training steps as in the goldens, and what each function promises.
import { nn, optim, torch } from 'tensorfx'
import {
  DistributedDataParallel,
  allReduce,
  allreduceHook,
  bf16CompressHook,
  collectiveStats,
  fp16CompressHook,
  getRank,
  getWorldSize,
  resetCollectiveStats,
} from 'tensorfx/distributed'
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

/** Gradients that travel as halves, and what arithmetic says they are: the ranks' gradients rounded, added up, and rounded again. */
export function compressHooks() {
  const size = getWorldSize()
  const results = {}
  for (const [name, hook, dtype] of [
    ['fp16', fp16CompressHook, 'float16'],
    ['bf16', bf16CompressHook, 'bfloat16'],
  ]) {
    const model = new DistributedDataParallel(init(new Mlp()))
    model.registerCommHook(null, hook)
    const [x, y] = batch('Mlp', 0, getRank(), size)
    resetCollectiveStats()
    lossOf(model(x), y).backward()
    const sent = collectiveStats()
    const alone = Array.from({ length: size }, (_, rank) => plainParameterGrads([0], [rank]))
    const expected = alone[0].map((_, i) => {
      const halves = alone.map((own) => own[i].div(size).to(dtype).to('float32'))
      return flat(
        halves
          .reduce((a, b) => a.add(b))
          .to(dtype)
          .to('float32'),
      )
    })
    results[name] = { grads: [...model.parameters()].map((p) => flat(p.grad)), expected, bytes: sent.alltoall.bytes + sent.allgather.bytes }
  }
  const model = new DistributedDataParallel(init(new Mlp()))
  model.registerCommHook(null, allreduceHook)
  const [x, y] = batch('Mlp', 0, getRank(), size)
  lossOf(model(x), y).backward()
  return { ...results, plain: grads(model), expected: plainGrads([0], [...Array(size).keys()]) }
}

/** Rank r has 1 + 2r inputs. Without process groups: each step takes the gradients of the ranks that still have inputs. */
export function join() {
  const size = getWorldSize()
  const count = (rank) => 1 + 2 * rank
  const results = {}
  for (const [name, options, ddpOptions, hook] of [
    ['usual', {}, {}, null],
    ['divided by those left', { divideByInitialWorldSize: false }, { bucketCapMb: 0.0001 }, null],
    ['unused and compressed', {}, { findUnusedParameters: true }, fp16CompressHook],
  ]) {
    const model = new DistributedDataParallel(init(new Mlp()), ddpOptions)
    if (hook !== null) model.registerCommHook(null, hook)
    const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
    const returned = model.join(() => {
      for (let step = 0; step < count(getRank()); step++) {
        const [x, y] = batch('Mlp', step, getRank(), size)
        optimizer.zeroGrad()
        lossOf(model(x), y).backward()
        optimizer.step()
      }
      return getRank()
    }, options)
    const reference = init(new Mlp())
    const own = new optim.SGD(reference.parameters(), { lr: 0.1 })
    for (let step = 0; step < count(size - 1); step++) {
      const left = [...Array(size).keys()].filter((rank) => step < count(rank))
      own.zeroGrad()
      for (const rank of left) {
        const [x, y] = batch('Mlp', step, rank, size)
        lossOf(reference(x), y)
          .div(options.divideByInitialWorldSize === false ? left.length : size)
          .backward()
      }
      own.step()
    }
    results[name] = { returned, final: arrays(model.module.stateDict()), expected: arrays(reference.stateDict()) }
  }
  const model = new DistributedDataParallel(init(new Mlp()))
  const early = message(() =>
    model.join(
      () => {
        for (let step = 0; step < count(getRank()); step++)
          lossOf(model(batch('Mlp', step, getRank(), size)[0]), batch('Mlp', step, getRank(), size)[1]).backward()
      },
      { throwOnEarlyTermination: true },
    ),
  )
  return { results, early, nested: message(() => model.join(() => model.join(() => 0))) }
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

const plainParameterGrads = (steps, ranks) => {
  const model = init(new Mlp())
  for (const step of steps)
    for (const rank of ranks) lossOf(model(batch('Mlp', step, rank, getWorldSize())[0]), batch('Mlp', step, rank, getWorldSize())[1]).backward()
  return [...model.parameters()].map((p) => p.grad)
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
