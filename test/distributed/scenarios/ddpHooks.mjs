// Communication hooks and static graphs of DistributedDataParallel: as PyTorch recorded them (scripts/distributed/recordHooks.py), and against one process.
import { nn, optim, torch } from 'tensorfx'
import { Function } from 'tensorfx/autograd'
import {
  DistributedDataParallel,
  PowerSGDState,
  allreduceHook,
  batchedPowerSGDHook,
  bf16CompressHook,
  bf16CompressWrapper,
  collectiveStats,
  fp16CompressHook,
  fp16CompressWrapper,
  getRank,
  getWorldSize,
  powerSGDHook,
  resetCollectiveStats,
} from 'tensorfx/distributed'
import { input } from './data.mjs'
import { flat, message } from './helpers.mjs'

const STEPS = 6
const RECORDED = [2, STEPS - 1]

class Wide extends nn.Module {
  constructor(hasUnused) {
    super()
    this.inp = new nn.Linear(12, 16)
    this.a = new nn.Linear(16, 16)
    this.b = new nn.Linear(16, 16)
    if (hasUnused) this.unused = new nn.Linear(3, 2)
    this.out = new nn.Linear(16, 3)
  }
  forward(x) {
    return this.out(torch.tanh(this.b(torch.tanh(this.a(torch.tanh(this.inp(x)))))))
  }
}

function wide(hasUnused = false) {
  const module = new Wide(hasUnused)
  torch.noGrad(() => [...module.parameters()].forEach((p, k) => p.copy_(input(p.shape, k + 1).div(4))))
  return module
}

const lossOf = (model, step, rank) =>
  model(input([4, 12], 100 + 10 * step + rank))
    .sub(input([4, 3], 500 + 10 * step + rank))
    .square()
    .mean()

const gradsOf = (model) => [...model.parameters()].map((p) => flat(p.grad))

function train({ hook, state = null, preset, ...options } = {}) {
  const model = new DistributedDataParallel(wide(options.staticGraph === true), options)
  if (hook !== undefined) model.registerCommHook(state, hook)
  if (preset !== undefined) {
    const [p, q, dtype = 'float32'] = preset
    state.pMemoryDict.set(0, torch.zeros([p], { dtype }))
    state.qMemoryDict.set(0, input([q], 77).to(dtype))
  }
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.2 })
  const all = Array.from({ length: STEPS }, (_, step) => {
    optimizer.zeroGrad()
    lossOf(model, step, getRank()).backward()
    const grads = gradsOf(model)
    optimizer.step()
    return grads
  })
  return {
    all,
    grads: RECORDED.map((step) => all[step]),
    final: [...model.parameters()].map(flat),
    ...(state instanceof PowerSGDState ? { stats: state.compressionStats() } : {}),
  }
}

const power = (options, hook = powerSGDHook) => ({ hook, state: new PowerSGDState(null, { startPowerSGDIter: 2, ...options }) })

/** The cases of the recordings. The narrow matrices that PowerSGD starts from are given, since random numbers differ. */
export function recorded() {
  const results = {
    'rank 1': train({ ...power({ matrixApproximationRank: 1 }), preset: [51, 60] }),
    'rank 2 without error feedback': train({
      ...power({ matrixApproximationRank: 2, useErrorFeedback: false, orthogonalizationEpsilon: 1e-8 }),
      preset: [96, 88],
    }),
    'rank 3 in batches': train({
      ...power({ matrixApproximationRank: 3, minCompressionRate: 1, batchTensorsWithSameShape: true }),
      preset: [144, 132],
    }),
    'fp16 wrapper of rank 1': train({ ...power({ matrixApproximationRank: 1 }, fp16CompressWrapper(powerSGDHook)), preset: [51, 60, 'float16'] }),
    'fp16 wrapper of rank 3 without error feedback': train({
      ...power({ matrixApproximationRank: 3, minCompressionRate: 1, useErrorFeedback: false }, fp16CompressWrapper(powerSGDHook)),
      preset: [144, 132, 'float16'],
    }),
    'batched rank 1': train({ ...power({ matrixApproximationRank: 1 }, batchedPowerSGDHook), preset: [29, 29] }),
    'batched rank 3 without error feedback': train({
      ...power({ matrixApproximationRank: 3, useErrorFeedback: false }, batchedPowerSGDHook),
      preset: [87, 87],
    }),
    'fp16 wrapper': train({ hook: fp16CompressWrapper(allreduceHook) }),
    'static graph': train({ staticGraph: true }),
  }
  for (const result of Object.values(results)) delete result.all
  return results
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0)

/** Columns at right angles and of length 1, as the algorithm of the paper has it, in float64. */
function orthogonal(columns) {
  const done = []
  for (const column of columns) {
    let rest = column
    for (const other of done) {
      const along = dot(rest, other)
      rest = rest.map((value, i) => value - along * other[i])
    }
    const length = Math.sqrt(dot(rest, rest))
    done.push(rest.map((value) => value / length))
  }
  return done
}

const columnsOf = (rows) => (rows[0] ?? []).map((_, j) => rows.map((row) => row[j]))
const meanOf = (lists) => lists[0].map((_, i) => lists.reduce((sum, list) => sum + list[i], 0) / lists.length)

/** PowerSGD in one process, which has the gradients of all ranks: the gradients of each step. */
function reference({ columns, rate, feedback, warm, seed }) {
  const size = getWorldSize()
  const module = wide()
  const optimizer = new optim.SGD(module.parameters(), { lr: 0.2 })
  const parameters = [...module.parameters()]
  const generator = new torch.Generator(seed)
  const errors = parameters.map(() => Array.from({ length: size }, () => null))
  const qs = parameters.map(() => null)
  // The order of a bucket: that in which gradients come, and matrices of one shape one after the other.
  const order = parameters.map((_, i) => i).reverse()
  const shapesInOrder = [...new Set(order.map((i) => String(parameters[i].shape)))]
  order.sort(
    (a, b) =>
      shapesInOrder.indexOf(String(parameters[a].shape)) - shapesInOrder.indexOf(String(parameters[b].shape)) || order.indexOf(a) - order.indexOf(b),
  )
  return Array.from({ length: STEPS }, (_, step) => {
    const own = Array.from({ length: size }, (_, rank) => {
      optimizer.zeroGrad()
      lossOf(module, step, rank).backward()
      return gradsOf(module)
    })
    const grads = parameters.map((_, i) => meanOf(own.map((list) => list[i])))
    if (step >= 2)
      for (const i of order) {
        const [n, m] = [parameters[i].shape[0], parameters[i].numel / parameters[i].shape[0]]
        const k = Math.min(n, m, columns)
        const given = own.map((list, rank) => list[i].map((value, at) => value + (feedback ? (errors[i][rank]?.[at] ?? 0) : 0)))
        grads[i] = meanOf(given)
        if ((n + m) * k * rate < n * m) {
          const matrices = given.map((list) => Array.from({ length: n }, (_, row) => list.slice(row * m, (row + 1) * m)))
          const start = warm && qs[i] !== null ? qs[i] : columnsOf(torch.randn([1, m, k], { generator }).select(0, 0).toArray())
          const q = orthogonal(start)
          const p = orthogonal(q.map((column) => meanOf(matrices.map((rows) => rows.map((row) => dot(row, column))))))
          qs[i] = p.map((column) => meanOf(matrices.map((rows) => columnsOf(rows).map((other) => dot(other, column)))))
          grads[i] = Array.from({ length: n }, (_, row) =>
            Array.from({ length: m }, (_, at) => p.reduce((sum, column, c) => sum + column[row] * qs[i][c][at], 0)),
          ).flat()
        }
        errors[i] = given.map((list) => list.map((value, at) => value - grads[i][at]))
      }
    parameters.forEach((p, i) => {
      p.grad = torch.tensor(Float32Array.from(grads[i])).view(p.shape)
    })
    optimizer.step()
    return grads
  })
}

/** PowerSGD with drawn options. */
export const powerSGD = () =>
  [
    { columns: 1, rate: 2, feedback: true, warm: true, seed: 0, batched: false },
    { columns: 1, rate: 2, feedback: false, warm: false, seed: 5, batched: true },
    { columns: 2, rate: 0.5, feedback: true, warm: false, seed: 3, batched: false },
    { columns: 3, rate: 1, feedback: false, warm: true, seed: 4, batched: false },
    { columns: 4, rate: 1, feedback: true, warm: false, seed: 9, batched: false },
  ].map((options) => {
    const { columns, rate, feedback, warm, seed, batched } = options
    const ours = train(
      power({
        matrixApproximationRank: columns,
        minCompressionRate: rate,
        useErrorFeedback: feedback,
        warmStart: warm,
        randomSeed: seed,
        batchTensorsWithSameShape: batched,
      }),
    )
    return { options, grads: ours.all, expected: batched ? null : reference(options) }
  })

/** A matrix of rank 1 is sent without loss; what is lost of another one comes in later steps. */
export function lossless() {
  const model = new DistributedDataParallel(new nn.Linear(20, 30, { bias: false }))
  const state = new PowerSGDState(null, { startPowerSGDIter: 0, useErrorFeedback: false, warmStart: false })
  model.registerCommHook(state, powerSGDHook)
  // One row of inputs: the gradient of a rank has rank 1, and so has the mean, since the inputs are the same.
  const x = input([1, 20], 3)
  model(x)
    .mul(input([1, 30], 10 + getRank()))
    .sum()
    .backward()
  const factors = Array.from({ length: getWorldSize() }, (_, rank) => flat(input([1, 30], 10 + rank)))
  const expected = meanOf(factors).flatMap((factor) => flat(x).map((value) => value * factor))
  return { grad: flat([...model.parameters()][0].grad), expected, stats: state.compressionStats() }
}

/** The wrapped mean against the hooks that do the same, and PowerSGD on halves. */
export function wrappers() {
  const of = (hook, state = null) => train({ hook, state }).all[0]
  return {
    fp16: [of(fp16CompressWrapper(allreduceHook)), of(fp16CompressHook)],
    bf16: [of(bf16CompressWrapper(allreduceHook)), of(bf16CompressHook)],
    power: ['fp16', 'bf16'].map((name) => {
      const wrapper = name === 'fp16' ? fp16CompressWrapper : bf16CompressWrapper
      const seen = []
      const state = new PowerSGDState(null, { startPowerSGDIter: 2, matrixApproximationRank: 4, orthogonalizationEpsilon: 1e-8 })
      const hook = wrapper((own, bucket) => {
        seen.push([bucket.buffer.dtype, ...bucket.gradients.map((gradient) => gradient.shape)])
        return powerSGDHook(own, bucket)
      })
      return { grads: train({ hook, state }).all, seen: seen.at(-1) }
    }),
    plain: train().all,
  }
}

/** The bytes that hooks send in a step with compressed gradients, by hook and wrapper. */
export function bytes() {
  const loss = (model) =>
    model(input([4, 63], getRank()))
      .square()
      .mean()
  const sentBy = (hook) => {
    const state = new PowerSGDState(null, { startPowerSGDIter: 0, useErrorFeedback: false, warmStart: false })
    const model = new DistributedDataParallel(new nn.Linear(63, 64))
    model.registerCommHook(state, hook)
    // The ranks agree on the order of the gradients in the second step.
    for (let step = 0; step < 3; step++) {
      resetCollectiveStats()
      loss(model).backward()
    }
    return Object.values(collectiveStats()).reduce((sum, count) => sum + count.bytes, 0)
  }
  return Object.fromEntries(
    Object.entries({ powerSGDHook, batchedPowerSGDHook }).map(([name, hook]) => [
      name,
      { plain: sentBy(hook), fp16: sentBy(fp16CompressWrapper(hook)), bf16: sentBy(bf16CompressWrapper(hook)) },
    ]),
  )
}

/** Runs a part again in backward, with a backward of its own, so that its parameters get their gradients there. */
class Reentrant extends Function {
  static forward(ctx, x, part) {
    ctx.part = part
    ctx.saveForBackward(x)
    return torch.noGrad(() => part(x.detach()))
  }
  static backward(ctx, grad) {
    const [x] = ctx.savedTensors
    const inner = x.detach().requiresGrad_()
    torch.enableGrad(() => ctx.part(inner)).backward(grad)
    return [inner.grad, null]
  }
}

class Twice extends nn.Module {
  inp = new nn.Linear(12, 16)
  shared = new nn.Linear(16, 16)
  constructor(isReentrant) {
    super()
    this.isReentrant = isReentrant
  }
  forward(x) {
    const part = (h) => torch.tanh(this.shared(h))
    const run = (h) => (this.isReentrant ? Reentrant.apply(h, part) : part(h))
    // The first gradients come in a backward within the backward.
    return run(run(this.inp(x))).narrow(1, 0, 3)
  }
}

class Switch extends nn.Module {
  a = new nn.Linear(12, 3)
  b = new nn.Linear(12, 3)
  usesB = false
  forward(x) {
    return this.usesB ? this.a(x).add(this.b(x)) : this.a(x)
  }
}

export function staticGraph() {
  const set = (module) => {
    torch.noGrad(() => [...module.parameters()].forEach((p, k) => p.copy_(input(p.shape, k + 1).div(4))))
    return module
  }
  const steps = (module, options) => {
    const model = new DistributedDataParallel(set(module), options)
    const optimizer = new optim.SGD(model.parameters(), { lr: 0.2 })
    const all = Array.from({ length: 3 }, (_, step) => {
      optimizer.zeroGrad()
      lossOf(model, step, getRank()).backward()
      const grads = gradsOf(model)
      optimizer.step()
      return grads
    })
    return { all, buckets: model.buckets }
  }
  const changing = (first) => {
    const model = new DistributedDataParallel(set(new Switch()), { staticGraph: true })
    return message(() => {
      for (const usesB of [first, !first]) {
        model.module.usesB = usesB
        lossOf(model, 0, getRank()).backward()
      }
    })
  }
  // A rank without inputs knows nothing of the graph, and still takes part.
  const joined = () => {
    const model = new DistributedDataParallel(wide(true), { staticGraph: true })
    const rounds = (own) =>
      model.join(() => {
        for (let step = 0; step < own; step++) lossOf(model, step, getRank()).backward()
      })
    rounds(getRank())
    rounds(2)
    return { grads: gradsOf(model), everywhere: [...model.parameters()].map(flat) }
  }
  return {
    reentrant: steps(new Twice(true), { staticGraph: true, bucketCapMb: 0.0005 }),
    plain: steps(new Twice(false), { bucketCapMb: 0.0005 }),
    more: changing(false),
    fewer: changing(true),
    joined: joined(),
  }
}

class Normed extends nn.Module {
  inp = new nn.Linear(12, 6)
  bn = new nn.BatchNorm1d(6)
  out = new nn.Linear(6, 3)
  forward(x) {
    return this.out(torch.tanh(this.bn(this.inp(x))))
  }
}

/** Accumulates the gradients of two inputs for each step, the first of them in noSync, where ranks may have different numbers of steps. `join` null: without it. */
function accumulate(steps, join) {
  const module = new Normed()
  torch.noGrad(() =>
    [...module.parameters()].forEach((p, k) =>
      p.copy_(
        input(p.shape, k + 1)
          .div(4)
          .add(k === 2 ? 1 : 0),
      ),
    ),
  )
  const model = new DistributedDataParallel(module)
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.2 })
  const means = []
  const backward = (step) => {
    const loss = lossOf(model, step, getRank())
    means.push(flat(module.bn.runningMean))
    loss.backward()
  }
  const loop = () => {
    for (let step = 0; step < steps; step++) {
      model.noSync(() => backward(2 * step))
      backward(2 * step + 1)
      optimizer.step()
      optimizer.zeroGrad()
    }
  }
  if (join === null) loop()
  else model.join(loop, join)
  return { means, state: [...module.stateDict().values()].map(flat) }
}

/** The recordings of buffers: two steps on each rank, or more on the first ones. */
export const buffers = () => ({
  buffers: accumulate(2, null),
  join: accumulate(getWorldSize() - getRank(), {}),
  'join of those left': accumulate(getWorldSize() - getRank(), { divideByInitialWorldSize: false }),
})

export function refuses() {
  const bucket = {}
  return {
    early: message(() => new PowerSGDState(null, { startPowerSGDIter: 1 })),
    group: message(() => new PowerSGDState({ rank: 0 })),
    rank: message(() => new PowerSGDState(null, { matrixApproximationRank: 0 })),
    rate: message(() => new PowerSGDState(null, { minCompressionRate: 0 })),
    option: message(() => new PowerSGDState(null, { rank: 1 })),
    state: message(() => powerSGDHook(null, bucket)),
    batchedState: message(() => batchedPowerSGDHook(null, bucket)),
    bucket: message(() => powerSGDHook(new PowerSGDState(), bucket)),
    hook: message(() => fp16CompressWrapper(null)),
    static: message(() => new DistributedDataParallel(new nn.Linear(2, 2), { staticGraph: 1 })),
  }
}
